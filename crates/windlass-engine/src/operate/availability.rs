//! Tracks whether the database of each connection is available. While it is not, its work is not
//! leased, and a single probe with backoff detects when it responds again.
//!
//! A connection can break while its database is available, so an error only starts the probe. Leasing
//! stops at the first error, and the connection counts as unavailable after the first failed probe. The
//! state belongs to this process. The row in `windlass_controls` is only shown in listings, and expires
//! if this process ends. Another process that still reaches the database keeps leasing.

use crate::EngineError;
use crate::engine::Engine;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use windlass_connectors::Connection;
use windlass_core::problem::Code;
use windlass_core::{JobType, Problem, RetryPolicy};
use windlass_drivers::ErrorClass;
use windlass_store::{Capabilities, Store, connection_subject};

/// The waits between probes: from 100 ms, doubling up to 10 s. `attempts` is not used.
const PROBE_BACKOFF: RetryPolicy = RetryPolicy {
    attempts: u32::MAX,
    backoff: Duration::from_millis(100),
    growth: windlass_core::Growth::Exponential,
    factor: 2.0,
    max: Duration::from_secs(10),
};
/// A probe slower than this counts as failed.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether the database of one connection is available to this process.
pub(crate) struct Availability {
    name: String,
    connection: Arc<dyn Connection>,
    store: Arc<dyn Store>,
    state: watch::Sender<State>,
}

#[derive(Default)]
struct State {
    /// Lost connections and failed probes since work last succeeded. Not reset by a successful probe, so
    /// that work that fails although probes succeed backs off too.
    failures: u32,
    /// Whether a probe is running or scheduled.
    probing: bool,
    outage: Option<Outage>,
}

/// A database that is unavailable.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    /// The connection, the time since when, and the last error.
    pub(crate) reason: String,
    next_probe: Instant,
}

impl Outage {
    /// How long to wait until the next probe has probably finished.
    pub(crate) fn wait(&self) -> Duration {
        self.next_probe.saturating_duration_since(Instant::now()) + PROBE_BACKOFF.backoff
    }
}

/// Whether a data connection was lost or could not be opened.
pub(crate) fn is_connection_error(error: &EngineError) -> bool {
    matches!(error, EngineError::Data(error) if error.class() == Some(ErrorClass::Connection))
}

impl Availability {
    pub(crate) fn new(name: &str, connection: Arc<dyn Connection>, store: Arc<dyn Store>) -> Self {
        let state = watch::Sender::new(State::default());
        Availability { name: name.to_owned(), connection, store, state }
    }

    /// Whether work on this connection may be leased.
    pub(crate) fn is_leasable(&self) -> bool {
        !self.state.borrow().probing
    }

    /// The outage, if a probe has failed and none has succeeded since.
    pub(crate) fn outage(&self) -> Option<Outage> {
        self.state.borrow().outage.clone()
    }

    /// Waits until work on this connection may be leased.
    pub(crate) async fn leasable(&self) {
        // The sender is part of this value, so it cannot be dropped while we wait.
        let _ = self.state.subscribe().wait_for(|state| !state.probing).await;
    }

    /// Resets the backoff after a committed batch or a page that was read: if the connection is lost
    /// again, it is probed at once.
    pub(crate) fn succeeded(&self) {
        if self.state.borrow().failures > 0 {
            self.state.send_if_modified(|state| {
                state.failures = if state.probing { state.failures } else { 0 };
                false
            });
        }
    }

    /// Starts the probe if the error is a connection error and no probe is running. Returns whether it is
    /// a connection error.
    pub(crate) fn failed(self: &Arc<Self>, error: &EngineError) -> bool {
        let is_connection_error = is_connection_error(error);
        if is_connection_error
            && self.state.send_if_modified(|state| !std::mem::replace(&mut state.probing, true))
        {
            tokio::spawn(probe(Arc::downgrade(self), error.to_string()));
        }
        is_connection_error
    }

    fn first_wait(&self) -> Duration {
        match self.state.borrow().failures {
            0 => Duration::ZERO,
            failures => PROBE_BACKOFF.jittered(failures, rand::random()),
        }
    }

    /// Checks the database by looking for its ledger. Any response counts, also that there is none.
    async fn ping(&self) -> Result<(), String> {
        match tokio::time::timeout(PROBE_TIMEOUT, self.connection.check_ledger()).await {
            Ok(Err(error)) if error.class() == Some(ErrorClass::Connection) => {
                Err(error.to_string())
            }
            Ok(_) => Ok(()),
            Err(_) => Err(format!("no response within {PROBE_TIMEOUT:?}")),
        }
    }

    /// Records a failed probe, in the store until the next one. Returns the wait until then.
    async fn record_outage(&self, since: DateTime<Utc>, error: &str) -> Duration {
        let reason = format!("{}{}: {error}", prefix(&self.name), format_time(since));
        let mut wait = Duration::ZERO;
        let mut is_new = false;
        self.state.send_modify(|state| {
            state.failures += 1;
            wait = PROBE_BACKOFF.jittered(state.failures, rand::random());
            let outage = Outage { reason: reason.clone(), next_probe: Instant::now() + wait };
            is_new = state.outage.replace(outage).is_none();
        });
        if is_new {
            tracing::warn!("{reason}; its chunks wait until a probe succeeds");
        }
        let shown = wait + PROBE_TIMEOUT + Duration::from_secs(1);
        let subject = connection_subject(&self.name);
        if let Err(error) = self.store.suspend(&subject, &reason, shown).await {
            tracing::debug!(%error, "failed to record in the store that database `{}` is unavailable", self.name);
        }
        wait
    }

    /// Records a successful probe: work is leased again.
    async fn record_recovery(&self, begun: Instant, error: &str) {
        let mut outage = None;
        self.state.send_modify(|state| {
            outage = state.outage.take();
            state.probing = false;
            state.failures += 1;
        });
        let (name, lasted) = (&self.name, begun.elapsed());
        if outage.is_none() {
            tracing::warn!(
                "a connection to database `{name}` was lost, but the database responds; reconnecting: {error}"
            );
            return;
        }
        tracing::warn!("database `{name}` available again after {lasted:.1?}");
        if let Err(error) = self.store.suspend(&connection_subject(name), "", Duration::ZERO).await
        {
            tracing::debug!(%error, "failed to record in the store that database `{name}` is available");
        }
    }

    /// When the outage began by the store's clock: the earliest time recorded by any process.
    async fn since(&self, begun: Instant) -> DateTime<Utc> {
        let now = self.store.now().await.unwrap_or_else(|_| Utc::now());
        let since = now - TimeDelta::from_std(begun.elapsed()).unwrap_or_default();
        let controls = self.store.controls().await.unwrap_or_default();
        let subject = connection_subject(&self.name);
        let recorded = controls.into_iter().find(|control| control.subject == subject);
        let recorded = recorded.and_then(|control| since_of(&self.name, &control.suspended?));
        recorded.map_or(since, |recorded| recorded.min(since))
    }
}

/// Probes until the database responds or the engine is dropped.
async fn probe(availability: Weak<Availability>, first_error: String) {
    let begun = Instant::now();
    let mut since = None;
    let Some(mut wait) = availability.upgrade().map(|availability| availability.first_wait())
    else {
        return;
    };
    loop {
        tokio::time::sleep(wait).await;
        let Some(availability) = availability.upgrade() else { return };
        let error = match availability.ping().await {
            Ok(()) => return availability.record_recovery(begun, &first_error).await,
            Err(error) => error,
        };
        let since = match since {
            Some(since) => since,
            None => *since.insert(availability.since(begun).await),
        };
        wait = availability.record_outage(since, &error).await;
    }
}

fn prefix(name: &str) -> String {
    format!("database `{name}` unavailable since ")
}

fn format_time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Parses the start of an outage out of the reason that a process recorded.
fn since_of(name: &str, reason: &str) -> Option<DateTime<Utc>> {
    let (since, _) = reason.strip_prefix(&prefix(name))?.split_once(": ")?;
    Some(DateTime::parse_from_rfc3339(since).ok()?.to_utc())
}

impl Engine {
    /// The availability of an open connection.
    pub(crate) fn availability(&self, name: &str) -> crate::Result<&Arc<Availability>> {
        self.shared.availability.get(name).ok_or_else(|| {
            let detail = format!("connection `{name}` is not open");
            Problem::new(Code::Configuration, detail).into()
        })
    }

    /// The capabilities without connections that are being probed or wait for a share of their total.
    pub(crate) fn leasable(&self, by: &Capabilities) -> Capabilities {
        let mut by = by.clone();
        by.connections.retain(|name| self.is_leasable(name));
        by
    }

    /// The open connections that are not being probed.
    pub(crate) fn leasable_connections(&self) -> Vec<String> {
        let mut names = self.open_connections();
        names.retain(|name| self.is_leasable(name));
        names
    }

    /// Waits until a connection is not being probed.
    pub(crate) async fn connection_leasable(&self, name: &str) {
        if let Ok(availability) = self.availability(name) {
            availability.leasable().await;
        }
    }

    pub(crate) fn is_leasable(&self, name: &str) -> bool {
        self.availability(name).is_ok_and(|availability| availability.is_leasable())
            && self.shared.budgets.get(name).is_none_or(|budget| budget.is_held())
    }

    /// Starts the probe of a connection if the error is a connection error. Returns whether it is.
    pub(crate) fn connection_failed(&self, name: &str, error: &EngineError) -> bool {
        if let Ok(availability) = self.availability(name) {
            availability.failed(error);
        }
        is_connection_error(error)
    }

    /// Like `connection_failed`, for work that may use all connections of a job type: the probes find out
    /// which of them is unavailable.
    pub(crate) fn connections_failed(&self, job_type: &JobType, error: &EngineError) -> bool {
        for name in connections(job_type) {
            self.connection_failed(name, error);
        }
        is_connection_error(error)
    }

    /// The first outage among the connections of a job type.
    pub(crate) fn outage(&self, job_type: &JobType) -> Option<Outage> {
        connections(job_type).find_map(|name| self.availability(name).ok()?.outage())
    }
}

/// The connections that a job type reads, reduces in and loads into.
pub(crate) fn connections(job_type: &JobType) -> impl Iterator<Item = &str> {
    let load = job_type.load.as_ref().map(|load| load.connection.as_str());
    let source = job_type.source.connection.as_str();
    [Some(source), job_type.reduce_in.as_deref(), load].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_an_outage_is_parsed_from_its_reason() {
        let since = DateTime::parse_from_rfc3339("2026-01-01T03:00:00Z").unwrap().to_utc();
        let reason = format!("{}{}: connection refused: 1: 2", prefix("app"), format_time(since));
        assert_eq!(
            reason,
            "database `app` unavailable since 2026-01-01T03:00:00Z: connection refused: 1: 2"
        );
        assert_eq!(since_of("app", &reason), Some(since));
        assert_eq!(since_of("other", &reason), None);
        assert_eq!(since_of("app", "throttled to 1/2 of full speed"), None);
    }
}
