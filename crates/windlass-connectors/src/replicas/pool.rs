//! The replicas of a connection: which one serves the next read, and what to do when a read fails.

use super::replica::Replica;
use crate::{Connection, ConnectorError, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use windlass_drivers::{ConnectionGate, ErrorClass};

/// The replicas of one connection. They are not contacted before the first read.
pub struct Replicas {
    replicas: Vec<Arc<Replica>>,
    /// A connection to the primary outside its pool, which reports the position of its writes while
    /// the pool is busy.
    primary: Arc<dyn Connection>,
    /// Counts reads, for the round robin.
    reads: AtomicUsize,
    /// Whether the probes are started.
    probing: AtomicBool,
    /// Whether it was logged that no replica is healthy.
    warned: AtomicBool,
}

impl Replicas {
    /// The replicas of these URLs, each with at most `max_connections`. `primary` reports the position
    /// of the primary's writes. They are contacted when the gate is open.
    pub fn new(
        urls: &[String],
        primary: Arc<dyn Connection>,
        max_connections: usize,
        max_lag: Duration,
        gate: Option<Arc<dyn ConnectionGate>>,
    ) -> Replicas {
        let replica =
            |url: &String| Arc::new(Replica::new(url, max_connections, max_lag, gate.clone()));
        Replicas {
            replicas: urls.iter().map(replica).collect(),
            primary,
            reads: AtomicUsize::new(0),
            probing: AtomicBool::new(false),
            warned: AtomicBool::new(false),
        }
    }

    /// Measures the lag of each replica. Each comes with its URL, without the password.
    pub async fn lags(&self) -> Vec<(String, Result<Duration>)> {
        let mut lags = Vec::new();
        for replica in &self.replicas {
            lags.push((replica.name.clone(), replica.lag(self.primary.as_ref()).await));
        }
        lags
    }

    /// The number of healthy replicas. Zero before the first read.
    pub fn serving(&self) -> usize {
        self.replicas.iter().filter(|replica| replica.connection().is_some()).count()
    }

    /// The healthy replicas, in the order in which to try them. The first one changes with every read.
    pub(super) async fn healthy(&self) -> Vec<(Arc<Replica>, Arc<dyn Connection>)> {
        self.start_probes();
        for replica in &self.replicas {
            replica.wait_for_first_probe().await;
        }
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        let healthy = self.replicas.iter().filter_map(|r| Some((r.clone(), r.connection()?)));
        let mut healthy: Vec<_> = healthy.collect();
        if !healthy.is_empty() {
            let first = read % healthy.len();
            healthy.rotate_left(first);
        }
        let warned = self.warned.swap(healthy.is_empty(), Ordering::Relaxed);
        if healthy.is_empty() && !warned {
            tracing::warn!("no healthy replica; reading from the primary");
        }
        healthy
    }

    /// The healthy replicas with their names, in the order in which to try them.
    pub async fn servers(&self) -> Vec<(String, Arc<dyn Connection>)> {
        let healthy = self.healthy().await.into_iter();
        healthy.map(|(replica, connection)| (replica.name.clone(), connection)).collect()
    }

    /// The replica of this name, whether it is healthy or not. `None` if there is no such replica.
    pub async fn server(&self, name: &str) -> Option<Result<Arc<dyn Connection>>> {
        let replica = self.replicas.iter().find(|replica| replica.name == name)?;
        Some(replica.serving().await)
    }

    /// Starts probing, once. Each replica has its own task, so that one that hangs does not delay
    /// another. The tasks end when the replicas are dropped.
    fn start_probes(&self) {
        if self.probing.swap(true, Ordering::Relaxed) {
            return;
        }
        for replica in &self.replicas {
            let (replica, interval) = (Arc::downgrade(replica), replica.probe_interval());
            let primary = self.primary.clone();
            tokio::spawn(async move {
                while let Some(replica) = replica.upgrade() {
                    replica.probe(primary.as_ref()).await;
                    drop(replica);
                    tokio::time::sleep(interval).await;
                }
            });
        }
    }
}

/// Where a read that failed on a replica could still succeed.
#[derive(Debug, PartialEq)]
pub(super) enum ReplicaFailure {
    /// The replica is unavailable: exclude it and try another server.
    Unavailable,
    /// Another server may serve the read: a table or a privilege is missing on the replica, replay of
    /// the primary's writes cancelled the query, or no connection was free.
    ThisReplica,
    /// Every server would fail the same way.
    Everywhere,
}

impl ReplicaFailure {
    pub(super) fn of(error: &ConnectorError) -> ReplicaFailure {
        let ConnectorError::Database(error) = error else { return ReplicaFailure::Everywhere };
        match (error.class, error.code.as_deref()) {
            (ErrorClass::Connection, _) => ReplicaFailure::Unavailable,
            (ErrorClass::Data, _) => ReplicaFailure::Everywhere,
            // A statement that exceeds its timeout here would exceed it on any server.
            (ErrorClass::Retry, Some("57014" | "1969" | "3024" | "1317")) => {
                ReplicaFailure::Everywhere
            }
            _ => ReplicaFailure::ThisReplica,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_drivers::Error;

    #[test]
    fn a_read_moves_to_another_server_only_if_that_may_succeed() {
        let failure = |class, code: Option<&str>| {
            ReplicaFailure::of(
                &Error { class, code: code.map(str::to_owned), message: String::new() }.into(),
            )
        };
        use ErrorClass::{Connection, Data, Definition, Retry};
        assert_eq!(failure(Connection, Some("57P01")), ReplicaFailure::Unavailable);
        assert_eq!(
            failure(Retry, Some("40001")),
            ReplicaFailure::ThisReplica,
            "conflict with recovery"
        );
        assert_eq!(failure(Retry, None), ReplicaFailure::ThisReplica, "no connection is free");
        assert_eq!(
            failure(Definition, Some("42P01")),
            ReplicaFailure::ThisReplica,
            "not replicated yet"
        );
        assert_eq!(failure(Retry, Some("57014")), ReplicaFailure::Everywhere);
        assert_eq!(failure(Data, Some("22012")), ReplicaFailure::Everywhere);
        assert_eq!(ReplicaFailure::of(&ConnectorError::LeaseLost), ReplicaFailure::Everywhere);
    }
}
