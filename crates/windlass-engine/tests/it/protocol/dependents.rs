//! Dependents are submitted like other jobs. A refused dependent is reported and not lost.

use crate::protocol::common::*;
use windlass_core::JobStatus;
use windlass_store::JobFilter;

const RULE: &str = "[[dependencies]]\njob = \"CHILD\"\nafter = [\"JOB\"]\n";

fn child(more: &str) -> String {
    job(ADD, more).replace("[jobs.JOB]", "[jobs.CHILD]")
}

pub(crate) async fn a_refused_dependent_shows_the_reason_and_is_submitted_later(
    fixture: EngineFixture,
) {
    fixture.visits(10).await;
    // The parent's process knows the rule. The process that submits the child does not know its job type.
    let with = fixture.engine(&(job(ADD, "") + &child("") + RULE)).await;
    let without = fixture.engine(&job(ADD, "")).await;
    let parent = submit(&with).await;
    work(&without, parent).await;
    let due = without.dependencies().await.unwrap().due.remove(0);
    let why = due.error.unwrap();
    assert!(why.contains("CHILD"), "{why}");
    let due_now = fixture.spell("'epoch'", "0");
    fixture.store.run(&format!("UPDATE windlass_triggers SET available_at = {due_now}")).await;
    assert_eq!(with.submit_triggered().await.unwrap(), 1);
    assert_eq!(with.submit_triggered().await.unwrap(), 0);
    let job = with.job(due.id).await.unwrap();
    assert_eq!((job.job_type.as_str(), job.status), ("CHILD", JobStatus::Queued));
    assert_eq!(job.request.after, Some(vec![parent]));
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
    a_completed_job_triggers_its_dependents
);
