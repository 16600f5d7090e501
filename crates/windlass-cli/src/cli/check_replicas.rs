//! The replicas in `windlass check`: whether each can be reached, and how far it lags.

use serde_json::{Value, json};
use std::time::Duration;
use windlass::Engine;

/// The lag of a replica, or why it is unknown.
pub(super) struct Replica {
    connection: String,
    /// Its URL without the password.
    url: String,
    lag: Result<Duration, String>,
}

/// Measures every replica of a connection.
pub(super) async fn ask_replicas(engine: &Engine, name: &str) -> Vec<Replica> {
    let Some(replicas) = engine.replicas(name) else { return Vec::new() };
    let replica = |(url, lag): (String, windlass_connectors::Result<Duration>)| Replica {
        connection: name.to_owned(),
        url,
        lag: lag.map_err(|error| error.to_string()),
    };
    replicas.lags().await.into_iter().map(replica).collect()
}

impl Replica {
    /// A warning for a replica that would not be used. The primary serves its reads.
    pub(super) fn warning(&self, max_lag: Duration) -> Option<String> {
        let Replica { connection, url, lag } = self;
        let why = match lag {
            Ok(lag) if *lag < max_lag => return None,
            Ok(lag) => format!("lags {lag:.1?}; max_lag is {max_lag:?}"),
            Err(error) => format!("has an unknown lag: {error}"),
        };
        Some(format!("connections.{connection}.replicas: {url} {why}; it would not be used"))
    }

    pub(super) fn show(&self) {
        let Replica { connection, url, lag } = self;
        if let Ok(lag) = lag {
            println!("connection {connection}: replica {url} lags {lag:.1?}\n");
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let lag = self.lag.as_ref().ok().map(|lag| lag.as_millis() as u64);
        json!({
            "connection": self.connection,
            "replica": self.url,
            "lagMs": lag,
            "error": self.lag.as_ref().err(),
        })
    }
}
