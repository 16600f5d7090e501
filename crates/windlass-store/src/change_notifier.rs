//! Waiting for a change without missing one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task;

/// A counter that moves with every change, and what each waiter has seen of it.
///
/// A worker claims, finds nothing, and then waits: a change in between must not be missed, and must
/// wake every waiter, not just the first. So each waiter needs a view of its own. A waiter is a
/// task, since a task does one thing after the other.
pub(crate) struct ChangeNotifier {
    count: watch::Sender<i64>,
    seen: Mutex<HashMap<Option<task::Id>, i64>>,
}

/// Beyond so many tasks, most of them have ended; forgetting a live one wakes it once for nothing.
const MOST_WAITERS: usize = 1024;

impl ChangeNotifier {
    pub(crate) fn new() -> ChangeNotifier {
        ChangeNotifier { count: watch::Sender::new(0), seen: Mutex::default() }
    }

    /// Something has changed.
    pub(crate) fn moved(&self) {
        self.count.send_modify(|count| *count += 1);
    }

    /// The shared counter has come so far; an older reading that arrives late moves nothing.
    pub(crate) fn reached(&self, count: i64) {
        self.count.send_if_modified(|now| {
            let newer = count > *now;
            *now = count.max(*now);
            newer
        });
    }

    /// Waits until something has changed since this task last returned from here, at most so long.
    /// A task that comes for the first time may have looked before, so it does not wait.
    pub(crate) async fn wait(&self, at_most: Duration) {
        let mut counter = self.count.subscribe();
        let now = *counter.borrow_and_update();
        if self.see(now) == Some(now) {
            let changed = counter.wait_for(|count| *count != now);
            // The sender lives in `self`, so the only other end is the time-out.
            let reached = match tokio::time::timeout(at_most, changed).await {
                Ok(Ok(count)) => *count,
                _ => now,
            };
            self.see(reached);
        }
    }

    /// Remembers what this task has seen, and says what it had seen before.
    fn see(&self, count: i64) -> Option<i64> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST_WAITERS {
            seen.clear();
        }
        seen.insert(task::try_id(), count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(20);

    async fn waits(changes: &ChangeNotifier) -> bool {
        let started = Instant::now();
        changes.wait(SHORT).await;
        started.elapsed() >= SHORT
    }

    #[tokio::test]
    async fn a_change_between_two_waits_is_seen_once() {
        let changes = ChangeNotifier::new();
        assert!(!waits(&changes).await, "the first look may have been before a change");
        assert!(waits(&changes).await);
        changes.moved();
        assert!(!waits(&changes).await);
        assert!(waits(&changes).await);
    }

    #[tokio::test]
    async fn a_change_wakes_every_waiter() {
        let changes = Arc::new(ChangeNotifier::new());
        let (ready, mut waiting) = tokio::sync::mpsc::channel(8);
        let tasks: Vec<_> = (0..8)
            .map(|place| {
                let (changes, ready) = (changes.clone(), ready.clone());
                tokio::spawn(async move {
                    changes.wait(LONG).await;
                    ready.send(()).await.unwrap();
                    // Half of them come back late, after the change.
                    if place % 2 == 0 {
                        tokio::time::sleep(SHORT * 2).await;
                    }
                    changes.wait(LONG).await;
                })
            })
            .collect();
        for _ in 0..8 {
            waiting.recv().await.unwrap();
        }
        changes.moved();
        let all = futures::future::join_all(tasks);
        tokio::time::timeout(Duration::from_secs(10), all).await.expect("all are woken");
    }

    #[test]
    fn an_old_reading_moves_nothing() {
        let changes = ChangeNotifier::new();
        changes.reached(5);
        let watcher = changes.count.subscribe();
        changes.reached(4);
        changes.reached(5);
        assert!(!watcher.has_changed().unwrap());
    }
}
