//! Background loops poll less often while the store has no open work.
//!
//! A store without open work changes only with a notification, which ends every wait. So the polls are needed
//! only for a notification that was lost with the process that should have sent it.

use crate::Result;
use crate::engine::Engine;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use windlass_store::Subscription;

/// The time between two polls while the store has no open work.
pub(crate) const QUIET_POLL_INTERVAL: Duration = Duration::from_secs(15);

/// The number of changes at which the store had no open work; -1 before.
pub(crate) struct QuietSince(AtomicI64);

impl Default for QuietSince {
    fn default() -> Self {
        QuietSince(AtomicI64::new(-1))
    }
}

impl Engine {
    /// Looks up whether the store has open work.
    pub(crate) async fn refresh_quiet(&self) -> Result<()> {
        // Read first: a change during the look-up ends the quiet time.
        let count = self.store().change_count();
        let quiet_at = match count {
            Some(count) if !self.store().has_open_work().await? => count,
            _ => -1,
        };
        self.shared.quiet_since.0.store(quiet_at, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the store had no open work at the last look-up and has not changed since.
    pub(crate) fn is_quiet(&self) -> bool {
        let quiet_at = self.shared.quiet_since.0.load(Ordering::Relaxed);
        self.store().change_count().is_some_and(|count| count == quiet_at)
    }

    /// How long a loop may wait for a change: `usual`, or longer while the store has no open work.
    pub(crate) fn poll_interval(&self, usual: Duration) -> Duration {
        if self.is_quiet() { QUIET_POLL_INTERVAL.max(usual) } else { usual }
    }
}

/// The pause between two rounds of a background task.
pub struct Pause {
    engine: Engine,
    changes: Subscription,
}

impl Pause {
    /// A pause of a task of this engine.
    pub fn new(engine: &Engine) -> Pause {
        Pause { engine: engine.clone(), changes: engine.store().subscribe() }
    }

    /// Waits for `usual`. While the store has no open work, waits before that until it changes, for `longest` at
    /// most: the first job after a quiet time is not delayed by the rounds of all background tasks.
    pub async fn wait_at_most(&mut self, usual: Duration, longest: Duration) {
        if self.engine.is_quiet() {
            self.changes.changed(longest.max(usual)).await;
        }
        if !self.engine.is_quiet() {
            tokio::time::sleep(usual).await;
        }
    }
}
