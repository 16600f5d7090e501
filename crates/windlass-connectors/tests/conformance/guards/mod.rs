//! Under every guard a concurrent write is found, however small it is, and an unchanged row is never a conflict.

mod cases;
mod postgres;

use crate::harness::{Db, effect, everything, on_every_backend};
use crate::writing::{item, write};
use cases::{Case, MARIADB, POSTGRES, POSTGRES_TYPES, SQLITE};
use windlass_connectors::{DeferredPage, DeferredState, Effect, Item, ReadLimits, Scope};
use windlass_core::{Change, Counts, Guard, KeySet};

on_every_backend!(
    a_concurrent_write_is_never_overwritten,
    the_smallest_change_of_every_type_is_found,
    a_null_version_is_compared_by_its_row_and_becomes_one,
    a_refresh_gives_a_null_version_one,
    a_refresh_needs_a_version_only_where_unchanged_rows_are_not_written,
    the_guard_is_chosen_by_the_definition_and_the_table,
    a_row_of_many_columns_is_compared,
);

/// Every guard of a backend without a version, as the definition names it.
fn guards(db: &Db) -> Vec<&'static str> {
    let mut guards = vec!["", "step.guard = \"columns\""];
    if db.is_postgres() {
        guards.push("step.guard = \"xmin\"");
    }
    guards
}

fn handler(guard: &str) -> String {
    format!("source.table = \"t\"\nstep.handler = \"h\"\n{guard}")
}

async fn read(db: &Db, scope: &Scope) -> Vec<Item> {
    db.data.read(scope, &everything(), ReadLimits::new(100, usize::MAX)).await.unwrap().items
}

/// Commits `v = 7` for these items.
async fn set_v(db: &Db, scope: &Scope, items: Vec<Item>) -> Counts {
    let items = items.into_iter().map(|read| item(read, Change::default().set("v", 7))).collect();
    let ledger = db.fenced(1).await;
    db.data.commit(scope, &ledger, write(items)).await.unwrap().ledger.counts
}

async fn a_concurrent_write_is_never_overwritten(db: Db) {
    for guard in guards(&db) {
        db.run("DROP TABLE IF EXISTS t").await;
        db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, name TEXT)").await;
        db.run("INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'), (4, 4, NULL)").await;
        let scope = db.scope(&handler(guard)).await;
        let items = read(&db, &scope).await;
        // The column that the step sets, another column, and a row that is deleted.
        db.run("UPDATE t SET v = 20 WHERE id = 2").await;
        db.run("UPDATE t SET name = 'C' WHERE id = 3").await;
        let change = |read| item(read, Change::default().set("v", 0));
        let ledger = db.fenced(1).await;
        let commit = write(items.into_iter().map(change).collect());
        let ledger = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger;
        let counts = Counts { read: 4, processed: 2, conflicts: 2, ..Counts::default() };
        assert_eq!(ledger.counts, counts, "{guard}");
        let rows = "SELECT v, name FROM t ORDER BY id";
        let expected = [["0", "a"], ["20", "b"], ["3", "C"], ["0", "NULL"]];
        assert_eq!(db.rows(rows).await, expected, "{guard}");

        // Read again, the deferred items have the data of the other writer, and are written.
        let page = DeferredPage::new(DeferredState::Retry, None, 10);
        let deferred = db.data.deferred(ledger.chunk, page).await.unwrap();
        let keys: Vec<_> = deferred.into_iter().map(|item| item.key).collect();
        let key_set = KeySet::keys(keys.clone());
        let again = db.data.read(&scope, &key_set, ReadLimits::new(10, usize::MAX)).await.unwrap();
        assert_eq!(again.items[1].record.get("name"), Some(&"C".into()), "{guard}");
        let mut commit = effect(Effect::Write(again.items.into_iter().map(change).collect()));
        commit.resolve = keys;
        let counts = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger.counts;
        assert!(counts.add_up() && counts.processed == 4, "{guard}: {counts:?}");
        let expected = [["0", "a"], ["0", "b"], ["0", "C"], ["0", "NULL"]];
        assert_eq!(db.rows(rows).await, expected, "{guard}");
    }
}

async fn the_smallest_change_of_every_type_is_found(mut db: Db) {
    let cases = match db.pick("postgres", "sqlite", "mariadb") {
        "postgres" => POSTGRES,
        "sqlite" => SQLITE,
        _ => MARIADB,
    };
    if db.is_postgres() {
        db.run(POSTGRES_TYPES).await;
        db.run(crate::keys::ODD_SETTINGS).await;
        db.data = windlass_connectors::connect(db.database().url(), 4).await.unwrap();
    }
    let list = |part: fn(usize, &Case) -> String| {
        cases.iter().enumerate().map(|(n, case)| part(n, case)).collect::<Vec<_>>().join(", ")
    };
    let columns = list(|n, case| format!("c{n} {}", case.0));
    db.run(&format!("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, {columns})")).await;
    let (values, nulls) = (list(|_, case| case.1.to_owned()), list(|_, _| "NULL".to_owned()));
    db.run(&format!("INSERT INTO t VALUES (1, 1, {values}), (2, 2, {nulls})")).await;
    for guard in guards(&db) {
        let scope = db.scope(&handler(guard)).await;
        let items = read(&db, &scope).await;
        let counts = set_v(&db, &scope, items).await;
        assert_eq!((counts.processed, counts.conflicts), (2, 0), "{guard}: an unchanged row");
        for (n, (sql_type, value, other)) in cases.iter().enumerate() {
            let items = read(&db, &scope).await;
            db.run(&format!("UPDATE t SET c{n} = {other} WHERE id = 1")).await;
            db.run(&format!("UPDATE t SET c{n} = {value} WHERE id = 2")).await;
            let counts = set_v(&db, &scope, items).await;
            let found = (counts.processed, counts.conflicts);
            assert_eq!(found, (0, 2), "{guard}: {sql_type} from {value} to {other}");
            // The values as they are now are no conflict.
            let items = read(&db, &scope).await;
            let counts = set_v(&db, &scope, items).await;
            let found = (counts.processed, counts.conflicts);
            assert_eq!(found, (2, 0), "{guard}: {sql_type} {other}");
            db.run(&format!("UPDATE t SET c{n} = {value} WHERE id = 1")).await;
            db.run(&format!("UPDATE t SET c{n} = NULL WHERE id = 2")).await;
        }
    }
}

async fn a_null_version_is_compared_by_its_row_and_becomes_one(db: Db) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, name TEXT, version INT)").await;
    db.run(
        "INSERT INTO t VALUES (1, 1, 'a', NULL), (2, 2, 'b', 5), (3, 3, 'c', NULL), \
         (4, 4, 'd', NULL), (5, 5, 'e', 5), (6, 6, 'f', 0)",
    )
    .await;
    let scope = db.scope(&handler("step.version = \"version\"")).await;
    let items = read(&db, &scope).await;
    // NULL + 1 is NULL: the version does not show this write.
    db.run("UPDATE t SET name = 'C', version = version + 1 WHERE id IN (3, 5)").await;
    db.run("UPDATE t SET name = 'D', version = 0 WHERE id = 4").await;
    let counts = set_v(&db, &scope, items).await;
    assert_eq!((counts.processed, counts.conflicts), (3, 3));
    let rows = "SELECT v, name, version FROM t ORDER BY id";
    let expected = [
        ["7", "a", "1"],
        ["7", "b", "6"],
        ["3", "C", "NULL"],
        ["4", "D", "0"],
        ["5", "C", "6"],
        ["7", "f", "1"],
    ];
    assert_eq!(db.rows(rows).await, expected);
    let items = read(&db, &scope).await;
    let counts = set_v(&db, &scope, items).await;
    assert_eq!((counts.processed, counts.conflicts), (6, 0));
    let expected = [
        ["7", "a", "2"],
        ["7", "b", "7"],
        ["7", "C", "1"],
        ["7", "D", "1"],
        ["7", "C", "7"],
        ["7", "f", "2"],
    ];
    assert_eq!(db.rows(rows).await, expected);
}

async fn a_refresh_gives_a_null_version_one(db: Db) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, version INT)").await;
    db.run("INSERT INTO t VALUES (1, NULL), (2, 5)").await;
    let scope =
        db.scope("source.table = \"t\"\nstep.refresh = true\nstep.version = \"version\"").await;
    let ledger = db.fenced(1).await;
    let commit = effect(Effect::Statement(everything()));
    let counts = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 2, processed: 2, ..Counts::default() });
    assert_eq!(db.rows("SELECT version FROM t ORDER BY id").await, [["1"], ["6"]]);
}

async fn a_refresh_needs_a_version_only_where_unchanged_rows_are_not_written(db: Db) {
    let id = db.pick("id BIGINT GENERATED ALWAYS AS IDENTITY", "id BIGINT", "id BIGINT");
    db.run(&format!(
        "CREATE TABLE t ({id} PRIMARY KEY, twice INT GENERATED ALWAYS AS (v * 2) STORED, v INT); \
         CREATE TABLE log (id BIGINT)"
    ))
    .await;
    let refresh = "source.table = \"t\"\nstep.refresh = true";
    if db.pick("", "", "mariadb") == "mariadb" {
        let mut job_type = crate::harness::job_type(refresh);
        let table = db.data.describe(&job_type.source).await.unwrap();
        let problems = windlass_connectors::validate(&mut job_type, &table);
        let expected = "ALTER TABLE t ADD COLUMN version BIGINT NOT NULL DEFAULT 0";
        assert!(problems[0].to_string().contains(expected), "{problems:?}");
        return;
    }
    db.run(db.pick(
        "CREATE FUNCTION log() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN INSERT INTO log VALUES (NEW.id); RETURN NULL; END';
         CREATE TRIGGER log AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION log()",
        "CREATE TRIGGER log_t AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (NEW.id); END",
        "",
    ))
    .await;
    db.run(db.pick(
        "INSERT INTO t (v) VALUES (5), (NULL)",
        "INSERT INTO t (id, v) VALUES (1, 5), (2, NULL)",
        "",
    ))
    .await;
    let scope = db.scope(refresh).await;
    let ledger = db.fenced(1).await;
    let commit = effect(Effect::Statement(everything()));
    let counts = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 2, processed: 2, ..Counts::default() });
    assert_eq!(db.rows("SELECT id FROM log ORDER BY id").await, [["1"], ["2"]]);
    assert_eq!(db.rows("SELECT v FROM t ORDER BY id").await, [["5"], ["NULL"]]);
}

async fn the_guard_is_chosen_by_the_definition_and_the_table(db: Db) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, version INT, checked INT NOT NULL)")
        .await;
    let by_default = if db.is_postgres() { Guard::Xmin } else { Guard::Columns };
    let nulls = db.pick("by xmin", "by all its columns", "by all its columns");
    for (step, guard, expected) in [
        ("", Some(by_default), by_default.name()),
        ("step.guard = \"columns\"", Some(Guard::Columns), "compares all 4 columns"),
        ("step.version = \"version\"", Some(Guard::Version), nulls),
        ("step.version = \"checked\"", Some(Guard::Version), "compares `checked`"),
        ("step.version = \"checked\"\nstep.guard = \"version\"", Some(Guard::Version), "version:"),
    ] {
        let (job_type, table) = db.job_type(&handler(step)).await;
        assert_eq!(job_type.guard(&table), guard, "{step}");
        let text = job_type.describe_guard(&table).unwrap();
        assert!(text.contains(expected), "{step}: {text}");
    }
    let statement = "source.table = \"t\"\nstep.sql = \"UPDATE t SET v = 1 WHERE {chunk}\"";
    let (job_type, table) = db.job_type(statement).await;
    assert_eq!((job_type.guard(&table), job_type.describe_guard(&table)), (None, None));
    if !db.is_postgres() {
        let mut job_type = crate::harness::job_type(&handler("step.guard = \"xmin\""));
        let problems = windlass_connectors::validate(&mut job_type, &table);
        assert_eq!(problems.len(), 1);
        let problem = problems[0].to_string();
        assert!(problem.contains("step.guard") && problem.contains("\"columns\""), "{problem}");
    }
}

async fn a_row_of_many_columns_is_compared(db: Db) {
    let columns: Vec<String> = (0..400).map(|n| format!("c{n} INT")).collect();
    db.run(&format!("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, {})", columns.join(", "))).await;
    db.run("INSERT INTO t (id, c0) VALUES (1, 1), (2, 2), (3, 3)").await;
    let scope = db.scope(&handler("step.guard = \"columns\"")).await;
    let items = read(&db, &scope).await;
    db.run("UPDATE t SET c0 = 0 WHERE id = 1").await;
    db.run("UPDATE t SET c399 = 0 WHERE id = 2").await;
    let counts = set_v(&db, &scope, items).await;
    assert_eq!((counts.processed, counts.conflicts), (1, 2));
}
