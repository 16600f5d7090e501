//! The recent progress of a running job, from which its end is projected.

use chrono::TimeDelta;
use std::collections::VecDeque;

/// How many items a job had done at which working time. It has one entry for each change that was seen, since many
/// jobs advance in steps: a chunk of `map` or `export` counts when it ends. Time in which the job was paused does not
/// count.
#[derive(Debug, Default)]
pub(super) struct RecentProgress {
    changes: VecDeque<Change>,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    at: TimeDelta,
    done: i64,
}

/// A rate that was observed for less than this is not projected.
const MIN_OBSERVED: TimeDelta = TimeDelta::seconds(30);
/// The rate is that of the second half of the working time, but of this much at least.
const MIN_WINDOW: TimeDelta = TimeDelta::minutes(5);

impl RecentProgress {
    /// Records how many items are done at this working time.
    pub(super) fn record(&mut self, at: TimeDelta, done: i64) {
        match self.changes.back() {
            // A retried job begins anew.
            Some(last) if done < last.done || at < last.at => self.changes.clear(),
            Some(last) if done == last.done => return,
            _ => {}
        }
        self.changes.push_back(Change { at, done });
        let begin = at - (at / 2).max(MIN_WINDOW);
        while self.changes.get(1).is_some_and(|second| second.at <= begin) {
            self.changes.pop_front();
        }
    }

    /// How long the remaining items take from this working time on, at the recent rate. Unknown without a rate.
    ///
    /// The rate is measured from change to change, so that the time since the last one, in which chunks are in
    /// progress, does not lower it. If that is more than twice the longest time between two changes, the job has
    /// become slower, and the rate is measured up to now.
    pub(super) fn time_left(&self, now: TimeDelta, remaining: i64) -> Option<TimeDelta> {
        let (first, last) = (self.changes.front()?, self.changes.back()?);
        let gaps = self.changes.iter().zip(self.changes.iter().skip(1));
        let longest = gaps.map(|(one, next)| next.at - one.at).max()?;
        let until = if now - last.at > longest * 2 { now } else { last.at };
        let observed = until - first.at;
        if observed < MIN_OBSERVED {
            return None;
        }
        let seconds_per_item = observed.as_seconds_f64() / (last.done - first.done) as f64;
        let seconds = seconds_per_item * remaining.max(0) as f64;
        let left = TimeDelta::milliseconds((seconds * 1000.0).min(1e15) as i64);
        Some((left - (now - until)).max(TimeDelta::zero()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds that are left of a job, after these changes of (second, done).
    fn left(changes: &[(i64, i64)], now: i64, remaining: i64) -> Option<i64> {
        let mut progress = RecentProgress::default();
        for (at, done) in changes {
            progress.record(TimeDelta::seconds(*at), *done);
        }
        progress.time_left(TimeDelta::seconds(now), remaining).map(|left| left.num_seconds())
    }

    #[test]
    fn there_is_no_projection_before_there_is_a_rate() {
        assert_eq!(left(&[], 10, 100), None);
        assert_eq!(left(&[(0, 0)], 10_000, 100), None, "one long chunk");
        assert_eq!(left(&[(3_000, 50)], 3_000, 50), None, "a server that has just started");
        assert_eq!(left(&[(0, 0), (10, 1)], 10, 1_000), None, "a first item says little");
    }

    #[test]
    fn a_steady_rate_is_projected() {
        let steady: Vec<(i64, i64)> = (0..=30).map(|n| (n * 10, n * 5)).collect();
        assert_eq!(left(&steady, 300, 150), Some(300));
        assert_eq!(left(&steady, 300, 0), Some(0));
    }

    #[test]
    fn the_recent_rate_counts() {
        // 1,000 s at one item per second, then as long at ten.
        let mut changes: Vec<(i64, i64)> = (0..=100).map(|n| (n * 10, n * 10)).collect();
        changes.extend((1..=100).map(|n| (1_000 + n * 10, 1_000 + n * 100)));
        assert_eq!(left(&changes, 2_000, 1_000), Some(100));
        // And the other way round.
        let mut changes: Vec<(i64, i64)> = (0..=100).map(|n| (n * 10, n * 100)).collect();
        changes.extend((1..=100).map(|n| (1_000 + n * 10, 10_000 + n * 10)));
        assert_eq!(left(&changes, 2_000, 1_000), Some(1_000));
    }

    #[test]
    fn chunks_in_progress_do_not_lower_the_rate() {
        // Five chunks at a time, twenty minutes each, of ten.
        let first = [(0, 0), (1_200, 1), (1_210, 2), (1_220, 5)];
        assert_eq!(left(&first, 1_220, 5), Some(1_220));
        assert_eq!(left(&first, 2_300, 5), Some(140), "shortly before the others end");
        assert_eq!(left(&first, 2_500, 5), Some(0));
        assert_eq!(left(&first, 4_000, 5), Some(4_000), "nothing ended for a long time");
        let second = [&first[..], &[(2_420, 6)]].concat();
        let at_second = left(&second, 2_420, 4).unwrap();
        assert!(at_second < 1_220, "{at_second}");
    }

    #[test]
    fn a_retried_job_begins_anew() {
        assert_eq!(left(&[(0, 0), (100, 50), (200, 10)], 200, 90), None);
    }
}
