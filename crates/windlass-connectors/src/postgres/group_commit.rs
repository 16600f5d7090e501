//! Commits that only move the ledger go together: those that come while one is on its way make up
//! the next. So the wait for the disk, and the statement, are shared by as many chunks as are at work.

use super::{KEEPING, row};
use crate::{DataError, Ledger, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use windlass_core::Counts;
use windlass_drivers::{Class, Error, Param, Postgres};

/// A move of one chunk's ledger row.
#[derive(Clone)]
pub(super) struct Advance {
    /// The row as it is expected to be.
    pub(super) ledger: Ledger,
    /// The cursor after the move.
    pub(super) cursor: String,
    /// What is added to the counts.
    pub(super) counts: Counts,
}

/// The moves that wait, and whether somebody makes them.
#[derive(Clone, Default)]
pub(super) struct GroupCommit {
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<(Advance, oneshot::Sender<Answer>)>,
    busy: bool,
}

/// The row as it is now; none where it was not as expected.
type Answer = std::result::Result<Option<Ledger>, Error>;

impl GroupCommit {
    /// Moves a row with whichever others wait, and says how it is now.
    pub(super) async fn advance(&self, db: &Postgres, advance: Advance) -> Result<Ledger> {
        let (sender, answer) = oneshot::channel();
        let idle = {
            let mut queue = self.queue();
            queue.waiting.push((advance, sender));
            !std::mem::replace(&mut queue.busy, true)
        };
        if idle {
            // A task of its own: whoever waits may give up, and the others must not notice.
            tokio::spawn(self.clone().work(db.clone()));
        }
        let given_up = || Error::new(Class::Connection, "the commit was given up");
        let answer = answer.await.map_err(|_| given_up())?;
        answer?.ok_or(DataError::LeaseLost)
    }

    async fn work(self, db: Postgres) {
        let mut guard = Guard(Some(self.clone()));
        loop {
            let mut batch = {
                let mut queue = self.queue();
                if queue.waiting.is_empty() {
                    queue.busy = false;
                    guard.0 = None;
                    return;
                }
                std::mem::take(&mut queue.waiting)
            };
            // Whoever has given up no longer wants the move either.
            batch.retain(|(_, sender)| !sender.is_closed());
            if batch.is_empty() {
                continue;
            }
            batch.sort_by_key(|(advance, _)| {
                (advance.ledger.chunk.job, advance.ledger.chunk.number)
            });
            let (advances, senders): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            let answers = go(&db, &advances, "1s").await;
            for ((advance, sender), answer) in advances.into_iter().zip(senders).zip(answers) {
                let refused = answer.as_ref().is_err_and(|error| error.class != Class::Connection);
                if refused {
                    // Somebody holds one of the rows. Each goes alone then, and nobody waits for it.
                    tokio::spawn(alone(db.clone(), advance, sender));
                } else {
                    // Somebody who has given up meanwhile does not hear it.
                    let _ = sender.send(answer);
                }
            }
        }
    }

    /// Plain values, which a panic elsewhere cannot leave half changed.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the next one work, should this one end before its time.
struct Guard(Option<GroupCommit>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(together) = &self.0 {
            let mut queue = together.queue();
            queue.busy = false;
            // Their callers hear that it was given up, and look what became of it.
            queue.waiting.clear();
        }
    }
}

async fn alone(db: Postgres, advance: Advance, sender: oneshot::Sender<Answer>) {
    if let Some(answer) = go(&db, &[advance], "30s").await.pop() {
        let _ = sender.send(answer);
    }
}

/// What becomes of each.
async fn go(db: &Postgres, advances: &[Advance], patience: &str) -> Vec<Answer> {
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
    let settings = format!("{KEEPING}; SET LOCAL lock_timeout = '{patience}'");
    let sql = include_str!("../../sql/postgres/advance_together.sql");
    let moved = db.single(&settings, sql, &params).await.and_then(|rows| {
        let ledgers = rows.iter().map(|row| row::ledger(row).map(|ledger| (ledger.chunk, ledger)));
        let unreadable = |error: DataError| Error::new(Class::Other, error.to_string());
        ledgers.collect::<Result<HashMap<_, _>>>().map_err(unreadable)
    });
    match moved {
        Ok(mut moved) => {
            advances.iter().map(|advance| Ok(moved.remove(&advance.ledger.chunk))).collect()
        }
        Err(error) => vec![Err(error); advances.len()],
    }
}
