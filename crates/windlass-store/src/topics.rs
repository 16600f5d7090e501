//! What a change of the store is about, so that only those who wait for it look.

use std::ops::BitOr;

/// A set of topics: of a change, what may be different afterwards; of a subscription, which changes end its wait.
///
/// ```
/// use windlass_store::Topics;
///
/// assert_eq!(Topics::SEGMENTS | Topics::CHUNKS | Topics::REST, Topics::ALL);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topics(u8);

impl Topics {
    /// A segment can be leased.
    pub const SEGMENTS: Topics = Topics(1);
    /// A chunk can be leased.
    pub const CHUNKS: Topics = Topics(2);
    /// Everything else, as the end of a job.
    pub const REST: Topics = Topics(4);
    /// All topics.
    pub const ALL: Topics = Topics(7);
    /// No topic.
    pub(crate) const NONE: Topics = Topics(0);
    /// How many topics there are.
    pub(crate) const COUNT: usize = 3;

    /// Whether the topic with this number is in the set.
    pub(crate) fn includes(self, number: usize) -> bool {
        self.0 & (1 << number) != 0
    }

    /// The set as a number.
    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    /// The set that has this number. A number of another version may mean anything, and so all topics.
    pub(crate) fn from_bits(bits: u8) -> Topics {
        if bits <= Topics::ALL.0 { Topics(bits) } else { Topics::ALL }
    }
}

impl BitOr for Topics {
    type Output = Topics;

    fn bitor(self, other: Topics) -> Topics {
        Topics(self.0 | other.0)
    }
}
