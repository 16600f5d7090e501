//! How long what has ended is kept.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `retention = { chunks = "7d", jobs = "90d", dead_letters = "1y" }`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// The chunks of a completed or cancelled job, its ledger and the rows it emitted. A failed job
    /// keeps them until it goes itself, since it may be retried.
    #[serde(with = "humantime_serde")]
    pub chunks: Duration,
    /// A job that has ended, with its letters that are settled.
    #[serde(with = "humantime_serde")]
    pub jobs: Duration,
    /// Dead letters, whatever their status. Where nothing is said, a letter that is still `new` is
    /// kept until somebody decides about it, and its job with it.
    #[serde(with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub dead_letters: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { chunks: 7 * DAY, jobs: 90 * DAY, dead_letters: None }
    }
}

impl Retention {
    /// Everything that has ended longer ago than this, letters included.
    pub fn of(age: Duration) -> Retention {
        Retention { chunks: age, jobs: age, dead_letters: Some(age) }
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Retention::default()
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);
