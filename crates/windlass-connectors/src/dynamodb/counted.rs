//! Commits the outcomes of items together with the counters of their job, so that each item is counted once.
//!
//! One transaction has the effects of some items and one update of the counters. What makes an item count once is the
//! condition of its effect: a record that was written contains the job, and an item that was skipped or failed for
//! good has a row `outcome#KEY` instead. A dead item that is redriven keeps its row, and the same transaction moves it
//! from one counter to another.
//!
//! Two deliveries of the same item may end differently at the same time. A transaction that writes a row checks that
//! the record does not contain the job. In the other direction the counters' item has the number of rows that were
//! ever added: a commit that was prepared before another row was added reads the rows again.

use super::cancel::{Action, Purpose, Verdict, judge};
use super::commit::MAX_ACTIONS;
use super::expression::{Bound, key_of};
use super::progress::{JobProgress, expires, of_ledger};
use super::rows::{Row, number, text};
use super::{
    LEDGER, Records, ThrottleBackoff, invalid_request, job_ledger, read, records, throttled,
};
use super::{TrackedItem, Written};
use crate::{Result, Scope};
use std::collections::HashMap;
use windlass_core::{Change, JobId, Key, QueueLedger};
use windlass_drivers::dynamodb::sdk::operation::transact_write_items::TransactWriteItemsError;
use windlass_drivers::dynamodb::sdk::types::{
    AttributeValue, ConditionCheck, Put, TransactWriteItem, Update,
};
use windlass_drivers::{Error, ErrorClass};

/// How an item ended, as its row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemOutcome {
    /// It was written after it had been dead.
    Processed,
    /// It was skipped.
    Skipped,
    /// It failed for good.
    Dead,
}

impl ItemOutcome {
    fn as_str(self) -> &'static str {
        match self {
            ItemOutcome::Processed => "processed",
            ItemOutcome::Skipped => "skipped",
            ItemOutcome::Dead => "dead",
        }
    }
}

/// The outcomes of a job's items that have rows, and the state of the counters before they were read.
#[derive(Clone, Debug)]
pub struct KnownOutcomes {
    rows_added: i64,
    by_key: HashMap<String, ItemOutcome>,
}

impl KnownOutcomes {
    /// The outcome of the item with this key, if it has a row.
    pub fn of(&self, key: &Key) -> Option<ItemOutcome> {
        self.by_key.get(&key.to_text()).copied()
    }
}

/// The end of an item, to be committed.
#[derive(Clone, Copy, Debug)]
pub enum Ending<'a> {
    /// Writes the change to the record.
    Processed(&'a TrackedItem, &'a Change),
    /// Writes nothing to the record.
    Skipped(&'a Key),
    /// Failed for good.
    Dead(&'a Key),
}

impl Ending<'_> {
    fn key(&self) -> &Key {
        match self {
            Ending::Processed(read, _) => &read.item.key,
            Ending::Skipped(key) | Ending::Dead(key) => key,
        }
    }

    fn outcome(&self) -> ItemOutcome {
        match self {
            Ending::Processed(..) => ItemOutcome::Processed,
            Ending::Skipped(_) => ItemOutcome::Skipped,
            Ending::Dead(_) => ItemOutcome::Dead,
        }
    }
}

impl Records {
    /// The outcomes of these items that have rows. `None` if the job is not counted.
    pub async fn known_outcomes(&self, job: JobId, keys: &[Key]) -> Result<Option<KnownOutcomes>> {
        // The counters first: a row that is added after this read makes the commit fail.
        let Some(JobProgress { rows_added, .. }) = self.progress(job).await? else {
            return Ok(None);
        };
        let texts: Vec<String> = keys.iter().map(Key::to_text).collect();
        let sorts: HashMap<String, &String> =
            texts.iter().map(|text| (Row::Outcome(job, text).sort(), text)).collect();
        let rows: Vec<_> = texts.iter().map(|text| Row::Outcome(job, text).key()).collect();
        let mut by_key = HashMap::new();
        for rows in rows.chunks(MAX_ACTIONS) {
            for row in read::batch_get(&self.0, LEDGER, rows.to_vec()).await? {
                let outcome = match text(&row, "outcome")? {
                    "processed" => ItemOutcome::Processed,
                    "skipped" => ItemOutcome::Skipped,
                    _ => ItemOutcome::Dead,
                };
                if let Some(key) = sorts.get(text(&row, "row")?) {
                    by_key.insert((*key).clone(), outcome);
                }
            }
        }
        Ok(Some(KnownOutcomes { rows_added, by_key }))
    }

    /// Commits endings of a job's items and counts them. Returns the result of each. One that conflicts was changed,
    /// or ended, by another writer since it was read.
    pub async fn commit_counted(
        &self,
        scope: &Scope,
        job: JobId,
        known: KnownOutcomes,
        endings: &[Ending<'_>],
    ) -> Vec<Result<Written>> {
        let mut commit = Commit { records: self, scope, job, known, endings };
        let mut results: Vec<Result<Written>> = endings.iter().map(|_| Ok(Written::Done)).collect();
        let mut open = Vec::new();
        for (n, ending) in endings.iter().enumerate() {
            // An item that is dead already was counted.
            let again = commit.known.of(ending.key()) == Some(ending.outcome());
            if !again {
                match commit.actions(n).await {
                    Ok(actions) => open.push((n, actions)),
                    Err(error) => results[n] = Err(error),
                }
            }
        }
        let mut batches = split(open);
        let mut backoff = ThrottleBackoff::default();
        while let Some(mut batch) = batches.pop() {
            match commit.send(&batch).await {
                Ok(Sent::Done) => backoff = ThrottleBackoff::default(),
                Ok(Sent::Conflicts(conflicts)) => {
                    conflicts.iter().for_each(|n| results[*n] = Ok(Written::Conflict));
                    batch.retain(|(n, _)| !conflicts.contains(n));
                    batches.extend((!batch.is_empty()).then_some(batch));
                }
                Ok(Sent::Throttled) => match backoff.wait().await {
                    Ok(()) => batches.push(batch),
                    Err(()) => {
                        batch.iter().for_each(|(n, _)| results[*n] = Err(throttled().into()));
                    }
                },
                Err(error) if batch.len() > 1 && is_about_items(&error) => {
                    let second = batch.split_off(batch.len() / 2);
                    batches.extend([second, batch]);
                }
                Err(error) => {
                    batch.iter().for_each(|(n, _)| results[*n] = Err(error.clone()));
                }
            }
        }
        results
    }
}

/// An ending by its index, with its actions.
type Prepared = (usize, Vec<Action>);

/// The result of a transaction.
enum Sent {
    Done,
    /// Nothing was written, because of these endings.
    Conflicts(Vec<usize>),
    /// Nothing was written. The same may succeed later.
    Throttled,
}

struct Commit<'a> {
    records: &'a Records,
    scope: &'a Scope,
    job: JobId,
    known: KnownOutcomes,
    endings: &'a [Ending<'a>],
}

impl Commit<'_> {
    /// The actions of one ending.
    async fn actions(&self, n: usize) -> Result<Vec<Action>> {
        let (ending, known) = (&self.endings[n], self.known.of(self.endings[n].key()));
        let purpose = Purpose::Item(n);
        let mut actions = match ending {
            Ending::Processed(read, change) => {
                let records = self.records;
                records::actions(records, self.scope, read, change, self.job, n).await?
            }
            Ending::Skipped(key) | Ending::Dead(key) => {
                vec![Action { purpose: purpose.clone(), item: self.is_unwritten(key)? }]
            }
        };
        if known.is_some() || !matches!(ending, Ending::Processed(..)) {
            let item = self.record_outcome(ending.key(), ending.outcome(), known)?;
            actions.push(Action { purpose, item });
        }
        Ok(actions)
    }

    /// The condition that no delivery of this job has written the record.
    fn is_unwritten(&self, key: &Key) -> Result<TransactWriteItem> {
        let mut bound = Bound::default();
        let (table, key, condition) = match self.scope.job_type.queue.ledger {
            QueueLedger::Item => {
                let jobs = bound.name(super::JOBS);
                let job = bound.value(AttributeValue::S(self.job.to_string()));
                let condition = format!("NOT contains({jobs}, {job})");
                (self.scope.table.name.as_str(), key_of(self.scope, key)?, condition)
            }
            QueueLedger::Table => {
                let condition = format!("attribute_not_exists({})", bound.name("job"));
                (LEDGER, job_ledger::row_key(self.scope, key, self.job), condition)
            }
        };
        let check = ConditionCheck::builder()
            .table_name(table)
            .set_key(Some(key))
            .condition_expression(condition)
            .set_expression_attribute_names(bound.names())
            .set_expression_attribute_values(bound.values());
        let check = check.build().map_err(|error| invalid_request(&error))?;
        Ok(TransactWriteItem::builder().condition_check(check).build())
    }

    /// Writes the row of an outcome, on condition that the row is as it was read.
    fn record_outcome(
        &self,
        key: &Key,
        outcome: ItemOutcome,
        known: Option<ItemOutcome>,
    ) -> Result<TransactWriteItem> {
        let mut bound = Bound::default();
        let name = bound.name("outcome");
        let condition = match known {
            None => format!("attribute_not_exists({name})"),
            Some(known) => {
                let known = bound.value(AttributeValue::S(known.as_str().to_owned()));
                format!("{name} = {known}")
            }
        };
        let mut row = Row::Outcome(self.job, &key.to_text()).key();
        let outcome = AttributeValue::S(outcome.as_str().to_owned());
        row.extend([("outcome".to_owned(), outcome), expires()]);
        let put = Put::builder()
            .table_name(LEDGER)
            .set_item(Some(row))
            .condition_expression(condition)
            .set_expression_attribute_names(bound.names())
            .set_expression_attribute_values(bound.values());
        let put = put.build().map_err(|error| invalid_request(&error))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// Counts these endings, on condition that no row was added since the outcomes were read.
    fn count(&self, batch: &[Prepared]) -> Result<TransactWriteItem> {
        let (mut counts, mut rows_added) = ([0; 3], 0);
        for (n, _) in batch {
            let ending = &self.endings[*n];
            counts[ending.outcome() as usize] += 1;
            if let Some(known) = self.known.of(ending.key()) {
                counts[known as usize] -= 1;
            }
            rows_added += i64::from(self.adds_row(*n));
        }
        let mut bound = Bound::default();
        let seen = bound.name("rows_added");
        let condition = format!("{seen} = {}", bound.value(number(self.known.rows_added)));
        let [processed, skipped, dead] = counts;
        let counts = [
            ("processed", processed),
            ("skipped", skipped),
            ("dead", dead),
            ("rows_added", rows_added),
        ];
        let mut add = Vec::with_capacity(counts.len());
        for (name, count) in counts {
            add.push(format!("{} {}", bound.name(name), bound.value(number(count))));
        }
        let update = Update::builder()
            .table_name(LEDGER)
            .set_key(Some(Row::Job(self.job).key()))
            .update_expression(format!("ADD {}", add.join(", ")))
            .condition_expression(condition)
            .set_expression_attribute_names(bound.names())
            .set_expression_attribute_values(bound.values());
        let update = update.build().map_err(|error| invalid_request(&error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    /// Sends one transaction.
    async fn send(&mut self, batch: &[Prepared]) -> Result<Sent> {
        let counters = Action { purpose: Purpose::Ledger, item: self.count(batch)? };
        let actions = || [&counters].into_iter().chain(batch.iter().flat_map(|(_, all)| all));
        let items = actions().map(|action| action.item.clone()).collect();
        let client = &self.records.0.client;
        let sent = client.transact_write_items().set_transact_items(Some(items)).send().await;
        let Err(error) = sent else {
            self.known.rows_added += batch.iter().filter(|(n, _)| self.adds_row(*n)).count() as i64;
            return Ok(Sent::Done);
        };
        let cancelled = error.as_service_error().and_then(|error| match error {
            TransactWriteItemsError::TransactionCanceledException(cancelled) => Some(cancelled),
            _ => None,
        });
        let Some(cancelled) = cancelled else {
            return match Error::from(error) {
                error if error.class == ErrorClass::Busy => Ok(Sent::Throttled),
                error if error.class == ErrorClass::Definition => Err(of_ledger(error)),
                error => Err(error.into()),
            };
        };
        match judge(cancelled.cancellation_reasons(), actions()) {
            Verdict::LeaseLost => self.know_again(batch).await,
            Verdict::Refused(error) => Err(error.into()),
            Verdict::Retry { conflicts, .. } if !conflicts.is_empty() => {
                Ok(Sent::Conflicts(conflicts))
            }
            Verdict::Retry { .. } => Ok(Sent::Throttled),
        }
    }

    fn adds_row(&self, n: usize) -> bool {
        let ending = &self.endings[n];
        self.known.of(ending.key()).is_none() && !matches!(ending, Ending::Processed(..))
    }

    /// Reads the outcomes again. Endings whose items have other outcomes by now conflict.
    async fn know_again(&mut self, batch: &[Prepared]) -> Result<Sent> {
        let key = |n: &usize| self.endings[*n].key();
        let keys: Vec<Key> = batch.iter().map(|(n, _)| key(n).clone()).collect();
        let Some(now) = self.records.known_outcomes(self.job, &keys).await? else {
            return Ok(Sent::Conflicts(batch.iter().map(|(n, _)| *n).collect()));
        };
        let changed = |n: &usize| now.of(key(n)) != self.known.of(key(n));
        let conflicts = batch.iter().map(|(n, _)| *n).filter(|n| changed(n)).collect();
        self.known.rows_added = now.rows_added;
        Ok(Sent::Conflicts(conflicts))
    }
}

/// Splits endings into transactions, each with room for the counters.
fn split(open: Vec<Prepared>) -> Vec<Vec<Prepared>> {
    let mut batches: Vec<Vec<Prepared>> = Vec::new();
    let mut actions = MAX_ACTIONS;
    for prepared in open {
        actions += prepared.1.len();
        match batches.last_mut() {
            Some(batch) if actions < MAX_ACTIONS => batch.push(prepared),
            _ => {
                actions = prepared.1.len();
                batches.push(vec![prepared]);
            }
        }
    }
    batches
}

/// Whether an error may be that of one item of a transaction: its value was refused, or all are too large together.
fn is_about_items(error: &crate::ConnectorError) -> bool {
    matches!(error.class(), Some(ErrorClass::Data | ErrorClass::Definition))
}
