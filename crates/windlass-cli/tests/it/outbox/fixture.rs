//! A shop whose application places orders. One job ships each order.

use crate::common::{CliSandbox, Data, eventually};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use windlass_testkit::Running;

/// The shop's database, and a folder to run commands in.
pub(crate) struct OutboxFixture {
    pub(crate) data: Data,
    pub(crate) sandbox: CliSandbox,
}

/// Inserts a shipment for each item.
const SHIP: &str = r#"import json, sys
for line in sys.stdin:
    items = json.loads(line)["items"]
    row = lambda item: {"order_id": item["record"]["order"]}
    ship = lambda item: {"key": item["key"], "insert": {"table": "shipments", "rows": [row(item)]}}
    print(json.dumps({"results": [ship(item) for item in items]}), flush=True)
"#;

impl OutboxFixture {
    pub(crate) async fn on(data: Data) -> OutboxFixture {
        data.run(
            "CREATE TABLE orders (id text PRIMARY KEY); CREATE TABLE shipments (order_id text)",
        )
        .await;
        let jobs = "[jobs.SHIP]\nsource = { connection = \"app\", items = true, key = [\"order\"] }\n\
                    step.command = [\"python3\", \"ship.py\"]\n";
        let config = data.config(jobs).replace("\n\n[jobs", "\noutbox = true\n\n[jobs");
        let sandbox = CliSandbox::with(&config);
        sandbox.write("ship.py", SHIP);
        let fixture = OutboxFixture { data, sandbox };
        fixture.sandbox.run("migrate").await.ok();
        fixture
    }

    /// A process that relays and works nothing.
    pub(crate) fn relay(&self) -> Running {
        self.sandbox.spawn("serve --concurrency 0 --listen 127.0.0.1:0")
    }

    pub(crate) async fn waiting(&self) -> i64 {
        self.data.number("SELECT count(*) FROM windlass_outbox").await
    }

    pub(crate) async fn jobs(&self) -> Vec<Json> {
        self.sandbox.json("jobs --limit 100000").await.as_array().unwrap().clone()
    }

    /// Relays and ships everything. Asserts that there are as many jobs as committed orders, and that each order is in one
    /// job and has one shipment.
    pub(crate) async fn ship_all(&self) -> i64 {
        let worker = self.sandbox.spawn("worker");
        let orders = self.data.number("SELECT count(*) FROM orders").await;
        let shipped = "SELECT count(*) FROM shipments";
        eventually("everything is shipped", async || {
            self.waiting().await == 0 && self.data.number(shipped).await >= orders
        })
        .await;
        let ended = |job: &Json| job["status"] == "COMPLETED";
        eventually("all jobs have ended", async || self.jobs().await.iter().all(ended)).await;
        worker.term();
        worker.wait().await.ok();
        let jobs = self.jobs().await;
        let of_jobs: BTreeSet<String> =
            jobs.iter().map(|job| job["request"]["params"]["order"].to_string()).collect();
        assert_eq!((jobs.len(), of_jobs.len()), (orders as usize, orders as usize), "jobs");
        let once = "SELECT count(DISTINCT order_id) FROM shipments JOIN orders ON order_id = id";
        assert_eq!(
            (self.data.number(shipped).await, self.data.number(once).await),
            (orders, orders)
        );
        orders
    }
}
