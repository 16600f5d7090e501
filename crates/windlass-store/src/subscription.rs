//! Waiting for changes without missing one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::topics::Topics;

/// A view on the changes of a store, created by
/// [`ChangeStore::subscribe`](crate::ChangeStore::subscribe).
///
/// A worker asks for chunks, finds none and waits. A change between the request and the wait must wake it,
/// and a change must wake all workers. So each of them has a subscription that remembers which
/// changes it has seen.
pub struct Subscription {
    changes: watch::Receiver<Changes>,
    topics: Topics,
    /// The last change of these topics that a call has returned for; `None` before the first call.
    seen: Option<i64>,
    source: Arc<dyn ChangeSource>,
}

impl Subscription {
    pub(crate) fn new(
        counter: &ChangeCounter,
        topics: Topics,
        source: Arc<dyn ChangeSource>,
    ) -> Subscription {
        Subscription { changes: counter.0.subscribe(), topics, seen: None, source }
    }

    /// Waits until something may have changed since the last call returned, for `at_most` at the
    /// longest. The first call returns at once. A change between two calls is not missed.
    ///
    /// The call is cancel safe: a change that arrives while it is dropped ends the next call.
    pub async fn changed(&mut self, at_most: Duration) {
        let topics = self.topics;
        let Some(seen) = self.seen else {
            self.seen = Some(self.changes.borrow().last_of(topics));
            self.source.start();
            return;
        };
        tokio::select! {
            biased;
            // The sender lives as long as the source, which this subscription owns a share of.
            Ok(changes) = self.changes.wait_for(|changes| changes.last_of(topics) > seen) => {
                self.seen = Some(changes.last_of(topics));
            }
            () = self.source.watch() => {}
            () = tokio::time::sleep(at_most) => {}
        }
    }
}

/// Where a backend learns of changes that other processes made.
#[async_trait]
pub(crate) trait ChangeSource: Send + Sync {
    /// Prepares for the first wait.
    fn start(&self) {}
    /// Keeps the counter of changes up to date for as long as it is polled. Never returns.
    async fn watch(&self);
}

/// The changes so far: how many, and which of them was the last of each topic.
#[derive(Clone, Copy, Default)]
struct Changes {
    count: i64,
    last: [i64; Topics::COUNT],
}

impl Changes {
    fn record(&mut self, count: i64, topics: Topics) {
        self.count = count;
        for (number, last) in self.last.iter_mut().enumerate() {
            if topics.includes(number) {
                *last = count;
            }
        }
    }

    /// The last change of any of these topics.
    fn last_of(&self, topics: Topics) -> i64 {
        let last = self.last.iter().enumerate().filter(|(number, _)| topics.includes(*number));
        last.map(|(_, last)| *last).max().unwrap_or_default()
    }
}

/// A counter that increases with every change.
#[derive(Clone)]
pub(crate) struct ChangeCounter(Arc<watch::Sender<Changes>>);

impl ChangeCounter {
    pub(crate) fn new() -> ChangeCounter {
        ChangeCounter(Arc::new(watch::Sender::new(Changes::default())))
    }

    /// The number of changes so far.
    pub(crate) fn count(&self) -> i64 {
        self.0.borrow().count
    }

    /// Records a change of these topics.
    pub(crate) fn increment(&self, topics: Topics) {
        self.0.send_modify(|changes| changes.record(changes.count + 1, topics));
    }

    /// Sets the counter to a value that was read from the store. A lower value is an older reading
    /// that arrived late, and is ignored.
    pub(crate) fn advance_to(&self, count: i64) {
        self.0.send_if_modified(|changes| {
            let is_newer = count > changes.count;
            if is_newer {
                changes.record(count, Topics::ALL);
            }
            is_newer
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(120);
    const SHORT: Duration = Duration::from_millis(20);

    struct NoSource;

    #[async_trait]
    impl ChangeSource for NoSource {
        async fn watch(&self) {
            std::future::pending().await
        }
    }

    fn subscribe(counter: &ChangeCounter) -> Subscription {
        Subscription::new(counter, Topics::ALL, Arc::new(NoSource))
    }

    async fn times_out(subscription: &mut Subscription) -> bool {
        let started = Instant::now();
        subscription.changed(SHORT).await;
        started.elapsed() >= SHORT
    }

    /// Whether a change ends the wait.
    async fn is_woken(subscription: &mut Subscription) -> bool {
        let started = Instant::now();
        subscription.changed(LONG).await;
        started.elapsed() < LONG
    }

    #[tokio::test]
    async fn a_change_between_two_waits_is_seen_once() {
        let counter = ChangeCounter::new();
        let mut subscription = subscribe(&counter);
        assert!(is_woken(&mut subscription).await, "the first call returns at once");
        assert!(times_out(&mut subscription).await);
        counter.increment(Topics::ALL);
        assert!(is_woken(&mut subscription).await);
        assert!(times_out(&mut subscription).await);
    }

    #[tokio::test]
    async fn two_subscriptions_of_one_task_both_see_a_change() {
        let counter = ChangeCounter::new();
        let (mut first, mut second) = (subscribe(&counter), subscribe(&counter));
        first.changed(SHORT).await;
        second.changed(SHORT).await;
        counter.increment(Topics::ALL);
        assert!(is_woken(&mut first).await);
        assert!(is_woken(&mut second).await);
    }

    #[tokio::test]
    async fn a_subscription_sees_only_changes_of_its_topics() {
        let counter = ChangeCounter::new();
        let mut chunks = Subscription::new(&counter, Topics::CHUNKS, Arc::new(NoSource));
        let mut all = subscribe(&counter);
        chunks.changed(SHORT).await;
        all.changed(SHORT).await;
        counter.increment(Topics::SEGMENTS);
        assert!(times_out(&mut chunks).await);
        assert!(is_woken(&mut all).await);
        counter.increment(Topics::SEGMENTS | Topics::CHUNKS);
        assert!(is_woken(&mut chunks).await);
        counter.advance_to(9);
        assert!(is_woken(&mut chunks).await);
    }

    #[tokio::test]
    async fn a_subscription_moves_between_tasks_without_missing_a_change() {
        let counter = ChangeCounter::new();
        let mut subscription = subscribe(&counter);
        subscription.changed(SHORT).await;
        counter.increment(Topics::ALL);
        let mut subscription = tokio::spawn(async move {
            assert!(is_woken(&mut subscription).await);
            subscription
        })
        .await
        .unwrap();
        assert!(times_out(&mut subscription).await);
    }

    #[tokio::test]
    async fn a_change_wakes_all_subscriptions() {
        let counter = ChangeCounter::new();
        let (ready, mut waiting) = tokio::sync::mpsc::channel(8);
        let tasks: Vec<_> = (0..8)
            .map(|place| {
                let (mut subscription, ready) = (subscribe(&counter), ready.clone());
                tokio::spawn(async move {
                    subscription.changed(LONG).await;
                    ready.send(()).await.unwrap();
                    // Half of them wait only after the change.
                    if place % 2 == 0 {
                        tokio::time::sleep(SHORT * 2).await;
                    }
                    subscription.changed(LONG).await;
                })
            })
            .collect();
        for _ in 0..8 {
            waiting.recv().await.unwrap();
        }
        counter.increment(Topics::ALL);
        let all = futures::future::join_all(tasks);
        tokio::time::timeout(Duration::from_secs(10), all).await.expect("all are woken");
    }

    #[test]
    fn an_older_reading_is_no_change() {
        let counter = ChangeCounter::new();
        counter.advance_to(5);
        let changes = counter.0.subscribe();
        counter.advance_to(4);
        counter.advance_to(5);
        assert!(!changes.has_changed().unwrap());
    }
}
