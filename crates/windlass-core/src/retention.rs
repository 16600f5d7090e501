//! How long ended jobs are kept.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `retention = { chunks = "7d", jobs = "90d", dead_letters = "1y" }`
///
/// ```
/// use std::time::Duration;
/// use windlass_core::Retention;
///
/// let week = Duration::from_secs(7 * 24 * 3600);
/// assert_eq!(Retention::default().chunks, week);
/// assert_eq!(Retention::of(week).dead_letters, Some(week));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// How long the chunks, the ledger and the emitted rows of a completed or cancelled job are kept. A
    /// failed job keeps them until it is deleted, because it may be retried.
    #[serde(with = "humantime_serde")]
    pub chunks: Duration,
    /// How long an ended job is kept, with its dead letters that are not `new`.
    #[serde(with = "humantime_serde")]
    pub jobs: Duration,
    /// How long dead letters of any status are kept. By default a `new` one is kept until it is redriven or
    /// ignored, and its job with it.
    #[serde(with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub dead_letters: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { chunks: 7 * DAY, jobs: 90 * DAY, dead_letters: None }
    }
}

impl Retention {
    /// One age for everything, dead letters included.
    pub fn of(age: Duration) -> Retention {
        Retention { chunks: age, jobs: age, dead_letters: Some(age) }
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Retention::default()
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);
