//! The history of a simulation: one line per event, and a hash over all of them.

use crate::system;
use sha2::{Digest as _, Sha256};

/// The events so far, of which only the hash is kept.
pub(crate) struct History {
    hash: Sha256,
    events: u64,
    print: bool,
}

impl History {
    pub(crate) fn new(print: bool) -> History {
        History { hash: Sha256::new(), events: 0, print }
    }

    /// Adds an event of a process, or of what surrounds them.
    pub(crate) fn add(&mut self, who: &str, what: &str) {
        let line = format!("{:>12.6} {who:<5} {what}", system::elapsed().as_secs_f64());
        self.hash.update(&line);
        self.events += 1;
        if self.print {
            println!("{line}");
        }
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn hash(&self) -> String {
        hex::encode(&self.hash.clone().finalize()[..8])
    }
}
