//! One commit is one transaction of at most a hundred actions: the ledger's compare-and-set, the
//! effect on each record under its condition, deferred items.

use super::cancel::{Action, Purpose, Verdict, judge};
use super::expression::{Bound, Condition, key_of};
use super::rows::{self, Row};
use super::{
    DynamodbConnection, LEDGER, ThrottleBackoff, invalid_request, no_marks, throttled, write,
};
use crate::{
    Commit, Committed, Committing, ConnectorError, DeferredItem, Effect, Ledger, Marked, Result,
    Scope, WriteItem,
};
use async_trait::async_trait;
use std::collections::HashSet;
use windlass_core::problem::Code;
use windlass_core::{Counts, Cursor, FilterValue, Key, KeySet, Keys, Problem};
use windlass_drivers::dynamodb::sdk::error::SdkError;
use windlass_drivers::dynamodb::sdk::operation::transact_write_items::TransactWriteItemsError;
use windlass_drivers::dynamodb::sdk::types::{
    AttributeValue, Delete, Put, TransactWriteItem, Update,
};
use windlass_drivers::{Error, ErrorClass};

/// The most actions of one transaction.
pub(super) const MAX_ACTIONS: usize = 100;

#[async_trait]
impl Committing for DynamodbConnection {
    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed> {
        let mut batch = Batch::new(scope, commit)?;
        let mut backoff = ThrottleBackoff::default();
        loop {
            let after = batch.ledger_after(ledger);
            let actions = batch.actions(self, ledger, &after).await?;
            let verdict = match transact(self, &actions).await {
                Ok(()) => return Ok(Committed { ledger: after }),
                Err(verdict) => verdict?,
            };
            match verdict {
                Verdict::LeaseLost => return Err(ConnectorError::LeaseLost),
                Verdict::Refused(error) => return Err(error.into()),
                Verdict::Retry { conflicts, throttled: wait } => {
                    batch.remove_conflicts(&conflicts);
                    if wait {
                        backoff.wait().await.map_err(|()| throttled())?;
                    }
                }
            }
        }
    }

    fn max_commit_items(&self) -> u32 {
        // One action updates the ledger row.
        MAX_ACTIONS as u32 - 1
    }

    async fn mark(&self, _: &Scope, _: &Ledger, _: &KeySet) -> Result<Marked> {
        Err(no_marks())
    }
}
/// The most bytes of one transaction, by estimate. DynamoDB allows 4 MB.
const MAX_BYTES: usize = 3 << 20;

/// Sends a transaction. A cancelled one gives a verdict; any other error is returned as it is.
async fn transact(
    data: &DynamodbConnection,
    actions: &[Action],
) -> std::result::Result<(), Result<Verdict>> {
    let items = actions.iter().map(|action| action.item.clone()).collect();
    // Without retries: a repeated request would find its own change of the ledger row and report a
    // lost lease.
    let sent =
        data.no_retry_client.transact_write_items().set_transact_items(Some(items)).send().await;
    let Err(error) = sent else { return Ok(()) };
    if let SdkError::ServiceError(failure) = &error
        && let TransactWriteItemsError::TransactionCanceledException(cancelled) = failure.err()
    {
        return Err(Ok(judge(cancelled.cancellation_reasons(), actions)));
    }
    match with_table_names(actions, Error::from(error)) {
        error if error.class == ErrorClass::Busy => {
            Err(Ok(Verdict::Retry { conflicts: Vec::new(), throttled: true }))
        }
        error => Err(Err(error.into())),
    }
}

/// Adds the tables' names, since DynamoDB does not name the table that is missing.
pub(super) fn with_table_names(actions: &[Action], error: Error) -> Error {
    if error.class != ErrorClass::Definition {
        return error;
    }
    let mut names: Vec<&str> = actions.iter().map(Action::table).collect();
    names.sort_unstable();
    names.dedup();
    let message = format!("{}: one of the tables {}", error.message, names.join(", "));
    Error { message, ..error }
}

/// What is left to commit after conflicts are removed.
struct Batch<'a> {
    scope: &'a Scope,
    cursor: Cursor,
    counts: Counts,
    work: Work,
    defer: Vec<DeferredItem>,
    resolve: Vec<Key>,
}

enum Work {
    /// Changes of single items.
    Write(Vec<WriteItem>),
    /// Records whose version is raised by one, without another change.
    Refresh(Vec<Key>, Option<FilterValue>),
}

impl<'a> Batch<'a> {
    fn new(scope: &'a Scope, commit: Commit) -> Result<Batch<'a>> {
        let Commit { cursor, effect, mut counts, defer, resolve } = commit;
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
                    let detail =
                        "key ranges are not supported, since DynamoDB's keys have no order";
                    return Err(Problem::new(Code::Source, detail).into());
                }
            },
        };
        Ok(Batch { scope, cursor, counts, work, defer, resolve })
    }

    /// The ledger row after the commit. It follows from the row that was read, since the transaction
    /// is conditional on its epoch and its number of commits.
    fn ledger_after(&self, ledger: &Ledger) -> Ledger {
        let mut after =
            Ledger { cursor: self.cursor.clone(), commits: ledger.commits + 1, ..ledger.clone() };
        after.counts += self.counts;
        after
    }

    /// Removes the items that had a concurrent write, or that no longer exist.
    fn remove_conflicts(&mut self, conflicts: &[usize]) {
        let conflicts: HashSet<usize> = conflicts.iter().copied().collect();
        match &mut self.work {
            Work::Write(items) => {
                let on_conflict = self.scope.job_type.step.on_conflict;
                let all = std::mem::take(items).into_iter().enumerate();
                for (n, item) in all {
                    if conflicts.contains(&n) {
                        self.counts.processed -= 1;
                        self.defer.extend(item.conflicted(on_conflict, &mut self.counts));
                    } else {
                        items.push(item);
                    }
                }
            }
            Work::Refresh(keys, _) => {
                self.counts.processed -= conflicts.len() as i64;
                self.counts.skipped += conflicts.len() as i64;
                let mut index = 0..;
                keys.retain(|_| index.next().is_some_and(|n| !conflicts.contains(&n)));
            }
        }
    }

    async fn actions(
        &self,
        data: &DynamodbConnection,
        before: &Ledger,
        after: &Ledger,
    ) -> Result<Vec<Action>> {
        let emitted = match &self.work {
            Work::Write(items) => items.iter().map(write::emitted).sum(),
            Work::Refresh(..) => 0,
        };
        let mut actions =
            vec![Action { purpose: Purpose::Ledger, item: advance(before, after, emitted)? }];
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
                    actions.push(Action { purpose: Purpose::Item(n), item });
                }
            }
        }
        for deferred in &self.defer {
            let put = Put::builder().table_name(LEDGER);
            let put = put.set_item(Some(rows::deferred(after.chunk, deferred))).build();
            let item =
                TransactWriteItem::builder().put(put.map_err(|e| invalid_request(&e))?).build();
            actions.push(Action { purpose: Purpose::Row, item });
        }
        // An item that was deferred and had a conflict again is in both lists and stays deferred.
        let deferred: HashSet<String> = self.defer.iter().map(|item| item.key.to_text()).collect();
        for key in self.resolve.iter().filter(|key| !deferred.contains(&key.to_text())) {
            let row = Row::Deferred(after.chunk, &key.to_text()).key();
            let delete = Delete::builder().table_name(LEDGER).set_key(Some(row)).build();
            let item = TransactWriteItem::builder()
                .delete(delete.map_err(|e| invalid_request(&e))?)
                .build();
            actions.push(Action { purpose: Purpose::Row, item });
        }
        self.check_size(&actions)?;
        Ok(actions)
    }

    /// Refuses a transaction that is too large with an error of the class `Data`: the engine then
    /// halves the batch, and an item that is too large alone becomes a dead letter.
    fn check_size(&self, actions: &[Action]) -> Result<()> {
        let refused =
            |what: String| -> Result<()> { Err(Error::new(ErrorClass::Data, what).into()) };
        if actions.len() > MAX_ACTIONS {
            return refused(format!(
                "a DynamoDB transaction may have {MAX_ACTIONS} actions; this one needs {}",
                actions.len()
            ));
        }
        let bytes: usize = match &self.work {
            Work::Write(items) => items.iter().map(write::size).sum(),
            Work::Refresh(..) => 0,
        };
        match bytes > MAX_BYTES && actions.len() > 2 {
            true => refused(format!(
                "a DynamoDB transaction may have 4 MB; this one has about {bytes} bytes"
            )),
            false => Ok(()),
        }
    }
}

/// The compare-and-set on the ledger row. It also adds the number of emitted rows.
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
    let update = update.build().map_err(|error| invalid_request(&error))?;
    Ok(TransactWriteItem::builder().update(update).build())
}

/// Raises the version of a record by one, whatever it is, without overwriting other attributes. Skips
/// a record that is deleted or that the job's conditions exclude.
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
    let update = update.build().map_err(|error| invalid_request(&error))?;
    Ok(TransactWriteItem::builder().update(update).build())
}
