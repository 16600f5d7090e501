//! When the commits of a chunk are on disk.

use serde::{Deserialize, Serialize};

/// `chunk.durability`: when the commits of a chunk are on disk. In any case they are before the chunk is
/// completed.
///
/// ```
/// use windlass_core::Durability;
///
/// assert_eq!(Durability::default(), Durability::Group);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Commits do not wait for the disk. One write makes those of several chunks durable before the chunks
    /// are completed. Only PostgreSQL does this; the other databases treat it as `Commit`.
    #[default]
    Group,
    /// Every commit waits for the disk.
    Commit,
}

impl Durability {
    pub(crate) fn is_group(&self) -> bool {
        *self == Durability::Group
    }
}
