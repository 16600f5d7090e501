//! Errors that trying again cannot mend fail the job at once, with the reason; never a loop.

use crate::protocol::common::*;
use windlass_core::{Change, JobStatus};

pub(crate) async fn a_statement_the_database_does_not_know_fails_the_job_and_a_retry_mends_it(
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
    assert_eq!(failed.items.dead, 0, "it is not the rows' fault");

    fixture.app.run("CREATE TABLE later (one bigint); INSERT INTO later VALUES (1)").await;
    engine.retry(failed.id).await.unwrap();
    let done = work(&engine, failed.id).await;
    proven(&engine, &done).await;
    fixture.each_once(50).await;
}

pub(crate) async fn a_table_dropped_before_the_load_fails_the_job(fixture: EngineFixture) {
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
    load(&engine, job).await;
    fixture.app.run("DROP TABLE visits").await;
    // One process knows the table from before, the other looks for it.
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
    let app = fixture.app.clone();
    let handler = move |visit: Visit, _| {
        let app = app.clone();
        async move {
            if visit.id == 11 {
                app.run("DROP TABLE visits").await;
            }
            visit.done()
        }
    };
    let engine = fixture.builder(&job(HANDLER, "chunk.commit = 5")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let failed = run(&engine).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert!(failed.error.unwrap().contains("visits"));
    fixture.logged_once(10).await;
}

pub(crate) async fn an_insert_into_a_table_that_is_not_there_fails_the_job(fixture: EngineFixture) {
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
    a_statement_the_database_does_not_know_fails_the_job_and_a_retry_mends_it,
    a_table_dropped_before_the_load_fails_the_job,
    a_table_dropped_before_the_work_fails_the_job,
    a_table_dropped_between_two_commits_of_a_handler_fails_the_job,
    an_insert_into_a_table_that_is_not_there_fails_the_job,
);
