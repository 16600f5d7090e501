//! What the browser of the tests asks of whoever drives it.

use std::time::Duration;

/// How long to wait for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until it happens.
pub(crate) async fn eventually(what: &str, happens: impl AsyncFnMut() -> bool) {
    windlass_testkit::eventually(what, PATIENCE, happens).await;
}
