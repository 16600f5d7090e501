//! The migration of one candidate.

use crate::on_read::current;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use windlass_export::Destination;

/// A candidate of a batch, with the fields that are used here.
#[derive(Deserialize)]
pub(crate) struct Item {
    /// A text on PostgreSQL, and a list on DynamoDB, whose key has two parts.
    key: Json,
    record: Candidate,
}

#[derive(Deserialize)]
struct Candidate {
    identifier: String,
    document: Map<String, Json>,
}

/// The fields that are copied from the original.
const FIELDS: [&str; 3] = ["title", "channel", "language"];

/// The result of a refresh: the document in its current form, also if it has that form already.
pub(crate) fn refresh(item: &Item) -> Json {
    json!({"key": item.key, "update": {"document": current(item.record.document.clone())}})
}

/// The result for a candidate: its document with the missing fields, or an error.
pub(crate) async fn migrate(originals: &Destination, item: &Item) -> Json {
    let (key, document) = (&item.key, &item.record.document);
    let missing: Vec<&str> =
        FIELDS.into_iter().filter(|field| !document.contains_key(*field)).collect();
    if missing.is_empty() {
        return json!({"key": key, "skip": true});
    }
    let failed = |message: String, retryable: bool| json!({"key": key, "error": {"message": message, "retryable": retryable}});
    let name = format!("{}.json", item.record.identifier);
    let original: Map<String, Json> = match originals.get(&name).await {
        Ok(None) => return failed("it has no original".to_owned(), false),
        // The storage may be unavailable for a while.
        Err(error) => return failed(format!("its original cannot be read: {error}"), true),
        Ok(Some(bytes)) => match serde_json::from_slice(&bytes) {
            Ok(original) => original,
            // The file may be incomplete while it is written.
            Err(error) => return failed(format!("its original cannot be read: {error}"), true),
        },
    };
    let mut document = current(document.clone());
    for field in missing {
        let Some(value) = original.get(field) else {
            return failed(format!("its original has no {field}"), false);
        };
        document.insert(field.to_owned(), value.clone());
    }
    json!({"key": key, "update": {"document": document}})
}
