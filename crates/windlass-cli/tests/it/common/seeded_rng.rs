//! Random numbers that are the same in every run.

use std::ops::Range;

/// A pseudo-random sequence from a seed.
pub(crate) struct SeededRng(u64);

impl SeededRng {
    pub(crate) fn new(seed: u64) -> SeededRng {
        SeededRng(seed)
    }

    /// The next number in the range.
    pub(crate) fn next_in(&mut self, range: Range<u64>) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        range.start + (self.0 >> 33) % (range.end - range.start)
    }
}
