//! Subscriptions are woken by changes, also by those of other processes.

use std::time::{Duration, Instant};

use windlass_core::config::Dialect;
use windlass_store::{Store, Subscription};
use windlass_testkit::eventually;

use crate::fixture::{LIMIT, StoreFixture, new_job};

const SHORT: Duration = Duration::from_millis(300);

/// Waits until the subscription has seen all earlier changes.
async fn catch_up(changes: &mut Subscription) {
    let started = Instant::now();
    loop {
        let begun = Instant::now();
        changes.changed(SHORT).await;
        if begun.elapsed() >= SHORT {
            return;
        }
        assert!(started.elapsed() < LIMIT, "changes without end");
    }
}

/// Whether a change wakes the subscription long before its wait would time out.
async fn is_woken(changes: &mut Subscription) -> bool {
    let begun = Instant::now();
    changes.changed(LIMIT).await;
    begun.elapsed() < LIMIT / 2
}

/// Waits until the store learns of changes of other processes, and the subscription has seen all earlier ones.
async fn listening(store: &dyn Store, changes: &mut Subscription, least: i64) {
    eventually("the store learns of changes", LIMIT, async || {
        changes.changed(SHORT).await;
        store.change_count().is_some_and(|count| count >= least)
    })
    .await;
    catch_up(changes).await;
}

async fn a_submit_wakes_all_subscriptions(fixture: StoreFixture) {
    let other = fixture.other().await;
    let (ready, mut waiting) = tokio::sync::mpsc::channel(4);
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let (mut changes, ready) = (other.subscribe(), ready.clone());
            tokio::spawn(async move {
                catch_up(&mut changes).await;
                ready.send(()).await.unwrap();
                is_woken(&mut changes).await
            })
        })
        .collect();
    for _ in 0..4 {
        waiting.recv().await.unwrap();
    }
    fixture.submit().await;
    for waiter in waiters {
        assert!(waiter.await.unwrap());
    }
}

async fn a_change_between_two_waits_is_not_missed(fixture: StoreFixture) {
    let mut changes = fixture.other().await.subscribe();
    catch_up(&mut changes).await;
    fixture.store.submit(new_job()).await.unwrap();
    // The notification has arrived before the next wait begins.
    tokio::time::sleep(SHORT).await;
    assert!(is_woken(&mut changes).await);
    catch_up(&mut changes).await;
}

async fn two_subscriptions_of_one_task_are_independent(fixture: StoreFixture) {
    let other = fixture.other().await;
    let (mut first, mut second) = (other.subscribe(), other.subscribe());
    catch_up(&mut first).await;
    catch_up(&mut second).await;
    fixture.submit().await;
    assert!(is_woken(&mut first).await);
    assert!(is_woken(&mut second).await, "the first one has seen the change, the second has not");
}

async fn the_end_of_a_job_wakes(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    let mut changes = fixture.other().await.subscribe();
    catch_up(&mut changes).await;
    fixture.complete(&chunk).await.unwrap();
    assert!(is_woken(&mut changes).await);
}

/// Loops that poll seldom while nothing is open learn of these by their notifications.
async fn commands_of_operators_wake(fixture: StoreFixture) {
    let store = &fixture.store;
    let now = store.now().await.unwrap();
    store.put_schedule("REFRESH", "spec", Some(now)).await.unwrap();
    let mut changes = fixture.other().await.subscribe();
    catch_up(&mut changes).await;
    store.stop("REFRESH", true).await.unwrap();
    assert!(is_woken(&mut changes).await, "stop");
    catch_up(&mut changes).await;
    store.set_throughput("REFRESH", Some(1), None).await.unwrap();
    assert!(is_woken(&mut changes).await, "throughput");
    catch_up(&mut changes).await;
    assert!(store.pause_schedule("REFRESH", true, None).await.unwrap());
    assert!(is_woken(&mut changes).await, "a paused schedule");
}

async fn changes_are_counted_in_every_process(fixture: StoreFixture) {
    let other = fixture.other().await;
    let mut changes = other.subscribe();
    listening(&*other, &mut changes, 0).await;
    let before = other.change_count().expect("notifications arrive");
    fixture.submit().await;
    assert!(is_woken(&mut changes).await);
    assert!(other.change_count().unwrap() > before);
}

async fn open_work_is_known(fixture: StoreFixture) {
    let store = &fixture.store;
    assert!(!store.has_open_work().await.unwrap(), "an empty store");
    let job = fixture.planned(1).await;
    assert!(store.has_open_work().await.unwrap(), "a job with a chunk");
    store.pause(job, None).await.unwrap();
    assert!(!store.has_open_work().await.unwrap(), "a paused job");
    store.resume(job).await.unwrap();
    let chunk = fixture.lease(job, 1).await.remove(0);
    assert!(store.has_open_work().await.unwrap(), "a leased chunk");
    fixture.complete(&chunk).await.unwrap();
    assert!(!store.has_open_work().await.unwrap(), "a completed job");
}

async fn a_wait_without_a_change_lasts_its_full_time(fixture: StoreFixture) {
    let job = fixture.planned(3).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    let other = fixture.other().await;
    let mut changes = other.subscribe();
    match fixture.settings.dialect {
        Dialect::Strict => catch_up(&mut changes).await,
        // The planned job is a change.
        _ => listening(&*other, &mut changes, 1).await,
    }
    // Neither the end of one of several chunks nor a read is a change to be woken for.
    fixture.complete(&chunk).await.unwrap();
    fixture.check(job).await;
    let begun = Instant::now();
    changes.changed(SHORT).await;
    assert!(begun.elapsed() >= SHORT, "{:?}", begun.elapsed());
}

/// Another process does not learn of changes in the dialect `strict`: it polls.
async fn only_changes_of_the_same_process_wake(fixture: StoreFixture) {
    let other = fixture.other().await;
    let (mut own, mut others) = (fixture.store.subscribe(), other.subscribe());
    catch_up(&mut own).await;
    catch_up(&mut others).await;
    fixture.submit().await;
    assert!(is_woken(&mut own).await);
    let begun = Instant::now();
    others.changed(SHORT).await;
    assert!(begun.elapsed() >= SHORT, "{:?}", begun.elapsed());
    assert_eq!((fixture.store.change_count(), other.change_count()), (None, None));
}

mod waking {
    use super::*;

    notified!(
        a_submit_wakes_all_subscriptions,
        a_change_between_two_waits_is_not_missed,
        two_subscriptions_of_one_task_are_independent,
        the_end_of_a_job_wakes,
        commands_of_operators_wake,
        changes_are_counted_in_every_process,
    );
    on_fixture!(strict: only_changes_of_the_same_process_wake);
}

both!(open_work_is_known, a_wait_without_a_change_lasts_its_full_time);
