//! Subscriptions are woken by changes, also by those of other processes.

use std::time::{Duration, Instant};

use windlass_store::Subscription;

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

async fn a_submit_wakes_all_subscriptions(fixture: StoreFixture) {
    let other = fixture.other().await;
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let mut changes = other.subscribe();
            tokio::spawn(async move {
                catch_up(&mut changes).await;
                is_woken(&mut changes).await
            })
        })
        .collect();
    tokio::time::sleep(SHORT * 5).await;
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

async fn a_wait_without_a_change_lasts_its_full_time(fixture: StoreFixture) {
    let job = fixture.planned(3).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    let mut changes = fixture.other().await.subscribe();
    catch_up(&mut changes).await;
    // Neither the end of one of several chunks nor a read is a change to be woken for.
    fixture.complete(&chunk).await.unwrap();
    fixture.check(job).await;
    let begun = Instant::now();
    changes.changed(SHORT).await;
    assert!(begun.elapsed() >= SHORT, "{:?}", begun.elapsed());
}

both!(
    a_submit_wakes_all_subscriptions,
    a_change_between_two_waits_is_not_missed,
    two_subscriptions_of_one_task_are_independent,
    the_end_of_a_job_wakes,
    a_wait_without_a_change_lasts_its_full_time,
);
