//! The health of the user's databases. Where one says that it is above its limit, work on it slows
//! down, more with every time it says so again, and recovers step by step when it is below.

use crate::engine::Engine;
use crate::execute::worker::Shutdown;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use windlass_core::config::Health;
use windlass_store::connection_subject;

/// Each level halves the pace, as far as rests are not cut short.
const MOST: u32 = 10;
/// No rest is longer than this: a slot that rests is one that other jobs lack.
pub(crate) const LONGEST_REST: Duration = Duration::from_secs(10);
/// Whoever rests looks this often whether it still should.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// A database that does not say for so long how it is, is not well.
const PATIENCE: Duration = Duration::from_secs(10);

/// How far work on one connection is slowed, in this process.
#[derive(Default)]
pub(crate) struct Throttle {
    level: AtomicU32,
    /// How long a batch takes there, on average.
    batch: Mutex<Duration>,
}

impl Throttle {
    /// A batch took so long.
    pub(crate) fn took(&self, took: Duration) {
        // A plain value, which a panic elsewhere cannot leave half changed.
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        *batch = if batch.is_zero() { took } else { (*batch * 7 + took) / 8 };
    }

    /// Rests before the next batch, at most so long: at the first level as long as a batch takes,
    /// so that half of the pace is left, at the next three times as long, and so on.
    pub(crate) async fn rest(&self, most: Duration) {
        let begun = Instant::now();
        while let Some(left) = self.pause().min(most).checked_sub(begun.elapsed())
            && !left.is_zero()
        {
            tokio::time::sleep(left.min(POLL_INTERVAL)).await;
        }
    }

    fn pause(&self) -> Duration {
        let batch = *self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        batch * ((1 << self.level.load(Ordering::Relaxed)) - 1)
    }

    /// One level more or less; says which it was and is.
    fn shift(&self, well: bool) -> (u32, u32) {
        let before = self.level.load(Ordering::Relaxed);
        let level = if well { before.saturating_sub(1) } else { (before + 1).min(MOST) };
        self.level.store(level, Ordering::Relaxed);
        (before, level)
    }
}

/// Asks the database of a connection how it is until shutdown.
pub(crate) async fn watch(engine: Engine, name: String, health: Health, shutdown: Shutdown) {
    let throttle = engine.throttle(&name);
    while !shutdown.requested() {
        // It cannot be measured; that it is unavailable is said already.
        if !engine.is_claimable(&name) {
            tokio::select! {
                () = tokio::time::sleep(health.every) => {}
                () = shutdown.wait() => {}
            }
            continue;
        }
        let ill = tokio::select! {
            ill = ill(&engine, &name, &health) => ill,
            // A database that does not answer keeps nobody from ending.
            () = shutdown.wait() => break,
        };
        let (before, level) = throttle.shift(ill.is_none());
        let why = ill.unwrap_or_else(|| "recovers".to_owned());
        if level > 0 {
            let times = (1 << level) - 1;
            let reason = format!(
                "slowed, resting {times} times as long as working: connection {name} {why}"
            );
            if before == 0 {
                tracing::warn!("{reason}");
            }
            // Shown until it is said again, or no more.
            let shown = health.every * 2 + Duration::from_secs(1);
            if let Err(error) =
                engine.store().suspend(&connection_subject(&name), &reason, shown).await
            {
                tracing::warn!(%error, "the store did not take how connection {name} is");
            }
        } else if before > 0 && level == 0 {
            tracing::warn!("connection {name} is below its limit; full pace again");
        }
        tokio::select! {
            () = tokio::time::sleep(health.every) => {}
            () = shutdown.wait() => {}
        }
    }
}

/// Why a connection is not well; nothing where it is.
async fn ill(engine: &Engine, name: &str, health: &Health) -> Option<String> {
    let measured = async { Ok(engine.connection(name)?.measure(&health.sql).await?) };
    let measured: Result<crate::Result<Option<f64>>, _> =
        tokio::time::timeout(PATIENCE, measured).await;
    match measured {
        Ok(Ok(Some(number))) if number > health.limit => {
            Some(format!("measures {number}, its limit is {}", health.limit))
        }
        Ok(Ok(_)) => None,
        Ok(Err(error)) if engine.connection_failed(name, &error) => None,
        Ok(Err(error)) => Some(format!("does not say how it is: {error}")),
        Err(_) => Some(format!("has not said how it is for {PATIENCE:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: Duration = Duration::from_secs(1);
    const LONG: Duration = Duration::from_secs(10_000);

    fn shift(throttle: &Throttle, times: u32, well: bool) {
        for _ in 0..times {
            throttle.shift(well);
        }
    }

    async fn rested(throttle: &Throttle, most: Duration) -> Duration {
        let begun = Instant::now();
        throttle.rest(most).await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn every_level_halves_the_pace_and_gives_it_back() {
        let throttle = Throttle::default();
        throttle.took(BATCH);
        assert_eq!(rested(&throttle, LONG).await, Duration::ZERO);
        for pause in [1, 3, 7, 15] {
            throttle.shift(false);
            assert_eq!(rested(&throttle, LONG).await, BATCH * pause);
        }
        assert_eq!(rested(&throttle, BATCH).await, BATCH, "never longer than it may");
        for pause in [7, 3, 1, 0] {
            throttle.shift(true);
            assert_eq!(rested(&throttle, LONG).await, BATCH * pause);
        }
        shift(&throttle, 100, false);
        assert_eq!(rested(&throttle, LONG).await, BATCH * 1023);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_rests_notices_that_it_is_better() {
        let throttle = Throttle::default();
        throttle.took(BATCH);
        shift(&throttle, 10, false);
        let better = async {
            tokio::time::sleep(BATCH * 5).await;
            shift(&throttle, 10, true);
        };
        let (rested, ()) = tokio::join!(rested(&throttle, LONG), better);
        assert!(rested < BATCH * 6, "{rested:?}");
    }
}
