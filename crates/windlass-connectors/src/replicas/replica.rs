//! One replica: whether it may serve now, and the task that asks it again and again.

use super::lag::Marks;
use crate::{Connection, Result, connect};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OnceCell, watch};
use windlass_core::config::LONGEST_LAG;
use windlass_drivers::{Class, Error, Url, redact};

/// A database that does not answer for so long is away.
const PATIENCE: Duration = Duration::from_secs(5);

/// A copy of a database.
pub(super) struct Replica {
    /// Its URL, as it may be shown.
    pub(super) name: String,
    url: String,
    max_connections: usize,
    max_lag: Duration,
    opened: OnceCell<Opened>,
    state: Mutex<State>,
    marks: Mutex<Marks>,
    /// Whether it has been asked at all.
    asked: watch::Sender<bool>,
}

/// Its pool, and one connection more: while all of the pool are at work, it can still be asked.
struct Opened {
    serving: Arc<dyn Connection>,
    asking: Arc<dyn Connection>,
}

/// What is known of it.
enum State {
    /// It has not been asked yet.
    New,
    /// It serves until it would be too old, unless it is asked again before that.
    Well(Instant),
    /// It is left out.
    Out,
}

impl Replica {
    pub(super) fn new(url: &str, max_connections: usize, max_lag: Duration) -> Replica {
        Replica {
            name: redact(url),
            url: url.to_owned(),
            max_connections,
            // Times can be added to without a thought.
            max_lag: max_lag.min(LONGEST_LAG),
            opened: OnceCell::new(),
            state: Mutex::new(State::New),
            marks: Mutex::default(),
            asked: watch::Sender::new(false),
        }
    }

    /// Its connection, where it is well.
    pub(super) fn serving(&self) -> Option<Arc<dyn Connection>> {
        let well = matches!(*self.state(), State::Well(until) if Instant::now() < until);
        self.opened.get().filter(|_| well).map(|opened| opened.serving.clone())
    }

    /// Waits until it has been asked for the first time.
    pub(super) async fn known(&self) {
        // The sender lives as long as this does, so there is no error.
        let _ = self.asked.subscribe().wait_for(|asked| *asked).await;
    }

    /// Leaves it out at once; the next answer may bring it back.
    pub(super) fn leave_out(&self, why: &str) {
        let before = std::mem::replace(&mut *self.state(), State::Out);
        if !matches!(before, State::Out) {
            tracing::warn!("replica {} is left out: it {why}", self.name);
        }
    }

    /// How far it is behind the primary now.
    pub(super) async fn lag(&self, primary: &dyn Connection) -> Result<Duration> {
        let asked = async {
            let now = Instant::now();
            // The primary first: what the replica has then is compared with what there was before.
            match tokio::time::timeout(PATIENCE / 2, primary.position()).await {
                Ok(Ok(Some(position))) => self.marks().put(now, position, self.max_lag * 2),
                Ok(Ok(None)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "the primary does not say where it is"),
                Err(_) => tracing::debug!("the primary does not say in time where it is"),
            }
            let asking = &self.opened().await?.asking;
            loop {
                let standing = asking.standing().await?;
                let lag = self.marks().lag(standing, now)?;
                match lag {
                    Some(lag) => return Ok(lag),
                    // What was on its way at the first question may have come.
                    None if now.elapsed() < PATIENCE / 5 => tokio::time::sleep(MOMENT).await,
                    None => return Err(Error::new(Class::Other, FAR).into()),
                }
            }
        };
        let late = |_| Error::new(Class::Connection, format!("no answer for {PATIENCE:?}"));
        tokio::time::timeout(PATIENCE, asked).await.map_err(late)?
    }

    /// Asks once, and keeps what comes of it.
    pub(super) async fn ask(&self, primary: &dyn Connection) {
        let begun = Instant::now();
        match self.lag(primary).await {
            Ok(lag) if lag < self.max_lag => {
                let well = State::Well(begun + (self.max_lag - lag));
                let before = std::mem::replace(&mut *self.state(), well);
                if matches!(before, State::Out) {
                    tracing::warn!("replica {} is well and serves again", self.name);
                }
            }
            Ok(lag) => {
                let most = self.max_lag;
                self.leave_out(&format!("lags {lag:.1?}, and max_lag is {most:?}"));
            }
            Err(error) => self.leave_out(&format!("cannot be asked how far it lags: {error}")),
        }
        self.asked.send_replace(true);
    }

    /// When it is asked next: a few times before the last answer would be too old.
    pub(super) fn every(&self) -> Duration {
        (self.max_lag / 5).min(Duration::from_secs(2))
    }

    /// Opened when it is first needed: a file that is not there yet may come.
    async fn opened(&self) -> Result<&Opened> {
        let open = || async {
            Ok(match Url::parse(&self.url)? {
                // One writer per file and process.
                Url::Sqlite(_) => {
                    let serving = connect(&self.url, 1).await?;
                    Opened { asking: serving.clone(), serving }
                }
                _ => Opened {
                    serving: connect(&self.url, self.max_connections.saturating_sub(1)).await?,
                    asking: connect(&self.url, 1).await?,
                },
            })
        };
        self.opened.get_or_try_init(open).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A plain value, which a panic elsewhere cannot leave half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Between two looks at what a replica has applied.
const MOMENT: Duration = Duration::from_millis(50);

const FAR: &str = "it is further behind than has been watched";
