//! `queue.ledger = "table"`: a row of the ledger's table for each job and record, in the transaction of the record's
//! write. It holds even if another writer replaces the record and drops its list of jobs.

use super::expression::{Attributes, Bound};
use super::rows::number;
use super::{DynamodbConnection, LEDGER, invalid_request, read};
use crate::ledger::item_key;
use crate::{Result, Scope};
use chrono::Utc;
use std::collections::HashSet;
use windlass_core::{JobId, Key};
use windlass_drivers::dynamodb::sdk::types::{AttributeValue, Put, TransactWriteItem};

/// The most keys of one request.
const MAX_KEYS: usize = 100;

/// Adds the row, on condition that there is none. DynamoDB deletes it after `queue.ledger_ttl`, if the table has a time
/// to live on `expires`.
pub(super) fn add(scope: &Scope, key: &Key, job: JobId) -> Result<TransactWriteItem> {
    let kept = scope.job_type.queue.ledger_ttl.as_secs().try_into().unwrap_or(i64::MAX);
    let mut row = row_key(scope, key, job);
    row.insert("expires".to_owned(), number(Utc::now().timestamp().saturating_add(kept)));
    let mut bound = Bound::default();
    let condition = format!("attribute_not_exists({})", bound.name("job"));
    let put = Put::builder()
        .table_name(LEDGER)
        .set_item(Some(row))
        .condition_expression(condition)
        .set_expression_attribute_names(bound.names());
    let put = put.build().map_err(|error| invalid_request(&error))?;
    Ok(TransactWriteItem::builder().put(put).build())
}

/// The texts of the keys whose records the job has changed. A row that has expired and is not deleted yet counts.
pub(super) async fn changed(
    data: &DynamodbConnection,
    scope: &Scope,
    keys: &[Key],
    job: JobId,
) -> Result<HashSet<String>> {
    let mut seen = HashSet::new();
    let mut keys: Vec<&Key> = keys.iter().collect();
    keys.retain(|key| seen.insert(key.to_text()));
    let mut changed = HashSet::new();
    for keys in keys.chunks(MAX_KEYS) {
        let asked = keys.iter().map(|key| row_key(scope, key, job)).collect();
        let rows = read::batch_get(data, LEDGER, asked).await?;
        let found: HashSet<&str> =
            rows.iter().filter_map(|row| row.get("job")?.as_s().ok()).map(String::as_str).collect();
        let is_found = |key: &&&Key| found.contains(partition(scope, key, job).as_str());
        changed.extend(keys.iter().filter(is_found).map(|key| key.to_text()));
    }
    Ok(changed)
}

pub(super) fn row_key(scope: &Scope, key: &Key, job: JobId) -> Attributes {
    Attributes::from([
        ("job".to_owned(), AttributeValue::S(partition(scope, key, job))),
        ("row".to_owned(), AttributeValue::S("processed".to_owned())),
    ])
}

/// The partition key names the record too: a partition takes only about 500 of these writes per second.
fn partition(scope: &Scope, key: &Key, job: JobId) -> String {
    format!("{job}#{}#{}", scope.table.name, item_key(&key.to_text()))
}
