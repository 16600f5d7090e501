//! How far a replica is behind, by what primary and replica say of themselves.
//!
//! Where writes are numbered, no clock of theirs is believed: the primary's numbers are remembered
//! with the time at which they were asked for, and a replica is as old as the newest of them that it
//! has applied. So an idle primary does not look like a lag, and a replica that is cut off does.

use crate::Result;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use windlass_drivers::{Class, Error};

/// What a database says of itself as a copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// It copies none.
    Primary,
    /// It has applied the writes of its primary up to this one.
    Applied(i64),
    /// It is so far behind by its own account.
    Behind(Duration),
}

/// Where the primary's writes were, and when it was asked.
#[derive(Default)]
pub(super) struct Marks {
    marks: VecDeque<(Instant, i64)>,
}

impl Marks {
    /// The primary said this when asked at that time. What is older than `most` is of no use.
    pub(super) fn put(&mut self, at: Instant, position: i64, most: Duration) {
        self.marks.retain(|(before, _)| at.saturating_duration_since(*before) <= most);
        self.marks.push_back((at, position));
    }

    /// How far behind a database of this standing is, at that time; nothing where it is further
    /// behind than has been watched.
    pub(super) fn lag(&self, standing: Standing, now: Instant) -> Result<Option<Duration>> {
        let applied = match standing {
            Standing::Primary => return Ok(Some(Duration::ZERO)),
            Standing::Behind(behind) => return Ok(Some(behind)),
            Standing::Applied(applied) => applied,
        };
        if self.marks.is_empty() {
            let why = "cannot be compared: the primary does not answer";
            return Err(Error::new(Class::Other, why).into());
        }
        let reached = self.marks.iter().rev().find(|(_, position)| *position <= applied);
        Ok(reached.map(|(at, _)| now.saturating_duration_since(*at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(10);

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn some(n: u64) -> Option<Duration> {
        Some(seconds(n))
    }

    #[test]
    fn a_copy_is_as_old_as_the_newest_mark_it_has() {
        let (mut marks, begun) = (Marks::default(), Instant::now());
        let at = |n| begun + seconds(n);
        assert!(marks.lag(Standing::Applied(5), at(0)).is_err(), "nothing to compare with");
        for (n, position) in [(0, 10), (2, 20), (4, 30)] {
            marks.put(at(n), position, MOST);
        }
        let lag = |applied, n| marks.lag(Standing::Applied(applied), at(n)).unwrap().unwrap();
        assert_eq!(lag(30, 4), seconds(0));
        assert_eq!(lag(31, 4), seconds(0));
        assert_eq!(lag(29, 4), seconds(2));
        assert_eq!(lag(19, 4), seconds(4));
        assert_eq!(lag(30, 9), seconds(5), "what the primary wrote since is not known");
        assert_eq!(marks.lag(Standing::Applied(9), at(4)).unwrap(), None);
        assert_eq!(marks.lag(Standing::Primary, at(4)).unwrap(), some(0));
        assert_eq!(marks.lag(Standing::Behind(seconds(7)), at(4)).unwrap(), some(7));
    }

    #[test]
    fn an_idle_primary_is_no_lag() {
        let (mut marks, begun) = (Marks::default(), Instant::now());
        for n in 0..1000 {
            marks.put(begun + seconds(n), 10, MOST);
        }
        let now = begun + seconds(999);
        assert_eq!(marks.lag(Standing::Applied(10), now).unwrap(), some(0));
        assert!(marks.marks.len() < 20, "old marks go");
    }
}
