//! What happens to a row that a `map` or `export` cannot read.

use serde::{Deserialize, Serialize};

/// What happens to a row that makes a `map` or `export` of its chunk fail.
///
/// ```
/// use windlass_core::OnBadRow;
///
/// assert_eq!(OnBadRow::default(), OnBadRow::DeadLetter);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnBadRow {
    /// The row is found by halving its chunk and becomes a dead letter. The part has the other rows.
    #[default]
    DeadLetter,
    /// The chunk fails.
    Fail,
}
