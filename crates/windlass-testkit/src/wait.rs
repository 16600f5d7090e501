//! Waiting for a condition.

use std::time::{Duration, Instant};

/// Evaluates `condition` every 10 ms until it is true. Panics with `what` after `timeout`.
pub async fn eventually(what: &str, timeout: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < timeout, "after {timeout:?} this is still not true: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
