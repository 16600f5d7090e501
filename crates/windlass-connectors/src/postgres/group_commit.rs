//! Groups commits that only change the ledger: those that arrive while one is running form the next. So the
//! running chunks share one statement and one wait for the disk.

use super::{LEDGER_SETTINGS, commit_setting, row};
use crate::{ConnectorError, Ledger, Result};
use std::collections::HashMap;
use std::slice::from_ref;
use windlass_core::{Counts, Durability};
use windlass_drivers::{CallGroups, Error, ErrorClass, Param, Postgres, WaitingCall};

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

/// The waiting changes.
pub(super) struct GroupCommit(CallGroups<Advance, Answer>);

/// The new row. `None` when it was not as expected.
type Answer = std::result::Result<Option<Ledger>, Error>;

impl Default for GroupCommit {
    fn default() -> Self {
        GroupCommit(CallGroups::new(1, usize::MAX))
    }
}

impl GroupCommit {
    /// Changes a row together with the other waiting ones, and returns the new row.
    pub(super) async fn advance(&self, db: &Postgres, advance: Advance) -> Result<Ledger> {
        let db = db.clone();
        let answer = self.0.call(advance, move |group| apply_group(db.clone(), group)).await;
        // The caller reads the ledger to find out what was committed.
        let aborted = || Error::new(ErrorClass::Connection, "the group commit was aborted");
        answer.ok_or_else(aborted)??.ok_or(ConnectorError::LeaseLost)
    }
}

async fn apply_group(db: Postgres, mut group: Vec<WaitingCall<Advance, Answer>>) {
    group.sort_by_key(|waiting| {
        let chunk = waiting.call.ledger.chunk;
        (chunk.job, chunk.number)
    });
    let advances: Vec<_> = group.iter().map(|waiting| waiting.call.clone()).collect();
    let answers = apply(&db, &advances, GROUP_LOCK_TIMEOUT).await;
    for (waiting, answer) in group.into_iter().zip(answers) {
        let refused = answer.as_ref().is_err_and(|error| error.class != ErrorClass::Connection);
        if refused {
            // Another transaction has locked one of the rows. Each change gets its own transaction then, and the
            // queue does not wait for it.
            tokio::spawn(apply_alone(db.clone(), waiting));
        } else {
            waiting.answer(answer);
        }
    }
}

async fn apply_alone(db: Postgres, waiting: WaitingCall<Advance, Answer>) {
    if let Some(answer) = apply(&db, from_ref(&waiting.call), SINGLE_LOCK_TIMEOUT).await.pop() {
        waiting.answer(answer);
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
