//! Retention: jobs that ended long ago are removed from the store and the user's database. Jobs that may still be
//! worked are not.

use crate::protocol::common::*;
use std::time::Duration;
use windlass_core::{JobStatus, Retention};
use windlass_engine::{Pruned, Verdict};

/// Only the row and the sums of a completed job are kept.
pub(crate) async fn the_sums_of_a_completed_job_are_kept(fixture: EngineFixture) {
    fixture.visits(30).await;
    let none = "chunk.items = 10\nretention.chunks = \"0s\"";
    let engine = fixture.engine(&job(ADD, none)).await;
    let done = complete(&engine).await;
    let pruned = engine.prune(None).await.unwrap();
    let expected = Pruned { emptied: 1, chunks: 3, ledger_rows: 3, ..Pruned::default() };
    assert_eq!(pruned, expected);
    assert_eq!(fixture.int("SELECT count(*) FROM windlass_ledger").await, 0);
    assert_eq!(engine.job(done.id).await.unwrap(), done);
    let audit = engine.audit(done.id).await.unwrap();
    assert_eq!(audit.verdict, Verdict::CannotBeJudged);
    assert!(audit.not_judged[0].contains("pruned"), "{audit:?}");
    assert_eq!(engine.prune(None).await.unwrap(), Pruned::default());
    fixture.each_once(30).await;
}

/// The ledger is pruned, and the store fails before the chunks are.
pub(crate) async fn a_half_pruned_job_is_not_called_wrong(fixture: EngineFixture) {
    fixture.visits(30).await;
    let engine = fixture.engine(&job(ADD, "chunk.items = 10")).await;
    let done = complete(&engine).await;
    let refuse = fixture.spell(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$;
         CREATE TRIGGER refuse BEFORE DELETE ON windlass_chunks FOR EACH ROW EXECUTE FUNCTION refuse()",
        "CREATE TRIGGER refuse BEFORE DELETE ON windlass_chunks BEGIN SELECT RAISE(ABORT, 'not now'); END",
    );
    fixture.store.run(refuse).await;
    let retention = Retention { chunks: Duration::ZERO, ..Retention::default() };
    assert!(engine.prune(Some(&retention)).await.is_err());
    assert_eq!(fixture.int("SELECT count(*) FROM windlass_ledger").await, 0);
    let audit = engine.audit(done.id).await.unwrap();
    assert_eq!(audit.verdict, Verdict::CannotBeJudged, "{audit:?}");
    let allow = fixture.spell("DROP TRIGGER refuse ON windlass_chunks", "DROP TRIGGER refuse");
    fixture.store.run(allow).await;
    assert_eq!(engine.prune(Some(&retention)).await.unwrap().chunks, 3);
}

/// By default everything is kept for days.
pub(crate) async fn a_job_that_ended_recently_is_kept(fixture: EngineFixture) {
    fixture.visits(10).await;
    let engine = fixture.engine(&job(ADD, "")).await;
    let done = complete(&engine).await;
    assert_eq!(engine.prune(None).await.unwrap(), Pruned::default());
    proven(&engine, &done).await;
}

/// The ledger of a failed job is kept while the job may be retried, and no longer.
pub(crate) async fn a_failed_job_is_retried_or_removed_but_never_both(fixture: EngineFixture) {
    fixture.visits(30).await;
    fixture.app.run("CREATE TABLE gate (opens int)").await;
    let gated = "step.sql = \"UPDATE visits SET amount = amount + 1 \
                 WHERE {chunk} AND NOT EXISTS (SELECT 1 FROM gate)\"\nchunk.items = 10";
    let kept = fixture.engine(&job(gated, "retention.chunks = \"0s\"")).await;
    let failed = submit(&kept).await;
    plan_job(&kept, failed).await;
    fixture.app.run("DROP TABLE gate").await;
    assert_eq!(work(&kept, failed).await.status, JobStatus::Failed);
    assert_eq!(kept.prune(None).await.unwrap(), Pruned::default());
    let left = fixture.int("SELECT count(*) FROM windlass_ledger").await;
    assert!(left > 0, "the ledger of a failed job stays");

    let pruned = kept.prune(Some(&Retention::of(Duration::ZERO))).await.unwrap();
    assert_eq!((pruned.jobs, pruned.chunks, pruned.ledger_rows), (1, 3, left as u64));
    assert_eq!(fixture.int("SELECT count(*) FROM windlass_ledger").await, 0);
    assert!(kept.retry(failed).await.is_err());
}

on_each!(
    the_sums_of_a_completed_job_are_kept,
    a_half_pruned_job_is_not_called_wrong,
    a_job_that_ended_recently_is_kept,
    a_failed_job_is_retried_or_removed_but_never_both,
);
