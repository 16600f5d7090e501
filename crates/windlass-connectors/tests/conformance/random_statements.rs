//! Statements of random strings, comments and params: a statement that is accepted does what the database makes of its
//! text. The database itself runs the same text with values in place of the params.

use crate::harness::{Db, Random, effect, everything, on_every_backend};
use serde_json::json;
use windlass_connectors::{Effect, Scope, validate};
use windlass_core::{Config, Identity, Request};

on_every_backend!(params_are_bound_where_the_database_sees_them);

const STATEMENTS: usize = 250;

/// Values and comments in all dialects. Most are valid in some of them only.
const PIECES: [&str; 22] = [
    ":p",
    ":p",
    ":p",
    "'plain'",
    "'it''s :p {no}'",
    "'C:\\'",
    "'a\\'b :p'",
    "'\\\\'",
    "''",
    "$$ :p ' $$",
    "$t$ $$ :p {no} $t$",
    "E'\\':p'",
    "'x'::text",
    "/* :p {no} ' */ 'x'",
    "/* a /* b */ 'y' */ 'z'",
    "/* a /* b */ :p",
    "-- :p '\n 'x'",
    "# :p '\n 'x'",
    "'x' -- it's :p\n",
    "'x' # it's :p\n",
    "CAST(:p AS CHAR(5))",
    "'a' /* ' */",
];

async fn params_are_bound_where_the_database_sees_them(db: Db) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, a TEXT, b TEXT, c TEXT)").await;
    let mut random = Random(0x5eed_0022);
    let mut accepted = 0;
    for _ in 0..STATEMENTS {
        let mut piece = || PIECES[random.below(PIECES.len() as u64) as usize];
        let sql = format!(
            "UPDATE t SET a = {}, b = {}, c = {} WHERE {{chunk}}",
            piece(),
            piece(),
            piece()
        );
        if let Some(values) = by_windlass(&db, &sql).await {
            assert_eq!(Some(values), by_database(&db, &sql).await, "{sql}");
            accepted += 1;
        }
    }
    assert!(accepted > STATEMENTS / 20, "only {accepted} statements were accepted");
}

/// The values that the statement writes as a step; `None` if it is refused, by Windlass or by the database.
async fn by_windlass(db: &Db, sql: &str) -> Option<Vec<Vec<String>>> {
    reset(db).await;
    let job_type = format!(
        "[jobs.J]\nsource.connection = \"a\"\nsource.table = \"t\"\nstep.sql = {}",
        json!(sql)
    );
    let mut job_type = Config::parse(&job_type, |_| None).ok()?.jobs["J"].clone();
    let table = db.data.describe(&job_type.source).await.unwrap();
    if !validate(&mut job_type, &table).is_empty() || db.data.check_statement(&job_type).is_err() {
        return None;
    }
    let request = Request { params: [("p".to_owned(), json!("P"))].into(), ..Request::new("J") };
    let scope = Scope::new(job_type, table, &request, &Identity::default()).unwrap();
    let ledger = db.fenced(1).await;
    db.data.commit(&scope, &ledger, effect(Effect::Statement(everything()))).await.ok()?;
    Some(db.rows("SELECT a, b, c FROM t").await)
}

/// The values that the database writes; `None` if it refuses the statement. A param that the generator wrote as a value
/// is one, wherever the database may see it.
async fn by_database(db: &Db, sql: &str) -> Option<Vec<Vec<String>>> {
    reset(db).await;
    let sql = sql.replace("= :p", "= 'P'").replace("*/ :p", "*/ 'P'").replace("(:p", "('P'");
    // The connections of the test have another mode than those of Windlass, which keep that of the server.
    let mode = db.pick("", "", "SET SESSION sql_mode = @@GLOBAL.sql_mode; ");
    db.try_run(&format!("{mode}{}", sql.replace("{chunk}", "id = 1"))).await.ok()?;
    Some(db.rows("SELECT a, b, c FROM t").await)
}

async fn reset(db: &Db) {
    let row = "INSERT INTO t VALUES (1, 'a', 'b', 'c')";
    db.run(&format!("DELETE FROM windlass_ledger; DELETE FROM t; {row}")).await;
}
