//! Dependents are submitted like other jobs. A refused dependent is reported and not lost.

use crate::protocol::common::*;
use std::time::Duration;
use windlass_core::{JobId, JobStatus, Retention};
use windlass_engine::Engine;
use windlass_store::JobFilter;

const RULE: &str = "[[dependencies]]\njob = \"CHILD\"\nafter = [\"JOB\"]\n";

fn child(more: &str) -> String {
    job(ADD, more).replace("[jobs.JOB]", "[jobs.CHILD]")
}

/// A completed job whose dependent could not be submitted: the parent's process knows the rule, but the process that
/// works it does not know the job type of the child. Returns the two processes and the parent.
async fn with_refused_dependent(fixture: &EngineFixture) -> (Engine, Engine, JobId) {
    fixture.visits(10).await;
    let with = fixture.engine(&(job(ADD, "") + &child("") + RULE)).await;
    let without = fixture.engine(&job(ADD, "")).await;
    let parent = submit(&with).await;
    work(&without, parent).await;
    (with, without, parent)
}

/// Makes the dependent due, which otherwise waits for its next attempt.
async fn make_due(fixture: &EngineFixture) {
    let due_now = fixture.spell("'epoch'", "0");
    fixture.store.run(&format!("UPDATE windlass_triggers SET available_at = {due_now}")).await;
}

pub(crate) async fn a_refused_dependent_shows_the_reason_and_is_submitted_later(
    fixture: EngineFixture,
) {
    let (with, without, parent) = with_refused_dependent(&fixture).await;
    let due = without.dependencies().await.unwrap().due.remove(0);
    let why = due.error.unwrap();
    assert!(why.contains("CHILD"), "{why}");
    make_due(&fixture).await;
    assert_eq!(with.submit_triggered().await.unwrap(), 1);
    assert_eq!(with.submit_triggered().await.unwrap(), 0);
    let job = with.job(due.id).await.unwrap();
    assert_eq!((job.job_type.as_str(), job.status), ("CHILD", JobStatus::Queued));
    assert_eq!(job.request.after, Some(vec![parent]));
}

pub(crate) async fn a_dependent_is_submitted_although_its_parent_was_pruned(
    fixture: EngineFixture,
) {
    let (with, _, parent) = with_refused_dependent(&fixture).await;
    let now = Retention { chunks: Duration::ZERO, jobs: Duration::ZERO, ..Retention::default() };
    with.prune(Some(&now)).await.unwrap();
    assert_eq!(with.store().status(parent).await.unwrap(), None);
    make_due(&fixture).await;
    let due = with.dependencies().await.unwrap().due.remove(0);
    assert_eq!(with.submit_triggered().await.unwrap(), 1);
    let job = work(&with, due.id).await;
    assert_eq!((job.status, job.request.after), (JobStatus::Completed, None));
}

pub(crate) async fn a_completed_job_triggers_its_dependents(fixture: EngineFixture) {
    fixture.visits(10).await;
    let engine = fixture.engine(&(job(ADD, "") + &child("") + RULE)).await;
    let job = engine.run(request()).await.unwrap();
    assert_eq!(job.status, JobStatus::Completed);
    let filter = JobFilter { job_type: Some("CHILD".to_owned()), ..JobFilter::default() };
    assert_eq!(engine.store().jobs(&filter).await.unwrap().len(), 1);
}

on_both!(
    a_refused_dependent_shows_the_reason_and_is_submitted_later,
    a_dependent_is_submitted_although_its_parent_was_pruned,
    a_completed_job_triggers_its_dependents
);
