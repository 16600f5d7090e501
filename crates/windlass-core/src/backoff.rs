//! Waits that grow while something keeps failing or nothing happens.

use std::time::Duration;

/// Waits that double from the shortest to the longest. [`Backoff::reset`] starts again.
///
/// ```
/// # use std::time::Duration;
/// # use windlass_core::Backoff;
/// let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
/// let waits: Vec<u128> = (0..4).map(|_| backoff.next_wait().as_millis()).collect();
/// assert_eq!(waits, [100, 200, 350, 350]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    shortest: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Waits from `shortest` to `longest`.
    pub const fn new(shortest: Duration, longest: Duration) -> Backoff {
        Backoff { shortest, longest, next: shortest }
    }

    /// The wait before the next try; the one after it is twice as long.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.next.min(self.longest);
        self.next = (wait * 2).min(self.longest);
        wait
    }

    /// Starts again at the shortest wait, after a success.
    pub fn reset(&mut self) {
        self.next = self.shortest;
    }
}
