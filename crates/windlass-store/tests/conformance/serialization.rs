//! Many processes at once on a store in the dialect `strict`: no caller sees a serialization failure.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use windlass_core::{ChunkId, JobId, JobStatus, Request};
use windlass_drivers::ErrorClass;
use windlass_store::{ConnectionShare, LeaseRenewal, Store, StoreError, connect_with};
use windlass_testkit::Proxy;

use crate::fixture::{StoreFixture, by, done, job_with, new_job};
use crate::statement_log::server;

const PROCESSES: usize = 8;
const JOBS: usize = 3;
const CHUNKS: usize = 40;

/// Leases, renews and completes chunks of these jobs until they have ended. Returns the completed chunks.
async fn work(store: Arc<dyn Store>, jobs: Vec<JobId>) -> Vec<(ChunkId, i64)> {
    let mut completed = Vec::new();
    loop {
        let leased = store.lease_chunks(&by(), 3).await.unwrap();
        if leased.is_empty() && all_ended(&store, &jobs).await {
            return completed;
        }
        let renewal = |lease| LeaseRenewal { lease, progress: None, in_slot: true };
        let renewals: Vec<_> = leased.iter().map(|chunk| renewal(chunk.lease)).collect();
        store.heartbeat(&renewals, &[]).await.unwrap();
        for chunk in leased {
            store.complete(chunk.lease, &done(10), &[]).await.unwrap();
            completed.push((chunk.lease.chunk, chunk.lease.epoch));
        }
    }
}

async fn all_ended(store: &Arc<dyn Store>, jobs: &[JobId]) -> bool {
    let ended = jobs.iter().map(async |job| store.status(*job).await.unwrap().unwrap());
    join_all(ended).await.into_iter().all(|status| status == JobStatus::Completed)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_caller_sees_a_serialization_failure_and_chunks_end_once() {
    let fixture = StoreFixture::strict().await;
    let mut jobs = Vec::new();
    for _ in 0..JOBS {
        jobs.push(fixture.planned(CHUNKS).await);
    }
    let mut workers = Vec::new();
    for _ in 0..PROCESSES {
        workers.push(tokio::spawn(work(fixture.other().await, jobs.clone())));
    }
    let completed: Vec<_> =
        join_all(workers).await.into_iter().flat_map(|done| done.unwrap()).collect();
    let chunks: HashSet<_> = completed.iter().map(|(chunk, _)| chunk).collect();
    assert_eq!((completed.len(), chunks.len()), (JOBS * CHUNKS, JOBS * CHUNKS));
    assert!(completed.iter().all(|(_, epoch)| *epoch == 1), "no lease was given twice");
    for job in jobs {
        assert_eq!(fixture.job(job).await.items.processed, 10 * CHUNKS as i64);
        fixture.check(job).await;
    }
    let refused = fixture.log.as_ref().unwrap().refused();
    assert!(refused > 0, "no transaction was refused, so this proves nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_submits_with_one_key_make_one_job() {
    let fixture = StoreFixture::strict().await;
    let submits = (0..PROCESSES).map(async |_| {
        let request = Request { idempotency_key: Some("once".into()), ..Request::new("REFRESH") };
        let store = fixture.other().await;
        store.submit(job_with(json!({}), request)).await.unwrap().id()
    });
    let ids: HashSet<_> = join_all(submits).await.into_iter().collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(fixture.number("SELECT count(*) FROM windlass_jobs").await, 1);
}

/// The dialect takes no lock for limits: two leases that found the same free slots are not serializable.
#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_without_locks() {
    let fixture = StoreFixture::strict().await;
    let job = fixture.planned(CHUNKS).await;
    fixture.store.set_throughput("REFRESH", Some(5), None).await.unwrap();
    let leases = (0..PROCESSES).map(async |_| {
        let leased = fixture.other().await.lease_chunks(&by(), 3).await.unwrap();
        leased.len()
    });
    assert_eq!(join_all(leases).await.into_iter().sum::<usize>(), 5);
    fixture.check(job).await;

    let shares = (0..PROCESSES).map(async |number| {
        let (connection, process) = ("app".to_owned(), format!("process-{number}"));
        let share = ConnectionShare { connection, process, connections: 2 };
        let store = fixture.other().await;
        store.take_connection_share(&share, 7, Duration::from_secs(60)).await.unwrap()
    });
    let taken = join_all(shares).await.into_iter().filter(|taken| *taken).count();
    assert_eq!(taken, 3, "three shares of two are in a total of seven");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_outcome_is_unknown_is_not_repeated() {
    let fixture = StoreFixture::strict().await;
    let proxy = Proxy::start(server().addr()).await;
    let mut settings = fixture.settings.clone();
    settings.url = proxy.url_via(&settings.url);
    let store = connect_with(&settings).await.unwrap();
    proxy.cut_after_commit_of("windlass_generations");
    let error = store.raise_generation("app", 0).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Database(error) if error.class == ErrorClass::Connection),
        "{error:?}"
    );
    assert_eq!((proxy.cuts(), fixture.store.generation("app").await.unwrap()), (1, 1));
}

/// Fails every change of the store's tables that is not made in a serializable transaction.
const REQUIRE_SERIALIZABLE: &str = "
    CREATE FUNCTION require_serializable() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('transaction_isolation') <> 'serializable' THEN
            RAISE EXCEPTION 'changed % at %', TG_TABLE_NAME, current_setting('transaction_isolation');
        END IF;
        RETURN NULL;
    END $$;
    DO $$
    DECLARE name text;
    BEGIN
        FOR name IN SELECT tablename FROM pg_tables WHERE tablename LIKE 'windlass_%' LOOP
            EXECUTE format('CREATE TRIGGER require_serializable BEFORE INSERT OR UPDATE OR DELETE
                ON %I FOR EACH STATEMENT EXECUTE FUNCTION require_serializable()', name);
        END LOOP;
    END $$";

#[tokio::test(flavor = "multi_thread")]
async fn the_server_sees_only_serializable_changes() {
    let fixture = StoreFixture::strict().await;
    fixture.run(REQUIRE_SERIALIZABLE).await;
    let (store, job) = (&fixture.store, fixture.planned(3).await);
    let leased = fixture.lease(job, 3).await;
    store.complete(leased[0].lease, &done(10), &[]).await.unwrap();
    store.fail(leased[1].lease, &done(0), "bad", false, &[]).await.unwrap();
    store.complete_together(&[(leased[2].lease, done(10))]).await.unwrap();
    store.retry(job).await.unwrap();
    let again = fixture.lease(job, 1).await.remove(0);
    store.complete(again.lease, &done(10), &[]).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Completed);
    store.submit(new_job()).await.unwrap();
    store.heartbeat_worker(&by(), 4).await.unwrap();
    store.stop("REFRESH", true).await.unwrap();
    store.raise_generation("app", 1).await.unwrap();
}
