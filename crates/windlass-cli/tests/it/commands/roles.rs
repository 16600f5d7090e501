//! The database roles of docs/security.md. Jobs of every kind run with the statements that the page shows, and each role
//! can do nothing else.

use crate::common::{CliSandbox, eventually, refused, text};
use windlass_testkit::{Database, MariaDatabase, MariaServer, Options, PostgresServer};

const PAGE: &str = include_str!("../../../../../docs/security.md");

/// The tables of a shop. One order cannot be settled, and no job uses `salaries`.
const SHOP: &str = "\
CREATE TABLE orders (id bigint PRIMARY KEY, region varchar(20) NOT NULL, amount bigint NOT NULL,
    state varchar(20) NOT NULL, version bigint NOT NULL DEFAULT 1,
    CONSTRAINT settled_is_paid CHECK (state <> 'settled' OR amount > 0));
INSERT INTO orders (id, region, amount, state) VALUES
    (1, 'north', 5, 'new'), (2, 'north', 7, 'new'), (3, 'south', 0, 'new'), (4, 'south', 9, 'new');
CREATE TABLE shipments (order_id bigint NOT NULL);
CREATE TABLE daily_totals (region varchar(20) NOT NULL, total bigint NOT NULL);
CREATE TABLE salaries (id bigint PRIMARY KEY, amount bigint NOT NULL);";

/// The job types of each role, each with its own connection.
const JOBS: &str = r#"
[jobs.SETTLE]
source = { connection = "sql", table = "orders" }
step.sql = "UPDATE orders SET state = 'settled' WHERE {chunk}"
failures = { budget = 0, on_exceeded = "fail" }
chunk.items = 2

[jobs.SHIP]
source = { connection = "handler", table = "orders" }
step = { command = ["python3", "ship.py"], version = "version" }
chunk.items = 2

[jobs.SHIP_ITEMS]
source = { connection = "handler", items = true, key = ["id"] }
step.command = ["python3", "call.py"]

[jobs.CALL]
source = { connection = "call", table = "orders" }
step = { command = ["python3", "call.py"], version = "version" }
chunk.items = 2

[jobs.REPORT]
source = { connection = "report", table = "orders" }
step.map = "SELECT region, sum(amount) AS total FROM {source} WHERE {chunk} GROUP BY region"
reduce = "SELECT region, CAST(sum(total) AS {integer}) AS total FROM parts GROUP BY region"
load = { connection = "load", table = "daily_totals", replace = ["region"] }
chunk.items = 2

[jobs.EXPORT]
source = { connection = "export", table = "orders" }
step.export = { to = "file:out/{job_id}/", format = "csv" }
chunk.items = 2
"#;

const SHIP: &str = r#"import json, sys
def ship(item):
    row = {"order_id": item["record"]["id"]}
    return {"key": item["key"], "update": {"state": "shipped"},
            "insert": {"table": "shipments", "rows": [row]}, "emit": [row]}
for line in sys.stdin:
    print(json.dumps({"results": [ship(item) for item in json.loads(line)["items"]]}), flush=True)
"#;

const CALL: &str = r#"import json, sys
for line in sys.stdin:
    items = json.loads(line)["items"]
    print(json.dumps({"results": [{"key": item["key"]} for item in items]}), flush=True)
"#;

const KINDS: [&str; 6] = ["sql", "handler", "call", "report", "load", "export"];

/// The statements in the page's blocks with this mark.
fn statements(mark: &str) -> Vec<String> {
    let mark = format!("<!-- roles: {mark} -->\n```sql\n");
    let blocks = PAGE.split(&mark).skip(1).map(|rest| rest.split("```").next().unwrap());
    let all: Vec<String> = blocks
        .flat_map(|block| block.split_inclusive(";\n"))
        .map(|statement| statement.trim().to_owned())
        .collect();
    assert!(!all.is_empty(), "docs/security.md has no block {mark}");
    all
}

/// A sandbox with the roles: this store URL, and one connection per role.
fn sandbox(store: &str, url: impl Fn(&str) -> String, integer: &str) -> CliSandbox {
    let mut config = format!("[store]\nurl = \"{store}\"\n");
    for kind in KINDS {
        let outbox = if kind == "handler" { "outbox = true\n" } else { "" };
        let url = url(&format!("windlass_{kind}"));
        config += &format!("[connections.{kind}]\nurl = \"{url}\"\n{outbox}");
    }
    let sandbox = CliSandbox::with(&(config + &JOBS.replace("{integer}", integer)));
    sandbox.write("ship.py", SHIP);
    sandbox.write("call.py", CALL);
    sandbox
}

/// Runs `windlass migrate` as the owners.
async fn migrate(store: &str, shop: &str) {
    let config = format!(
        "[store]\nurl = \"{store}\"\n[connections.shop]\nurl = \"{shop}\"\noutbox = true\n"
    );
    CliSandbox::with(&config).run("migrate").await.ok();
}

/// Runs jobs of every kind to their end, with pauses, retries and redrives.
async fn work(sandbox: &CliSandbox, mend: impl AsyncFn(), enqueue: impl AsyncFn()) {
    sandbox.run("check").await.ok();
    // A record that fails is repaired and redriven; then the rest of the job.
    let id = sandbox.submit("SETTLE").await;
    let failed = sandbox.run(&format!("worker --job {id}")).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert_eq!(sandbox.job(&id).await["items"]["dead"], 1);
    mend().await;
    sandbox.run(&format!("retry {id}")).await.ok();
    sandbox.run(&format!("worker --job {id}")).await.with_dead_letters();
    sandbox.run("dead list").await.ok();
    let redrive = sandbox.json(&format!("dead redrive --job {id}")).await;
    let redrive = text(&redrive[0]["jobId"]);
    sandbox.run(&format!("worker --job {redrive}")).await.ok();
    assert_eq!(sandbox.job(&redrive).await["items"]["processed"], 1);
    sandbox.prove(&id).await;

    for job_type in ["SHIP", "CALL", "REPORT", "EXPORT"] {
        sandbox.run(&format!("run {job_type} --dry-run")).await;
        let job = sandbox.json(&format!("run {job_type}")).await;
        assert_eq!(job["status"], "COMPLETED", "{job:#}");
        sandbox.prove(&text(&job["id"])).await;
    }

    let id = sandbox.submit("CALL").await;
    sandbox.run(&format!("pause {id}")).await.ok();
    sandbox.run(&format!("resume {id}")).await.ok();
    sandbox.run(&format!("cancel {id}")).await.ok();
    assert_eq!(sandbox.run(&format!("worker --job {id}")).await.code, Some(3));

    enqueue().await;
    let server = sandbox.spawn("serve --listen 127.0.0.1:0");
    eventually("the job of the outbox is completed", async || {
        let jobs = sandbox.json("jobs --type SHIP_ITEMS").await;
        jobs[0]["status"] == "COMPLETED"
    })
    .await;
    sandbox.run("outbox").await.ok();
    sandbox.run("workers").await.ok();
    sandbox.run("stop CALL").await.ok();
    sandbox.run("start CALL").await.ok();
    server.term();
    server.wait().await.ok();

    let pruned = sandbox.json("prune --older-than 0s").await;
    assert!(pruned["jobs"].as_i64() >= Some(6), "{pruned:#}");
}

async fn postgres() -> (PostgresServer, Database, Database) {
    let server = PostgresServer::start(Options { fsync: false, ..Options::default() });
    let admin = server.existing("postgres");
    for statement in statements("postgres") {
        admin.run(&statement).await;
    }
    // The application has these before Windlass is installed.
    for statement in [
        "CREATE ROLE shop_owner LOGIN",
        "CREATE ROLE shop_app LOGIN",
        "CREATE DATABASE shop OWNER shop_owner",
    ] {
        admin.run(statement).await;
    }
    let (store, shop) = (server.existing("windlass_store"), server.existing("shop"));
    as_role(&server, "shop_owner", "shop").run(SHOP).await;
    for statement in statements("windlass_store") {
        store.run(&statement).await;
    }
    let urls = [
        as_role(&server, "windlass_owner", "windlass_store").url().to_owned(),
        as_role(&server, "shop_owner", "shop").url().to_owned(),
    ];
    migrate(&urls[0], &urls[1]).await;
    for statement in statements("shop") {
        shop.run(&statement).await;
    }
    (server, store, shop)
}

/// The database with another role.
fn as_role(server: &PostgresServer, role: &str, database: &str) -> Database {
    server.existing(database).as_role(role)
}

#[tokio::test]
async fn jobs_of_every_kind_run_with_the_roles_of_the_page_on_postgres() {
    let (server, _, shop) = postgres().await;
    let store = as_role(&server, "windlass_runtime", "windlass_store");
    let url = |role: &str| as_role(&server, role, "shop").url().to_owned();
    let sandbox = sandbox(store.url(), url, "bigint");
    let app = as_role(&server, "shop_app", "shop");
    let enqueue = async || {
        app.run("SELECT windlass_enqueue('SHIP_ITEMS', '{\"items\": [{\"id\": 1}]}')").await;
    };
    work(&sandbox, async || shop.run("UPDATE orders SET amount = 1 WHERE id = 3").await, enqueue)
        .await;
    let shipped = "SELECT count(*) FROM orders JOIN shipments ON order_id = orders.id \
                   WHERE state = 'shipped'";
    assert_eq!(shop.one::<i64>(shipped).await, 4);
    assert_eq!(shop.one::<i64>("SELECT sum(total)::bigint FROM daily_totals").await, 22);
    assert_eq!(shop.one::<i64>("SELECT count(*) FROM windlass_ledger").await, 0);
}

#[tokio::test]
async fn each_role_of_the_page_is_refused_everything_else_on_postgres() {
    let (server, store, _) = postgres().await;
    let mut attempts = 0;
    let mut refuses = async |role: &str, database: &str, sql: &str| {
        let client = as_role(&server, role, database).try_client().await;
        let done = match client {
            Ok(client) => client.batch_execute(sql).await,
            Err(error) => Err(error),
        };
        let Err(refused) = done else { panic!("{role} may: {sql}") };
        let code = refused.code().map(|code| code.code().to_owned()).unwrap_or_default();
        assert_eq!(code, "42501", "{role} may: {sql}: {refused:?}");
        attempts += 1;
    };
    for kind in KINDS {
        let role = format!("windlass_{kind}");
        for sql in OTHERS {
            refuses(&role, "shop", sql).await;
        }
        refuses(&role, "windlass_store", "SELECT 1").await;
        refuses(&role, "shop", "SELECT windlass_enqueue('SETTLE', '{}')").await;
    }
    for (kind, sql) in FOREIGN {
        refuses(&format!("windlass_{kind}"), "shop", sql).await;
    }
    for kind in ["sql", "handler", "call", "load", "export"] {
        refuses(&format!("windlass_{kind}"), "shop", "CREATE TEMPORARY TABLE t (id int)").await;
    }
    for sql in OTHERS.iter().chain(&[
        "SELECT * FROM windlass_outbox",
        "INSERT INTO windlass_outbox (id, job_type, request) VALUES (gen_random_uuid(), 'A', '{}')",
        "SELECT * FROM orders",
        "SELECT * FROM windlass_ledger",
        "CREATE OR REPLACE FUNCTION windlass_enqueue(job_type text, request jsonb) RETURNS uuid \
         LANGUAGE sql AS 'SELECT NULL::uuid'",
    ]) {
        refuses("shop_app", "shop", sql).await;
    }
    for sql in [
        "CREATE TABLE mine (id int)",
        "CREATE TEMPORARY TABLE mine (id int)",
        "ALTER TABLE windlass_jobs ADD COLUMN mine int",
        "DROP TABLE windlass_jobs",
        "TRUNCATE windlass_jobs",
        "CREATE INDEX mine ON windlass_jobs (id)",
        "CREATE TRIGGER mine BEFORE INSERT ON windlass_jobs EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE ROLE mine",
    ] {
        refuses("windlass_runtime", "windlass_store", sql).await;
    }
    refuses("windlass_runtime", "shop", "SELECT * FROM orders").await;
    refuses("windlass_owner", "shop", "SELECT * FROM orders").await;
    refuses("windlass_owner", "shop", "CREATE TABLE mine (id int)").await;
    refuses("shop_app", "windlass_store", "SELECT 1").await;
    assert!(attempts > 80, "{attempts}");

    // Only the owner may migrate an outdated store.
    store.run("DELETE FROM windlass_migrations WHERE number = (SELECT max(number) FROM windlass_migrations)").await;
    let runtime = as_role(&server, "windlass_runtime", "windlass_store");
    let sandbox = sandbox(runtime.url(), |_| "sqlite:none.db".to_owned(), "bigint");
    refused(&sandbox.run("jobs").await, &["not up to date", "windlass migrate"]);
}

/// What no role may do in the shop's database.
const OTHERS: [&str; 9] = [
    "SELECT * FROM salaries",
    "INSERT INTO salaries VALUES (1, 1)",
    "UPDATE orders SET amount = 0",
    "DELETE FROM orders",
    "ALTER TABLE orders ADD COLUMN mine int",
    "DROP TABLE windlass_ledger",
    "TRUNCATE TABLE windlass_ledger",
    "CREATE TABLE mine (id int)",
    "DROP TABLE orders",
];

/// What one role may do, attempted by another.
const FOREIGN: [(&str, &str); 13] = [
    ("sql", "UPDATE orders SET version = 1"),
    ("sql", "INSERT INTO shipments VALUES (1)"),
    ("sql", "DELETE FROM windlass_outbox"),
    ("handler", "SELECT * FROM shipments"),
    ("handler", "DELETE FROM shipments"),
    ("call", "UPDATE orders SET state = 'a'"),
    ("call", "SELECT * FROM windlass_outbox"),
    ("report", "UPDATE orders SET state = 'a'"),
    ("report", "SELECT * FROM windlass_ledger"),
    ("load", "SELECT * FROM orders"),
    ("load", "UPDATE daily_totals SET total = 0"),
    ("export", "UPDATE orders SET state = 'a'"),
    ("export", "SELECT * FROM windlass_ledger"),
];

async fn mariadb() -> (MariaServer, MariaDatabase) {
    let server = MariaServer::start();
    let admin = server.existing("mysql");
    admin.run("CREATE DATABASE shop").await;
    let shop = server.existing("shop");
    shop.run(SHOP).await;
    admin
        .run(
            "CREATE USER shop_owner IDENTIFIED BY 'change me'; GRANT CREATE ON shop.* TO shop_owner; \
             CREATE USER shop_app IDENTIFIED BY 'change me'",
        )
        .await;
    for statement in statements("mariadb") {
        admin.run(&statement).await;
    }
    let owner = shop.as_user("shop_owner", "change me");
    migrate("sqlite:windlass.db", owner.url()).await;
    for statement in statements("mariadb after migrate") {
        admin.run(&statement).await;
    }
    (server, shop)
}

#[tokio::test]
async fn jobs_of_every_kind_run_with_the_users_of_the_page_on_mariadb() {
    let (_server, shop) = mariadb().await;
    let url = |user: &str| shop.as_user(user, "change me").url().to_owned();
    let sandbox = sandbox("sqlite:windlass.db", url, "signed");
    let app = shop.as_user("shop_app", "change me");
    let enqueue = async || {
        app.run(
            "INSERT INTO windlass_outbox (job_type, request) \
             VALUES ('SHIP_ITEMS', '{\"items\": [{\"id\": 1}]}')",
        )
        .await;
    };
    work(&sandbox, async || shop.run("UPDATE orders SET amount = 1 WHERE id = 3").await, enqueue)
        .await;
    let shipped = "SELECT count(*) FROM orders JOIN shipments ON order_id = orders.id \
                   WHERE state = 'shipped'";
    assert_eq!(shop.one::<i64>(shipped).await, 4);
    assert_eq!(shop.one::<i64>("SELECT CAST(sum(total) AS SIGNED) FROM daily_totals").await, 22);
    assert_eq!(shop.one::<i64>("SELECT count(*) FROM windlass_ledger").await, 0);
}

#[tokio::test]
async fn each_user_of_the_page_is_refused_everything_else_on_mariadb() {
    let (_server, shop) = mariadb().await;
    let mut attempts = 0;
    let mut refuses = async |user: &str, sql: &str| {
        let refused = shop.as_user(user, "change me").try_run(sql).await;
        let Err(refused) = refused else { panic!("{user} may: {sql}") };
        let denied = ["ERROR 1044", "ERROR 1142", "ERROR 1143"];
        let refused = refused.to_string();
        assert!(denied.iter().any(|code| refused.contains(code)), "{user}: {sql}: {refused}");
        attempts += 1;
    };
    for kind in KINDS {
        for sql in OTHERS {
            refuses(&format!("windlass_{kind}"), sql).await;
        }
        let insert = "INSERT INTO windlass_outbox (job_type) VALUES ('SETTLE')";
        refuses(&format!("windlass_{kind}"), insert).await;
    }
    for (kind, sql) in FOREIGN {
        refuses(&format!("windlass_{kind}"), sql).await;
    }
    for sql in OTHERS.iter().chain(&[
        "SELECT * FROM windlass_outbox",
        "INSERT INTO windlass_outbox (job_type, attempts) VALUES ('SETTLE', 5)",
        "DELETE FROM windlass_outbox",
        "SELECT * FROM orders",
        "SELECT * FROM windlass_ledger",
    ]) {
        refuses("shop_app", sql).await;
    }
    assert!(attempts > 80, "{attempts}");
}
