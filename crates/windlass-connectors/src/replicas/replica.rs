//! One replica: whether it is healthy, and the probe that finds out.

use super::lag::PositionHistory;
use crate::{Connection, Result, connect, connect_gated};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OnceCell, watch};
use windlass_core::config::LONGEST_LAG;
use windlass_drivers::{ConnectionGate, Error, ErrorClass, Url, redact};

/// A probe slower than this counts as failed.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The part of a probe that may wait for the primary's position.
const PRIMARY_TIMEOUT: Duration = Duration::from_millis(2500);

/// How long a probe waits for a replica to apply a position that the primary reported.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(1);

/// The pause between two reads of the replica's position.
const CATCH_UP_INTERVAL: Duration = Duration::from_millis(50);

/// The longest pause between two probes.
const MAX_PROBE_INTERVAL: Duration = Duration::from_secs(2);

/// A replica of a database.
pub(super) struct Replica {
    /// Its URL without the password.
    pub(super) name: String,
    url: String,
    max_connections: usize,
    max_lag: Duration,
    gate: Option<Arc<dyn ConnectionGate>>,
    connections: OnceCell<Connections>,
    state: Mutex<State>,
    positions: Mutex<PositionHistory>,
    /// Whether the first probe has ended.
    probed: watch::Sender<bool>,
}

/// Its pool, and one connection more for probes while the pool is busy.
struct Connections {
    serving: Arc<dyn Connection>,
    probing: Arc<dyn Connection>,
}

/// The result of the last probe.
enum State {
    /// There was no probe yet.
    Unknown,
    /// It may serve until this time, when its data could exceed `max_lag`. Each probe extends it.
    Healthy(Instant),
    /// It must not serve.
    Excluded,
}

impl Replica {
    pub(super) fn new(
        url: &str,
        max_connections: usize,
        max_lag: Duration,
        gate: Option<Arc<dyn ConnectionGate>>,
    ) -> Replica {
        Replica {
            name: redact(url),
            url: url.to_owned(),
            max_connections,
            // Keeps additions to instants from overflowing.
            max_lag: max_lag.min(LONGEST_LAG),
            gate,
            connections: OnceCell::new(),
            state: Mutex::new(State::Unknown),
            positions: Mutex::default(),
            probed: watch::Sender::new(false),
        }
    }

    /// Its connection, if it is healthy.
    pub(super) fn connection(&self) -> Option<Arc<dyn Connection>> {
        let healthy = matches!(*self.state.lock(), State::Healthy(until) if Instant::now() < until);
        let connections = self.connections.get().filter(|_| healthy);
        connections.map(|connections| connections.serving.clone())
    }

    /// Its connection, whether it is healthy or not.
    pub(super) async fn serving(&self) -> Result<Arc<dyn Connection>> {
        Ok(self.connections().await?.serving.clone())
    }

    /// Waits until the first probe has ended.
    pub(super) async fn wait_for_first_probe(&self) {
        // The sender lives as long as this does, so there is no error.
        let _ = self.probed.subscribe().wait_for(|probed| *probed).await;
    }

    /// Excludes it at once. A later probe may include it again.
    pub(super) fn exclude(&self, why: &str) {
        let before = std::mem::replace(&mut *self.state.lock(), State::Excluded);
        if !matches!(before, State::Excluded) {
            tracing::warn!("replica {} is excluded: {why}", self.name);
        }
    }

    /// Measures how far it is behind the primary.
    pub(super) async fn lag(&self, primary: &dyn Connection) -> Result<Duration> {
        let measure = async {
            let now = Instant::now();
            // Ask the primary first, so that the replica is compared with an earlier position.
            match tokio::time::timeout(PRIMARY_TIMEOUT, primary.position()).await {
                Ok(Ok(Some(position))) => {
                    self.positions.lock().record(now, position, self.max_lag * 2);
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    tracing::debug!(%error, "failed to read the primary's log position");
                }
                Err(_) => tracing::debug!("timed out reading the primary's log position"),
            }
            let probing = &self.connections().await?.probing;
            loop {
                let replication = probing.replication().await?;
                let lag = self.positions.lock().lag(replication, now)?;
                match lag {
                    Some(lag) => return Ok(lag),
                    // Writes that were in transit may have arrived.
                    None if now.elapsed() < CATCH_UP_TIMEOUT => {
                        tokio::time::sleep(CATCH_UP_INTERVAL).await;
                    }
                    None => return Err(Error::new(ErrorClass::Other, BEYOND_HISTORY).into()),
                }
            }
        };
        let timed_out =
            |_| Error::new(ErrorClass::Connection, format!("no answer for {PROBE_TIMEOUT:?}"));
        tokio::time::timeout(PROBE_TIMEOUT, measure).await.map_err(timed_out)?
    }

    /// Measures the lag once, and includes or excludes the replica by it.
    pub(super) async fn probe(&self, primary: &dyn Connection) {
        let begun = Instant::now();
        match self.lag(primary).await {
            Ok(lag) if lag < self.max_lag => {
                let healthy = State::Healthy(begun + (self.max_lag - lag));
                let before = std::mem::replace(&mut *self.state.lock(), healthy);
                if matches!(before, State::Excluded) {
                    tracing::warn!("replica {} is healthy again", self.name);
                }
            }
            Ok(lag) => {
                let max_lag = self.max_lag;
                self.exclude(&format!("its lag is {lag:.1?}, above max_lag = {max_lag:?}"));
            }
            Err(error) => self.exclude(&format!("its lag cannot be measured: {error}")),
        }
        self.probed.send_replace(true);
    }

    /// The pause between two probes: several fit into the time that one keeps it healthy.
    pub(super) fn probe_interval(&self) -> Duration {
        (self.max_lag / 5).min(MAX_PROBE_INTERVAL)
    }

    async fn connect(&self, max_connections: usize) -> Result<Arc<dyn Connection>> {
        connect_gated(&self.url, max_connections, self.gate.clone()).await
    }

    /// Connects when first needed, since a SQLite file may be created later.
    async fn connections(&self) -> Result<&Connections> {
        let open = || async {
            Ok(match Url::parse(&self.url)? {
                // A process has one writer per file.
                Url::Sqlite(_) => {
                    let serving = connect(&self.url, 1).await?;
                    Connections { probing: serving.clone(), serving }
                }
                _ => Connections {
                    serving: self.connect(self.max_connections.saturating_sub(1)).await?,
                    probing: self.connect(1).await?,
                },
            })
        };
        self.connections.get_or_try_init(open).await
    }
}

const BEYOND_HISTORY: &str = "it has applied none of the recent positions of the primary";
