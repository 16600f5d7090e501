//! How far a replica is behind its primary.
//!
//! Where writes have log positions, the servers' clocks are not used. The primary's positions are
//! recorded with the time at which they were read, and the lag of a replica is the age of the newest of
//! them that it has applied. So an idle primary causes no lag, and a replica that lost its primary does.

use crate::{Replication, Result};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use windlass_drivers::{Error, ErrorClass};

/// The log positions of the primary, and when they were read.
#[derive(Default)]
pub(super) struct PositionHistory {
    positions: VecDeque<(Instant, i64)>,
}

impl PositionHistory {
    /// Records a position of the primary, and drops those older than `max_age`.
    pub(super) fn record(&mut self, at: Instant, position: i64, max_age: Duration) {
        self.positions.retain(|(before, _)| at.saturating_duration_since(*before) <= max_age);
        self.positions.push_back((at, position));
    }

    /// The lag of a server in this state. `None` when it has applied none of the recorded positions.
    pub(super) fn lag(&self, replication: Replication, now: Instant) -> Result<Option<Duration>> {
        let applied = match replication {
            Replication::Primary => return Ok(Some(Duration::ZERO)),
            Replication::Behind(behind) => return Ok(Some(behind)),
            Replication::Applied(applied) => applied,
        };
        if self.positions.is_empty() {
            let why = "the primary does not report its log position";
            return Err(Error::new(ErrorClass::Other, why).into());
        }
        let reached = self.positions.iter().rev().find(|(_, position)| *position <= applied);
        Ok(reached.map(|(at, _)| now.saturating_duration_since(*at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_AGE: Duration = Duration::from_secs(10);

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn some(n: u64) -> Option<Duration> {
        Some(seconds(n))
    }

    #[test]
    fn lag_is_the_age_of_the_newest_applied_position() {
        let (mut history, begun) = (PositionHistory::default(), Instant::now());
        let at = |n| begun + seconds(n);
        assert!(history.lag(Replication::Applied(5), at(0)).is_err(), "nothing to compare with");
        for (n, position) in [(0, 10), (2, 20), (4, 30)] {
            history.record(at(n), position, MAX_AGE);
        }
        let lag = |applied, n| history.lag(Replication::Applied(applied), at(n)).unwrap().unwrap();
        assert_eq!(lag(30, 4), seconds(0));
        assert_eq!(lag(31, 4), seconds(0));
        assert_eq!(lag(29, 4), seconds(2));
        assert_eq!(lag(19, 4), seconds(4));
        assert_eq!(lag(30, 9), seconds(5), "later writes of the primary are unknown");
        assert_eq!(history.lag(Replication::Applied(9), at(4)).unwrap(), None);
        assert_eq!(history.lag(Replication::Primary, at(4)).unwrap(), some(0));
        assert_eq!(history.lag(Replication::Behind(seconds(7)), at(4)).unwrap(), some(7));
    }

    #[test]
    fn an_idle_primary_causes_no_lag() {
        let (mut history, begun) = (PositionHistory::default(), Instant::now());
        for n in 0..1000 {
            history.record(begun + seconds(n), 10, MAX_AGE);
        }
        let now = begun + seconds(999);
        assert_eq!(history.lag(Replication::Applied(10), now).unwrap(), some(0));
        assert!(history.positions.len() < 20, "old positions are dropped");
    }
}
