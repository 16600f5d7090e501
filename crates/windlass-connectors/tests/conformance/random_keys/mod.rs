//! Keys of random types, collations and values: every record is in one chunk, and records whose keys the database calls
//! equal are in the same one. `PROPTEST_CASES` raises the number of tables.

mod mariadb;
mod postgres;
mod sqlite;
mod tables;
mod texts;

use crate::harness::{Db, effect};
use crate::keys::again;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::collections::{BTreeMap, BTreeSet};
use tables::{KeyColumn, RandomTable, Shape, random_tables};
use windlass_connectors::{CutLimits, CutRange, Effect, FilterValues, ReadLimits, Scope, validate};
use windlass_core::{
    Cursor, FilterValue, Identity, JobType, Key, KeyRange, KeySet, Keys, Request, Table, Value,
};
use windlass_testkit::MariaServer;

/// Tables per database.
const TABLES: u32 = 24;

/// Types that cannot be keys.
const REFUSED: [&str; 3] = ["jsonb", "ENUM", "SET("];

#[test]
fn on_postgres() {
    check_tables(Db::postgres(), postgres::BEFORE, postgres::columns());
}

#[test]
fn on_sqlite() {
    check_tables(Db::sqlite(), "", sqlite::columns());
}

#[test]
fn on_mariadb() {
    if MariaServer::shared().is_mysql() {
        return; // MySQL lacks some of these types and collations.
    }
    check_tables(Db::mariadb(), "", mariadb::columns());
}

fn check_tables(db: impl Future<Output = Db>, before: &str, columns: Vec<KeyColumn>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let db = runtime.block_on(db);
    if !before.is_empty() {
        runtime.block_on(db.run(before));
    }
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let config = Config {
        cases: cases.unwrap_or(TABLES),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let checked = TestRunner::new(config).run(&random_tables(columns), |table| {
        runtime.block_on(check(&db, &table)).map_err(TestCaseError::fail)
    });
    if let Err(failed) = checked {
        panic!("{failed}");
    }
}

type Checked<T = ()> = Result<T, String>;

/// Fails the table but not the test, so that a smaller table is found that fails too.
macro_rules! expect {
    ($expected:expr, $($what:tt)+) => {
        if !$expected {
            return Err(format!($($what)+));
        }
    };
}

async fn check(db: &Db, random: &RandomTable) -> Checked {
    random.create(db).await;
    let is_refused = random.types.iter().any(|kind| REFUSED.iter().any(|no| kind.contains(no)));
    let (job_type, table) = match definition(db, random, STATEMENT).await {
        Err(refusal) if is_refused && refusal.contains("name another key") => return Ok(()),
        Err(refusal) => return Err(refusal),
        Ok(_) if is_refused => return Err("accepts a type that cannot be a key".to_owned()),
        Ok(described) => described,
    };
    let values = vec![0.into(), 1.into()];
    let filter = random.shape.has_filter().then(|| [("kinds".to_owned(), Some(values))].into());
    let request = Request { filter, ..Request::new("J") };
    let scope = Scope::new(job_type, table, &request, &Identity::default());
    let planned = Planned { db, random, scope: scope.map_err(|problem| problem.to_string())? };
    let chunks = planned.chunks().await?;
    let keys = planned.check_records(&chunks).await?;
    planned.check_statement(&chunks).await?;
    planned.check_ids(keys).await?;
    planned.check_uniqueness().await
}

const STATEMENT: &str = "step.sql = \"UPDATE t SET v = v + 1 WHERE {chunk}\"";

/// The job type and its source; the problem if it is refused.
async fn definition(db: &Db, random: &RandomTable, step: &str) -> Checked<(JobType, Table)> {
    let mut job_type = crate::harness::job_type(&format!("{}\n{step}", random.source()));
    let table = db.data.describe(&job_type.source).await.map_err(|error| error.to_string())?;
    let problems = validate(&mut job_type, &table);
    match problems.first() {
        Some(problem) => Err(problem.to_string()),
        None => Ok((job_type, table)),
    }
}

/// A planned job over a table.
struct Planned<'a> {
    db: &'a Db,
    random: &'a RandomTable,
    scope: Scope,
}

impl Planned<'_> {
    /// All chunks with their numbers of records, as the store keeps them.
    async fn chunks(&self) -> Checked<Vec<(KeySet, i64)>> {
        let mut chunks = Vec::new();
        if !self.random.shape.has_filter() {
            let ranges = self.db.data.split(&self.scope, self.random.segments).await;
            for range in ranges.map_err(|error| error.to_string())? {
                self.cut(None, again(&range), &mut chunks).await?;
            }
            return Ok(chunks);
        }
        let values = [Value::Int(0), Value::Int(1)];
        let chunk_items = self.random.chunk_items;
        let looked_up = FilterValues { filter: "kinds", values: &values, chunk_items };
        let pages = self.db.data.cut_values(&self.scope, looked_up).await;
        for (value, page) in values.iter().zip(pages.map_err(|error| error.to_string())?) {
            let within = FilterValue { filter: "kinds".to_owned(), value: value.clone() };
            match page {
                Some(page) => chunks.extend(page.chunks),
                None => self.cut(Some(&within), KeyRange::ALL, &mut chunks).await?,
            }
        }
        Ok(again(&chunks))
    }

    /// Adds the chunks of a range, page by page.
    async fn cut(
        &self,
        within: Option<&FilterValue>,
        mut rest: KeyRange,
        chunks: &mut Vec<(KeySet, i64)>,
    ) -> Checked {
        let limits = CutLimits::new(self.random.chunk_items, self.random.max_chunks, None);
        loop {
            let page = self.db.data.cut(&self.scope, CutRange::new(within, &rest), limits).await;
            let page = page.map_err(|error| error.to_string())?;
            chunks.extend(again(&page.chunks));
            if page.done {
                return Ok(());
            }
            expect!(rest.after != page.last, "planning does not continue after {:?}", page.last);
            rest.after = again(&page.last);
        }
    }

    /// Every record is in one chunk, which has the records that the database calls equal to it too. Returns all keys.
    async fn check_records(&self, chunks: &[(KeySet, i64)]) -> Checked<Vec<Key>> {
        let mut chunk_of = BTreeMap::new();
        let mut keys = Vec::new();
        for (n, (key_set, count)) in chunks.iter().enumerate() {
            let ids = self.read(key_set, u32::MAX - 1, &mut keys).await?;
            expect!(ids.len() as i64 == *count, "{} records, not {count}: {key_set:?}", ids.len());
            for id in ids {
                let other = chunk_of.insert(id.clone(), n);
                expect!(
                    other.is_none(),
                    "record {id} is in the chunks {other:?} and {n}: {chunks:?}"
                );
            }
            if let Keys::List(keys) = &key_set.keys {
                // A failing chunk is halved, down to single keys.
                let single =
                    |key: &Key| KeySet { keys: Keys::List(vec![key.clone()]), ..key_set.clone() };
                let halves: Vec<KeySet> = keys.iter().map(single).collect();
                let counts = self.db.data.count_each(&self.scope, &halves).await;
                let counted: i64 = counts.map_err(|error| error.to_string())?.iter().sum();
                expect!(counted == *count, "{counted} records by single keys of {key_set:?}");
            }
            if self.random.shape == Shape::Unique {
                let one_by_one = self.read(key_set, 1, &mut Vec::new()).await?;
                expect!(one_by_one.len() as i64 == *count, "reads {one_by_one:?} of {key_set:?}");
            }
        }
        for equal in self.equal_records().await {
            let chunk = |id: &String| chunk_of.get(id);
            let found: BTreeSet<_> = equal.iter().map(chunk).collect();
            let together = found.len() == 1 && !found.contains(&None);
            expect!(together, "equal records {equal:?} are in the chunks {found:?} of {chunks:?}");
        }
        Ok(keys)
    }

    /// The ids of the records of a chunk, read in batches of this size.
    async fn read(&self, chunk: &KeySet, items: u32, keys: &mut Vec<Key>) -> Checked<Vec<String>> {
        let (mut ids, mut cursor) = (Vec::new(), Cursor::Start);
        while let Some(rest) = cursor.remaining(chunk) {
            let limits = ReadLimits::new(items, usize::MAX);
            let batch = self.db.data.read(&self.scope, &rest, limits).await;
            let batch = batch.map_err(|error| error.to_string())?;
            cursor = if batch.end { Cursor::End } else { cursor };
            for item in batch.items {
                let id = item.record.get("id").ok_or("a record has no id")?;
                ids.push(id.to_text().unwrap_or_default());
                if !batch.end {
                    cursor = Cursor::from_text(&Cursor::Key(item.key.clone()).to_text())
                        .map_err(|error| error.to_string())?;
                }
                keys.push(item.key);
            }
            expect!(ids.len() <= self.random.rows.len(), "reads {chunk:?} again and again");
        }
        Ok(ids)
    }

    /// The ids of all records, those with equal keys together. Within a filter, only those of a value have to be.
    async fn equal_records(&self) -> Vec<Vec<String>> {
        let mut equal: Vec<String> =
            self.random.key().iter().map(|key| format!("a.{key} = b.{key}")).collect();
        if self.random.shape.has_filter() {
            equal.push("a.kind = b.kind".to_owned());
        }
        let sql = format!(
            "SELECT a.id, min(b.id) FROM t AS a JOIN t AS b ON {} GROUP BY a.id",
            equal.join(" AND ")
        );
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for mut row in self.db.rows(&sql).await {
            groups.entry(row.remove(1)).or_default().extend(row);
        }
        groups.into_values().collect()
    }

    /// A statement per chunk changes every record once.
    async fn check_statement(&self, chunks: &[(KeySet, i64)]) -> Checked {
        let mut ledger = self.db.fenced(1).await;
        for (key_set, _) in chunks {
            let commit = effect(Effect::Statement(key_set.clone()));
            let done = self.db.data.commit(&self.scope, &ledger, commit).await;
            ledger = done.map_err(|error| error.to_string())?.ledger;
        }
        let wrong = self.db.rows("SELECT id, v FROM t WHERE v <> 1").await;
        expect!(
            wrong.is_empty(),
            "records changed less or more than once: {wrong:?} by {chunks:?}"
        );
        Ok(())
    }

    /// Of ids that the database calls equal one is left, and each record has one of those that are left.
    async fn check_ids(&self, keys: Vec<Key>) -> Checked {
        let (records, columns) = (keys.len() as i64, self.scope.key());
        let ids = keys.into_iter().map(|key| key.0).collect();
        let left = self.db.data.distinct(&self.scope, columns, ids).await;
        let left = left.map_err(|error| error.to_string())?;
        let lists: Vec<KeySet> =
            left.iter().map(|key| again(&KeySet::keys(vec![Key(key.clone())]))).collect();
        let counts = self.db.data.count_each(&self.scope, &lists).await;
        let counted: i64 = counts.map_err(|error| error.to_string())?.iter().sum();
        expect!(counted == records, "{records} records, but {counted} by the ids {left:?}");
        Ok(())
    }

    /// A step for single records is refused if two records have the same key.
    async fn check_uniqueness(&self) -> Checked {
        if self.random.shape != Shape::Query {
            return Ok(());
        }
        let (job_type, table) = definition(self.db, self.random, "step.handler = \"h\"").await?;
        let checked = self.db.data.check_keys(&Scope::of_all(job_type, table), None).await;
        let repeated = self.equal_records().await.iter().any(|equal| equal.len() > 1);
        let refusal = checked.err().map(|error| error.to_string()).unwrap_or_default();
        let right = refusal.contains("more than one row") == repeated;
        expect!(right, "repeated keys: {repeated}, refused: `{refusal}`");
        Ok(())
    }
}
