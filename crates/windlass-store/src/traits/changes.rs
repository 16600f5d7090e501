//! Waiting for changes of the store.

use crate::Subscription;

/// Notifies about changes that were committed by this or another process.
pub trait ChangeStore: Send + Sync {
    /// Subscribes to changes. A loop that reads the store and then waits for the next change creates
    /// one subscription and keeps it.
    fn subscribe(&self) -> Subscription;
    /// The number of changes that this process knows. `None` while it does not learn of the changes of other
    /// processes, as behind some connection poolers.
    fn change_count(&self) -> Option<i64>;
}
