//! A hint that lets leasing skip chunks which are already leased.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::LeasedChunk;

/// Per-job lower bound on unleased chunk numbers. A hint: leasing is correct without it.
///
/// It can be wrong, because a process that was leasing a lower number when this one passed it may
/// have rolled back. So it expires after a while, and sooner when leasing finds nothing.
#[derive(Default)]
pub(super) struct LeaseHint {
    bounds: Mutex<Bounds>,
}

#[derive(Default)]
struct Bounds {
    numbers: HashMap<Uuid, i64>,
    since: Option<Instant>,
}

const HINT_TTL: Duration = Duration::from_secs(5);
/// The time to live after leasing found nothing.
const HINT_TTL_WHEN_EMPTY: Duration = Duration::from_secs(1);
/// Processes seldom work more jobs at once.
const MAX_JOBS: usize = 64;

impl LeaseHint {
    /// The jobs, and the lowest chunk number of each that may be unleased.
    pub(super) fn get(&self) -> (Vec<Uuid>, Vec<i64>) {
        let mut bounds = self.bounds.lock();
        bounds.expire_after(HINT_TTL);
        bounds.numbers.iter().map(|(job, number)| (*job, *number)).unzip()
    }

    /// Learns from what was leased. `of_all` says whether it looked at chunks of all priorities.
    pub(super) fn learn(&self, leased: &[LeasedChunk], of_all: bool) {
        let mut bounds = self.bounds.lock();
        if leased.is_empty() && of_all {
            bounds.expire_after(HINT_TTL_WHEN_EMPTY);
        }
        if bounds.numbers.len() > MAX_JOBS {
            bounds.numbers.clear();
        }
        // Only first leases, which have epoch 1, are made in order of numbers.
        for lease in leased.iter().map(|chunk| chunk.lease).filter(|lease| lease.epoch == 1) {
            let bound = bounds.numbers.entry(lease.chunk.job).or_default();
            *bound = (*bound).max(lease.chunk.number + 1);
        }
    }
}

impl Bounds {
    fn expire_after(&mut self, ttl: Duration) {
        if self.since.is_none_or(|since| since.elapsed() > ttl) {
            *self = Bounds { since: Some(Instant::now()), ..Bounds::default() };
        }
    }
}
