//! Deadline alerts: raised at a slow rate, withdrawn at a faster one and raised again; never without a rate.

use crate::protocol::common::*;
use chrono::{DateTime, TimeDelta, Utc};
use windlass_core::{AlertKind, JobId};
use windlass_engine::Engine;
use windlass_store::JobFilter;

/// A scheduled job of a hundred items that is to end within an hour. Nothing works on it: the test sets its start and
/// its progress.
struct ScheduledJob {
    fixture: EngineFixture,
    engine: Engine,
    id: JobId,
}

impl ScheduledJob {
    async fn new(fixture: EngineFixture) -> ScheduledJob {
        fixture.visits(100).await;
        let schedule =
            "schedule = { cron = \"* * * * *\", missed = \"run-once\", deadline = \"1h\" }";
        let engine = fixture.engine(&job(ADD, schedule)).await;
        engine.register_schedules().await.unwrap();
        let past = fixture.spell("next_at - interval '1 minute'", "next_at - 60000");
        fixture.store.run(&format!("UPDATE windlass_schedules SET next_at = {past}")).await;
        assert!(engine.fire_due().await.unwrap() > 0);
        let jobs = engine.store().jobs(&JobFilter { limit: 10, ..JobFilter::default() }).await;
        let id = jobs.unwrap()[0].id;
        plan_job(&engine, id).await;
        ScheduledJob { fixture, engine, id }
    }

    /// Looks for late jobs when the job has been worked for this many seconds and has this many items done. Returns
    /// the number of open alerts.
    async fn at(&self, seconds: i64, done: i64) -> usize {
        let now =
            self.fixture.spell("clock_timestamp()", "CAST(unixepoch('subsec') * 1000 AS INTEGER)");
        let back = self.fixture.spell("* interval '1 second'", "* 1000");
        let started = format!("status = 'PROCESSING', started_at = {now} - {seconds} {back}");
        self.set("windlass_jobs", &started).await;
        self.set(
            "windlass_chunks",
            &format!("processed = CASE number WHEN 0 THEN {done} ELSE 0 END"),
        )
        .await;
        let job = self.engine.job(self.id).await.unwrap();
        assert_eq!((job.items.total, job.items.done()), (100, done));
        self.engine.raise_alerts(true).await.unwrap();
        self.engine.store().open_alerts(AlertKind::DeadlineAtRisk).await.unwrap().len()
    }

    async fn set(&self, table: &str, what: &str) {
        self.fixture.store.run(&format!("UPDATE {table} SET {what}")).await;
    }
}

pub(crate) async fn a_slow_job_raises_an_alert(fixture: EngineFixture) {
    let job = ScheduledJob::new(fixture).await;
    assert_eq!(job.at(0, 0).await, 0);
    assert_eq!(job.at(60, 1).await, 1, "the other 99 items take 99 minutes");
    assert_eq!(job.at(120, 2).await, 1, "the alert stays the same");
}

pub(crate) async fn a_fast_job_raises_none(fixture: EngineFixture) {
    let job = ScheduledJob::new(fixture).await;
    for (seconds, done) in [(0, 0), (60, 10), (120, 40), (180, 90), (200, 100)] {
        assert_eq!(job.at(seconds, done).await, 0, "at {seconds} s");
    }
}

pub(crate) async fn one_long_chunk_raises_none_before_its_deadline(fixture: EngineFixture) {
    let job = ScheduledJob::new(fixture).await;
    for seconds in [0, 10, 100, 3_000] {
        assert_eq!(job.at(seconds, 0).await, 0, "at {seconds} s");
    }
    // What counts at the end is the deadline itself: the firing time was two hours ago.
    let deadline = job.engine.deadline(job.id).await.unwrap().unwrap();
    let (fired, earlier) = (deadline - TimeDelta::hours(1), deadline - TimeDelta::hours(3));
    let text = |time: DateTime<Utc>| time.format("%Y-%m-%dT%H:%M:%S").to_string();
    let earlier = format!("replace(request, '{}', '{}')", text(fired), text(earlier));
    job.set("windlass_jobs", &format!("request = {earlier}")).await;
    assert_eq!(job.at(3_000, 0).await, 1, "it is past its deadline");
}

pub(crate) async fn a_job_raises_none_while_it_is_planned(fixture: EngineFixture) {
    let job = ScheduledJob::new(fixture).await;
    job.set("windlass_jobs", "open_segments = open_segments + 1").await;
    for (seconds, done) in [(0, 0), (60, 1), (120, 2)] {
        assert_eq!(job.at(seconds, done).await, 0, "at {seconds} s");
    }
    job.set("windlass_jobs", "open_segments = open_segments - 1").await;
    assert_eq!(job.at(180, 3).await, 1, "all its items are known");
}

pub(crate) async fn an_alert_that_was_withdrawn_is_raised_again(fixture: EngineFixture) {
    let job = ScheduledJob::new(fixture).await;
    assert_eq!(job.at(0, 0).await, 0);
    assert_eq!(job.at(60, 1).await, 1);
    assert_eq!(job.at(120, 60).await, 0, "it has become faster");
    assert_eq!(job.at(3_000, 61).await, 1, "it has become slower");
    let alerts = job.engine.store().alerts(&Default::default()).await.unwrap();
    let cleared: Vec<bool> = alerts.iter().map(|alert| alert.cleared_at.is_some()).collect();
    assert_eq!(cleared, [false, true], "{alerts:#?}");
}

on_both!(
    a_slow_job_raises_an_alert,
    a_fast_job_raises_none,
    one_long_chunk_raises_none_before_its_deadline,
    a_job_raises_none_while_it_is_planned,
    an_alert_that_was_withdrawn_is_raised_again,
);
