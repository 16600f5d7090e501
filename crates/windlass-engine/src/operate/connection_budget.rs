//! `max_connections_total`: the share of this process in the connections that all processes may open.
//!
//! A process takes `max_connections` of the total at once, before it contacts the database, and extends this share
//! while it lives. A process that is killed loses its share when it expires. While no share is free, calls to the
//! database wait, and workers lease no work on the connection.

use crate::engine::Engine;
use crate::operate::availability::connections;
use crate::shutdown::Shutdown;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, watch};
use uuid::Uuid;
use windlass_core::{Config, JobId};
use windlass_drivers::ConnectionGate;
use windlass_store::{ConnectionShare, Store};

/// A share that is not extended for this time is free again.
const SHARE_TTL: Duration = Duration::from_secs(15);
/// How often a process extends its share.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(3);
/// The time between two attempts to take a share.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The share of this process in one connection's total.
pub(crate) struct ConnectionBudget {
    share: ConnectionShare,
    total: i64,
    store: Arc<dyn Store>,
    held: watch::Sender<bool>,
    /// Locked by the task that takes the share.
    taking: Mutex<()>,
    own: Weak<ConnectionBudget>,
}

impl ConnectionBudget {
    /// The budgets of the connections that have a total.
    pub(crate) fn all(
        config: &Config,
        store: &Arc<dyn Store>,
    ) -> BTreeMap<String, Arc<ConnectionBudget>> {
        let process = Uuid::now_v7().to_string();
        let budget = |(name, connection): (&String, &windlass_core::config::Connection)| {
            let total = connection.max_connections_total? as i64;
            let connections = connection.pool_size() as i64;
            let (connection, process) = (name.clone(), process.clone());
            let budget = Arc::new_cyclic(|own| ConnectionBudget {
                share: ConnectionShare { connection, process, connections },
                total,
                store: store.clone(),
                held: watch::Sender::new(false),
                taking: Mutex::default(),
                own: own.clone(),
            });
            Some((name.clone(), budget))
        };
        config.connections.iter().filter_map(budget).collect()
    }

    /// Whether this process may open connections.
    pub(crate) fn is_held(&self) -> bool {
        *self.held.borrow()
    }

    /// Waits until this process has its share.
    pub(crate) async fn take(&self) {
        if self.is_held() {
            return;
        }
        let _taking = self.taking.lock().await;
        let mut has_waited = false;
        while !self.is_held() {
            match self.try_take().await {
                Ok(true) => {
                    self.held.send_replace(true);
                    tokio::spawn(renew(self.own.clone()));
                    if has_waited {
                        let connection = &self.share.connection;
                        tracing::info!("a share of connection `{connection}` is free; continuing");
                    }
                    return;
                }
                Ok(false) if has_waited => {}
                Ok(false) => {
                    has_waited = true;
                    self.log_wait().await;
                }
                Err(error) => {
                    let connection = &self.share.connection;
                    tracing::warn!(%error, "failed to take a share of connection `{connection}`; retrying");
                }
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// Gives the share back. The caller uses no connection any more.
    pub(crate) async fn release(&self) {
        let _taking = self.taking.lock().await;
        if !self.held.send_replace(false) {
            return;
        }
        let ConnectionShare { connection, process, .. } = &self.share;
        if let Err(error) = self.store.release_connection_share(connection, process).await {
            tracing::debug!(%error, "failed to release the share of connection `{connection}`; it expires");
        }
    }

    async fn try_take(&self) -> windlass_store::Result<bool> {
        self.store.take_connection_share(&self.share, self.total, SHARE_TTL).await
    }

    async fn log_wait(&self) {
        let ConnectionShare { connection, connections, .. } = &self.share;
        let taken = self.store.taken_connections(connection).await.unwrap_or_default();
        tracing::warn!(
            "waiting for connections to `{connection}`: this process needs {connections}, and {} of \
             max_connections_total = {} are taken by {} other processes",
            taken.connections,
            self.total,
            taken.processes
        );
    }
}

impl ConnectionGate for ConnectionBudget {
    fn wait_until_open(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.take())
    }
}

/// Extends the share until it is released or lost, or the engine is dropped.
async fn renew(budget: Weak<ConnectionBudget>) {
    let mut renewed = Instant::now();
    loop {
        tokio::time::sleep(RENEWAL_INTERVAL).await;
        let Some(budget) = budget.upgrade() else { return };
        let _taking = budget.taking.lock().await;
        if !budget.is_held() {
            return;
        }
        let begun = Instant::now();
        let is_lost = match budget.try_take().await {
            Ok(true) => {
                renewed = begun;
                false
            }
            Ok(false) => true,
            Err(_) => renewed.elapsed() >= SHARE_TTL,
        };
        if is_lost {
            let connection = &budget.share.connection;
            tracing::warn!("the share of connection `{connection}` has expired; taking it again");
            budget.held.send_replace(false);
            return;
        }
    }
}

/// Takes the shares that a worker needs: those of its job, or all. Work is leased on a connection when its share is
/// taken.
pub(crate) async fn run(engine: Engine, only: Option<JobId>, shutdown: Shutdown) {
    let needed = |name: &str, of: &Option<Vec<String>>| {
        of.as_ref().is_none_or(|names| names.iter().any(|needed| needed == name))
    };
    while !shutdown.requested() {
        let names = match only {
            None => None,
            Some(job) => match engine.store().snapshot(job).await {
                Ok(Some(snapshot)) => {
                    Some(connections(&snapshot.definition).map(str::to_owned).collect())
                }
                _ => Some(Vec::new()),
            },
        };
        let budgets = engine.shared.budgets.iter().filter(|(name, _)| needed(name, &names));
        let taken = futures::future::join_all(budgets.map(|(_, budget)| budget.take()));
        tokio::select! {
            _ = taken => {}
            () = shutdown.wait() => return,
        }
        // A share can be lost again, when the store was unavailable for long.
        tokio::select! {
            () = tokio::time::sleep(RENEWAL_INTERVAL) => {}
            () = shutdown.wait() => {}
        }
    }
}

impl Engine {
    /// Gives back what this process has reserved in the store: its shares of `max_connections_total`. Without it they
    /// expire. Call it when the engine is not used any more.
    pub async fn close(&self) {
        for budget in self.shared.budgets.values() {
            budget.release().await;
        }
    }
}
