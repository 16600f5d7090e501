//! Another program writes to the same rows during a `refresh` job. No change is lost.

use crate::common::seeded_rng::SeededRng;
use crate::common::{CliSandbox, Data};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_postgres::Client;

const ROWS: i64 = 20_000;
const REFRESH: &str = "[jobs.REFRESH]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                       step.refresh = true\nstep.version = \"version\"\nchunk.items = 50\n";

#[tokio::test]
async fn refresh_and_a_concurrent_writer_lose_no_change() {
    let data = Data::postgres().await.with_accounts(ROWS).await;
    data.run("ALTER TABLE accounts ADD written_at timestamptz").await;
    let sandbox = CliSandbox::on(&data, REFRESH);
    let Data::Postgres(database) = &data else { unreachable!() };

    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for seed in 1..=3 {
        writers.push(tokio::spawn(write(database.client().await, seed, stop.clone())));
    }
    let output = sandbox.run("run REFRESH --json").await;
    stop.store(true, Ordering::Relaxed);
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    let job = crate::common::parse(&output.ok());
    assert_eq!(job["items"]["processed"], ROWS);

    // Each write increments `amount` and `version`; the refresh increments every version.
    let amounts = "SELECT sum(amount - id * 7 % 1000) FROM accounts";
    assert_eq!(data.number(amounts).await, written, "a write of the other program was lost");
    let uneven = "SELECT count(*) FROM accounts WHERE version <> 2 + amount - id * 7 % 1000";
    assert_eq!(data.number(uneven).await, 0, "rows whose versions do not add up");
    let during = format!(
        "SELECT count(*) FROM accounts WHERE written_at > '{}' AND written_at < '{}'",
        job["startedAt"].as_str().unwrap(),
        job["finishedAt"].as_str().unwrap()
    );
    assert!(data.number(&during).await > 0, "nothing was written while the job ran");
    sandbox.prove(job["id"].as_str().unwrap()).await;
}

/// Increments random rows on the condition that their version is unchanged, and retries otherwise. Returns the number
/// of writes.
async fn write(client: Client, seed: u64, stop: Arc<AtomicBool>) -> i64 {
    let mut rng = SeededRng::new(seed);
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        let id = rng.next_in(1..ROWS as u64 + 1) as i64;
        loop {
            let look = "SELECT version, amount FROM accounts WHERE id = $1";
            let row = client.query_one(look, &[&id]).await.unwrap();
            let (version, amount): (i64, i64) = (row.get(0), row.get(1));
            let update = "UPDATE accounts SET amount = $3, version = version + 1, \
                          written_at = clock_timestamp() WHERE id = $1 AND version = $2";
            if client.execute(update, &[&id, &version, &(amount + 1)]).await.unwrap() == 1 {
                break;
            }
        }
        written += 1;
    }
    written
}
