//! The store's own tables.

use async_trait::async_trait;

use crate::Result;

/// Creates and upgrades the store's tables.
#[async_trait]
pub trait SchemaStore: Send + Sync {
    /// Applies the migrations that this store does not have yet. Several processes may call it at
    /// the same time: one of them migrates while the rest wait.
    async fn migrate(&self) -> Result<()>;
}
