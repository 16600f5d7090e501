//! Where the next claim of each job begins: a hint that spares it the chunks which are taken.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::ClaimedChunk;

/// Up to which number the chunks of jobs that were never claimed before are taken, as far as this
/// process knows.
///
/// It can be wrong: somebody who was taking a chunk when we passed it may have died. So it is
/// forgotten after a while, and sooner when a claim finds nothing.
#[derive(Default)]
pub(super) struct ClaimHint {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    numbers: HashMap<Uuid, i64>,
    since: Option<Instant>,
}

/// How long it is believed.
const BELIEVED: Duration = Duration::from_secs(5);
/// How long it is believed when nothing is found.
const DOUBTED: Duration = Duration::from_secs(1);
/// Jobs it is remembered of; more are seldom worked at once.
const MOST: usize = 64;

impl ClaimHint {
    /// The jobs, and the first number of each that may be free.
    pub(super) fn known(&self) -> (Vec<Uuid>, Vec<i64>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.forget_after(BELIEVED);
        known.numbers.iter().map(|(job, number)| (*job, *number)).unzip()
    }

    /// Learns from what was claimed, of all there was or only of what is urgent.
    pub(super) fn learn(&self, claimed: &[ClaimedChunk], of_all: bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if claimed.is_empty() && of_all {
            known.forget_after(DOUBTED);
        }
        if known.numbers.len() > MOST {
            known.numbers.clear();
        }
        // At epoch 1 it was never claimed before; those that were come in no order.
        for lease in claimed.iter().map(|chunk| chunk.lease).filter(|lease| lease.epoch == 1) {
            let first = known.numbers.entry(lease.chunk.job).or_default();
            *first = (*first).max(lease.chunk.number + 1);
        }
    }
}

impl Known {
    fn forget_after(&mut self, time: Duration) {
        if self.since.is_none_or(|since| since.elapsed() > time) {
            *self = Known { since: Some(Instant::now()), ..Known::default() };
        }
    }
}
