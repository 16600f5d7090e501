//! Probes the health of the user's databases, and throttles work on a database that is over its limit.
//!
//! Each probe over the limit raises the throttle level by one, each probe below lowers it by one.

use crate::engine::Engine;
use crate::shutdown::Shutdown;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use windlass_core::config::Health;
use windlass_store::connection_subject;

/// Maximum throttle level. Each level halves the throughput, unless [`MAX_THROTTLE_DELAY`] cuts the delay.
const MAX_LEVEL: u32 = 10;
/// Maximum delay before a batch: a waiting chunk keeps its lease.
pub(crate) const MAX_THROTTLE_DELAY: Duration = Duration::from_secs(10);
/// How often a waiting chunk checks whether the level has changed.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// A health probe slower than this counts as unhealthy.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// How far work on one connection is throttled in this process.
#[derive(Default)]
pub(crate) struct Throttle {
    level: AtomicU32,
    /// Average duration of a batch.
    batch_time: Mutex<Duration>,
}

impl Throttle {
    /// Records the duration of a batch in the moving average.
    pub(crate) fn record_batch(&self, duration: Duration) {
        let mut batch_time = self.batch_time.lock();
        *batch_time = match batch_time.is_zero() {
            true => duration,
            false => (*batch_time * 7 + duration) / 8,
        };
    }

    /// Waits before the next batch, at most `limit`. At level 1 the wait is as long as a batch, which
    /// halves the throughput; at level 2 three times as long, at level 3 seven times, and so on.
    pub(crate) async fn delay(&self, limit: Duration) {
        let begun = Instant::now();
        while let Some(left) = self.delay_time().min(limit).checked_sub(begun.elapsed())
            && !left.is_zero()
        {
            tokio::time::sleep(left.min(POLL_INTERVAL)).await;
        }
    }

    /// How long the next batch waits.
    pub(crate) fn delay_time(&self) -> Duration {
        let batch_time = *self.batch_time.lock();
        batch_time * ((1 << self.level.load(Ordering::Relaxed)) - 1)
    }

    /// Lowers or raises the level by one. Returns the old and the new level.
    fn adjust(&self, healthy: bool) -> (u32, u32) {
        let before = self.level.load(Ordering::Relaxed);
        let level = if healthy { before.saturating_sub(1) } else { (before + 1).min(MAX_LEVEL) };
        self.level.store(level, Ordering::Relaxed);
        (before, level)
    }
}

/// Probes the health of a connection until shutdown.
pub(crate) async fn run(engine: Engine, name: String, health: Health, shutdown: Shutdown) {
    let throttle = engine.throttle(&name);
    while !shutdown.requested() {
        // Skip the probe: `availability.rs` handles and logs an unavailable database.
        if !engine.is_leasable(&name) {
            tokio::select! {
                () = tokio::time::sleep(health.every) => {}
                () = shutdown.wait() => {}
            }
            continue;
        }
        let problem = tokio::select! {
            problem = probe(&engine, &name, &health) => problem,
            // A slow probe must not delay the shutdown.
            () = shutdown.wait() => break,
        };
        let (before, level) = throttle.adjust(problem.is_none());
        let why = problem.unwrap_or_else(|| "is recovering".to_owned());
        if level > 0 {
            let times = 1 << level;
            let reason = format!("throttled to 1/{times} of full speed: connection {name} {why}");
            if before == 0 {
                tracing::warn!("{reason}");
            }
            // Shown until the next probe renews it.
            let shown = health.every * 2 + Duration::from_secs(1);
            let subject = connection_subject(&name);
            if let Err(error) = engine.store().suspend(&subject, &reason, shown).await {
                tracing::warn!(%error, "failed to record in the store that connection {name} is throttled");
            }
        } else if before > 0 && level == 0 {
            tracing::warn!("connection {name} is healthy; no longer throttled");
        }
        tokio::select! {
            () = tokio::time::sleep(health.every) => {}
            () = shutdown.wait() => {}
        }
    }
}

/// Runs the health query once. Returns why the connection is unhealthy; `None` if it is healthy.
async fn probe(engine: &Engine, name: &str, health: &Health) -> Option<String> {
    let measured = async { Ok(engine.connection(name)?.measure(&health.sql).await?) };
    let measured: Result<crate::Result<Option<f64>>, _> =
        tokio::time::timeout(PROBE_TIMEOUT, measured).await;
    match measured {
        Ok(Ok(Some(number))) if number > health.limit => {
            Some(format!("measures {number}, over its limit of {}", health.limit))
        }
        Ok(Ok(_)) => None,
        Ok(Err(error)) if engine.connection_failed(name, &error) => None,
        Ok(Err(error)) => Some(format!("failed its health probe: {error}")),
        Err(_) => Some(format!("did not respond to its health probe within {PROBE_TIMEOUT:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: Duration = Duration::from_secs(1);
    const NO_LIMIT: Duration = Duration::from_secs(10_000);

    fn adjust(throttle: &Throttle, times: u32, healthy: bool) {
        for _ in 0..times {
            throttle.adjust(healthy);
        }
    }

    async fn measure_delay(throttle: &Throttle, limit: Duration) -> Duration {
        let begun = Instant::now();
        throttle.delay(limit).await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn every_level_halves_the_throughput_and_restores_it() {
        let throttle = Throttle::default();
        throttle.record_batch(BATCH);
        assert_eq!(measure_delay(&throttle, NO_LIMIT).await, Duration::ZERO);
        for times in [1, 3, 7, 15] {
            throttle.adjust(false);
            assert_eq!(measure_delay(&throttle, NO_LIMIT).await, BATCH * times);
        }
        assert_eq!(measure_delay(&throttle, BATCH).await, BATCH, "never longer than the limit");
        for times in [7, 3, 1, 0] {
            throttle.adjust(true);
            assert_eq!(measure_delay(&throttle, NO_LIMIT).await, BATCH * times);
        }
        adjust(&throttle, 100, false);
        assert_eq!(measure_delay(&throttle, NO_LIMIT).await, BATCH * 1023);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_chunk_notices_a_lower_level() {
        let throttle = Throttle::default();
        throttle.record_batch(BATCH);
        adjust(&throttle, 10, false);
        let recovery = async {
            tokio::time::sleep(BATCH * 5).await;
            adjust(&throttle, 10, true);
        };
        let (waited, ()) = tokio::join!(measure_delay(&throttle, NO_LIMIT), recovery);
        assert!(waited < BATCH * 6, "{waited:?}");
    }
}
