//! An event source mapping: polls a queue, invokes a function with the messages, and deletes those that the
//! function does not report as failed.
//!
//! On AWS a failed message becomes visible again after its visibility timeout. Here it does at once, so that
//! tests need not wait. Everything else is done by moto, including the dead-letter queue.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName, QueueAttributeName,
};
use serde_json::{Value as Json, json};
use tokio::task::JoinSet;

use super::{DeployedTrigger, Function};

/// The time between two looks at an empty queue, or at the settings while no more invocations are allowed.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A mapping of a queue to a function.
#[derive(Clone)]
pub struct EventSourceMapping {
    client: Client,
    url: String,
    function: Function,
    /// Messages per invocation, 1 to 10.
    pub batch_size: i32,
    /// Concurrent invocations.
    pub concurrency: usize,
    /// Takes both settings from a deployed trigger instead, before each batch.
    pub deployed: Option<DeployedTrigger>,
    /// Delivers every n-th batch a second time after success. Zero means never.
    pub repeat_every: usize,
}

impl EventSourceMapping {
    /// A mapping of this queue, with ten messages per invocation and one invocation at a time.
    pub fn new(client: Client, url: &str, function: Function) -> EventSourceMapping {
        let url = url.to_owned();
        EventSourceMapping {
            client,
            url,
            function,
            batch_size: 10,
            concurrency: 1,
            deployed: None,
            repeat_every: 0,
        }
    }

    /// Polls until the queue has neither visible messages nor messages in flight.
    pub async fn drain(&self) {
        let mut running = JoinSet::new();
        let mut batches = 0;
        loop {
            while let Some(ended) = running.try_join_next() {
                ended.expect("an invocation panicked");
            }
            let (batch_size, concurrency) = self.settings();
            if running.len() < concurrency {
                let messages = self.receive(batch_size).await;
                if !messages.is_empty() {
                    batches += 1;
                    let mapping = self.clone();
                    running.spawn(async move { mapping.deliver(&messages, batches).await });
                    continue;
                }
            }
            if running.is_empty() && self.depth().await == 0 {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Messages per invocation, and concurrent invocations.
    fn settings(&self) -> (i32, usize) {
        match &self.deployed {
            Some(trigger) => trigger.settings(),
            None => (self.batch_size, self.concurrency),
        }
    }

    /// The number of messages in the queue, including those in flight.
    pub async fn depth(&self) -> usize {
        depth(&self.client, &self.url).await
    }

    async fn receive(&self, batch_size: i32) -> Vec<Message> {
        let received = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(batch_size)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .message_attribute_names("All")
            .send()
            .await;
        received.expect("failed to receive messages").messages.unwrap_or_default()
    }

    async fn deliver(&self, messages: &[Message], batches: usize) {
        let records: Vec<Json> = messages.iter().map(record).collect();
        let event = json!({ "Records": records });
        let mut answer = self.function.invoke(event.clone()).await;
        if self.repeat_every > 0 && batches.is_multiple_of(self.repeat_every) {
            answer = self.function.invoke(event).await;
        }
        let failures = match answer {
            Ok(answer) => answer["batchItemFailures"].as_array().cloned().unwrap_or_default(),
            // The invocation failed, so nothing is deleted.
            Err(_) => {
                messages.iter().map(|one| json!({"itemIdentifier": one.message_id()})).collect()
            }
        };
        let mut done = Vec::new();
        for (place, message) in messages.iter().enumerate() {
            let handle = message.receipt_handle().expect("a received message has a receipt handle");
            let id = json!(message.message_id());
            if failures.iter().any(|failure| failure["itemIdentifier"] == id) {
                let call = self.client.change_message_visibility().queue_url(&self.url);
                let call = call.receipt_handle(handle).visibility_timeout(0);
                // The message may be gone: moved to the dead-letter queue, or deleted after its second delivery.
                let _ = call.send().await;
            } else {
                let entry = DeleteMessageBatchRequestEntry::builder().id(place.to_string());
                done.push(entry.receipt_handle(handle).build().expect("the entry is complete"));
            }
        }
        if !done.is_empty() {
            let call = self.client.delete_message_batch().queue_url(&self.url);
            call.set_entries(Some(done)).send().await.expect("failed to delete messages");
        }
    }
}

/// The number of messages in a queue, including those in flight.
pub(super) async fn depth(client: &Client, url: &str) -> usize {
    let answer = client
        .get_queue_attributes()
        .queue_url(url)
        .attribute_names(QueueAttributeName::All)
        .send()
        .await
        .expect("failed to read the queue's attributes");
    let all = answer.attributes.unwrap_or_default();
    let count = |name| all.get(&name).and_then(|text| text.parse().ok()).unwrap_or(0_usize);
    count(QueueAttributeName::ApproximateNumberOfMessages)
        + count(QueueAttributeName::ApproximateNumberOfMessagesNotVisible)
}

/// A message in the form in which Lambda passes it to a function.
fn record(message: &Message) -> Json {
    let attributes = message.attributes().into_iter().flatten();
    let attributes = attributes.map(|(name, value)| (name.as_str().to_owned(), json!(value)));
    let texts = message.message_attributes().into_iter().flatten().map(|(name, value)| {
        let json = json!({"stringValue": value.string_value(), "dataType": value.data_type(),
                          "stringListValues": [], "binaryListValues": []});
        (name.clone(), json)
    });
    json!({
        "messageId": message.message_id(),
        "receiptHandle": message.receipt_handle(),
        "body": message.body(),
        "attributes": attributes.collect::<serde_json::Map<_, _>>(),
        "messageAttributes": texts.collect::<serde_json::Map<_, _>>(),
        "md5OfBody": message.md5_of_body(),
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:work",
        "awsRegion": "us-east-1",
    })
}
