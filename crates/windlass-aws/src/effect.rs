//! What a job does to a record, once: a read, and one conditional write.
//!
//! A record remembers the last jobs that were done to it, in a list of its own. The write that
//! changes the record adds the job to the list and increments the version, under the condition that
//! the version is the one that was read and that the job is not in the list. So a message that
//! is delivered twice, redriven under a new id, or sent again by a second *start* finds its job in
//! the list and writes nothing; and who reads a record that somebody else then changes writes
//! nothing either, and begins anew.

use std::collections::HashMap;
use windlass_core::{Change, JobId, JobType, Key, Record, Value};
use windlass_data::dynamodb::value::{from_attribute, to_attribute};
use windlass_db::Error;
use windlass_db::dynamodb::sdk::Client;
use windlass_db::dynamodb::sdk::error::ProvideErrorMetadata;
use windlass_db::dynamodb::sdk::types::{
    AttributeValue, KeysAndAttributes, Put, TransactWriteItem, Update,
};

/// The attribute in which a record remembers its last jobs. Whoever writes records keeps it.
pub const JOBS: &str = "windlass_jobs";

/// Records that one call reads.
pub(crate) const AT_ONCE: usize = 100;

/// The records of one job type, worked for one job.
pub(crate) struct Effect<'a> {
    pub(crate) client: &'a Client,
    pub(crate) table: &'a str,
    pub(crate) job_type: &'a JobType,
    pub(crate) job: JobId,
}

/// A record as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    attributes: HashMap<String, AttributeValue>,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is written.
    Done,
    /// The record is not as it was read, so nothing is.
    Conflict,
}

type Attributes = HashMap<String, AttributeValue>;

impl Effect<'_> {
    /// The records with these keys, as they are at this moment, by the text of the key.
    pub(crate) async fn read(&self, keys: &[Key]) -> Result<HashMap<String, Found>, Error> {
        let mut found = HashMap::with_capacity(keys.len());
        let mut left = Vec::with_capacity(keys.len());
        for key in keys {
            left.push(self.key(key)?);
        }
        let mut tries = 0;
        while !left.is_empty() {
            // The service may leave some for want of room or of throughput.
            let wanted = KeysAndAttributes::builder()
                .set_keys(Some(std::mem::take(&mut left)))
                .consistent_read(true)
                .build()
                .map_err(unbuilt)?;
            let call = self.client.batch_get_item().request_items(self.table, wanted);
            let answer = call.send().await?;
            for attributes in answer.responses.into_iter().flatten().flat_map(|(_, all)| all) {
                found.insert(self.key_of(&attributes).to_text(), Found { attributes });
            }
            let rest = answer.unprocessed_keys.and_then(|mut rest| rest.remove(self.table));
            left = rest.map(|rest| rest.keys).unwrap_or_default();
            if !left.is_empty() {
                tries += 1;
                tokio::time::sleep(crate::events::rest(tries)).await;
            }
        }
        Ok(found)
    }

    /// Writes a record's change, its next version and the job in one. A problem of the change
    /// itself, or of the service, is the error.
    pub(crate) async fn write(
        &self,
        key: &Key,
        found: &Found,
        change: &Change,
    ) -> Result<Written, String> {
        let update = self.update(key, found, change)?;
        if change.insert.is_empty() {
            let call = self
                .client
                .update_item()
                .table_name(self.table)
                .set_key(Some(update.key))
                .update_expression(update.update_expression)
                .set_condition_expression(update.condition_expression)
                .set_expression_attribute_names(update.expression_attribute_names)
                .set_expression_attribute_values(update.expression_attribute_values);
            return match call.send().await {
                Ok(_) => Ok(Written::Done),
                Err(error) if error.code() == Some("ConditionalCheckFailedException") => {
                    Ok(Written::Conflict)
                }
                Err(error) => Err(Error::from(error).to_string()),
            };
        }
        let mut actions = vec![TransactWriteItem::builder().update(update).build()];
        for insert in &change.insert {
            for row in &insert.rows {
                let item: Result<Attributes, _> = row
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), to_attribute(value)?)))
                    .collect();
                let item = item.map_err(|error: windlass_data::DataError| error.to_string())?;
                let put = Put::builder().table_name(&insert.table).set_item(Some(item)).build();
                let put = put.map_err(|error| error.to_string())?;
                actions.push(TransactWriteItem::builder().put(put).build());
            }
        }
        let call = self.client.transact_write_items().set_transact_items(Some(actions));
        match call.send().await {
            Ok(_) => Ok(Written::Done),
            Err(error) => {
                let reasons = error.as_service_error().and_then(|error| match error {
                    e if e.is_transaction_canceled_exception() => cancelled(e),
                    _ => None,
                });
                match reasons.as_deref() {
                    Some("ConditionalCheckFailed" | "TransactionConflict") => Ok(Written::Conflict),
                    _ => Err(Error::from(error).to_string()),
                }
            }
        }
    }

    fn update(&self, key: &Key, found: &Found, change: &Change) -> Result<Update, String> {
        let version = self.job_type.step.version.as_deref().unwrap_or_default();
        let seen = found.version(version)?;
        let mut names = HashMap::from([
            ("#v".to_owned(), version.to_owned()),
            ("#j".to_owned(), JOBS.to_owned()),
        ]);
        let next = AttributeValue::N((seen.unwrap_or(0) + 1).to_string());
        let remember = self.job_type.queue.remember as usize;
        let mut values = HashMap::from([
            (":next".to_owned(), next),
            (":job".to_owned(), AttributeValue::S(self.job.to_string())),
            (":jobs".to_owned(), AttributeValue::L(found.with(self.job, remember))),
        ]);
        let mut set = "SET #v = :next, #j = :jobs".to_owned();
        let fixed = self.job_type.fixed_columns();
        for (place, (column, value)) in change.update.iter().enumerate() {
            if fixed.contains(&column.as_str()) || column == version || column == JOBS {
                return Err(format!(
                    "the step sets `{column}`, which is a key, a filter, a claim, the version, or \
                     what the record remembers its jobs by; set another attribute"
                ));
            }
            let value = to_attribute(value).map_err(|error| error.to_string())?;
            names.insert(format!("#c{place}"), column.clone());
            values.insert(format!(":c{place}"), value);
            set.push_str(&format!(", #c{place} = :c{place}"));
        }
        let as_read = match seen {
            Some(seen) => {
                values.insert(":seen".to_owned(), AttributeValue::N(seen.to_string()));
                "#v = :seen"
            }
            None => {
                let partition = self.job_type.source.key.first().cloned().unwrap_or_default();
                names.insert("#k".to_owned(), partition);
                "attribute_exists(#k) AND attribute_not_exists(#v)"
            }
        };
        let condition = format!("{as_read} AND NOT contains(#j, :job)");
        Update::builder()
            .table_name(self.table)
            .set_key(Some(self.key(key).map_err(|error| error.to_string())?))
            .update_expression(set)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .build()
            .map_err(|error| error.to_string())
    }

    fn key(&self, key: &Key) -> Result<Attributes, Error> {
        let columns = &self.job_type.source.key;
        let attribute = |(column, value): (&String, &Value)| {
            let value = to_attribute(value)
                .map_err(|error| Error::new(windlass_db::Class::Data, error.to_string()))?;
            Ok((column.clone(), value))
        };
        columns.iter().zip(&key.0).map(attribute).collect()
    }

    fn key_of(&self, attributes: &Attributes) -> Key {
        let value = |column: &String| attributes.get(column).cloned().map(from_attribute);
        let columns = self.job_type.source.key.iter();
        Key(columns.map(|column| value(column).unwrap_or(Value::Null)).collect())
    }
}

impl Found {
    /// Whether the job has been done to it.
    pub(crate) fn remembers(&self, job: JobId) -> bool {
        let job = job.to_string();
        self.jobs().iter().any(|known| known.as_s().is_ok_and(|known| *known == job))
    }

    /// The record as a step sees it, in the order of the attributes' names.
    pub(crate) fn record(&self) -> Record {
        let mut fields: Vec<_> =
            self.attributes.iter().filter(|(name, _)| name.as_str() != JOBS).collect();
        fields.sort_by_key(|(name, _)| name.as_str());
        let columns: Vec<String> = fields.iter().map(|(name, _)| (*name).clone()).collect();
        let values = fields.into_iter().map(|(_, value)| from_attribute(value.clone())).collect();
        Record::new(columns.into(), values)
    }

    fn jobs(&self) -> &[AttributeValue] {
        let jobs = self.attributes.get(JOBS).and_then(|jobs| jobs.as_l().ok());
        jobs.map_or(&[], Vec::as_slice)
    }

    /// The last jobs, and this one.
    fn with(&self, job: JobId, remember: usize) -> Vec<AttributeValue> {
        let known = self.jobs();
        let forgotten = (known.len() + 1).saturating_sub(remember);
        let mut jobs = known.get(forgotten..).unwrap_or_default().to_vec();
        jobs.push(AttributeValue::S(job.to_string()));
        jobs
    }

    fn version(&self, name: &str) -> Result<Option<i64>, String> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(AttributeValue::N(text)) if text.parse::<i64>().is_ok() => Ok(text.parse().ok()),
            Some(_) => {
                Err(format!("the attribute `{name}`, which step.version names, is no integer"))
            }
        }
    }
}

/// The first reason why a transaction was given up.
fn cancelled(
    error: &windlass_db::dynamodb::sdk::operation::transact_write_items::TransactWriteItemsError,
) -> Option<String> {
    use windlass_db::dynamodb::sdk::operation::transact_write_items::TransactWriteItemsError as E;
    let E::TransactionCanceledException(cancelled) = error else { return None };
    let reasons = cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code());
    // Only the record's own condition is a conflict; what is wrong with a row stays wrong.
    let mut reasons = reasons.map(str::to_owned);
    let first = reasons.next();
    match first.as_deref() {
        Some("None") => reasons.find(|reason| reason == "TransactionConflict"),
        _ => first,
    }
}

fn unbuilt(error: windlass_db::dynamodb::sdk::error::BuildError) -> Error {
    Error::new(windlass_db::Class::Definition, error.to_string())
}
