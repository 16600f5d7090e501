//! Finds how many items a commit of `chunk.commit = "auto"` has, so that it takes about `chunk.commit_time`.

use parking_lot::Mutex;
use std::time::Duration;

/// The size of the next commits of one job in this process. All its slots share it.
pub(crate) struct CommitPace {
    /// How long a commit should take.
    time: Duration,
    largest: u32,
    state: Mutex<State>,
}

struct State {
    size: u32,
    /// Commits do not get smaller than this.
    smallest: u32,
    /// Items and time of the commit after which the size was last reduced.
    reduced_after: Option<(u32, Duration)>,
}

/// The first commits have at most this many items.
const FIRST_ITEMS: u32 = 1000;
/// With fewer items than this, a commit costs more than its items.
const SMALLEST_ITEMS: u32 = 100;

impl CommitPace {
    /// Commits that take about this time, with at most `largest` items.
    pub(crate) fn new(time: Duration, largest: u32) -> CommitPace {
        let state = State {
            size: largest.min(FIRST_ITEMS),
            smallest: largest.min(SMALLEST_ITEMS),
            reduced_after: None,
        };
        CommitPace { time, largest, state: Mutex::new(state) }
    }

    /// How many items the next commit has at most.
    pub(crate) fn size(&self) -> u32 {
        self.state.lock().size
    }

    /// Learns from a batch that was committed. Batches that take less than half of the time grow to twice the
    /// size. Those that take much more shrink, to half the size at most. If a smaller batch takes as long as a
    /// larger one, the time does not depend on the items, and batches do not shrink below the larger one again.
    pub(crate) fn record(&self, items: u32, took: Duration) {
        let mut state = self.state.lock();
        if items == 0 {
            return;
        }
        if took <= self.time / 2 {
            if items >= state.size {
                state.size = state.size.saturating_mul(2).min(self.largest);
            }
            return;
        }
        if took <= self.time * 2 {
            return;
        }
        // Whether a batch took less time by at least half of the share by which it was smaller.
        let helped = |larger: u32, longer: Duration| {
            took <= longer.mul_f64((1.0 + f64::from(items) / f64::from(larger)) / 2.0)
        };
        match state.reduced_after {
            Some((larger, longer)) if items < larger && !helped(larger, longer) => {
                state.smallest = state.smallest.max(larger);
                state.size = state.size.max(larger);
                state.reduced_after = None;
            }
            _ => {
                let wanted = f64::from(items) * self.time.as_secs_f64() / took.as_secs_f64();
                let smaller = (wanted as u32).max(items / 2).max(state.smallest);
                if smaller < state.size {
                    state.size = smaller;
                    state.reduced_after = Some((items, took));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size after commits that take `fixed` and `each` per item.
    fn settled(pace: &CommitPace, fixed: Duration, each: Duration) -> u32 {
        for _ in 0..50 {
            let items = pace.size();
            pace.record(items, fixed + each * items);
        }
        pace.size()
    }

    fn pace() -> CommitPace {
        CommitPace::new(Duration::from_millis(250), 10_000)
    }

    #[test]
    fn fast_commits_grow_to_the_whole_chunk() {
        assert_eq!(pace().size(), FIRST_ITEMS);
        assert_eq!(settled(&pace(), Duration::ZERO, Duration::from_micros(5)), 10_000);
    }

    #[test]
    fn slow_commits_shrink_until_they_take_about_the_time() {
        let size = settled(&pace(), Duration::ZERO, Duration::from_millis(1));
        assert!((125..=500).contains(&size), "{size}");
        let size = settled(&pace(), Duration::ZERO, Duration::from_secs(1));
        assert_eq!(size, SMALLEST_ITEMS);
    }

    #[test]
    fn a_time_that_does_not_depend_on_the_items_does_not_shrink_commits() {
        let size = settled(&pace(), Duration::from_secs(2), Duration::ZERO);
        assert_eq!(size, FIRST_ITEMS);
    }

    #[test]
    fn a_partial_batch_does_not_make_commits_grow() {
        let pace = pace();
        pace.record(10, Duration::from_millis(1));
        assert_eq!(pace.size(), FIRST_ITEMS);
    }

    #[test]
    fn small_chunks_are_committed_whole() {
        let pace = CommitPace::new(Duration::from_millis(250), 60);
        assert_eq!(settled(&pace, Duration::ZERO, Duration::from_secs(1)), 60);
    }
}
