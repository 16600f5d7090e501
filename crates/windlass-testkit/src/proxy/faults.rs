//! The cut that is armed, and the count of those made.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all sessions of a proxy share.
#[derive(Default)]
pub(super) struct Faults {
    armed: Mutex<Option<Cut>>,
    cuts: AtomicUsize,
}

/// A cut to be made once.
pub(super) struct Cut {
    pub(super) moment: Moment,
    /// Only in a transaction that ran a statement with this text.
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

    /// Hands the armed cut to the one session whose transaction fits it.
    pub(super) fn take_if(&self, fits: impl FnOnce(&Cut) -> bool) -> Option<Cut> {
        self.armed.lock().unwrap().take_if(|cut| fits(cut))
    }

    pub(super) fn count(&self, connections: usize) {
        self.cuts.fetch_add(connections, Ordering::SeqCst);
    }

    pub(super) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}
