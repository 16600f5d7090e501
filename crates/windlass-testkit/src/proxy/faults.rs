//! The armed cut, the delay, the reads that fail at random, and their counters.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The state that all sessions of a proxy share.
#[derive(Default)]
pub(super) struct Faults {
    armed: Mutex<Option<Cut>>,
    cuts: AtomicUsize,
    delay: Mutex<Duration>,
    flaky: Mutex<Option<Flaky>>,
    reads: AtomicUsize,
    failed: AtomicUsize,
}

/// Reads that fail at random, from a fixed seed.
struct Flaky {
    text: String,
    percent: u64,
    state: u64,
}

/// How a read fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailedRead {
    /// The server never receives the statement.
    Unasked,
    /// The client receives only this many packets of the answer.
    CutShort(usize),
    /// The server answers with a transient error.
    Refused,
}

/// A cut that happens once.
pub(super) struct Cut {
    pub(super) moment: Moment,
    /// Only in a transaction that ran a statement containing this text.
    pub(super) of: Option<String>,
}

/// On which side of the commit to cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    BeforeCommit,
    AfterCommit,
}

impl Faults {
    pub(super) fn arm(&self, cut: Cut) {
        *self.armed.lock().unwrap() = Some(cut);
    }

    /// Takes the armed cut if it matches the transaction of this session.
    pub(super) fn take_if(&self, fits: impl FnOnce(&Cut) -> bool) -> Option<Cut> {
        self.armed.lock().unwrap().take_if(|cut| fits(cut))
    }

    /// From now on, each message of a client arrives this much later.
    pub(super) fn delay(&self, delay: Duration) {
        *self.delay.lock().unwrap() = delay;
    }

    /// Waits as long as messages are delayed by now.
    pub(super) async fn pause(&self) {
        let delay = *self.delay.lock().unwrap();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    /// From now on, `percent` of the statements with this text fail.
    pub(super) fn fail_reads(&self, text: &str, percent: u8) {
        let flaky = Flaky { text: text.to_owned(), percent: percent.into(), state: 20_251_116 };
        *self.flaky.lock().unwrap() = (percent > 0).then_some(flaky);
    }

    /// Decides whether a statement fails. The three ways to fail take turns.
    pub(super) fn fails(&self, sql: &str) -> Option<FailedRead> {
        let mut flaky = self.flaky.lock().unwrap();
        let flaky = flaky.as_mut().filter(|flaky| sql.contains(&flaky.text))?;
        self.reads.fetch_add(1, Ordering::SeqCst);
        if flaky.next_random() % 100 >= flaky.percent {
            return None;
        }
        Some(match self.failed.fetch_add(1, Ordering::SeqCst) % 3 {
            0 => FailedRead::Unasked,
            1 => FailedRead::CutShort(1 + flaky.next_random() as usize % 30),
            _ => FailedRead::Refused,
        })
    }

    /// The number of reads with a matching text, and how many of them failed.
    pub(super) fn reads(&self) -> (usize, usize) {
        (self.reads.load(Ordering::SeqCst), self.failed.load(Ordering::SeqCst))
    }

    pub(super) fn count(&self, connections: usize) {
        self.cuts.fetch_add(connections, Ordering::SeqCst);
    }

    pub(super) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

impl Flaky {
    fn next_random(&mut self) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.state >> 33
    }
}
