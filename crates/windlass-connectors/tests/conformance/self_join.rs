//! A statement that reads its own table a second time: `{chunk:alias}` qualifies keys, `source.where`, filters and
//! claims.

use crate::harness::{Db, effect, everything, on_every_backend};
use serde_json::json;
use windlass_connectors::{Effect, Marked, Scope};
use windlass_core::{Counts, Identity, Key, KeySet, Request, Value};

on_every_backend!(
    a_range_is_qualified,
    a_list_of_keys_is_qualified,
    filters_and_claims_are_qualified,
    a_map_is_qualified,
    the_mark_is_set_and_cleared,
);

/// Six rows in three pairs of date and ssn. `ConID` names the row that a row is in conflict with. The last pair is
/// not due: it is of another kind, and its day is closed.
const ROWS: &str = "INSERT INTO maps VALUES \
    (1, '2025-01-01', 'a', 'C', 'Kent', 2024, 10, 2, NULL, NULL), \
    (2, '2025-01-01', 'a', 'C', 'Kent', 2025, 20, 1, NULL, NULL), \
    (3, '2025-01-02', 'b', 'C', 'Kent', 2024, 30, 4, NULL, NULL), \
    (4, '2025-01-02', 'b', 'C', 'Essex', 2024, 40, 5, NULL, NULL), \
    (5, '2025-01-03', 'c', 'X', 'Kent', 2024, 50, 6, NULL, NULL), \
    (6, '2025-01-04', 'd', 'C', 'Kent', 2024, 60, 1, NULL, NULL)";

/// The text with identifiers in the quotes of the backend.
fn quoted(db: &Db, text: &str) -> String {
    db.pick(text, text, &text.replace('"', "`")).to_owned()
}

async fn tables(db: &Db) {
    let columns = "\"ID\" BIGINT PRIMARY KEY, \"VisitDate\" VARCHAR(10) NOT NULL, \
                   \"SSN\" VARCHAR(10) NOT NULL, \"Kind\" VARCHAR(1), \"County\" VARCHAR(10), \
                   \"Year\" INT, \"Rate\" INT, \"ConID\" BIGINT, \"ConRate\" INT, \"UpdateFlag\" INT";
    db.run(&quoted(db, &format!("CREATE TABLE maps ({columns})"))).await;
    db.run(ROWS).await;
    db.run(&quoted(db, "CREATE INDEX maps_key ON maps (\"VisitDate\", \"SSN\")")).await;
    db.run(&quoted(db, "CREATE INDEX maps_year ON maps (\"Year\")")).await;
    db.run(&quoted(db, "CREATE TABLE open_days (\"VisitDate\" VARCHAR(10), \"Kind\" VARCHAR(1))"))
        .await;
    db.run("INSERT INTO open_days VALUES ('2025-01-01', 'C'), ('2025-01-02', 'C')").await;
}

/// The source. The subquery names the table for its outer column, since it has the column itself.
fn source(db: &Db, key: &str) -> String {
    let condition = "\"Kind\" = 'C' AND \"ConRate\" IS NULL AND EXISTS (SELECT 1 FROM open_days AS d \
                     WHERE d.\"VisitDate\" = maps.\"VisitDate\" AND d.\"Kind\" = maps.\"Kind\")";
    format!(
        "source.table = \"maps\"\nsource.key = [{key}]\n\
         source.where = '''{}'''\nsource.filters = {{ years = \"Year\" }}\n",
        quoted(db, condition)
    )
}

fn toml(db: &Db) -> String {
    let update = "UPDATE maps AS CVM SET \"ConRate\" = V2.\"Rate\" FROM maps AS V2 \
                  WHERE {chunk:CVM} AND V2.\"ID\" = CVM.\"ConID\"";
    let maria = "UPDATE maps AS CVM JOIN maps AS V2 ON V2.`ID` = CVM.`ConID` \
                 SET CVM.`ConRate` = V2.`Rate` WHERE {chunk:CVM}";
    let step =
        format!("step.mark = \"UpdateFlag\"\nstep.sql = '''{}'''", db.pick(update, update, maria));
    source(db, "\"VisitDate\", \"SSN\"") + &step
}

async fn commit(db: &Db, scope: &Scope, key_set: KeySet) -> Counts {
    let ledger = db.fenced(1).await;
    let commit = effect(Effect::Statement(key_set));
    db.data.commit(scope, &ledger, commit).await.unwrap().ledger.counts
}

async fn con_rates(db: &Db) -> Vec<Vec<String>> {
    db.rows(&quoted(db, "SELECT \"ConRate\" FROM maps ORDER BY \"ID\"")).await
}

fn pair(date: &str, ssn: &str) -> Key {
    Key(vec![Value::from(date), Value::from(ssn)])
}

fn processed(rows: i64) -> Counts {
    Counts { read: rows, processed: rows, ..Counts::default() }
}

async fn a_range_is_qualified(db: Db) {
    tables(&db).await;
    let scope = db.scope(&toml(&db)).await;
    let after_first = KeySet::range(Some(pair("2025-01-01", "a")), None);
    assert_eq!(commit(&db, &scope, after_first).await, processed(2));
    assert_eq!(con_rates(&db).await, [["NULL"], ["NULL"], ["40"], ["50"], ["NULL"], ["NULL"]]);
    let upto_first = KeySet::range(None, Some(pair("2025-01-01", "a")));
    assert_eq!(commit(&db, &scope, upto_first.clone()).await, processed(2));
    assert_eq!(con_rates(&db).await, [["20"], ["10"], ["40"], ["50"], ["NULL"], ["NULL"]]);
    assert_eq!(commit(&db, &scope, upto_first).await, Counts::default(), "nothing is due");
}

async fn a_list_of_keys_is_qualified(db: Db) {
    tables(&db).await;
    let scope = db.scope(&toml(&db)).await;
    let keys = vec![pair("2025-01-01", "a"), pair("2025-01-04", "d")];
    commit(&db, &scope, KeySet::keys(keys)).await;
    assert_eq!(con_rates(&db).await, [["20"], ["10"], ["NULL"], ["NULL"], ["NULL"], ["NULL"]]);
}

async fn filters_and_claims_are_qualified(db: Db) {
    tables(&db).await;
    let toml = toml(&db) + "\nsource.claims = { county = \"County\" }";
    let filter = [("years".to_owned(), Some(vec![json!(2024)]))].into();
    let request = Request { filter: Some(filter), ..Request::new("J") };
    let claims = [("county".to_owned(), vec![Value::from("Kent")])].into();
    let identity = Identity { name: "clerk".into(), claims, ..Identity::default() };
    let scope = db.scope_for(&toml, request, identity).await;
    assert_eq!(commit(&db, &scope, everything()).await, processed(2));
    assert_eq!(con_rates(&db).await, [["20"], ["NULL"], ["40"], ["NULL"], ["NULL"], ["NULL"]]);
}

async fn a_map_is_qualified(db: Db) {
    tables(&db).await;
    let map = "SELECT V1.\"SSN\" AS ssn, sum(V2.\"Rate\") AS total FROM {source} AS V1 \
               JOIN maps AS V2 ON V2.\"ID\" = V1.\"ConID\" WHERE {chunk:V1} GROUP BY V1.\"SSN\"";
    let toml = source(&db, "\"ID\"") + &format!("step.map = '''{}'''", quoted(&db, map));
    let scope = db.scope(&toml).await;
    let columns = db.data.map_columns(&scope).await.unwrap();
    let mut rows = db.data.map(&scope, &columns, &everything()).await.unwrap().rows;
    rows.sort_by_key(|row| format!("{row:?}"));
    let text = |value: &Value| serde_json::to_string(value).unwrap().replace('"', "");
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(text).collect()).collect();
    assert_eq!(rows, [["a", "30"], ["b", "90"]]);
}

async fn the_mark_is_set_and_cleared(db: Db) {
    tables(&db).await;
    let scope = db.scope(&toml(&db)).await;
    let ledger = db.fenced(1).await;
    let marked = db.data.mark(&scope, &ledger, &everything()).await.unwrap();
    assert_eq!(marked, Marked { rows: 4, values: vec![2, 2] }, "two dates, two SSNs");
    let marked = quoted(&db, "SELECT \"ID\" FROM maps WHERE \"UpdateFlag\" = 1 ORDER BY \"ID\"");
    assert_eq!(db.rows(&marked).await, [["1"], ["2"], ["3"], ["4"]]);
    let statement = effect(Effect::Statement(everything()));
    db.data.commit(&scope, &ledger, statement).await.unwrap();
    assert!(db.rows(&marked).await.is_empty());
}
