//! Concurrent writes are never overwritten. An item that another writer changed between read and commit is read and
//! worked again, or skipped, or becomes a dead letter, as the job type says.

use crate::protocol::common::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use windlass_core::step::MAX_CONFLICTS;
use windlass_core::{Job, JobStatus};
use windlass_engine::{Engine, Verdict};

const ROWS: i64 = 20;

pub(crate) async fn both_changes_survive_a_conflict(fixture: EngineFixture) {
    let engine = contested(&fixture, "", 1).await;
    let done = complete(&engine).await;
    assert_eq!(counts(&done), (ROWS, 0, 0, ROWS));
    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
    assert_eq!(theirs(&fixture).await, ROWS);
    assert_eq!(fixture.int("SELECT count(*) FROM visits WHERE version = 2").await, ROWS);
}

pub(crate) async fn an_item_succeeds_after_several_conflicts(fixture: EngineFixture) {
    let engine = contested(&fixture, "", 4).await;
    let done = complete(&engine).await;
    assert_eq!(counts(&done), (ROWS, 0, 0, 4 * ROWS));
    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
    assert_eq!(theirs(&fixture).await, 4 * ROWS);
}

pub(crate) async fn a_conflict_may_be_skipped(fixture: EngineFixture) {
    let engine = contested(&fixture, "step.on_conflict = \"skip\"", 1).await;
    let done = complete(&engine).await;
    assert_eq!(counts(&done), (0, ROWS, 0, ROWS));
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 0);
    fixture.logged_once(0).await;
    assert_eq!(theirs(&fixture).await, ROWS);
}

pub(crate) async fn a_conflict_may_be_a_dead_letter(fixture: EngineFixture) {
    let engine = contested(&fixture, "step.on_conflict = \"dead-letter\"", 1).await;
    let done = complete(&engine).await;
    assert_eq!(counts(&done), (0, 0, ROWS, ROWS));
    let letters = letters(&engine, done.id).await;
    assert_eq!(keys(&letters), (1..=ROWS).collect::<Vec<_>>());
    assert!(letters[0].error.contains("conflict: another writer"), "{}", letters[0].error);
    assert_eq!(letters[0].record["amount"], 0, "the record as it was read");
    fixture.logged_once(0).await;
    assert_eq!(theirs(&fixture).await, ROWS);
}

pub(crate) async fn a_row_that_conflicts_every_time_becomes_a_dead_letter(fixture: EngineFixture) {
    let engine = contested(&fixture, "", u32::MAX).await;
    let done = complete(&engine).await;
    let bound = i64::from(MAX_CONFLICTS);
    assert_eq!(counts(&done), (0, 0, ROWS, bound * ROWS));
    assert_eq!(keys(&letters(&engine, done.id).await).len() as i64, ROWS);
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 0);
    assert_eq!(theirs(&fixture).await, bound * ROWS);
}

/// Without a version column the row itself is compared. The other writer changes another column than the step,
/// and knows nothing of versions.
pub(crate) async fn both_changes_survive_without_a_version(fixture: EngineFixture) {
    for (times, guard) in [(1, ""), (2, "step.guard = \"columns\"")] {
        fixture.app.run("DROP TABLE IF EXISTS visits").await;
        fixture.app.run("DROP TABLE IF EXISTS log").await;
        let step = format!("step.handler = \"work\"\n{guard}");
        let engine = contested_by(&fixture, &step, "", times).await;
        let done = complete(&engine).await;
        assert_eq!(counts(&done), (ROWS, 0, 0, i64::from(times) * ROWS), "{guard}");
        fixture.each_once(ROWS).await;
        fixture.logged_once(ROWS).await;
        assert_eq!(theirs(&fixture).await, i64::from(times) * ROWS, "{guard}");
        assert_eq!(fixture.int("SELECT sum(version) FROM visits").await, 0, "{guard}");
    }
}

/// A row that is deleted before it is read again is skipped.
pub(crate) async fn a_row_deleted_meanwhile_is_skipped(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let handler = running(&fixture.app, 5, "DELETE FROM visits WHERE id = 5");
    let engine = fixture.builder(&job(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let done = run(&engine).await;
    assert_eq!(done.status, JobStatus::Completed, "{:?}", done.error);
    assert_eq!(counts(&done), (ROWS - 1, 1, 0, 1));
    // The audit cannot distinguish a deleted row from one that moved to another chunk.
    let audit = engine.audit(done.id).await.unwrap();
    assert_eq!(audit.verdict, Verdict::CannotBeJudged, "{audit:#?}");
    fixture.each_once(ROWS - 1).await;
    fixture.logged_once(ROWS - 1).await;
}

/// `refresh` increments versions in one statement, so it has no conflicts.
pub(crate) async fn a_refresh_writes_every_record_once(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let refresh = "step.refresh = true\nstep.version = \"version\"";
    let engine = fixture.engine(&job(refresh, "chunk.items = 5")).await;
    let done = complete(&engine).await;
    assert_eq!(counts(&done), (ROWS, 0, 0, 0));
    assert_eq!(fixture.int("SELECT count(*) FROM visits WHERE version = 1").await, ROWS);
}

on_each!(
    both_changes_survive_a_conflict,
    both_changes_survive_without_a_version,
    an_item_succeeds_after_several_conflicts,
    a_conflict_may_be_skipped,
    a_conflict_may_be_a_dead_letter,
    a_row_that_conflicts_every_time_becomes_a_dead_letter,
    a_row_deleted_meanwhile_is_skipped,
    a_refresh_writes_every_record_once,
);

/// An engine whose handler changes the row as another writer would, the first `times` times it sees it.
async fn contested(fixture: &EngineFixture, more: &str, times: u32) -> Engine {
    contested_by(fixture, HANDLER, more, times).await
}

async fn contested_by(fixture: &EngineFixture, step: &str, more: &str, times: u32) -> Engine {
    fixture.visits(ROWS).await;
    let app = fixture.app.clone();
    let seen: Arc<Mutex<HashMap<i64, u32>>> = Arc::default();
    let raise = if step == HANDLER { ", version = version + 1" } else { "" };
    let handler = move |visit: Visit, _| {
        let app = app.clone();
        let overtaken = {
            let mut seen = seen.lock().unwrap();
            let seen = seen.entry(visit.id).or_default();
            *seen += 1;
            *seen <= times
        };
        async move {
            if overtaken {
                let id = visit.id;
                let sql = format!("UPDATE visits SET year = year + 1{raise} WHERE id = {id}");
                app.run(&sql).await;
            }
            visit.done()
        }
    };
    let jobs = job(step, &format!("chunk.items = 10\n{more}"));
    fixture.builder(&jobs).handler("work", handler).connect().await.unwrap()
}

/// The number of changes by the other writer.
async fn theirs(fixture: &EngineFixture) -> i64 {
    fixture.int("SELECT sum(year - 2024) FROM visits").await
}

fn counts(job: &Job) -> (i64, i64, i64, i64) {
    (job.items.processed, job.items.skipped, job.items.dead, job.items.conflicts)
}
