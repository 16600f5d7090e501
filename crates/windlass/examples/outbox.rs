//! Submits a job in the same PostgreSQL transaction as an order, with `tokio-postgres`: both are
//! committed, or neither. The program creates the tables `orders` and `shipments`; give it a database
//! for trying things out.
//!
//! `cargo run --example outbox -- postgres://localhost/app`

use serde_json::json;
use std::time::Duration;
use tokio_postgres::NoTls;
use windlass::{
    Change, Config, Connection, Engine, Identity, ItemContext, ItemError, JobType, Outcome,
    Request, outbox,
};

/// Ships one order: a row in another table, inserted in the transaction that records the item as done.
async fn ship(order: serde_json::Value, _: ItemContext) -> Result<Outcome, ItemError> {
    let id = order["order"].as_i64().ok_or_else(|| ItemError::permanent("no order number"))?;
    Ok(Change::default().insert("shipments", [("order_id", id.into())]).into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: outbox postgres://USER@HOST/DATABASE")?;
    let folder = tempfile::tempdir()?;
    let (mut shop, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    shop.batch_execute(
        "CREATE TABLE IF NOT EXISTS orders (id bigint PRIMARY KEY);
         CREATE TABLE IF NOT EXISTS shipments (order_id bigint)",
    )
    .await?;

    let ship =
        JobType::builder("SHIP").connection("shop").inline_items().key(["order"]).handler(ship);
    let mut database = Connection::new(url);
    database.outbox = true;
    let store = format!("sqlite:{}", folder.path().join("windlass.db").display());
    let config = Config::new(store).connection("shop", database);
    let engine = Engine::builder(config).job(ship).connect().await?;
    // Creates the table and the function of the outbox.
    engine.prepare_outbox("shop").await?;

    // Rolled back: neither the order nor the job exists afterwards.
    let mut transaction = shop.transaction().await?;
    place_order(&mut transaction, 1).await?;
    transaction.rollback().await?;

    // Committed: the order exists, and its job will run.
    let mut transaction = shop.transaction().await?;
    let job = place_order(&mut transaction, 2).await?;
    transaction.commit().await?;

    // A worker relays the outbox, then runs the job.
    let (worker, handle) = windlass::Worker::new(engine.clone(), windlass::Options::default());
    let working = tokio::spawn(worker.run());
    let ended = loop {
        // The job is unknown until it is relayed.
        match engine.job(job).await {
            Ok(job) if job.status.is_final() => break job,
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    handle.shutdown();
    working.await?;
    let row = shop.query_one("SELECT count(*), min(order_id) FROM shipments", &[]).await?;
    let (shipped, order): (i64, i64) = (row.get(0), row.get(1));
    println!("{}: {shipped} order shipped, number {order}", ended.status);
    Ok(())
}

/// Inserts an order and enqueues its shipment in the same transaction.
async fn place_order(
    transaction: &mut tokio_postgres::Transaction<'_>,
    order: i64,
) -> Result<windlass::JobId, Box<dyn std::error::Error>> {
    transaction.execute("INSERT INTO orders (id) VALUES ($1)", &[&order]).await?;
    let request = Request::new("SHIP").with_items([json!({"order": order})]);
    let job = outbox::enqueue(transaction, &request, &Identity::default()).await?;
    Ok(job.ok_or("the request has items, so it becomes a job")?)
}
