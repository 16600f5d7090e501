//! One commit is one transaction of at most a hundred actions: the ledger's compare-and-set, the
//! effect on each record under its condition, held items.

use super::cancel::{Action, Of, Verdict, judge};
use super::expression::{Bound, Condition, key_of};
use super::rows::{self, Row};
use super::{DynamodbData, LEDGER, Patience, throttled, unbuilt, write};
use crate::{Commit, Committed, DataError, DeferredItem, Effect, Ledger, Result, Scope, WriteItem};
use std::collections::HashSet;
use windlass_core::problem::Code;
use windlass_core::{Counts, Cursor, FilterValue, Key, Keys, Problem};
use windlass_drivers::dynamodb::sdk::error::SdkError;
use windlass_drivers::dynamodb::sdk::operation::transact_write_items::TransactWriteItemsError;
use windlass_drivers::dynamodb::sdk::types::{
    AttributeValue, Delete, Put, TransactWriteItem, Update,
};
use windlass_drivers::{Class, Error};

/// Actions of one transaction.
pub(super) const ACTIONS: usize = 100;
/// About how many bytes they may have, somewhat less than the four megabytes of DynamoDB.
const BYTES: usize = 3 << 20;

/// Commits one batch. Records that somebody else has changed are taken out, and the others are
/// committed without them.
pub(super) async fn commit(
    data: &DynamodbData,
    scope: &Scope,
    ledger: &Ledger,
    commit: Commit,
) -> Result<Committed> {
    let mut batch = Batch::new(scope, commit)?;
    let mut patience = Patience::default();
    loop {
        let after = batch.ledger_after(ledger);
        let actions = batch.actions(data, ledger, &after).await?;
        let verdict = match transact(data, &actions).await {
            Ok(()) => return Ok(Committed { ledger: after }),
            Err(verdict) => verdict?,
        };
        match verdict {
            Verdict::Lost => return Err(DataError::LeaseLost),
            Verdict::Refused(error) => return Err(error.into()),
            Verdict::Again { missed, busy } => {
                batch.leave_out(&missed);
                if busy {
                    patience.wait().await.map_err(|()| throttled())?;
                }
            }
        }
    }
}

/// Sends a transaction. What was cancelled is judged; any other error is told as it is.
async fn transact(
    data: &DynamodbData,
    actions: &[Action],
) -> std::result::Result<(), Result<Verdict>> {
    let items = actions.iter().map(|action| action.item.clone()).collect();
    // Sent once: a second time it would find the ledger moved, and take that for a lost lease.
    let sent = data.once.transact_write_items().set_transact_items(Some(items)).send().await;
    let Err(error) = sent else { return Ok(()) };
    if let SdkError::ServiceError(failure) = &error
        && let TransactWriteItemsError::TransactionCanceledException(cancelled) = failure.err()
    {
        return Err(Ok(judge(cancelled.cancellation_reasons(), actions)));
    }
    match of_tables(actions, Error::from(error)) {
        error if error.class == Class::Busy => {
            Err(Ok(Verdict::Again { missed: Vec::new(), busy: true }))
        }
        error => Err(Err(error.into())),
    }
}

/// DynamoDB does not say which table it did not find.
fn of_tables(actions: &[Action], error: Error) -> Error {
    if error.class != Class::Definition {
        return error;
    }
    let mut names: Vec<&str> = actions.iter().map(Action::table).collect();
    names.sort_unstable();
    names.dedup();
    let message = format!("{}: one of the tables {}", error.message, names.join(", "));
    Error { message, ..error }
}

/// What is to be committed, as far as nobody was faster.
struct Batch<'a> {
    scope: &'a Scope,
    cursor: Cursor,
    counts: Counts,
    work: Work,
    hold: Vec<DeferredItem>,
    settle: Vec<Key>,
}

enum Work {
    /// Changes of single items.
    Write(Vec<WriteItem>),
    /// Records to be written back as they are, version + 1.
    Refresh(Vec<Key>, Option<FilterValue>),
}

impl<'a> Batch<'a> {
    fn new(scope: &'a Scope, commit: Commit) -> Result<Batch<'a>> {
        let Commit { cursor, effect, mut counts, hold, settle } = commit;
        let work = match effect {
            Effect::Nothing | Effect::Unmark(_) => Work::Write(Vec::new()),
            Effect::Write(items) => {
                counts.processed += items.len() as i64;
                Work::Write(items)
            }
            Effect::Statement(key_set) => match key_set.keys {
                Keys::List(keys) => {
                    let all = keys.len() as i64;
                    counts = Counts { read: all, processed: all, ..Counts::default() };
                    Work::Refresh(keys, key_set.within)
                }
                Keys::Range(_) => {
                    let detail = "the keys of DynamoDB have no order, so there are no ranges";
                    return Err(Problem::new(Code::Source, detail).into());
                }
            },
        };
        Ok(Batch { scope, cursor, counts, work, hold, settle })
    }

    /// The ledger's row once this is committed. It is the row that was read, since the transaction
    /// expects its epoch and its number of commits.
    fn ledger_after(&self, ledger: &Ledger) -> Ledger {
        let mut after =
            Ledger { cursor: self.cursor.clone(), commits: ledger.commits + 1, ..ledger.clone() };
        after.counts += self.counts;
        after
    }

    /// Takes out the items that met a concurrent write, or that are not there any more.
    fn leave_out(&mut self, missed: &[usize]) {
        let missed: HashSet<usize> = missed.iter().copied().collect();
        match &mut self.work {
            Work::Write(items) => {
                let on_conflict = self.scope.job_type.step.on_conflict;
                let all = std::mem::take(items).into_iter().enumerate();
                for (n, item) in all {
                    if missed.contains(&n) {
                        self.counts.processed -= 1;
                        self.hold.extend(item.conflicted(on_conflict, &mut self.counts));
                    } else {
                        items.push(item);
                    }
                }
            }
            Work::Refresh(keys, _) => {
                self.counts.processed -= missed.len() as i64;
                self.counts.skipped += missed.len() as i64;
                let mut place = 0..;
                keys.retain(|_| place.next().is_some_and(|n| !missed.contains(&n)));
            }
        }
    }

    async fn actions(
        &self,
        data: &DynamodbData,
        before: &Ledger,
        after: &Ledger,
    ) -> Result<Vec<Action>> {
        let emitted = match &self.work {
            Work::Write(items) => items.iter().map(write::emitted).sum(),
            Work::Refresh(..) => 0,
        };
        let mut actions = vec![Action { of: Of::Ledger, item: advance(before, after, emitted)? }];
        match &self.work {
            Work::Write(items) => {
                for (n, item) in items.iter().enumerate() {
                    actions.extend(write::actions(data, self.scope, after.chunk, n, item).await?);
                }
            }
            Work::Refresh(keys, within) => {
                let conditions = Condition::of(self.scope, within.as_ref())?;
                for (n, key) in keys.iter().enumerate() {
                    let item = refresh(self.scope, key, &conditions)?;
                    actions.push(Action { of: Of::Item(n), item });
                }
            }
        }
        for held in &self.hold {
            let put = Put::builder().table_name(LEDGER);
            let put = put.set_item(Some(rows::held(after.chunk, held))).build();
            let item = TransactWriteItem::builder().put(put.map_err(|e| unbuilt(&e))?).build();
            actions.push(Action { of: Of::Row, item });
        }
        // An item that was held and met a conflict again is in both, and stays held.
        let held: HashSet<String> = self.hold.iter().map(|held| held.key.to_text()).collect();
        for key in self.settle.iter().filter(|key| !held.contains(&key.to_text())) {
            let row = Row::DeferredItem(after.chunk, &key.to_text()).key();
            let delete = Delete::builder().table_name(LEDGER).set_key(Some(row)).build();
            let item =
                TransactWriteItem::builder().delete(delete.map_err(|e| unbuilt(&e))?).build();
            actions.push(Action { of: Of::Row, item });
        }
        self.fits(&actions)?;
        Ok(actions)
    }

    /// What does not fit is refused as a value is: the engine halves the batch, and an item that does
    /// not fit alone becomes a dead letter.
    fn fits(&self, actions: &[Action]) -> Result<()> {
        let refused = |what: String| -> Result<()> { Err(Error::new(Class::Data, what).into()) };
        if actions.len() > ACTIONS {
            return refused(format!(
                "a transaction of DynamoDB has {ACTIONS} actions, and this one would need {}",
                actions.len()
            ));
        }
        let bytes: usize = match &self.work {
            Work::Write(items) => items.iter().map(write::size).sum(),
            Work::Refresh(..) => 0,
        };
        match bytes > BYTES && actions.len() > 2 {
            true => refused(format!(
                "a transaction of DynamoDB has 4 MB, and this one would have about {bytes} bytes"
            )),
            false => Ok(()),
        }
    }
}

/// The compare-and-set on the ledger's row, which also counts the rows that the commit emits.
fn advance(before: &Ledger, after: &Ledger, emitted: i64) -> Result<TransactWriteItem> {
    let mut bound = Bound::default();
    let mut set = Vec::new();
    for (name, value) in rows::progress(after) {
        set.push(format!("{} = {}", bound.name(name), bound.value(value)));
    }
    let number = |number: i64| AttributeValue::N(number.to_string());
    let mut change = format!("SET {}", set.join(", "));
    if emitted > 0 {
        let added = format!(" ADD {} {}", bound.name("emitted"), bound.value(number(emitted)));
        change.push_str(&added);
    }
    let condition = format!(
        "{} = {} AND {} = {} AND {} = {}",
        bound.name("epoch"),
        bound.value(number(before.epoch)),
        bound.name("nonce"),
        bound.value(number(before.nonce)),
        bound.name("commits"),
        bound.value(number(before.commits)),
    );
    let update = Update::builder()
        .table_name(LEDGER)
        .set_key(Some(Row::Ledger(after.chunk).key()))
        .update_expression(change)
        .condition_expression(condition)
        .set_expression_attribute_names(bound.names())
        .set_expression_attribute_values(bound.values());
    let update = update.build().map_err(|error| unbuilt(&error))?;
    Ok(TransactWriteItem::builder().update(update).build())
}

/// A record's version + 1, whatever it is now: nothing of the record is overwritten by that. One that
/// is gone, or out of the job's reach, is left alone.
fn refresh(scope: &Scope, key: &Key, conditions: &[Condition]) -> Result<TransactWriteItem> {
    let mut bound = Bound::default();
    let hash = scope.key().first().map(|column| bound.name(column)).unwrap_or_default();
    let mut condition = format!("attribute_exists({hash})");
    if let Some(more) = bound.all(conditions) {
        condition = format!("{condition} AND {more}");
    }
    let version = bound.name(write::version(scope)?);
    let one = bound.value(AttributeValue::N("1".to_owned()));
    let update = Update::builder()
        .table_name(&scope.table.name)
        .set_key(Some(key_of(scope, key)?))
        .update_expression(format!("ADD {version} {one}"))
        .condition_expression(condition)
        .set_expression_attribute_names(bound.names())
        .set_expression_attribute_values(bound.values());
    let update = update.build().map_err(|error| unbuilt(&error))?;
    Ok(TransactWriteItem::builder().update(update).build())
}
