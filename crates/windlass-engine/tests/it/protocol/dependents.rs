//! Dependents: submitted through the door, and refused loudly without being lost.

use crate::protocol::common::*;
use windlass_core::JobStatus;
use windlass_store::JobFilter;

const RULE: &str = "[[dependencies]]\njob = \"CHILD\"\nafter = [\"JOB\"]\n";

fn child(more: &str) -> String {
    job(ADD, more).replace("[jobs.JOB]", "[jobs.CHILD]")
}

pub(crate) async fn a_refused_dependent_says_why_and_is_submitted_once_it_can_be(
    fixture: EngineFixture,
) {
    fixture.visits(10).await;
    // The parent knows the rule; the process that submits the child does not know its type.
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

pub(crate) async fn a_run_triggers_what_follows_it(fixture: EngineFixture) {
    fixture.visits(10).await;
    let engine = fixture.engine(&(job(ADD, "") + &child("") + RULE)).await;
    let job = engine.run(request()).await.unwrap();
    assert_eq!(job.status, JobStatus::Completed);
    let filter = JobFilter { job_type: Some("CHILD".to_owned()), ..JobFilter::default() };
    assert_eq!(engine.store().jobs(&filter).await.unwrap().len(), 1);
}

on_both!(
    a_refused_dependent_says_why_and_is_submitted_once_it_can_be,
    a_run_triggers_what_follows_it
);
