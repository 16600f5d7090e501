//! An event source mapping of a table's stream: reads the changes in order and invokes a function with them.
//!
//! moto records the changes of a table in one shard. Like Lambda, this continues after the last record that was worked:
//! a batch with a failure is delivered again from the first record that the function reports.

use std::net::SocketAddr;

use serde_json::{Value as Json, json};
use tokio::sync::Mutex;

use super::Function;
use crate::moto::call_at;

/// A mapping of a table's stream to a function.
pub struct StreamMapping {
    addr: SocketAddr,
    arn: String,
    function: Function,
    /// Where the next batch begins.
    iterator: Mutex<String>,
    /// Records per invocation.
    pub batch_size: usize,
}

/// How often a batch that fails is delivered.
const MAX_TRIES: usize = 3;

impl StreamMapping {
    /// A mapping of the stream of a table at moto, from its next change on.
    pub fn new(addr: SocketAddr, region: &str, table: &str, function: Function) -> StreamMapping {
        let request = json!({"TableName": table});
        let answer = call_at(addr, region, "DynamoDB_20120810.DescribeTable", &request);
        let arn = answer["Table"]["LatestStreamArn"].as_str().expect("the table has no stream");
        let call = |operation: &str, request: Json| {
            call_at(addr, region, &format!("DynamoDBStreams_20120810.{operation}"), &request)
        };
        let stream = call("DescribeStream", json!({"StreamArn": arn}));
        let shards = stream["StreamDescription"]["Shards"].as_array().expect("there are shards");
        let [shard] = shards.as_slice() else { panic!("moto has one shard: {stream}") };
        let request = json!({"StreamArn": arn, "ShardId": shard["ShardId"],
                             "ShardIteratorType": "LATEST"});
        let iterator = call("GetShardIterator", request);
        let iterator = iterator["ShardIterator"].as_str().expect("there is an iterator");
        StreamMapping {
            addr,
            arn: arn.to_owned(),
            function,
            iterator: Mutex::new(iterator.to_owned()),
            batch_size: 100,
        }
    }

    /// Delivers all changes so far.
    ///
    /// # Panics
    /// A batch failed three times.
    pub async fn drain(&self) {
        let mut iterator = self.iterator.lock().await;
        loop {
            let request = json!({"ShardIterator": *iterator, "Limit": self.batch_size});
            let target = "DynamoDBStreams_20120810.GetRecords";
            let page = call_at(self.addr, "us-east-1", target, &request);
            let records = page["Records"].as_array().expect("there are records").clone();
            if records.is_empty() {
                return;
            }
            self.deliver(records).await;
            *iterator = page["NextShardIterator"]
                .as_str()
                .expect("an open shard has a next iterator")
                .to_owned();
        }
    }

    /// Delivers records until the function reports no failure.
    async fn deliver(&self, mut records: Vec<Json>) {
        for record in &mut records {
            record["eventSourceARN"] = json!(self.arn);
        }
        for _ in 0..MAX_TRIES {
            let answer = self.function.invoke(json!({"Records": records})).await;
            let Ok(answer) = answer else { continue };
            let failed = answer["batchItemFailures"][0]["itemIdentifier"].as_str();
            let Some(failed) = failed else { return };
            let is_failed = |record: &Json| record["dynamodb"]["SequenceNumber"] == failed;
            let first = records.iter().position(is_failed).expect("a record of the batch failed");
            records.drain(..first);
        }
        panic!("{} changes were not worked in {MAX_TRIES} deliveries", records.len());
    }
}
