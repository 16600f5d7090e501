//! The Lambda function that follows the table's stream and puts candidates into OpenSearch.
//!
//! Each change of a candidate becomes one action of a `_bulk` request, with the record's version as its own: a change
//! that is delivered again, or late, never replaces a newer document. If an action fails, the answer names its record,
//! and Lambda delivers the changes again from there.

mod action;
mod search;

use lambda_runtime::{LambdaEvent, service_fn};
use search::SearchIndex;
use serde_json::{Value as Json, json};

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let index = SearchIndex::from_environment().await?;
    let index = &index;
    let handle = move |event: LambdaEvent<Json>| async move {
        let records = event.payload["Records"].as_array().cloned().unwrap_or_default();
        let changes: Vec<_> = records.iter().filter_map(action::of_record).collect();
        let failed = index.apply(&changes).await?;
        let failures: Vec<Json> =
            failed.iter().map(|change| json!({"itemIdentifier": change.sequence})).collect();
        Ok::<Json, lambda_runtime::Error>(json!({"batchItemFailures": failures}))
    };
    lambda_runtime::run(service_fn(handle)).await
}
