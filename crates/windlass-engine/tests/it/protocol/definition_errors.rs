//! Errors that a retry cannot fix fail the job at once, with the reason.

use crate::protocol::common::*;
use windlass_core::{Change, JobStatus};
use windlass_engine::Engine;

pub(crate) async fn an_invalid_statement_fails_the_job_and_a_retry_after_a_fix_completes_it(
    fixture: EngineFixture,
) {
    fixture.visits(50).await;
    let step = "step.sql = \"UPDATE visits SET amount = \
                (SELECT one FROM later) + amount WHERE {chunk}\"";
    let engine = fixture.engine(&job(step, "chunk.items = 10")).await;
    let failed = run(&engine).await;
    assert_eq!(failed.status, JobStatus::Failed);
    let error = failed.error.unwrap();
    assert!(error.contains("later"), "{error}");
    assert!(failed.finished_at.is_some());
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 0);
    assert_eq!(failed.items.dead, 0, "no item is blamed");

    fixture.app.run("CREATE TABLE later (one bigint); INSERT INTO later VALUES (1)").await;
    engine.retry(failed.id).await.unwrap();
    let done = work(&engine, failed.id).await;
    proven(&engine, &done).await;
    fixture.each_once(50).await;
}

pub(crate) async fn a_job_is_accepted_as_soon_as_its_table_is_repaired(fixture: EngineFixture) {
    fixture.visits(50).await;
    let engine = fixture.engine(&job(ADD, "source.filters = { remarks = \"remark\" }")).await;
    let refused = engine.submit(request(), Engine::local_identity()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("remark"), "{refused}");
    // At once, so the refused submit has just read the schema.
    fixture.app.run("ALTER TABLE visits ADD remark bigint").await;
    fixture.app.run("CREATE INDEX visits_remark ON visits (remark)").await;
    complete(&engine).await;
    fixture.each_once(50).await;
}

pub(crate) async fn a_table_dropped_before_planning_fails_the_job(fixture: EngineFixture) {
    fixture.visits(50).await;
    let jobs = job(ADD, "");
    let engine = fixture.engine(&jobs).await;
    let job = submit(&engine).await;
    fixture.app.run("DROP TABLE visits").await;
    let failed = work(&fixture.engine(&jobs).await, job).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert!(failed.error.unwrap().contains("visits"));
}

pub(crate) async fn a_table_dropped_before_the_work_fails_the_job(fixture: EngineFixture) {
    fixture.visits(50).await;
    let jobs = job(ADD, "chunk.items = 10");
    let engine = fixture.engine(&jobs).await;
    let job = submit(&engine).await;
    plan_job(&engine, job).await;
    fixture.app.run("DROP TABLE visits").await;
    // One engine has the table in its schema cache, the other reads the schema.
    for engine in [engine, fixture.engine(&jobs).await] {
        let failed = work(&engine, job).await;
        assert_eq!(failed.status, JobStatus::Failed);
        assert!(failed.error.unwrap().contains("visits"));
        engine.retry(job).await.unwrap();
    }
}

pub(crate) async fn a_table_dropped_between_two_commits_of_a_handler_fails_the_job(
    fixture: EngineFixture,
) {
    fixture.visits(20).await;
    let handler = running(&fixture.app, 11, "DROP TABLE visits");
    let engine = fixture.builder(&job(HANDLER, "chunk.commit = 5")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let failed = run(&engine).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert!(failed.error.unwrap().contains("visits"));
    fixture.logged_once(10).await;
}

pub(crate) async fn an_insert_into_a_missing_table_fails_the_job(fixture: EngineFixture) {
    fixture.visits(5).await;
    let handler = async |visit: Visit, _| {
        Ok(Change::default().insert("nowhere", [("a", visit.id.into())]).into())
    };
    let engine = fixture.builder(&job(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let failed = run(&engine).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert!(failed.error.unwrap().contains("nowhere"));
}

on_each!(
    an_invalid_statement_fails_the_job_and_a_retry_after_a_fix_completes_it,
    a_job_is_accepted_as_soon_as_its_table_is_repaired,
    a_table_dropped_before_planning_fails_the_job,
    a_table_dropped_before_the_work_fails_the_job,
    a_table_dropped_between_two_commits_of_a_handler_fails_the_job,
    an_insert_into_a_missing_table_fails_the_job,
);
