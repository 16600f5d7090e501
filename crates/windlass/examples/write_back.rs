//! A handler that changes records: adds interest to every account of an embedded SQLite database.
//!
//! `cargo run --example write_back`

use rusqlite::Connection;
use serde::Deserialize;
use windlass::{Config, Engine, ItemContext, ItemError, JobType, Outcome};

/// The columns that the handler reads. The record may have more.
#[derive(Deserialize)]
struct Account {
    owner: String,
    balance: String,
}

/// Adds one percent. The changed column is written back if no other writer changed the record meanwhile.
async fn add_interest(account: Account, _: ItemContext) -> Result<Outcome, ItemError> {
    if account.owner.is_empty() {
        // Retrying cannot help, so the record becomes a dead letter at once.
        return Err(ItemError::permanent("the account has no owner"));
    }
    // An error that `?` returns is transient: the record is retried, then becomes a dead letter.
    let balance: i64 = account.balance.parse()?;
    Ok(Outcome::set("balance", (balance + balance / 100).to_string()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bank.db");
    let bank = Connection::open(&file)?;
    bank.execute_batch(
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, owner TEXT, balance TEXT, version INTEGER NOT NULL);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
         INSERT INTO accounts SELECT i, 'owner ' || i, '1000', 1 FROM n;
         UPDATE accounts SET owner = '' WHERE id = 7;",
    )?;

    let interest = JobType::builder("ADD_INTEREST")
        .description("Add one percent to every account")
        .connection("bank")
        .table("accounts")
        .handler(add_interest)
        .version("version")
        .chunk_items(500);
    let request = interest.request();
    let store = format!("sqlite:{}", folder.path().join("windlass.db").display());
    let config = Config::new(store).connection("bank", format!("sqlite:{}", file.display()));
    let engine = Engine::builder(config).job(interest).connect().await?;

    let job = engine.run(request).await?;
    println!(
        "{}: {} accounts processed, {} dead letter",
        job.status, job.items.processed, job.items.dead
    );
    let total: i64 = bank.query_row("SELECT sum(balance) FROM accounts", [], |row| row.get(0))?;
    println!("total balance {total}");
    Ok(())
}
