//! Records that list the jobs that changed them, which gives an exactly-once effect without a ledger.
//!
//! The update of a record appends the job to a list in the record and raises its version, on condition
//! that the version is the one that was read and that the list does not contain the job. A repeated
//! delivery of the job finds it in the list and writes nothing. A writer that read an outdated record
//! writes nothing either, and starts again.

use super::cancel::{Action, Purpose, Verdict, judge};
use super::commit::with_table_names;
use super::expression::{Bound, Condition, key_of};
use super::value::to_attribute;
use super::write::{guarded, insert as new_row, version};
use super::{DynamodbConnection, ThrottleBackoff, job_ledger, read, throttled};
use crate::write::may_set;
use crate::{Connection, Item, Result, Scope};
use std::collections::HashSet;
use windlass_core::{Change, Columns, JobId, Key, QueueLedger, Record, Value};
use windlass_drivers::dynamodb::sdk::error::ProvideErrorMetadata;
use windlass_drivers::dynamodb::sdk::operation::transact_write_items::TransactWriteItemsError;
use windlass_drivers::dynamodb::sdk::types::{AttributeValue, TransactWriteItem, Update};
use windlass_drivers::{Error, ErrorClass};

/// The attribute with the last jobs of a record. Other writers must keep it.
pub const JOBS: &str = "windlass_jobs";

/// The records of one account and region.
pub struct Records(pub(super) DynamodbConnection);

/// A record, and the jobs that changed it.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackedItem {
    /// The record, without the list of jobs.
    pub item: Item,
    jobs: Vec<String>,
    /// Whether the ledger's table has a row for it and the job that read it.
    is_in_ledger: bool,
    is_match: bool,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The record was written.
    Done,
    /// The record changed since it was read. Nothing was written.
    Conflict,
}

impl TrackedItem {
    /// Whether the job, which read it, has changed it already.
    pub fn has_job(&self, job: JobId) -> bool {
        let job = job.to_string();
        self.is_in_ledger || self.jobs.contains(&job)
    }

    /// Whether it matches `source.match`. A record may have changed its type since it was planned.
    pub fn is_match(&self) -> bool {
        self.is_match
    }
}

impl Records {
    /// Opens the tables of a URL. Connects with the first request.
    pub async fn open(url: &str) -> Result<Records> {
        Ok(Records(DynamodbConnection::open(url).await?))
    }

    /// Describes, plans and counts them.
    pub fn connection(&self) -> &dyn Connection {
        &self.0
    }

    /// Reads the records of a job with these keys in any order, with consistent reads. Leaves out those that do not
    /// exist.
    pub async fn read(
        &self,
        scope: &Scope,
        keys: Vec<Key>,
        job: JobId,
    ) -> Result<Vec<TrackedItem>> {
        let conditions = Condition::on_write(scope)?;
        let changed = match scope.job_type.queue.ledger {
            QueueLedger::Item => HashSet::new(),
            QueueLedger::Table => job_ledger::changed(&self.0, scope, &keys, job).await?,
        };
        let (mut all, mut own) = (Columns::from([]), Columns::from([]));
        let mut records = Vec::with_capacity(keys.len());
        for attributes in read::existing(&self.0, scope, &keys).await? {
            let is_match = conditions.iter().all(|condition| condition.matches(&attributes));
            let (item, jobs) = tracked(read::to_item(scope, attributes, &mut all), &mut own);
            let is_in_ledger = changed.contains(&item.key.to_text());
            records.push(TrackedItem { item, jobs, is_in_ledger, is_match });
        }
        Ok(records)
    }

    /// Writes the change of a job to a record. With inserts, or with a row in the ledger's table, all of it is one
    /// transaction, which uses twice the capacity.
    pub async fn write(
        &self,
        scope: &Scope,
        read: &TrackedItem,
        change: &Change,
        job: JobId,
    ) -> Result<Written> {
        if change.insert.is_empty() && scope.job_type.queue.ledger == QueueLedger::Item {
            let update = update(scope, read, change, job)?;
            let update = self
                .0
                .client
                .update_item()
                .table_name(update.table_name)
                .set_key(Some(update.key))
                .update_expression(update.update_expression)
                .set_condition_expression(update.condition_expression)
                .set_expression_attribute_names(update.expression_attribute_names)
                .set_expression_attribute_values(update.expression_attribute_values);
            return match update.send().await {
                Ok(_) => Ok(Written::Done),
                Err(error) if error.code() == Some("ConditionalCheckFailedException") => {
                    Ok(Written::Conflict)
                }
                Err(error) => Err(Error::from(error).into()),
            };
        }
        let actions = actions(self, scope, read, change, job, 0).await?;
        let mut backoff = ThrottleBackoff::default();
        loop {
            let items = actions.iter().map(|action| action.item.clone()).collect();
            let written = self.0.client.transact_write_items().set_transact_items(Some(items));
            let Err(error) = written.send().await else { return Ok(Written::Done) };
            let reasons = error.as_service_error().and_then(|error| match error {
                TransactWriteItemsError::TransactionCanceledException(cancelled) => {
                    cancelled.cancellation_reasons.clone()
                }
                _ => None,
            });
            match reasons.map(|reasons| judge(&reasons, &actions)) {
                // Another transaction is writing the record, or capacity is short: nothing is known of the version.
                Some(Verdict::Retry { conflicts, .. }) if conflicts.is_empty() => {
                    backoff.wait().await.map_err(|()| throttled())?;
                }
                Some(Verdict::Retry { .. } | Verdict::LeaseLost) => return Ok(Written::Conflict),
                Some(Verdict::Refused(error)) => return Err(error.into()),
                None => return Err(with_table_names(&actions, Error::from(error)).into()),
            }
        }
    }
}

/// The actions of a transaction that writes the change of a job to a record: its update, its new rows, and its row in
/// the ledger's table.
pub(super) async fn actions(
    records: &Records,
    scope: &Scope,
    read: &TrackedItem,
    change: &Change,
    job: JobId,
    number: usize,
) -> Result<Vec<Action>> {
    let item = TransactWriteItem::builder().update(update(scope, read, change, job)?).build();
    let mut actions = vec![Action { purpose: Purpose::Item(number), item }];
    if scope.job_type.queue.ledger == QueueLedger::Table {
        // A row that exists is a conflict: the record is read again, and its row is found.
        let item = job_ledger::add(scope, &read.item.key, job)?;
        actions.push(Action { purpose: Purpose::Item(number), item });
    }
    for insert in &change.insert {
        for row in &insert.rows {
            let put = new_row(&records.0, &insert.table, row).await?.build();
            let put = put.map_err(|error| super::invalid_request(&error))?;
            let item = TransactWriteItem::builder().put(put).build();
            actions.push(Action { purpose: Purpose::Insert(insert.table.clone()), item });
        }
    }
    Ok(actions)
}

/// Separates the list of jobs from a record, so that no step sees it or writes it back.
fn tracked(item: Item, columns: &mut Columns) -> (Item, Vec<String>) {
    let jobs = match item.record.get(JOBS) {
        None => return (item, Vec::new()),
        Some(Value::Json(jobs)) => serde_json::from_str(jobs.text()).unwrap_or_default(),
        Some(_) => Vec::new(),
    };
    let fields = || item.record.iter().filter(|(name, _)| *name != JOBS);
    if !columns.iter().eq(fields().map(|(name, _)| name)) {
        *columns = fields().map(|(name, _)| name.to_owned()).collect();
    }
    let values = fields().map(|(_, value)| value.clone()).collect();
    let record = Record::new(columns.clone(), values);
    (Item { record, ..item }, jobs)
}

fn update(scope: &Scope, read: &TrackedItem, change: &Change, job: JobId) -> Result<Update> {
    let name = version(scope)?;
    if !matches!(read.item.guard, Value::Int(_) | Value::Null) {
        let message = format!("the record has no integer in `{name}`, the column of step.version");
        return Err(Error::new(ErrorClass::Data, message).into());
    }
    let mut bound = Bound::default();
    let (unchanged, raise) = guarded(&mut bound, scope, &read.item.guard)?;
    let mut set = vec![raise];
    let condition = match scope.job_type.queue.ledger {
        QueueLedger::Table => unchanged,
        QueueLedger::Item => {
            let jobs = bound.name(JOBS);
            let listed = read.jobs.len() + 1;
            let dropped = listed.saturating_sub(scope.job_type.queue.remember as usize);
            let known = read.jobs.iter().skip(dropped).cloned().chain([job.to_string()]);
            let known = bound.value(AttributeValue::L(known.map(AttributeValue::S).collect()));
            let job = bound.value(AttributeValue::S(job.to_string()));
            set.push(format!("{jobs} = {known}"));
            format!("{unchanged} AND NOT contains({jobs}, {job})")
        }
    };
    for (column, value) in &change.update {
        may_set(scope, column)?;
        if column == JOBS {
            let message =
                format!("update: sets `{JOBS}`, which is reserved for the jobs of the record");
            return Err(Error::new(ErrorClass::Data, message).into());
        }
        set.push(format!("{} = {}", bound.name(column), bound.value(to_attribute(value)?)));
    }
    let update = Update::builder()
        .table_name(&scope.table.name)
        .set_key(Some(key_of(scope, &read.item.key)?))
        .update_expression(format!("SET {}", set.join(", ")))
        .condition_expression(condition)
        .set_expression_attribute_names(bound.names())
        .set_expression_attribute_values(bound.values());
    Ok(update.build().map_err(|error| super::invalid_request(&error))?)
}
