//! Groups commits that only change the ledger: those that arrive while one is running form the next. So the
//! running chunks share one statement and one wait for the disk.

use super::{LEDGER_SETTINGS, commit_setting, row};
use crate::{ConnectorError, Ledger, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use windlass_core::{Counts, Durability};
use windlass_drivers::{Error, ErrorClass, Param, Postgres};

/// A change of one chunk's ledger row.
#[derive(Clone)]
pub(super) struct Advance {
    /// The expected row.
    pub(super) ledger: Ledger,
    /// The new cursor.
    pub(super) cursor: String,
    /// What is added to the counts.
    pub(super) counts: Counts,
    /// Whether it waits for the disk.
    pub(super) durability: Durability,
}

/// The waiting changes, and whether a task is applying them.
#[derive(Clone, Default)]
pub(super) struct GroupCommit {
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<(Advance, oneshot::Sender<Answer>)>,
    running: bool,
}

/// The new row. `None` when it was not as expected.
type Answer = std::result::Result<Option<Ledger>, Error>;

impl GroupCommit {
    /// Changes a row together with the other waiting ones, and returns the new row.
    pub(super) async fn advance(&self, db: &Postgres, advance: Advance) -> Result<Ledger> {
        let (sender, answer) = oneshot::channel();
        let idle = {
            let mut queue = self.queue.lock();
            queue.waiting.push((advance, sender));
            !std::mem::replace(&mut queue.running, true)
        };
        if idle {
            // A separate task, since a caller may be cancelled and the others must continue.
            tokio::spawn(self.clone().run(db.clone()));
        }
        let aborted = || Error::new(ErrorClass::Connection, "the group commit was aborted");
        let answer = answer.await.map_err(|_| aborted())?;
        answer?.ok_or(ConnectorError::LeaseLost)
    }

    async fn run(self, db: Postgres) {
        let mut guard = Guard(Some(self.clone()));
        loop {
            let mut batch = {
                let mut queue = self.queue.lock();
                if queue.waiting.is_empty() {
                    queue.running = false;
                    guard.0 = None;
                    return;
                }
                std::mem::take(&mut queue.waiting)
            };
            // A cancelled caller no longer wants its change.
            batch.retain(|(_, sender)| !sender.is_closed());
            if batch.is_empty() {
                continue;
            }
            batch.sort_by_key(|(advance, _)| {
                (advance.ledger.chunk.job, advance.ledger.chunk.number)
            });
            let (advances, senders): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            let answers = apply(&db, &advances, GROUP_LOCK_TIMEOUT).await;
            for ((advance, sender), answer) in advances.into_iter().zip(senders).zip(answers) {
                let refused =
                    answer.as_ref().is_err_and(|error| error.class != ErrorClass::Connection);
                if refused {
                    // Another transaction has locked one of the rows. Each change gets its own
                    // transaction then, and the queue does not wait for it.
                    tokio::spawn(apply_alone(db.clone(), advance, sender));
                } else {
                    // The caller may have been cancelled.
                    let _ = sender.send(answer);
                }
            }
        }
    }
}

/// Allows the next task to start if this one panics.
struct Guard(Option<GroupCommit>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(group_commit) = &self.0 {
            let mut queue = group_commit.queue.lock();
            queue.running = false;
            // Their callers get an error and read the ledger to find out what was committed.
            queue.waiting.clear();
        }
    }
}

async fn apply_alone(db: Postgres, advance: Advance, sender: oneshot::Sender<Answer>) {
    if let Some(answer) = apply(&db, &[advance], SINGLE_LOCK_TIMEOUT).await.pop() {
        let _ = sender.send(answer);
    }
}

/// Lock timeouts of a group and of a single change.
const GROUP_LOCK_TIMEOUT: &str = "1s";
const SINGLE_LOCK_TIMEOUT: &str = "30s";

/// Applies changes in one transaction, and returns the result of each.
async fn apply(db: &Postgres, advances: &[Advance], lock_timeout: &str) -> Vec<Answer> {
    let number = |of: fn(&Advance) -> i64| -> Param<'_> {
        advances.iter().map(of).collect::<Vec<_>>().into()
    };
    let cursors: Vec<_> = advances.iter().map(|advance| advance.cursor.clone()).collect();
    let params = [
        advances.iter().map(|advance| advance.ledger.chunk.job).collect::<Vec<_>>().into(),
        number(|advance| advance.ledger.chunk.number),
        number(|advance| advance.ledger.epoch),
        number(|advance| advance.ledger.commits),
        cursors.as_slice().into(),
        number(|advance| advance.counts.read),
        number(|advance| advance.counts.processed),
        number(|advance| advance.counts.skipped),
        number(|advance| advance.counts.dead),
        number(|advance| advance.counts.conflicts),
        number(|advance| advance.ledger.nonce),
    ];
    let all_grouped = advances.iter().all(|advance| advance.durability == Durability::Group);
    let durability = if all_grouped { Durability::Group } else { Durability::Commit };
    let settings = format!(
        "{LEDGER_SETTINGS}; SET LOCAL lock_timeout = '{lock_timeout}'{}",
        commit_setting(durability)
    );
    let sql = include_str!("../../sql/postgres/group_commit.sql");
    let changed = db.single(&settings, sql, &params).await.and_then(|rows| {
        let ledgers = rows.iter().map(|row| row::ledger(row).map(|ledger| (ledger.chunk, ledger)));
        let unreadable = |error: ConnectorError| Error::new(ErrorClass::Other, error.to_string());
        ledgers.collect::<Result<HashMap<_, _>>>().map_err(unreadable)
    });
    match changed {
        Ok(mut changed) => {
            advances.iter().map(|advance| Ok(changed.remove(&advance.ledger.chunk))).collect()
        }
        Err(error) => vec![Err(error); advances.len()],
    }
}
