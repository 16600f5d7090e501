//! Waiting for changes of the store.

use crate::{Subscription, Topics};

/// Notifies about changes that were committed by this or another process.
pub trait ChangeStore: Send + Sync {
    /// Subscribes to changes. A loop that reads the store and then waits for the next change creates
    /// one subscription and keeps it.
    fn subscribe(&self) -> Subscription {
        self.subscribe_to(Topics::ALL)
    }
    /// Subscribes to changes of these topics. A store that does not know what a change is about counts it as all.
    fn subscribe_to(&self, topics: Topics) -> Subscription;
    /// The number of changes that this process knows. `None` while it does not learn of the changes of other
    /// processes, as behind some connection poolers.
    fn change_count(&self) -> Option<i64>;
}
