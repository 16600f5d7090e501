//! The shutdown of a worker: requested once, complete when every chunk is completed or handed back.

use tokio_util::sync::CancellationToken;

/// The two signals of a shutdown. Cheap to clone; every clone is the same shutdown.
///
/// Loops take no new work once it is requested. Heartbeats continue until it is complete, so that
/// no lease expires while its chunk finishes a commit.
#[derive(Clone, Default)]
pub(crate) struct Shutdown {
    requested: CancellationToken,
    complete: CancellationToken,
}

impl Shutdown {
    pub(crate) fn request(&self) {
        self.requested.cancel();
    }

    pub(crate) fn requested(&self) -> bool {
        self.requested.is_cancelled()
    }

    /// Waits until shutdown is requested.
    pub(crate) async fn wait(&self) {
        self.requested.cancelled().await;
    }

    pub(crate) fn mark_complete(&self) {
        self.request();
        self.complete.cancel();
    }

    pub(crate) fn complete(&self) -> bool {
        self.complete.is_cancelled()
    }

    /// Waits until shutdown is complete.
    pub(crate) async fn wait_complete(&self) {
        self.complete.cancelled().await;
    }
}
