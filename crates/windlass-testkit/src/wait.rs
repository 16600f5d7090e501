//! Waiting for a condition instead of sleeping for luck.

use std::time::{Duration, Instant};

/// Asks `condition` every 10 ms until it holds, and panics with `what` after `timeout`.
pub async fn eventually(what: &str, timeout: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < timeout, "after {timeout:?} still not true: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
