//! When failures are retried.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `retry = { attempts = 3, backoff = "1s", factor = 2.0, max = "1m" }`, or with `growth = "linear"`
///
/// ```
/// use std::time::Duration;
/// use windlass_core::RetryPolicy;
///
/// let retry = RetryPolicy { attempts: 4, ..RetryPolicy::default() };
/// assert_eq!(retry.wait_after(3), Some(Duration::from_secs(4)));
/// assert_eq!(retry.wait_after(4), None);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryPolicy {
    /// The number of attempts, the first included.
    pub attempts: u32,
    /// The wait after the first failure.
    #[serde(with = "humantime_serde")]
    pub backoff: Duration,
    /// How the waits grow.
    #[serde(skip_serializing_if = "Growth::is_exponential")]
    pub growth: Growth,
    /// The factor between one wait and the next, if they grow exponentially.
    pub factor: f64,
    /// The longest wait.
    #[serde(with = "humantime_serde")]
    pub max: Duration,
}

/// How the waits between attempts grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Growth {
    /// Each wait is `factor` times the one before: 1 s, 2 s, 4 s.
    #[default]
    Exponential,
    /// Each wait is `backoff` longer than the one before: 1 s, 2 s, 3 s.
    Linear,
}

impl Growth {
    fn is_exponential(&self) -> bool {
        *self == Growth::Exponential
    }
}

/// The default of [`RetryPolicy::factor`].
pub(crate) const DEFAULT_FACTOR: f64 = 2.0;

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            attempts: 3,
            backoff: Duration::from_secs(1),
            growth: Growth::Exponential,
            factor: DEFAULT_FACTOR,
            max: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// The wait before the next attempt; `None` if the attempts are used up.
    pub fn wait_after(&self, failures: u32) -> Option<Duration> {
        (failures < self.attempts).then(|| self.backoff_after(failures))
    }

    /// The wait after this many failures, for work that is retried without limit.
    pub fn backoff_after(&self, failures: u32) -> Duration {
        let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let multiple = match self.growth {
            Growth::Exponential => self.factor.powi(exponent),
            Growth::Linear => f64::from(failures.max(1)),
        };
        let seconds = self.backoff.as_secs_f64() * multiple;
        // An overflow is infinite, and limited by `max` like any long wait.
        Duration::from_secs_f64(seconds.min(self.max.as_secs_f64()).max(0.0))
    }

    /// The wait after this many failures with jitter: shortened by `chance` (0 to 1) to as little as half, so
    /// that work which failed together is not retried together.
    pub fn jittered(&self, failures: u32, chance: f64) -> Duration {
        self.backoff_after(failures).mul_f64(1.0 - chance.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waits_two_four_eight_then_gives_up() {
        let policy =
            RetryPolicy { attempts: 4, backoff: Duration::from_secs(2), ..RetryPolicy::default() };
        let waits: Vec<_> = (1..=4).map(|n| policy.wait_after(n).map(|d| d.as_secs())).collect();
        assert_eq!(waits, [Some(2), Some(4), Some(8), None]);
    }

    #[test]
    fn linear_waits_are_one_two_three_up_to_the_limit() {
        let policy = RetryPolicy { attempts: 4, growth: Growth::Linear, ..RetryPolicy::default() };
        let waits: Vec<_> = (1..=4).map(|n| policy.wait_after(n).map(|d| d.as_secs())).collect();
        assert_eq!(waits, [Some(1), Some(2), Some(3), None]);
        assert_eq!(policy.backoff_after(61), policy.max);
        assert_eq!(policy.backoff_after(0), policy.backoff);
    }

    proptest! {
        #[test]
        fn a_wait_never_shrinks_and_never_passes_its_limit(failures in 1u32..100_000, linear: bool) {
            let growth = if linear { Growth::Linear } else { Growth::Exponential };
            let policy = RetryPolicy { growth, ..RetryPolicy::default() };
            let wait = policy.backoff_after(failures);
            prop_assert!(wait <= policy.max);
            prop_assert!(wait <= policy.backoff_after(failures + 1));
        }
    }
}
