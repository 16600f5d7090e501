//! Controls of job types, of a job and of everything, and the worker processes.

use futures::future::join_all;
use std::time::Duration;

use windlass_core::Throughput;
use windlass_store::{
    AS_DEFINED, Capabilities, EVERYTHING, HandBack, Progress, UNLIMITED, connection_subject,
};

use crate::fixture::{StoreFixture, by, new_job};

async fn a_stopped_job_type_is_neither_planned_nor_worked(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    let job_type = fixture.job(job).await.job_type;
    let queued = fixture.submit().await;
    fixture.store.stop(&job_type, true).await.unwrap();
    assert!(fixture.lease(job, 1).await.is_empty());
    assert!(fixture.store.lease_segments(&by(), 1).await.unwrap().is_empty());
    for id in [job, queued] {
        assert!(fixture.job(id).await.error.unwrap().contains("stopped"));
    }
    let controls = fixture.store.controls().await.unwrap();
    assert_eq!((controls.len(), controls[0].stopped), (1, true));
    fixture.store.stop(&job_type, false).await.unwrap();
    assert_eq!(fixture.lease(job, 2).await.len(), 2);
    assert_eq!(fixture.store.lease_segments(&by(), 1).await.unwrap()[0].lease.job, queued);
    assert_eq!(fixture.job(job).await.error, None);
    fixture.check(job).await;
}

/// What a listing says that a job waits for, in the order in which the reasons hide each other.
async fn a_job_says_what_it_waits_for(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let job_type = fixture.job(job).await.job_type;
    let waits_for = async || fixture.job(job).await.waits_for;
    let database = connection_subject("app");
    let long = Duration::from_secs(3600);
    assert_eq!(waits_for().await.as_deref(), Some("slots"));

    // Its chunk failed and waits for its next attempt.
    let leased = fixture.lease(job, 1).await.remove(0);
    let progress = Progress::default();
    let back = HandBack::new(Some("busy"), true, long);
    fixture.store.release(leased.lease, &progress, back).await.unwrap();
    assert_eq!(waits_for().await.as_deref(), Some("retry"));

    let health = "throttled to 1/2 of full speed: measures 9, over its limit of 5";
    fixture.store.suspend(&database, health, long).await.unwrap();
    assert_eq!(waits_for().await.as_deref(), Some("health"));
    let outage = "database `app` unavailable since 2026-01-01T03:00:00Z: no route: 10.0.0.1: 5432";
    fixture.store.suspend(&database, outage, long).await.unwrap();
    let since = "database unavailable since 2026-01-01T03:00:00Z";
    assert_eq!(waits_for().await.as_deref(), Some(since));
    fixture.store.suspend(&job_type, "the service answered 503", long).await.unwrap();
    assert_eq!(waits_for().await.as_deref(), Some("step unavailable"));
    for subject in [&job_type, EVERYTHING] {
        fixture.store.stop(subject, true).await.unwrap();
        assert_eq!(waits_for().await.as_deref(), Some("stopped"));
        fixture.store.stop(subject, false).await.unwrap();
    }
    // Each reason ends.
    fixture.run("DELETE FROM windlass_controls").await;
    assert_eq!(waits_for().await.as_deref(), Some("retry"));
    fixture.store.pause(job, None).await.unwrap();
    assert_eq!(waits_for().await, None, "a paused job waits for its operator");
}

async fn everything_can_be_stopped(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    fixture.store.stop(EVERYTHING, true).await.unwrap();
    assert!(fixture.lease(job, 1).await.is_empty());
    fixture.store.stop(EVERYTHING, false).await.unwrap();
    assert_eq!(fixture.lease(job, 1).await.len(), 1);
}

async fn leases_respect_the_concurrency_limit(fixture: StoreFixture) {
    let (first, second) = (fixture.planned(5).await, fixture.planned(5).await);
    let job_type = fixture.job(first).await.job_type;
    fixture.store.set_throughput(&job_type, Some(3), None).await.unwrap();
    let leased = fixture.store.lease_chunks(&by(), 10).await.unwrap();
    assert_eq!(leased.len(), 3);
    assert!(leased.iter().all(|chunk| chunk.lease.chunk.job == first), "the older job first");
    assert!(fixture.store.lease_chunks(&by(), 10).await.unwrap().is_empty());
    fixture.complete(&leased[0]).await.unwrap();
    assert_eq!(fixture.store.lease_chunks(&by(), 10).await.unwrap().len(), 1);
    fixture.store.set_throughput(&job_type, Some(UNLIMITED), None).await.unwrap();
    assert_eq!(fixture.store.lease_chunks(&by(), 10).await.unwrap().len(), 6);
    fixture.check(first).await;
    fixture.check(second).await;
}

async fn concurrent_leases_respect_the_concurrency_limit(fixture: StoreFixture) {
    let job = fixture.planned(40).await;
    let job_type = fixture.job(job).await.job_type;
    fixture.store.set_throughput(&job_type, Some(7), None).await.unwrap();
    let leases = (0..12).map(|_| {
        let store = fixture.store.clone();
        tokio::spawn(async move { store.lease_chunks(&by(), 3).await.unwrap().len() })
    });
    let leased: usize = join_all(leases).await.into_iter().map(|leased| leased.unwrap()).sum();
    assert_eq!(leased, 7);
    assert_eq!(fixture.job(job).await.chunks.processing, 7);
}

async fn a_job_can_have_its_own_limit(fixture: StoreFixture) {
    let (slow, fast) = (fixture.planned(5).await, fixture.planned(5).await);
    fixture.store.set_throughput(&slow.to_string(), Some(1), None).await.unwrap();
    let leased = fixture.store.lease_chunks(&by(), 4).await.unwrap();
    let of_slow = leased.iter().filter(|chunk| chunk.lease.chunk.job == slow).count();
    assert_eq!((leased.len(), of_slow), (4, 1));
    let of_fast = leased.iter().filter(|chunk| chunk.lease.chunk.job == fast).count();
    assert_eq!(of_fast, 3);
}

async fn operators_override_the_limit_of_the_definition(fixture: StoreFixture) {
    let mut job = new_job();
    let throughput = Throughput { concurrency: Some(2), items_per_second: Some(50) };
    job.definition.throughput = throughput;
    let job_type = job.definition.name.clone();
    fixture.store.submit(job).await.unwrap();
    let limits = async || {
        let controls = fixture.store.controls().await.unwrap();
        let control = controls.into_iter().find(|control| control.subject == job_type).unwrap();
        (control.concurrency, control.rate)
    };
    assert_eq!(limits().await, (Some(2), Some(50)));
    fixture.store.set_throughput(&job_type, Some(9), None).await.unwrap();
    assert_eq!(limits().await, (Some(9), Some(50)));
    fixture.store.set_throughput(&job_type, Some(AS_DEFINED), Some(70)).await.unwrap();
    assert_eq!(limits().await, (Some(2), Some(70)));
    // A newer definition without limits removes the old ones, but not the operator's.
    fixture.store.submit(new_job()).await.unwrap();
    assert_eq!(limits().await, (None, Some(70)));
}

async fn leases_beyond_a_lowered_limit_are_listed(fixture: StoreFixture) {
    let job = fixture.planned(5).await;
    let job_type = fixture.job(job).await.job_type;
    let leased = fixture.lease(job, 4).await;
    assert!(fixture.store.over_limit().await.unwrap().is_empty());
    fixture.store.set_throughput(&job_type, Some(1), None).await.unwrap();
    let mut over_limit = fixture.store.over_limit().await.unwrap();
    over_limit.sort_by_key(|lease| lease.chunk.number);
    let last: Vec<_> = leased[1..].iter().map(|chunk| chunk.lease).collect();
    assert_eq!(over_limit, last);
}

async fn reservations_follow_each_other(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let job_type = fixture.job(job).await.job_type;
    let max_wait = Duration::from_secs(3600);
    assert_eq!(
        fixture.store.reserve(job, 1000, max_wait).await.unwrap(),
        Duration::ZERO,
        "no limit"
    );
    fixture.store.set_throughput(&job_type, None, Some(10)).await.unwrap();
    assert_eq!(fixture.store.reserve(job, 1000, max_wait).await.unwrap(), Duration::ZERO);
    let second = fixture.store.reserve(job, 1000, max_wait).await.unwrap();
    assert!(second > Duration::from_secs(60) && second <= Duration::from_secs(100), "{second:?}");
    // Beyond the maximum wait nothing is reserved, so the next call gets the same answer.
    let third = fixture.store.reserve(job, 1000, Duration::from_secs(1)).await.unwrap();
    let fourth = fixture.store.reserve(job, 1000, Duration::from_secs(1)).await.unwrap();
    assert!(third > second && fourth <= third, "{third:?} {fourth:?}");
    // Reservations at the old rate are dropped when the rate changes.
    fixture.store.set_throughput(&job_type, None, Some(100_000)).await.unwrap();
    assert_eq!(fixture.store.reserve(job, 1, max_wait).await.unwrap(), Duration::ZERO);
}

/// The clock was an hour ahead when the reservation was made.
async fn a_reservation_is_corrected_when_the_clock_is_set_back(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let max_wait = Duration::from_secs(3600);
    for subject in [fixture.job(job).await.job_type, job.to_string()] {
        fixture.store.set_throughput(&subject, None, Some(10)).await.unwrap();
    }
    // A hundred seconds are reserved; some have passed when the clock is set back.
    assert_eq!(fixture.store.reserve(job, 1000, max_wait).await.unwrap(), Duration::ZERO);
    let hour = if fixture.is_sqlite() { "3600000" } else { "interval '1 hour'" };
    fixture
        .run(&format!(
            "UPDATE windlass_controls
             SET next_at = next_at + {hour}, reserved_at = reserved_at + {hour}"
        ))
        .await;
    let second = fixture.store.reserve(job, 1000, max_wait).await.unwrap();
    assert!(second > Duration::from_secs(60) && second <= Duration::from_secs(100), "{second:?}");
    // This reservation was made with the corrected clock.
    let third = fixture.store.reserve(job, 1, max_wait).await.unwrap();
    let range = Duration::from_secs(160)..=Duration::from_secs(200);
    assert!(range.contains(&third), "{third:?}");
}

async fn the_last_suspension_of_a_connection_wins(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let subject = connection_subject("app");
    let (long, short) = (Duration::from_secs(3600), Duration::from_secs(1800));
    for (reason, wait) in [("slowed", long), ("unavailable", short)] {
        assert!(fixture.store.suspend(&subject, reason, wait).await.unwrap());
        assert_eq!(fixture.job(job).await.error.as_deref(), Some(reason));
    }
    assert!(fixture.store.suspend(&subject, "", Duration::ZERO).await.unwrap());
    assert_eq!(fixture.job(job).await.error, None);
    // Leasing continues, since another process may reach the database.
    fixture.store.suspend(&subject, "unavailable", long).await.unwrap();
    let leased = fixture.lease(job, 1).await;
    assert_eq!(leased.len(), 1);
    // A cancelled job waits for the database, too.
    fixture.store.cancel(job).await.unwrap();
    let error = fixture.job(job).await.error.unwrap();
    assert!(error.contains("is being cancelled") && error.ends_with("; unavailable"), "{error}");
}

async fn workers_are_listed_with_their_chunks(fixture: StoreFixture) {
    let job = fixture.planned(3).await;
    let worker = by().worker;
    let other = Capabilities { worker: "other".to_owned(), ..by() };
    fixture.store.heartbeat_worker(&by(), 4).await.unwrap();
    fixture.lease(job, 2).await;
    fixture.store.heartbeat_worker(&other, 1).await.unwrap();
    fixture.store.heartbeat_worker(&by(), 4).await.unwrap();
    let workers = fixture.store.workers().await.unwrap();
    let busy = workers.iter().find(|row| row.name == worker).unwrap();
    assert_eq!((workers.len(), busy.slots, busy.chunks, busy.vanished), (2, 4, 2, false));
    assert_eq!(busy.job_types.as_deref(), Some(fixture.job(job).await.job_type.as_str()));
    fixture.store.remove_worker("other").await.unwrap();
    assert_eq!(fixture.store.workers().await.unwrap().len(), 1);
}

both!(
    a_job_says_what_it_waits_for,
    a_stopped_job_type_is_neither_planned_nor_worked,
    everything_can_be_stopped,
    leases_respect_the_concurrency_limit,
    concurrent_leases_respect_the_concurrency_limit,
    a_job_can_have_its_own_limit,
    operators_override_the_limit_of_the_definition,
    leases_beyond_a_lowered_limit_are_listed,
    reservations_follow_each_other,
    a_reservation_is_corrected_when_the_clock_is_set_back,
    the_last_suspension_of_a_connection_wins,
    workers_are_listed_with_their_chunks,
);
