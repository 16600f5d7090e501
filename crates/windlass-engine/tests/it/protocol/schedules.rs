//! Schedules: each time is fired once, whatever the number of processes.

use crate::protocol::common::*;
use std::sync::atomic::{AtomicBool, Ordering};
use windlass_core::{Job, JobStatus};
use windlass_engine::Engine;
use windlass_store::JobFilter;
use windlass_testkit::eventually;

const MINUTES: i64 = 500;

fn scheduled(more: &str) -> String {
    job(ADD, &format!("schedule = {{ cron = \"* * * * *\", {more} }}"))
}

/// Moves the schedule as if no process had run for `minutes` minutes.
async fn away(fixture: &EngineFixture, engine: &Engine, minutes: i64) {
    engine.register_schedules().await.unwrap();
    let back = fixture.spell("next_at - interval '1 minute' * ", "next_at - 60000 * ");
    let sql = format!("UPDATE windlass_schedules SET next_at = {back} {minutes}");
    fixture.store.run(&sql).await;
}

async fn jobs(engine: &Engine) -> Vec<Job> {
    let filter = JobFilter { limit: 10_000, ..JobFilter::default() };
    engine.store().jobs(&filter).await.unwrap()
}

/// The fired times in order. Each job has its own time, and no minute is missing between the first and the
/// last.
fn times(jobs: &[Job]) -> Vec<chrono::DateTime<chrono::Utc>> {
    let key = |job: &Job| job.request.idempotency_key.clone().unwrap().parse().unwrap();
    let mut times: Vec<chrono::DateTime<chrono::Utc>> = jobs.iter().map(key).collect();
    times.sort();
    for pair in times.windows(2) {
        assert_eq!((pair[1] - pair[0]).num_seconds(), 60, "{pair:?}");
    }
    times
}

pub(crate) async fn each_missed_time_is_fired_once_by_two_processes(fixture: EngineFixture) {
    fixture.visits(1).await;
    let jobs_toml = scheduled("missed = \"run-all\", params = { day = \"{date}\" }");
    let (one, other) = (fixture.engine(&jobs_toml).await, fixture.engine(&jobs_toml).await);
    away(&fixture, &one, MINUTES).await;
    let (by_one, by_other) = tokio::join!(one.fire_due(), other.fire_due());
    // A process that loses a race leaves the rest to the other, which may have lost one before.
    let mut fired = by_one.unwrap() + by_other.unwrap();
    while let again @ 1.. = one.fire_due().await.unwrap() {
        fired += again;
    }
    let made = jobs(&one).await;
    assert_eq!(made.len() as u64, fired);
    let times = times(&made);
    assert!(times.len() as i64 >= MINUTES, "{} of {MINUTES}", times.len());
    let day = times[0].format("%Y-%m-%d").to_string();
    assert!(made.iter().any(|job| job.request.params["day"] == day.as_str()));
    assert!(made.iter().all(|job| job.submitted_by == "schedule"));
}

/// The store's clock was a year ahead for a while.
pub(crate) async fn a_clock_that_is_set_back_leaves_no_schedule_a_year_ahead(
    fixture: EngineFixture,
) {
    fixture.visits(1).await;
    let engine = fixture.engine(&scheduled("missed = \"run-once\"")).await;
    away(&fixture, &engine, 1).await;
    engine.fire_due().await.unwrap();
    let made = jobs(&engine).await.len();
    away(&fixture, &engine, -365 * 24 * 60).await;
    let row = engine.store().schedules().await.unwrap().remove(0);
    assert!((row.next_at.unwrap() - row.now).num_days() > 360, "{row:?}");
    engine.fire_due().await.unwrap();
    let row = engine.store().schedules().await.unwrap().remove(0);
    assert!((row.next_at.unwrap() - row.now).num_seconds() <= 60, "{row:?}");
    assert!((made..=made + 1).contains(&jobs(&engine).await.len()), "what was fired is kept");
}

/// The process died after it submitted the job and before it updated the schedule.
pub(crate) async fn an_interrupted_firing_is_finished_without_duplicates(fixture: EngineFixture) {
    fixture.visits(1).await;
    let engine = fixture.engine(&scheduled("missed = \"run-all\"")).await;
    away(&fixture, &engine, 3).await;
    let before = engine.store().schedules().await.unwrap().remove(0);
    engine.fire_due().await.unwrap();
    let made = jobs(&engine).await.len();
    let back = before.next_at.unwrap();
    let to = fixture.spell("to_timestamp", "1000 * ");
    let sql = format!("UPDATE windlass_schedules SET next_at = {to}({})", back.timestamp());
    fixture.store.run(&sql).await;
    engine.fire_due().await.unwrap();
    times(&jobs(&engine).await);
    // A new minute may have begun during the test.
    assert!((made..=made + 1).contains(&jobs(&engine).await.len()), "the jobs are the same");
}

pub(crate) async fn missed_times_are_skipped_or_run_once(fixture: EngineFixture) {
    fixture.visits(1).await;
    for (missed, expected) in [("skip", 0), ("run-once", 1)] {
        let fixture = fixture.another().await;
        fixture.visits(1).await;
        let engine = fixture.engine(&scheduled(&format!("missed = \"{missed}\""))).await;
        away(&fixture, &engine, MINUTES).await;
        engine.fire_due().await.unwrap();
        let made = jobs(&engine).await.len();
        // The minute that has just begun is on time.
        assert!((expected..=expected + 1).contains(&made), "{missed}: {made}");
        let row = engine.store().schedules().await.unwrap().remove(0);
        assert!(row.next_at.unwrap() > row.now, "{row:?}");
    }
}

pub(crate) async fn overlap_skips_queues_or_cancels_the_running_job(fixture: EngineFixture) {
    for (overlap, statuses) in [
        ("skip", vec![JobStatus::Queued]),
        ("queue", vec![JobStatus::Queued; 3]),
        ("cancel-running", vec![JobStatus::Cancelled, JobStatus::Cancelled, JobStatus::Queued]),
    ] {
        let fixture = fixture.another().await;
        fixture.visits(1).await;
        let toml = scheduled(&format!("missed = \"run-all\", overlap = \"{overlap}\""));
        let engine = fixture.engine(&toml).await;
        away(&fixture, &engine, 3).await;
        engine.fire_due().await.unwrap();
        let mut made = jobs(&engine).await;
        made.sort_by_key(|job| job.request.idempotency_key.clone());
        let made: Vec<_> = made.iter().map(|job| job.status).collect();
        // A new minute may have begun during the test.
        let expected = statuses.len()..=statuses.len() + 1;
        assert!(expected.contains(&made.len()), "{overlap}: {made:?}");
        let (last, earlier) = made.split_last().unwrap();
        assert_eq!(Some(last), statuses.last(), "{overlap}: {made:?}");
        assert!(earlier.iter().all(|status| *status == statuses[0]), "{overlap}: {made:?}");
    }
}

pub(crate) async fn a_paused_schedule_does_not_fire_and_continues_from_now(fixture: EngineFixture) {
    fixture.visits(1).await;
    let engine = fixture.engine(&scheduled("missed = \"run-all\"")).await;
    engine.pause_schedule("JOB", true).await.unwrap();
    away(&fixture, &engine, 5).await;
    assert_eq!(engine.fire_due().await.unwrap(), 0);
    engine.pause_schedule("JOB", false).await.unwrap();
    let row = engine.store().schedules().await.unwrap().remove(0);
    assert!(row.next_at.unwrap() > row.now, "what it rested over is not made up for: {row:?}");
    assert!(!row.paused);
    let none = engine.pause_schedule("OTHER", true).await.unwrap_err().to_string();
    assert!(none.contains("OTHER"), "{none}");
}

/// The next time is stored: a restarted process continues with it, unless the schedule was
/// changed.
pub(crate) async fn a_restart_keeps_the_next_time(fixture: EngineFixture) {
    fixture.visits(1).await;
    let engine = fixture.engine(&scheduled("missed = \"run-all\"")).await;
    away(&fixture, &engine, 5).await;
    let next = async |engine: &Engine| engine.store().schedules().await.unwrap()[0].next_at;
    let before = next(&engine).await;
    let again = fixture.engine(&scheduled("missed = \"run-all\"")).await;
    again.register_schedules().await.unwrap();
    assert_eq!(next(&again).await, before);
    let hourly = scheduled("missed = \"run-all\"").replace("* * * * *", "0 * * * *");
    let other = fixture.engine(&hourly).await;
    other.register_schedules().await.unwrap();
    assert!(next(&other).await > before);
    // A process with the old definition does not change it.
    away(&fixture, &other, 600).await;
    assert_eq!(engine.fire_due().await.unwrap(), 0);
    assert!(other.fire_due().await.unwrap() > 0);
}

/// The listing shows why a job type cannot be submitted. It is fired when it can be.
pub(crate) async fn a_schedule_that_cannot_fire_shows_the_reason_and_is_retried(
    fixture: EngineFixture,
) {
    fixture.visits(1).await;
    let engine = fixture.engine(&scheduled("missed = \"run-once\"")).await;
    away(&fixture, &engine, 2).await;
    fixture.app.run("ALTER TABLE visits RENAME TO gone").await;
    engine.fire_due().await.unwrap();
    let row = engine.store().schedules().await.unwrap().remove(0);
    assert!(row.error.is_some_and(|error| error.contains("visits")), "the table is named");
    fixture.app.run("ALTER TABLE gone RENAME TO visits").await;
    // The schema cache may be stale for a moment.
    let done = AtomicBool::new(false);
    let fires = async || done.fetch_or(engine.fire_due().await.unwrap() > 0, Ordering::Relaxed);
    eventually("it is fired", PATIENCE, fires).await;
    assert_eq!(engine.store().schedules().await.unwrap()[0].error, None);
}

on_both!(
    a_clock_that_is_set_back_leaves_no_schedule_a_year_ahead,
    each_missed_time_is_fired_once_by_two_processes,
    an_interrupted_firing_is_finished_without_duplicates,
    missed_times_are_skipped_or_run_once,
    overlap_skips_queues_or_cancels_the_running_job,
    a_paused_schedule_does_not_fire_and_continues_from_now,
    a_restart_keeps_the_next_time,
    a_schedule_that_cannot_fire_shows_the_reason_and_is_retried,
);
