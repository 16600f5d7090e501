//! The replicas of a connection: whose turn it is, and where a read goes that failed on one.

use super::replica::Replica;
use crate::{Connection, DataError, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use windlass_drivers::Class;

/// The replicas of one connection. Nobody is asked anything before the first read.
pub struct Replicas {
    replicas: Vec<Arc<Replica>>,
    /// A connection to the primary that says where its writes are, however busy its pool is.
    primary: Arc<dyn Connection>,
    turn: AtomicUsize,
    watched: AtomicBool,
    /// Whether it was said that the primary serves.
    alone: AtomicBool,
}

impl Replicas {
    /// The replicas of these URLs, each with at most so many connections. `primary` is asked where
    /// its writes are.
    pub fn new(
        urls: &[String],
        primary: Arc<dyn Connection>,
        max_connections: usize,
        max_lag: Duration,
    ) -> Replicas {
        let replica = |url: &String| Arc::new(Replica::new(url, max_connections, max_lag));
        Replicas {
            replicas: urls.iter().map(replica).collect(),
            primary,
            turn: AtomicUsize::new(0),
            watched: AtomicBool::new(false),
            alone: AtomicBool::new(false),
        }
    }

    /// Each with its URL, without the password, and how far it is behind now.
    pub async fn lags(&self) -> Vec<(String, Result<Duration>)> {
        let mut lags = Vec::new();
        for replica in &self.replicas {
            lags.push((replica.name.clone(), replica.lag(self.primary.as_ref()).await));
        }
        lags
    }

    /// How many serve now; none before the first read.
    pub fn serving(&self) -> usize {
        self.replicas.iter().filter(|replica| replica.serving().is_some()).count()
    }

    /// Those that are well, beginning with the one whose turn it is.
    pub(super) async fn well(&self) -> Vec<(Arc<Replica>, Arc<dyn Connection>)> {
        self.watch();
        for replica in &self.replicas {
            replica.known().await;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let well = self.replicas.iter().filter_map(|r| Some((r.clone(), r.serving()?)));
        let mut well: Vec<_> = well.collect();
        if !well.is_empty() {
            let first = turn % well.len();
            well.rotate_left(first);
        }
        let said = self.alone.swap(well.is_empty(), Ordering::Relaxed);
        if well.is_empty() && !said {
            tracing::warn!("no replica is well; the primary serves what they would");
        }
        well
    }

    /// Begins to ask, once. Each replica has its own task, so that one that hangs delays no other;
    /// the tasks end with the replicas.
    fn watch(&self) {
        if self.watched.swap(true, Ordering::Relaxed) {
            return;
        }
        for replica in &self.replicas {
            let (replica, every) = (Arc::downgrade(replica), replica.every());
            let primary = self.primary.clone();
            tokio::spawn(async move {
                while let Some(replica) = replica.upgrade() {
                    replica.ask(primary.as_ref()).await;
                    drop(replica);
                    tokio::time::sleep(every).await;
                }
            });
        }
    }
}

/// What to do about an error of a replica.
#[derive(Debug, PartialEq)]
pub(super) enum Failed {
    /// It is away: it is left out, and another one is asked.
    Away,
    /// It could not, but another one may: what is missing or forbidden there, a query cancelled for
    /// what the primary replayed, no connection left.
    Elsewhere,
    /// Any other would say the same.
    Everywhere,
}

impl Failed {
    pub(super) fn of(error: &DataError) -> Failed {
        let DataError::Database(error) = error else { return Failed::Everywhere };
        match (error.class, error.code.as_deref()) {
            (Class::Connection, _) => Failed::Away,
            (Class::Data, _) => Failed::Everywhere,
            // A statement that takes too long here takes as long there.
            (Class::Retry, Some("57014" | "1969" | "3024" | "1317")) => Failed::Everywhere,
            _ => Failed::Elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_drivers::Error;

    #[test]
    fn only_what_another_may_answer_goes_elsewhere() {
        let failed = |class, code: Option<&str>| {
            Failed::of(
                &Error { class, code: code.map(str::to_owned), message: String::new() }.into(),
            )
        };
        assert_eq!(failed(Class::Connection, Some("57P01")), Failed::Away);
        assert_eq!(
            failed(Class::Retry, Some("40001")),
            Failed::Elsewhere,
            "conflict with recovery"
        );
        assert_eq!(failed(Class::Retry, None), Failed::Elsewhere, "no connection is free");
        assert_eq!(failed(Class::Definition, Some("42P01")), Failed::Elsewhere, "not there yet");
        assert_eq!(failed(Class::Retry, Some("57014")), Failed::Everywhere);
        assert_eq!(failed(Class::Data, Some("22012")), Failed::Everywhere);
        assert_eq!(Failed::of(&DataError::LeaseLost), Failed::Everywhere);
    }
}
