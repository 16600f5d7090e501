//! Reading from replicas: parts and samples are spread over the healthy replicas, everything else stays
//! on the primary.

mod lag;
mod pool;
mod replica;

pub use pool::Replicas;

#[cfg(feature = "export")]
use crate::Extraction;
use crate::{
    Batch, Connection, ConnectorError, FanIn, Mapped, ReadLimits, RecordReader, Result, Scope,
};
use async_trait::async_trait;
use pool::ReplicaFailure;
use replica::Replica;
use std::sync::Arc;
use tokio::sync::mpsc::{self, Sender};
use windlass_core::{Column, KeySet};
use windlass_drivers::{Error, ErrorClass};
#[cfg(feature = "export")]
use windlass_export::RecordBatch;

/// Reads from replicas, and from the primary when no replica can serve. Only for rows that are never
/// written back: the rows of parts, and the samples of a dry run.
pub struct ReplicaReader {
    /// Serves what no replica serves.
    pub primary: Arc<dyn Connection>,
    /// The replicas.
    pub replicas: Arc<Replicas>,
}

/// Tries a read on each healthy replica in turn, and at last on the primary.
macro_rules! read_from_replicas {
    ($reader:expr, |$connection:ident| $read:expr) => {{
        for (replica, $connection) in $reader.replicas.healthy().await {
            match $read.await {
                Ok(read) => return Ok(read),
                Err(error) => drop(handle_failure(&replica, error)?),
            }
        }
        let $connection = &$reader.primary;
        $read.await
    }};
}

/// Returns `Err` when the read would fail on every server. Otherwise records or logs that this replica
/// failed and returns the error in `Ok`: the next server may serve.
fn handle_failure(replica: &Replica, error: ConnectorError) -> Result<ConnectorError> {
    match ReplicaFailure::of(&error) {
        ReplicaFailure::Everywhere => return Err(error),
        ReplicaFailure::Unavailable => replica.exclude(&format!("unavailable: {error}")),
        ReplicaFailure::ThisReplica => {
            let name = &replica.name;
            tracing::warn!(%error, "read failed on replica {name}; trying the next server");
        }
    }
    Ok(error)
}

/// Extracts from a replica. The second value tells whether batches were sent already.
#[cfg(feature = "export")]
async fn extract_from(
    connection: &dyn Connection,
    scope: &Scope,
    key_set: &KeySet,
    columns: &[Column],
    batches: &Sender<RecordBatch>,
) -> (Result<()>, bool) {
    let (sender, mut receiver) = mpsc::channel(1);
    let mut begun = false;
    let forward = async {
        while let Some(batch) = receiver.recv().await {
            begun = true;
            if batches.send(batch).await.is_err() {
                // The receiver is gone. Closing this channel stops the extraction too.
                receiver.close();
            }
        }
    };
    let (extracted, ()) = tokio::join!(
        connection.extract(scope, Extraction { key_set, columns, batches: sender }),
        forward
    );
    (extracted, begun)
}

/// Another server cannot continue a part that one replica began. The error is of the class of a lost
/// connection, so the chunk starts again without counting a failure.
fn interrupted(error: &ConnectorError) -> ConnectorError {
    let message = format!("a replica failed during an extraction: {error}");
    Error::new(ErrorClass::Connection, message).into()
}

#[async_trait]
impl RecordReader for ReplicaReader {
    async fn read(&self, scope: &Scope, key_set: &KeySet, limits: ReadLimits) -> Result<Batch> {
        read_from_replicas!(self, |connection| connection.read(scope, key_set, limits))
    }

    async fn count(&self, scope: &Scope, key_set: &KeySet) -> Result<i64> {
        read_from_replicas!(self, |connection| connection.count(scope, key_set))
    }
}

#[async_trait]
impl FanIn for ReplicaReader {
    async fn map_columns(&self, scope: &Scope) -> Result<Vec<Column>> {
        self.primary.map_columns(scope).await
    }

    async fn map(&self, scope: &Scope, columns: &[Column], key_set: &KeySet) -> Result<Mapped> {
        read_from_replicas!(self, |connection| connection.map(scope, columns, key_set))
    }

    #[cfg(feature = "export")]
    async fn extract(&self, scope: &Scope, extraction: Extraction<'_>) -> Result<()> {
        let Extraction { key_set, columns, batches } = extraction;
        for (replica, connection) in self.replicas.healthy().await {
            let (error, begun) =
                match extract_from(connection.as_ref(), scope, key_set, columns, &batches).await {
                    (Ok(()), _) => return Ok(()),
                    (Err(error), begun) => (error, begun),
                };
            match handle_failure(&replica, error)? {
                error if begun => return Err(interrupted(&error)),
                _ => {}
            }
        }
        self.primary.extract(scope, Extraction { key_set, columns, batches }).await
    }
}
