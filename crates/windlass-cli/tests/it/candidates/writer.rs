//! An application writes the same candidates while they are refreshed and migrated. No change of either is
//! lost.

use crate::candidates::fixture::{CandidatesFixture, HANDLER};
use crate::common::{eventually, parse};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_postgres::Client;

const CANDIDATES: i64 = 5000;

#[tokio::test]
async fn no_concurrent_write_is_lost_during_a_refresh() {
    let fixture = CandidatesFixture::new(CANDIDATES as u32).await;
    write_beside(&fixture, "REFRESH_CANDIDATES").await;
    assert_eq!(fixture.candidates("document ? 'creators'").await, CANDIDATES);
}

#[tokio::test]
async fn no_concurrent_write_is_lost_during_a_migration() {
    let fixture = CandidatesFixture::new(CANDIDATES as u32).await;
    fixture.generate("--originals").await;
    write_beside(&fixture, "MIGRATE_CANDIDATES").await;
    assert_eq!(fixture.candidates("document ?& ARRAY['title', 'creators']").await, CANDIDATES);
}

/// Three writers add to the documents that the job writes back, from before its start until after its end. Each write
/// increments a version by one.
async fn write_beside(fixture: &CandidatesFixture, job_type: &str) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for seed in 1..=3 {
        let client = fixture.database().client().await;
        writers.push(tokio::spawn(write(client, seed, stop.clone())));
    }
    let run = fixture.sandbox.run(&format!("run {job_type} --json")).await;
    stop.store(true, Ordering::Relaxed);
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    let job = parse(&run.ok());
    assert_eq!(job["items"]["processed"], CANDIDATES, "{job:#}");
    let approvals = "SELECT COALESCE(sum((document ->> 'approvals')::bigint), 0) FROM candidates";
    assert!(written > 0);
    assert_eq!(fixture.number(approvals).await, written, "a write of the application was lost");
    let uneven = "version <> 2 + COALESCE((document ->> 'approvals')::bigint, 0)";
    assert_eq!(fixture.candidates(uneven).await, 0, "each is written once by the job");
    fixture.sandbox.prove(job["id"].as_str().unwrap()).await;
}

/// Approves one candidate after the other as an application does: reads it, and writes it back if its version is
/// unchanged. Returns the number of writes.
async fn write(client: Client, seed: i64, stop: Arc<AtomicBool>) -> i64 {
    let mut written = 0;
    let ids = client.query("SELECT identifier FROM candidates ORDER BY identifier", &[]);
    let ids: Vec<uuid::Uuid> = ids.await.unwrap().iter().map(|row| row.get(0)).collect();
    for step in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // Different primes, so that the writers go through the candidates in different orders.
        let id = ids[((step * 379 + seed * 1009) % CANDIDATES) as usize];
        loop {
            let look = "SELECT version, document FROM candidates WHERE identifier = $1";
            let row = client.query_one(look, &[&id]).await.unwrap();
            let (version, mut document): (i64, serde_json::Value) = (row.get(0), row.get(1));
            let approvals = document["approvals"].as_i64().unwrap_or_default();
            document["approvals"] = (approvals + 1).into();
            let update = "UPDATE candidates SET document = $3, version = version + 1 \
                          WHERE identifier = $1 AND version = $2";
            if client.execute(update, &[&id, &version, &document]).await.unwrap() == 1 {
                break;
            }
        }
        written += 1;
    }
    written
}

#[tokio::test]
async fn a_candidate_changed_between_read_and_write_is_read_again() {
    let fixture = CandidatesFixture::new(40).await;
    fixture.generate("--originals --candidates 40").await;
    let id = fixture.identifiers("2024", 1).await.remove(0);
    // The handler's answer for this candidate waits while the file `closed` exists.
    let gate = format!(
        "{HANDLER} | while read -r line; do case $line in *{id}*)\n\
         while [ -e closed ]; do touch standing; sleep 0.05; done;; esac; echo \"$line\"; done\n"
    );
    fixture.sandbox.write("gate.sh", &gate);
    fixture.edit(&format!("[\"{HANDLER}\"]"), "[\"sh\", \"gate.sh\"]");
    fixture.sandbox.write("closed", "");

    let running = fixture.sandbox.spawn("run MIGRATE_CANDIDATES --json");
    let standing = fixture.sandbox.path("standing");
    eventually("the candidate is read and not yet written", async || standing.exists()).await;
    let change = "UPDATE candidates SET version = version + 1, status = 'withdrawn', document \
                  = document || '{\"note\": \"a late one\", \"language\": \"se\"}'";
    fixture.data.run(&format!("{change} WHERE identifier = '{id}'")).await;
    fs::remove_file(fixture.sandbox.path("closed")).unwrap();

    let job = parse(&running.wait().await.ok());
    assert_eq!((&job["items"]["processed"], &job["items"]["conflicts"]), (&40.into(), &1.into()));
    let both = "version = 3 AND status = 'withdrawn' AND document ->> 'note' = 'a late one' \
                AND document ->> 'language' = 'se' AND document ? 'title'";
    assert_eq!(fixture.candidates(&format!("identifier = '{id}' AND {both}")).await, 1);
    assert_eq!(fixture.at_version(2, "document ? 'title'").await, 39);
}
