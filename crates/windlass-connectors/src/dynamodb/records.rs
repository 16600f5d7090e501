//! Records that remember the jobs that were done to them: once per job without a ledger.
//!
//! The write that changes a record adds the job to a list on the record and raises the version, if
//! the version is the one that was read and the job is not in the list. So whoever comes with the
//! same job again, by whatever way, finds it in the list and writes nothing; and whoever read a
//! record that somebody else then changed writes nothing either, and begins anew.

use super::DynamodbData;
use super::cancel::{Action, Of, Verdict, judge};
use super::expression::{Bound, key_of};
use super::value::to_attribute;
use super::write::{insert as new_row, version};
use crate::write::may_set;
use crate::{Item, Result, Scope, Source};
use windlass_core::{Change, Columns, JobId, Key, KeySet, Record, Value};
use windlass_drivers::dynamodb::sdk::error::ProvideErrorMetadata;
use windlass_drivers::dynamodb::sdk::operation::transact_write_items::TransactWriteItemsError;
use windlass_drivers::dynamodb::sdk::types::{AttributeValue, TransactWriteItem, Update};
use windlass_drivers::{Class, Error};

/// The attribute in which a record remembers its last jobs. Whoever else writes records keeps it.
pub const JOBS: &str = "windlass_jobs";

/// The records of one account and region.
pub struct Records(DynamodbData);

/// A record, and the jobs it remembers.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembering {
    /// The record, without what it remembers.
    pub item: Item,
    jobs: Vec<String>,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is written.
    Done,
    /// The record is not as it was read, so nothing is.
    Conflict,
}

impl Remembering {
    /// Whether the job was done to it.
    pub fn knows(&self, job: JobId) -> bool {
        let job = job.to_string();
        self.jobs.contains(&job)
    }
}

impl Records {
    /// The records that a URL leads to; they are first reached when something is asked of them.
    pub async fn open(url: &str) -> Result<Records> {
        Ok(Records(DynamodbData::open(url).await?))
    }

    /// How they are described, cut and counted.
    pub fn source(&self) -> &dyn Source {
        &self.0
    }

    /// The records with these keys as they are now. Of those that are gone there is nothing.
    pub async fn read(&self, scope: &Scope, keys: Vec<Key>) -> Result<Vec<Remembering>> {
        let limit = keys.len() as u32;
        let batch = self.0.read(scope, &KeySet::keys(keys), limit, usize::MAX).await?;
        let mut columns = Columns::from([]);
        Ok(batch.items.into_iter().map(|item| remembering(item, &mut columns)).collect())
    }

    /// Writes what a job changes in a record. Where it inserts rows too, all of it is one
    /// transaction, which DynamoDB counts twice.
    pub async fn write(
        &self,
        scope: &Scope,
        read: &Remembering,
        change: &Change,
        job: JobId,
    ) -> Result<Written> {
        let update = update(scope, read, change, job)?;
        if change.insert.is_empty() {
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
        let item = TransactWriteItem::builder().update(update).build();
        let mut actions = vec![Action { of: Of::Item(0), item }];
        for insert in &change.insert {
            for row in &insert.rows {
                let put = new_row(&self.0, &insert.table, row).await?.build();
                let put = put.map_err(|error| super::unbuilt(&error))?;
                let item = TransactWriteItem::builder().put(put).build();
                actions.push(Action { of: Of::Insert(insert.table.clone()), item });
            }
        }
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
            Some(Verdict::Again { .. } | Verdict::Lost) => Ok(Written::Conflict),
            Some(Verdict::Refused(error)) => Err(error.into()),
            None => Err(Error::from(error).into()),
        }
    }
}

/// Takes what a record remembers out of it: no step sees it, or could write it back.
fn remembering(item: Item, columns: &mut Columns) -> Remembering {
    let jobs = match item.record.get(JOBS) {
        None => return Remembering { item, jobs: Vec::new() },
        Some(Value::Json(serde_json::Value::Array(jobs))) => {
            jobs.iter().filter_map(|job| job.as_str().map(str::to_owned)).collect()
        }
        Some(_) => Vec::new(),
    };
    let fields = || item.record.iter().filter(|(name, _)| *name != JOBS);
    if !columns.iter().eq(fields().map(|(name, _)| name)) {
        *columns = fields().map(|(name, _)| name.to_owned()).collect();
    }
    let values = fields().map(|(_, value)| value.clone()).collect();
    let record = Record::new(columns.clone(), values);
    Remembering { item: Item { record, ..item }, jobs }
}

fn update(scope: &Scope, read: &Remembering, change: &Change, job: JobId) -> Result<Update> {
    let name = version(scope)?;
    if !matches!(read.item.version, Value::Int(_)) {
        let message = format!(
            "the record has no integer in `{name}`, which step.version says is raised by all writers"
        );
        return Err(Error::new(Class::Data, message).into());
    }
    let mut bound = Bound::default();
    let version = bound.name(name);
    let seen = bound.value(to_attribute(&read.item.version)?);
    let one = bound.value(AttributeValue::N("1".to_owned()));
    let jobs = bound.name(JOBS);
    let remembered = read.jobs.len() + 1;
    let forgotten = remembered.saturating_sub(scope.job_type.queue.remember as usize);
    let known = read.jobs.iter().skip(forgotten).cloned().chain([job.to_string()]);
    let known = bound.value(AttributeValue::L(known.map(AttributeValue::S).collect()));
    let job = bound.value(AttributeValue::S(job.to_string()));
    let mut set = vec![format!("{version} = {version} + {one}"), format!("{jobs} = {known}")];
    for (column, value) in &change.update {
        may_set(scope, column)?;
        if column == JOBS {
            let message = format!("update: sets `{JOBS}`, by which the record remembers its jobs");
            return Err(Error::new(Class::Data, message).into());
        }
        set.push(format!("{} = {}", bound.name(column), bound.value(to_attribute(value)?)));
    }
    let update = Update::builder()
        .table_name(&scope.table.name)
        .set_key(Some(key_of(scope, &read.item.key)?))
        .update_expression(format!("SET {}", set.join(", ")))
        .condition_expression(format!("{version} = {seen} AND NOT contains({jobs}, {job})"))
        .set_expression_attribute_names(bound.names())
        .set_expression_attribute_values(bound.values());
    Ok(update.build().map_err(|error| super::unbuilt(&error))?)
}
