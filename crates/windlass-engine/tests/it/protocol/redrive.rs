//! Redriven dead letters: each is taken once, worked with the same identity and idempotency key, and becomes
//! `reprocessed` or stays one letter.

use crate::protocol::common::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use windlass_core::{DeadLetterStatus, Identity, ItemError, Job, JobStatus};
use windlass_engine::{Engine, ItemContext};
use windlass_store::DeadLetterFilter;

const ROWS: i64 = 30;
const BAD: [i64; 4] = [3, 7, 11, 30];

pub(crate) async fn repaired_rows_are_reprocessed(fixture: EngineFixture) {
    let (engine, _) = spoiled(&fixture).await;
    let first = complete(&engine).await;
    assert_eq!(keys(&letters(&engine, first.id).await), BAD);

    fixture.app.run("UPDATE visits SET note = NULL, version = version + 1").await;
    let redriven = redrive(&engine, &first).await;
    assert_eq!((redriven.items.total, redriven.items.processed), (4, 4));
    proven(&engine, &redriven).await;

    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
    for letter in letters(&engine, first.id).await {
        assert_eq!(letter.status, DeadLetterStatus::Reprocessed);
        assert_eq!(letter.redrive_job, Some(redriven.id));
    }
    let again = engine.redrive(&of(&first)).await.unwrap();
    assert!(again.is_empty(), "nothing is left to redrive: {again:?}");
    proven(&engine, &engine.job(first.id).await.unwrap()).await;
}

pub(crate) async fn a_dead_letter_that_fails_again_stays_one_letter(fixture: EngineFixture) {
    let (engine, _) = spoiled(&fixture).await;
    let first = complete(&engine).await;
    let before = letters(&engine, first.id).await;
    fixture.app.run("UPDATE visits SET note = NULL WHERE id = 7").await;
    fixture.app.run("UPDATE visits SET note = 'worse' WHERE id = 11").await;

    let redriven = redrive(&engine, &first).await;
    assert_eq!(redriven.status, JobStatus::Completed);
    assert_eq!((redriven.items.processed, redriven.items.dead), (1, 3));
    redrive(&engine, &first).await;

    let after = letters(&engine, first.id).await;
    assert_eq!(keys(&after), BAD, "the same letters, none twice");
    assert!(letters(&engine, redriven.id).await.is_empty(), "the redrive has none of its own");
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before.id, after.id);
        let mended = after.key == 7;
        let expected = if mended { DeadLetterStatus::Reprocessed } else { DeadLetterStatus::New };
        assert_eq!(after.status, expected, "{}", after.key);
        // All tries count, over three jobs. A retryable error is tried three times in each.
        let attempts = match after.key.as_i64() {
            Some(3) => 9,
            _ if mended => 1,
            _ => 3,
        };
        assert_eq!(after.attempts, attempts, "{}", after.key);
    }
    assert!(after[2].error.contains("worse"), "the last error: {}", after[2].error);
    assert_eq!(after[2].record["note"], "worse", "and the record it was met with");
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, ROWS - 3);
}

pub(crate) async fn the_idempotency_key_is_the_same_in_retries_and_redrives(
    fixture: EngineFixture,
) {
    let (engine, seen) = spoiled(&fixture).await;
    let first = complete(&engine).await;
    redrive(&engine, &first).await;
    fixture.app.run("UPDATE visits SET note = NULL").await;
    redrive(&engine, &first).await;

    let seen = seen.lock().unwrap();
    let keys: BTreeSet<&String> = seen.values().flatten().map(|(key, _)| key).collect();
    assert_eq!(keys.len() as i64, ROWS, "one key for each item");
    for (id, calls) in seen.iter() {
        let same: BTreeSet<&String> = calls.iter().map(|(key, _)| key).collect();
        assert_eq!(same.len(), 1, "{id}: {calls:?}");
        let tries: Vec<u32> = calls.iter().map(|(_, attempt)| *attempt).collect();
        // The third row is `busy` at first: it fails after three tries in each of two jobs.
        let expected: &[u32] = match id {
            3 => &[1, 2, 3, 1, 2, 3, 1],
            id if BAD.contains(id) => &[1, 1, 1],
            _ => &[1],
        };
        assert_eq!(tries, expected, "{id}");
    }
}

pub(crate) async fn a_redrive_keeps_the_identity_of_the_original(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    fixture.app.run("UPDATE visits SET county = 'south' WHERE id > 20").await;
    spoil(&fixture).await;
    let jobs = format!("{}source.claims = {{ county = \"county\" }}", job(HANDLER, ""));
    let engine = fixture.builder(&jobs).handler("work", refuse_bad).connect().await.unwrap();
    let north = Identity {
        name: "ann".to_owned(),
        claims: [("county".to_owned(), vec!["north".into()])].into(),
        ..Identity::default()
    };
    let job = engine.submit(request(), north.clone()).await.unwrap().id();
    let first = work(&engine, job).await;
    assert_eq!(keys(&letters(&engine, job).await), [3, 7, 11]);

    // One of them is no longer within Ann's claims.
    fixture.app.run("UPDATE visits SET county = 'south' WHERE id = 7").await;
    fixture.app.run("UPDATE visits SET note = NULL").await;
    let redriven = redrive(&engine, &first).await;

    let snapshot = engine.store().snapshot(redriven.id).await.unwrap().unwrap();
    assert_eq!((snapshot.identity, snapshot.root), (north, first.id));
    assert_eq!(redriven.submitted_by, "ann");
    assert_eq!((redriven.items.processed, redriven.items.skipped), (2, 1));
    let touched = "SELECT sum(amount) FROM visits WHERE county = 'south'";
    assert_eq!(fixture.int(touched).await, 0);
}

pub(crate) async fn two_concurrent_redrives_take_each_letter_once(fixture: EngineFixture) {
    let (engine, _) = spoiled(&fixture).await;
    let (other, _) = engine_of(&fixture).await;
    let first = complete(&engine).await;
    fixture.app.run("UPDATE visits SET note = NULL").await;

    let filter = of(&first);
    let (one, two) = tokio::join!(engine.redrive(&filter), other.redrive(&filter));
    let redriven: Vec<_> = one.unwrap().into_iter().chain(two.unwrap()).collect();
    let taken: u64 = redriven.iter().map(|redriven| redriven.letters).sum();
    assert_eq!(taken, BAD.len() as u64, "{redriven:?}");
    for redriven in redriven {
        let done = work(&engine, redriven.job_id).await;
        proven(&engine, &done).await;
    }
    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
}

/// A letter that is being redriven cannot be redriven again until that redrive is cancelled.
pub(crate) async fn a_dead_letter_is_released_when_its_redrive_is_cancelled(
    fixture: EngineFixture,
) {
    let (engine, _) = spoiled(&fixture).await;
    let first = complete(&engine).await;
    let redriven = engine.redrive(&of(&first)).await.unwrap();
    assert_eq!((redriven.len(), redriven[0].letters), (1, 4));
    assert!(engine.redrive(&of(&first)).await.unwrap().is_empty());
    let ignored =
        engine.store().mark_dead_letters(&of(&first), DeadLetterStatus::Ignored).await.unwrap();
    assert_eq!(ignored, 0, "they are being redriven");

    engine.cancel(redriven[0].job_id).await.unwrap();
    fixture.app.run("UPDATE visits SET note = NULL").await;
    redrive(&engine, &first).await;
    fixture.each_once(ROWS).await;
}

on_each!(
    repaired_rows_are_reprocessed,
    a_dead_letter_that_fails_again_stays_one_letter,
    the_idempotency_key_is_the_same_in_retries_and_redrives,
    a_redrive_keeps_the_identity_of_the_original,
    two_concurrent_redrives_take_each_letter_once,
    a_dead_letter_is_released_when_its_redrive_is_cancelled,
);

/// Idempotency key and attempt of every call, by id.
type Seen = Arc<Mutex<BTreeMap<i64, Vec<(String, u32)>>>>;

/// Visits, some with a note that the handler refuses.
async fn spoiled(fixture: &EngineFixture) -> (Engine, Seen) {
    fixture.visits(ROWS).await;
    spoil(fixture).await;
    engine_of(fixture).await
}

async fn spoil(fixture: &EngineFixture) {
    fixture.app.run("UPDATE visits SET note = 'bad' WHERE id IN (7, 11, 30)").await;
    fixture.app.run("UPDATE visits SET note = 'busy' WHERE id = 3").await;
}

async fn engine_of(fixture: &EngineFixture) -> (Engine, Seen) {
    let seen = Seen::default();
    let handler = {
        let seen = seen.clone();
        move |visit: Visit, context: ItemContext| {
            let call = (context.idempotency_key(), context.attempt());
            seen.lock().unwrap().entry(visit.id).or_default().push(call);
            refuse_bad(visit, context)
        }
    };
    let engine = fixture.builder(&job(HANDLER, "chunk.items = 10")).handler("work", handler);
    (engine.connect().await.unwrap(), seen)
}

async fn refuse_bad(visit: Visit, _: ItemContext) -> Result<windlass_core::Outcome, ItemError> {
    match visit.note.as_deref() {
        Some("busy") => Err(ItemError::transient("busy")),
        Some(note) => Err(ItemError::permanent(format!("the note is {note}"))),
        None => visit.done(),
    }
}

fn of(job: &Job) -> DeadLetterFilter {
    DeadLetterFilter { job: Some(job.id), ..DeadLetterFilter::default() }
}

/// Redrives all letters of a job in one new job, and works it.
async fn redrive(engine: &Engine, job: &Job) -> Job {
    let redriven = engine.redrive(&of(job)).await.unwrap();
    assert_eq!(redriven.len(), 1, "{redriven:?}");
    work(engine, redriven[0].job_id).await
}
