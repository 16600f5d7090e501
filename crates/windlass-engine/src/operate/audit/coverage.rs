//! Whether key ranges tile a segment: each begins where another one ends.
//!
//! Keys are only compared for equality, since their order is the database's. Chunks arrive in the order of their numbers,
//! which is the order of their keys, except for chunks that a split has added. So there are few runs of adjacent ranges.

use windlass_core::{Key, KeyRange};

/// The ranges seen so far, as runs of adjacent ranges.
#[derive(Default)]
pub(super) struct Coverage {
    runs: Vec<Run>,
}

/// Adjacent ranges.
struct Run {
    /// The chunk with which it begins.
    first: i64,
    after: Option<Key>,
    upto: Option<Key>,
}

impl Coverage {
    /// Adds the range of a chunk.
    pub(super) fn add(&mut self, number: i64, range: &KeyRange) {
        let KeyRange { after, upto } = range.clone();
        // The last run first: most chunks continue it.
        let adjacent = |run: &&mut Run| run.upto.is_some() && run.upto == after;
        match self.runs.iter_mut().rev().find(adjacent) {
            Some(run) => run.upto = upto,
            None => self.runs.push(Run { first: number, after, upto }),
        }
    }

    /// Follows the runs from the start. Returns the key at which they end, or the first chunk of a run that does not
    /// begin where another one ends.
    pub(super) fn end(mut self, start: Option<Key>) -> Result<Option<Key>, i64> {
        let mut reached = start;
        let mut is_first = true;
        while let Some(next) = self.runs.iter().position(|run| {
            // A run without an end covers everything behind it, so that nothing can follow.
            run.after == reached && (is_first || reached.is_some())
        }) {
            reached = self.runs.swap_remove(next).upto;
            is_first = false;
        }
        match self.runs.iter().map(|run| run.first).min() {
            Some(number) => Err(number),
            None => Ok(reached),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::Value;

    fn end(start: Option<i64>, ranges: &[(Option<i64>, Option<i64>)]) -> Result<Option<Key>, i64> {
        let key = |n: Option<i64>| n.map(|n| Key(vec![Value::Int(n)]));
        let mut coverage = Coverage::default();
        for (number, (after, upto)) in (0..).zip(ranges) {
            coverage.add(number, &KeyRange { after: key(*after), upto: key(*upto) });
        }
        coverage.end(key(start))
    }

    #[test]
    fn ranges_tile_in_any_order() {
        let end_at = |n: i64| Ok(Some(Key(vec![Value::Int(n)])));
        assert_eq!(end(None, &[(None, Some(3)), (Some(3), Some(6))]), end_at(6));
        // Chunk 0 was split into 0, 2 and 3, and chunk 3 into 3 and 4.
        let split = [
            (Some(0), Some(1)),
            (Some(6), Some(9)),
            (Some(1), Some(3)),
            (Some(3), Some(4)),
            (Some(4), Some(6)),
        ];
        assert_eq!(end(Some(0), &split), end_at(9));
        assert_eq!(end(None, &[(None, Some(1)), (Some(5), None), (Some(1), Some(5))]), Ok(None));
    }

    #[test]
    fn gaps_and_overlaps_name_a_chunk() {
        assert_eq!(end(None, &[(Some(1), Some(3))]), Err(0));
        assert_eq!(end(None, &[(None, Some(3)), (Some(4), Some(6))]), Err(1));
        assert_eq!(end(None, &[(None, Some(3)), (Some(2), Some(6))]), Err(1));
        assert_eq!(end(None, &[(None, Some(3)), (None, Some(3))]), Err(1));
        assert_eq!(end(None, &[(None, None), (None, None)]), Err(1));
        assert_eq!(end(None, &[(None, None), (Some(3), Some(6))]), Err(1));
    }
}
