//! Reads the records of one type in the DynamoDB table.

use serde_json::Value as Json;
use std::collections::HashMap;
use windlass_drivers::dynamodb::SdkConfig;
use windlass_drivers::dynamodb::sdk::Client;
use windlass_drivers::dynamodb::sdk::types::AttributeValue;

/// The records of one type.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) client: Client,
    pub(crate) name: String,
    record_type: &'static str,
}

/// A record by attribute.
pub(crate) type Record = HashMap<String, AttributeValue>;

impl Table {
    pub(crate) fn new(settings: &SdkConfig, name: &str, record_type: &'static str) -> Table {
        Table { client: Client::new(settings), name: name.to_owned(), record_type }
    }

    /// All records of the type.
    pub(crate) async fn records(&self) -> Vec<Record> {
        let pages = self.client.scan().table_name(&self.name).consistent_read(true);
        let records = pages.into_paginator().items().send();
        let mut records = records.collect::<Result<Vec<Record>, _>>().await.unwrap();
        records.retain(|record| record["type"].as_s().unwrap() == self.record_type);
        records
    }

    /// One candidate.
    pub(crate) async fn record(&self, id: &str) -> Record {
        let call = self.client.get_item().table_name(&self.name).set_key(Some(candidate_key(id)));
        call.consistent_read(true).send().await.unwrap().item.unwrap()
    }

    /// The number of matching records at each version, from version 1 on.
    pub(crate) async fn versions(&self, of: impl Fn(&Record) -> bool) -> Vec<usize> {
        let mut versions = Vec::new();
        for record in self.records().await.iter().filter(|record| of(record)) {
            let version = version(record) as usize;
            versions.resize(versions.len().max(version), 0);
            versions[version - 1] += 1;
        }
        versions
    }
}

/// The key of a candidate.
pub(crate) fn candidate_key(id: &str) -> Record {
    let part = || AttributeValue::S(format!("CANDIDATE#{id}"));
    HashMap::from([("pk".to_owned(), part()), ("sk".to_owned(), part())])
}

pub(crate) fn version(record: &Record) -> u64 {
    record["version"].as_n().unwrap().parse().unwrap()
}

/// The year of a candidate.
pub(crate) fn year(record: &Record) -> &str {
    record["reportingYear"].as_s().unwrap()
}

/// A field of a candidate's document as text.
pub(crate) fn field(record: &Record, name: &str) -> Option<String> {
    match record["document"].as_m().unwrap().get(name)? {
        AttributeValue::S(text) | AttributeValue::N(text) => Some(text.clone()),
        other => Some(Json::from(format!("{other:?}")).to_string()),
    }
}
