//! The way from one process to one database. Here calls fail, wait, or end their process.

use crate::environment::Environment;
use crate::oracle;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;
use windlass_drivers::{Call, Caller, Error, ErrorClass, Intercepted, Interceptor};

/// Whether a process is alive or frozen.
pub(crate) struct Life {
    pub(crate) number: usize,
    pub(crate) name: String,
    dead: AtomicBool,
    frozen_until: Mutex<Option<Instant>>,
}

impl Life {
    pub(crate) fn new(number: usize, name: String) -> Life {
        Life { number, name, dead: AtomicBool::new(false), frozen_until: Mutex::default() }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Relaxed)
    }

    /// Ends the process: none of its calls returns any more.
    pub(crate) fn end(&self) -> bool {
        !self.dead.swap(true, Relaxed)
    }

    pub(crate) fn freeze(&self, time: Duration) {
        *self.frozen_until.lock() = Some(Instant::now() + time);
    }

    async fn thaw(&self) {
        loop {
            let until = *self.frozen_until.lock();
            match until {
                Some(until) if until > Instant::now() => tokio::time::sleep_until(until).await,
                _ => return,
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Store,
    App,
}

pub(crate) struct Wire {
    pub(crate) env: Arc<Environment>,
    pub(crate) life: Arc<Life>,
    pub(crate) side: Side,
    /// The last signal that reached the process, or was lost on the way.
    pub(crate) notified: AtomicI64,
}

/// The most that a call usually takes, one way.
const USUAL_DELAY: Duration = Duration::from_millis(3);
/// The most that a slow one takes. Longer than every lease.
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// How late a request arrives whose caller has lost its connection.
const LATEST_REQUEST: Duration = Duration::from_secs(5);
const LONGEST_NOTIFICATION: Duration = Duration::from_millis(200);

impl Wire {
    fn add(&self, call: Call, what: &str) {
        let side = if self.side == Side::Store { "store" } else { "data" };
        let name = oracle::short_name(call.name);
        self.env.add(&self.life.name, &format!("{side} {name}: {what}"));
    }

    async fn pass(&self, call: Call, slow: &str) {
        if self.env.chance(self.env.rates().slow) {
            let delay = self.env.between(USUAL_DELAY, LONGEST_DELAY);
            self.add(call, &format!("{slow} takes {delay:?}"));
            tokio::time::sleep(delay).await;
        } else {
            tokio::time::sleep(self.env.between(Duration::ZERO, USUAL_DELAY)).await;
        }
        self.life.thaw().await;
    }

    fn crashes(&self, call: Call, when: &str) -> bool {
        let crashes = self.env.chance(self.env.rates().crash) && self.life.end();
        if crashes {
            self.add(call, &format!("process crashes {when}"));
            let _ = self.env.crashed.send(self.life.number);
        }
        crashes
    }

    fn refusal(&self, call: Call) -> Error {
        // A full disk counts as an attempt of the chunk, so that some fail.
        let commits = self.side == Side::App && oracle::short_name(call.name) == "commit";
        let (class, text) = match self.env.pick(if commits { 6 } else { 2 }) {
            0 => (ErrorClass::Retry, "simulated deadlock"),
            1 => (ErrorClass::Busy, "simulated throttling"),
            _ => (ErrorClass::Full, FULL_DISK),
        };
        Error::new(class, text)
    }
}

const FULL_DISK: &str = "simulated full disk";

fn lost() -> Error {
    Error::new(ErrorClass::Connection, "simulated loss of the connection")
}

impl Interceptor for Wire {
    fn request(&self, call: Call, caller: Caller) -> Intercepted<'_, Result<(), Error>> {
        Box::pin(async move {
            self.life.thaw().await;
            let rates = self.env.rates();
            if self.life.is_dead() || self.crashes(call, "before the request") {
                std::future::pending::<()>().await;
            }
            let commits = self.side == Side::App && oracle::short_name(call.name) == "commit";
            let may_be_full = commits && rates.full_disk > 0.0 && self.env.has_open_redrive();
            if may_be_full && self.env.chance(rates.full_disk) {
                self.add(call, FULL_DISK);
                return Err(Error::new(ErrorClass::Full, FULL_DISK));
            }
            if self.env.chance(rates.refused) {
                let error = self.refusal(call);
                self.add(call, &error.message);
                return Err(error);
            }
            let restarts = self.env.restarts(self.side);
            let late = if commits {
                rates.late_commit.max(rates.late_request)
            } else {
                rates.late_request
            };
            if self.env.chance(late) {
                self.add(call, "connection lost; the request is still on its way");
                caller.disconnect();
                let delay = self.env.between(Duration::ZERO, LATEST_REQUEST);
                tokio::time::sleep(delay).await;
            }
            let is_lost = self.env.chance(rates.lost_request);
            // A request that is on its way arrives even if its process has died meanwhile.
            self.pass(call, "the request").await;
            if is_lost || restarts != self.env.restarts(self.side) {
                self.add(call, "request lost");
                return Err(lost());
            }
            Ok(())
        })
    }

    fn executed(&self, call: Call, error: Option<&Error>) {
        match error {
            Some(error) => self.add(call, &error.to_string()),
            None if call.writes => self.add(call, "committed"),
            None => self.add(call, "read"),
        }
        if call.writes && error.is_none() {
            oracle::check_commit(&self.env, self.side);
        }
    }

    fn answer(&self, call: Call) -> Intercepted<'_, Result<(), Error>> {
        Box::pin(async move {
            let rates = self.env.rates();
            if self.life.is_dead() || self.crashes(call, "before the answer") {
                std::future::pending::<()>().await;
            }
            let is_lost = self.env.chance(rates.lost_answer);
            self.pass(call, "the answer").await;
            if self.life.is_dead() {
                std::future::pending::<()>().await;
            }
            if is_lost {
                self.add(call, "answer lost");
                return Err(lost());
            }
            Ok(())
        })
    }

    fn notified(&self) -> Intercepted<'_, ()> {
        Box::pin(async move {
            let mut signals = self.env.signals.subscribe();
            loop {
                let seen = self.notified.load(Relaxed);
                let sent = signals.wait_for(|sent| *sent > seen).await.map_or(seen, |sent| *sent);
                if self.life.is_dead() {
                    std::future::pending::<()>().await;
                }
                let is_lost = self.env.chance(self.env.rates().lost_notification);
                if !is_lost {
                    let delay = self.env.between(Duration::ZERO, LONGEST_NOTIFICATION);
                    tokio::time::sleep(delay).await;
                }
                self.notified.fetch_max(sent, Relaxed);
                if !is_lost {
                    return;
                }
            }
        })
    }
}
