//! Submits a job in the same SQLite transaction as an order: both are committed, or neither.
//!
//! `cargo run --example outbox_sqlite`

use rusqlite::Connection;
use serde_json::json;
use windlass::{
    Change, Config, Engine, Identity, ItemContext, ItemError, JobType, Outcome, Request, outbox,
};

/// Ships one order: a row in another table, inserted in the transaction that records the item as done.
async fn ship(order: serde_json::Value, _: ItemContext) -> Result<Outcome, ItemError> {
    let id = order["order"].as_i64().ok_or_else(|| ItemError::permanent("no order number"))?;
    Ok(Change::default().insert("shipments", [("order_id", id.into())]).into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut shop = Connection::open(path("shop.db"))?;
    shop.execute_batch(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY);
         CREATE TABLE shipments (order_id INTEGER);",
    )?;

    let ship =
        JobType::builder("SHIP").connection("shop").inline_items().key(["order"]).handler(ship);
    let mut database = windlass::Connection::new(format!("sqlite:{}", path("shop.db")));
    database.outbox = true;
    let config =
        Config::new(format!("sqlite:{}", path("windlass.db"))).connection("shop", database);
    let engine = Engine::builder(config).job(ship).connect().await?;
    // Creates the table of the outbox.
    engine.prepare_outbox("shop").await?;

    // The transaction of the application. Rolled back, it would leave neither the order nor the job.
    let mut transaction = shop.transaction()?;
    transaction.execute("INSERT INTO orders (id) VALUES (1)", [])?;
    let request = Request::new("SHIP").with_items([json!({"order": 1})]);
    let job = outbox::enqueue(&mut transaction, &request, &Identity::default())?;
    transaction.commit()?;
    let job = job.ok_or("the request has items, so it becomes a job")?;

    // Any worker relays the outbox by itself; this program does it once, then works the job.
    engine.relay("shop").await?;
    let options = windlass::Options::default().with_only(job);
    let (worker, handle) = windlass::Worker::new(engine.clone(), options);
    let working = tokio::spawn(worker.run());
    let ended = loop {
        let job = engine.job(job).await?;
        if job.status.is_final() {
            break job;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    handle.shutdown();
    working.await?;
    let shipped: i64 = shop.query_row("SELECT count(*) FROM shipments", [], |row| row.get(0))?;
    println!("{}: {shipped} order shipped", ended.status);
    Ok(())
}
