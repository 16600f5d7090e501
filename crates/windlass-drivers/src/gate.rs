//! Whether a pool may use connections: `max_connections_total` limits the connections of all processes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Lets a pool use connections.
pub trait ConnectionGate: Send + Sync {
    /// Waits until this process may open connections.
    fn wait_until_open(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The gate of a pool; without one it is always open.
#[derive(Clone, Default)]
pub(crate) struct Gate(Option<Arc<dyn ConnectionGate>>);

impl Gate {
    pub(crate) fn new(gate: Option<Arc<dyn ConnectionGate>>) -> Gate {
        Gate(gate)
    }

    pub(crate) async fn wait_until_open(&self) {
        if let Some(gate) = &self.0 {
            gate.wait_until_open().await;
        }
    }
}
