//! Keys of every type that can be indexed, with extreme values: each key survives all conversions of a job, and every
//! record is processed exactly once.

mod array_text;
mod cases;

use crate::harness::{Db, effect};
use cases::{Case, MARIADB, POSTGRES, REFUSED, SQLITE};
use serde_json::json;
use std::collections::HashSet;
use std::time::Duration;
use windlass_connectors::{
    Commit, Connection, CutLimits, CutRange, DeferredItem, DeferredPage, DeferredState, Effect,
    Extraction, Item, ReadLimits, Reduction, Scope, WriteItem, connect,
};
use windlass_core::pagination::{name_key, unname_key};
use windlass_core::{
    Change, Config, Counts, Cursor, Identity, Key, KeyRange, KeySet, Request, Value,
};

/// Server settings that change how values are converted to and from text.
pub(crate) const ODD_SETTINGS: &str = "DO $$ DECLARE setting text; BEGIN
    FOREACH setting IN ARRAY ARRAY['timezone = ''Asia/Tokyo''', 'datestyle = ''SQL, DMY''',
        'intervalstyle = ''sql_standard''', 'extra_float_digits = 0', 'bytea_output = ''escape''']
    LOOP EXECUTE format('ALTER DATABASE %I SET %s', current_database(), setting); END LOOP;
    END $$";

#[tokio::test]
async fn on_postgres() {
    let mut db = Db::postgres().await;
    db.run(ODD_SETTINGS).await;
    db.data = connect(db.database().url(), 4).await.unwrap();
    let scales = db.has_negative_scales().await;
    all(&db, POSTGRES.iter().filter(|case| scales || !case.columns.contains(", -"))).await;
}

#[tokio::test]
async fn on_sqlite() {
    all(&Db::sqlite().await, SQLITE.iter()).await;
}

#[tokio::test]
async fn on_mariadb() {
    all(&Db::mariadb().await, MARIADB.iter()).await;
}

/// Runs every case, and reports all that fail.
async fn all(db: &Db, cases: impl Iterator<Item = &Case>) {
    let (mut failed, mut count) = (Vec::new(), 0);
    for (number, case) in cases.enumerate() {
        count += 1;
        if let Err(error) = Table::new(db, case, number).await.check().await {
            failed.push(format!("{}: {error}", case.columns));
        }
    }
    assert!(failed.is_empty(), "{} of {count} fail:\n{}", failed.len(), failed.join("\n"));
}

/// The table of one case.
struct Table<'a> {
    db: &'a Db,
    case: &'a Case,
    name: String,
    rows: i64,
}

type Checked = Result<(), String>;

/// Adds the failed step to an error.
macro_rules! tried {
    ($what:expr, $done:expr) => {
        $done.map_err(|error| format!("{}: {error}", $what))?
    };
}

/// Fails the case but not the test.
macro_rules! expect {
    ($what:expr, $found:expr, $expected:expr) => {{
        let (found, expected) = (&$found, &$expected);
        if found != expected {
            return Err(format!("{}: {found:?} instead of {expected:?}", $what));
        }
    }};
}

impl Table<'_> {
    async fn new<'a>(db: &'a Db, case: &'a Case, number: usize) -> Table<'a> {
        let name = format!("keys_{number}");
        if !case.before.is_empty() {
            db.run(case.before).await;
        }
        let columns = case.columns.replace("{name}", &name);
        db.run(&format!(
            "CREATE TABLE {name} ({columns}, v INT NOT NULL DEFAULT 0, \
             version INT NOT NULL DEFAULT 1, PRIMARY KEY ({})){}",
            case.key, case.options
        ))
        .await;
        for row in case.rows {
            db.run(&format!("INSERT INTO {name} ({}) VALUES ({row})", case.key)).await;
        }
        let rows = db.number(&format!("SELECT count(*) FROM {name}")).await;
        assert_eq!(rows, case.rows.len() as i64);
        Table { db, case, name, rows }
    }

    fn data(&self) -> &dyn Connection {
        self.db.data.as_ref()
    }

    async fn scope(&self, step: &str, request: Request) -> Result<Scope, String> {
        let text = format!(
            "[jobs.J]\nsource.connection = \"a\"\nsource.table = \"{}\"\n{step}",
            self.name
        );
        let mut job_type = Config::parse(&text, |_| None).unwrap().jobs["J"].clone();
        let table = tried!("describe", self.data().describe(&job_type.source).await);
        let problems = windlass_connectors::validate(&mut job_type, &table);
        expect!("problems", problems, Vec::new());
        let scope = Scope::new(job_type, table, &request, &Identity::default());
        scope.map_err(|problem| format!("refused: {problem}"))
    }

    async fn handler(&self) -> Result<Scope, String> {
        self.scope("step.handler = \"h\"\nstep.version = \"version\"", Request::new("J")).await
    }

    async fn count(&self, condition: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {} WHERE {condition}", self.name);
        self.db.number(&sql).await
    }

    async fn check(&self) -> Checked {
        let scope = self.handler().await?;
        let keys = self.walked(&scope).await?;
        self.statement().await?;
        self.listed(&keys).await?;
        self.written(&scope).await?;
        self.deferred(&scope, &keys).await?;
        self.mapped(&keys).await?;
        self.exported().await
    }

    /// Splits, cuts and reads with several sizes, with all values converted to text and back as in the store. Returns
    /// all keys in order.
    async fn walked(&self, scope: &Scope) -> Result<Vec<Key>, String> {
        let mut keys = Vec::new();
        for (segments, items) in [(1, 1), (3, 2), (5, 100)] {
            keys.clear();
            let ranges = tried!("split", self.data().split(scope, segments).await);
            let ranges: Vec<KeyRange> = again(&ranges);
            if let (Some(first), Some(last)) = (ranges.first(), ranges.last()) {
                let whole = KeyRange { after: first.after.clone(), upto: last.upto.clone() };
                tried!("segments", whole.check_tiling(&ranges));
            }
            for range in &ranges {
                let key_sets = self.cut(scope, range, items).await?;
                let parts = key_sets.iter().map(|key_set| match &key_set.keys {
                    windlass_core::Keys::Range(range) => range,
                    windlass_core::Keys::List(_) => panic!("a range"),
                });
                tried!(format!("chunks of {range:?}"), range.check_tiling(parts));
                for key_set in &key_sets {
                    self.read_one_by_one(scope, key_set, &mut keys).await?;
                }
            }
            let once: HashSet<String> = keys.iter().map(Key::to_text).collect();
            expect!("keys read", (keys.len(), once.len()), (self.total(), self.total()));
        }
        Ok(keys)
    }

    async fn cut(
        &self,
        scope: &Scope,
        range: &KeyRange,
        items: u32,
    ) -> Result<Vec<KeySet>, String> {
        let (mut rest, mut key_sets) = (range.clone(), Vec::new());
        loop {
            let cuts = tried!(
                "cut",
                self.data()
                    .cut(scope, CutRange::new(None, &rest), CutLimits::new(items, 2, None))
                    .await
            );
            for (key_set, count) in cuts.chunks {
                let key_set = again(&key_set);
                let counted = tried!("count", self.data().count(scope, &key_set).await);
                expect!(format!("records of {key_set:?}"), counted, count);
                key_sets.push(key_set);
            }
            if cuts.done {
                return Ok(key_sets);
            }
            let last = cuts.last.ok_or("a page that is not the last has an end")?;
            let named = again(&name_key(scope.key(), &last));
            rest.after = Some(unname_key(scope.key(), &named));
        }
    }

    /// Reads a chunk with one record per commit, with the cursor converted to text in between.
    async fn read_one_by_one(
        &self,
        scope: &Scope,
        key_set: &KeySet,
        keys: &mut Vec<Key>,
    ) -> Checked {
        let mut cursor = Cursor::Start;
        while let Some(rest) = cursor.remaining(key_set) {
            let limits = ReadLimits::new(1, usize::MAX);
            let batch = tried!("read", self.data().read(scope, &rest, limits).await);
            let end = batch.end;
            for item in batch.items {
                cursor = Cursor::Key(item.key.clone());
                keys.push(item.key);
            }
            if end {
                cursor = Cursor::End;
            }
            cursor = tried!("cursor", Cursor::from_text(&cursor.to_text()));
            if keys.len() > self.total() {
                return Err(format!("the cursor does not move on from {cursor:?}"));
            }
        }
        Ok(())
    }

    /// A statement per chunk changes every row once.
    async fn statement(&self) -> Checked {
        let step = format!("step.sql = \"UPDATE {} SET v = v + 1 WHERE {{chunk}}\"", self.name);
        let scope = self.scope(&step, Request::new("J")).await?;
        let mut read = 0;
        for range in tried!("split", self.data().split(&scope, 3).await) {
            for key_set in self.cut(&scope, &range, 2).await? {
                let ledger = self.db.fenced(1).await;
                let commit = effect(Effect::Statement(key_set));
                let done = tried!("statement", self.data().commit(&scope, &ledger, commit).await);
                read += done.ledger.counts.read;
            }
        }
        expect!("rows of the statements", read, self.rows);
        expect!("rows that were changed once", self.count("v = 1").await, self.rows);
        Ok(())
    }

    /// Every key is found in its stored form.
    async fn listed(&self, keys: &[Key]) -> Checked {
        let ids: Vec<serde_json::Value> = again(&keys.iter().map(Key::to_id).collect::<Vec<_>>());
        // Without ids: those of a request must have the declared type of the column, but on SQLite the stored key of a
        // dead letter may have another type.
        let step = "step.handler = \"h\"\nstep.version = \"version\"";
        let scope = self.scope(step, Request::new("J")).await?;
        let mut typed = Vec::new();
        for id in ids {
            let Key(parts) = Key::from_id(id);
            let columns = scope.key().iter().zip(&parts);
            let read = columns.map(|(column, part)| scope.table.read_key(column, &part.to_json()));
            typed.push(read.collect::<Result<Vec<Value>, String>>()?);
        }
        let found = tried!("ids", self.data().distinct(&scope, scope.key(), typed).await);
        let listed: KeySet = again(&KeySet::keys(found.into_iter().map(Key).collect()));
        let counted = tried!("count of ids", self.data().count(&scope, &listed).await);
        expect!(format!("records counted by the ids of {listed:?}"), counted, self.rows);
        let batch = tried!(
            "read of ids",
            self.data().read(&scope, &listed, ReadLimits::new(1000, 1 << 30)).await
        );
        expect!("records read by their ids", batch.items.len(), self.total());
        for key in keys {
            let one = KeySet::keys(vec![again(key)]);
            let counted = tried!("count of an id", self.data().count(&scope, &one).await);
            expect!(format!("records of the id {key}"), counted, 1);
        }
        Ok(())
    }

    /// Every record is written back under its guard.
    async fn written(&self, scope: &Scope) -> Checked {
        let key_set = KeySet::range(None, None);
        let batch = tried!(
            "read",
            self.data().read(scope, &key_set, ReadLimits::new(1000, usize::MAX)).await
        );
        let item = |Item { key, guard, record }: Item| WriteItem {
            key: again(&key),
            guard,
            change: Change::default().set("v", 2).into(),
            record,
            attempts: 0,
            conflicts: 0,
        };
        let items = batch.items.into_iter().map(item).collect();
        let ledger = self.db.fenced(1).await;
        let commit = effect(Effect::Write(items));
        let done = tried!("write", self.data().commit(scope, &ledger, commit).await);
        expect!("conflicts", done.ledger.counts.conflicts, 0);
        expect!("rows written back", self.count("v = 2 AND version = 2").await, self.rows);
        Ok(())
    }

    /// Deferred items are found by their keys, page by page.
    async fn deferred(&self, scope: &Scope, keys: &[Key]) -> Checked {
        let deferred = |key: &Key| DeferredItem {
            key: key.clone(),
            state: DeferredState::Dead,
            attempts: 1,
            conflicts: 0,
            error: "wrong".to_owned(),
            context: json!({}),
            record: json!({ "key": key.to_id() }),
            wait: Duration::ZERO,
        };
        let commit = |defer: Vec<DeferredItem>, resolve: Vec<Key>| Commit {
            defer,
            resolve,
            counts: Counts::default(),
            cursor: Cursor::Start,
            effect: Effect::Nothing,
        };
        let ledger = self.db.fenced(1).await;
        let defer = commit(keys.iter().map(deferred).collect(), Vec::new());
        let ledger = tried!("defer", self.data().commit(scope, &ledger, defer).await).ledger;
        let (mut found, mut after) = (Vec::new(), None::<String>);
        loop {
            let items = self
                .data()
                .deferred(ledger.chunk, DeferredPage::new(DeferredState::Dead, after.as_deref(), 2))
                .await;
            let page = tried!("deferred", items);
            let Some(last) = page.last() else { break };
            after = Some(last.key.to_text());
            found.extend(page.into_iter().map(|item| (item.key.to_text(), item.record)));
        }
        let mut expected: Vec<_> =
            keys.iter().map(|key| (key.to_text(), json!({ "key": key.to_id() }))).collect();
        let by_key = |one: &(String, serde_json::Value), other: &(String, _)| one.0.cmp(&other.0);
        expected.sort_by(by_key);
        found.sort_by(by_key);
        expect!("deferred items", found, expected);
        let resolve = commit(Vec::new(), keys.to_vec());
        tried!("resolve", self.data().commit(scope, &ledger, resolve).await);
        let left = tried!(
            "deferred",
            self.data()
                .deferred(ledger.chunk, DeferredPage::new(DeferredState::Dead, None, 10))
                .await
        );
        expect!("deferred items that were resolved", left.len(), 0);
        Ok(())
    }

    /// Keys in the parts of a `map` are unchanged in `reduce`.
    async fn mapped(&self, keys: &[Key]) -> Checked {
        let key = self.case.key;
        let step = format!(
            "step.map = \"SELECT {key} FROM {{source}} WHERE {{chunk}}\"\nreduce = \"SELECT {key} FROM parts\"\nreport = {{ to = \"file:/unused.json\" }}"
        );
        let scope = self.scope(&step, Request::new("J")).await?;
        let columns = tried!("map_columns", self.data().map_columns(&scope).await);
        let mut parts = Vec::new();
        for range in tried!("split", self.data().split(&scope, 2).await) {
            for key_set in self.cut(&scope, &range, 3).await? {
                let mapped = tried!("map", self.data().map(&scope, &columns, &key_set).await);
                parts.push(Ok(again::<Vec<Vec<Value>>>(&mapped.rows)));
            }
        }
        let select = windlass_core::Template::parse(&format!("SELECT {key} FROM parts")).unwrap();
        let parts = Box::pin(futures::stream::iter(parts));
        let params = Default::default();
        let reduced = tried!(
            "reduce",
            self.data()
                .reduce(Reduction { columns: &columns, parts, select: &select, params: &params })
                .await
        );
        let texts = |rows: &[Vec<Value>]| {
            let text = |row: &Vec<Value>| {
                Key(row.iter().map(array_text::array_as_text).collect()).to_text()
            };
            let mut texts: Vec<String> = rows.iter().map(text).collect();
            texts.sort();
            texts
        };
        let expected: Vec<Vec<Value>> = keys.iter().map(|key| key.0.clone()).collect();
        expect!("rows of the parts", texts(&reduced.rows), texts(&expected));
        Ok(())
    }

    /// An export has every record, or reports the unsupported value.
    async fn exported(&self) -> Checked {
        let step = "step.export = { to = \"file:/unused/\", format = \"jsonl\" }";
        let scope = self.scope(step, Request::new("J")).await?;
        let (to, mut batches) = tokio::sync::mpsc::channel(100);
        let key_set = KeySet::range(None, None);
        let done = self
            .data()
            .extract(
                &scope,
                Extraction { key_set: &key_set, columns: &scope.table.columns, batches: to },
            )
            .await;
        let mut rows = 0;
        while let Some(batch) = batches.recv().await {
            rows += batch.num_rows();
        }
        match (done, self.case.unexported) {
            (Ok(()), None) => expect!("rows exported", rows, self.total()),
            (Err(error), Some(value)) if error.to_string().contains(value) => {}
            (done, unexported) => {
                return Err(format!("export: {done:?} instead of {unexported:?}"));
            }
        }
        Ok(())
    }

    fn total(&self) -> usize {
        self.case.rows.len()
    }
}

/// A value after conversion to JSON and back.
pub(crate) fn again<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

/// A column that cannot be a key is refused by its name and type.
#[tokio::test]
async fn a_type_that_cannot_be_a_key_is_refused() {
    for (db, columns, expected) in [
        (Db::postgres().await, REFUSED.postgres, "`k` is of type jsonb"),
        (Db::mariadb().await, REFUSED.mariadb, "`k` is an enum or a set"),
    ] {
        db.run(&format!("CREATE TABLE refused ({columns} PRIMARY KEY, v INT)")).await;
        for source in
            ["table = \"refused\"", "query = \"SELECT k, v FROM refused\"\nsource.key = [\"k\"]"]
        {
            let mut job_type = crate::harness::job_type(&format!(
                "source.{source}\nstep.sql = \"UPDATE refused SET v = 1 WHERE {{chunk}}\""
            ));
            let table = db.data.describe(&job_type.source).await.unwrap();
            let problems = windlass_connectors::validate(&mut job_type, &table);
            let told = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            // The columns of a query do not tell that they are enums.
            if source.starts_with("table") || db.is_postgres() {
                assert!(told.contains(expected) && told.contains("name another key"), "{told}");
            }
        }
    }
}

#[tokio::test]
async fn a_domain_over_an_enum_is_refused() {
    let db = Db::postgres().await;
    db.run("CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN d_mood AS mood").await;
    db.run("CREATE TABLE refused (k d_mood PRIMARY KEY, v INT)").await;
    let job_type = crate::harness::job_type(
        "source.table = \"refused\"\nstep.sql = \"UPDATE refused SET v = 1 WHERE {chunk}\"",
    );
    let told = db.data.describe(&job_type.source).await.unwrap_err().to_string();
    assert!(told.contains("`k` is of type d_mood, a domain over an enum"), "{told}");
}

/// A text that is not UTF-8 would become bytes, which sort behind every text.
#[tokio::test]
async fn a_key_of_sqlite_that_is_not_utf_8_is_refused() {
    let db = Db::sqlite().await;
    db.run("CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY, v INT)").await;
    db.run("INSERT INTO t (k) VALUES ('a'), (CAST(x'ff' AS TEXT)), ('z')").await;
    let scope =
        db.scope("source.table = \"t\"\nstep.sql = \"UPDATE t SET v = 1 WHERE {chunk}\"").await;
    let error = db.data.split(&scope, 2).await.unwrap_err().to_string();
    assert!(error.contains("`k` has the text x'ff', which is not UTF-8"), "{error}");
    let read =
        db.data.read(&scope, &crate::harness::everything(), ReadLimits::new(10, usize::MAX)).await;
    let error = read.unwrap_err().to_string();
    assert!(error.contains("name another key"), "{error}");
}
