//! An SQS queue: sending, receiving, deleting and hiding messages in batches of ten.

use crate::events::backoff;
use crate::message::Delivery;
use crate::{DeadLetterQueue, Error, Result};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry,
    DeleteMessageBatchRequestEntry, Message as SdkMessage, MessageAttributeValue,
    MessageSystemAttributeName, QueueAttributeName, SendMessageBatchRequestEntry,
};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_core::Problem;
use windlass_core::problem::Code;
use windlass_drivers::dynamodb::SdkConfig;
use windlass_drivers::{Error as DbError, ErrorClass};

/// A queue.
#[derive(Clone)]
pub struct Queue {
    client: Client,
    url: String,
}

/// A received message. Unless it is deleted, it is delivered again after its visibility timeout.
#[derive(Clone, Debug)]
pub struct Received {
    /// The message.
    pub delivery: Delivery,
    /// The receipt handle.
    handle: String,
}

/// SQS's limit of messages per request.
const AT_ONCE: usize = 10;
/// The limit of bytes per request, including attributes. SQS accepts more today, but not in all regions.
const MAX_BYTES: usize = 256 << 10;
/// Concurrent requests of one send.
const CALLS: usize = 8;
/// How often a request is repeated for the entries that were refused.
const MAX_TRIES: u32 = 8;
/// The longest time that a request waits for messages.
const LONG_POLL: Duration = Duration::from_secs(20);

impl Queue {
    /// The queue with this name (`sqs://NAME`) or URL (`https://…`).
    pub async fn open(settings: &SdkConfig, name: &str) -> Result<Queue> {
        let client = Client::new(settings);
        if name.starts_with("https://") || name.starts_with("http://") {
            return Ok(Queue { client, url: name.to_owned() });
        }
        let Some(name) = name.strip_prefix("sqs://").filter(|name| !name.is_empty()) else {
            let detail = format!("must be `sqs://NAME` or the URL of a queue, got `{name}`");
            return Err(Problem::field(Code::Request, "queue", detail).into());
        };
        Ok(Queue { url: url_of(&client, name).await?, client })
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends messages with these attributes, ten per request and several requests at once. Refused messages are
    /// sent again.
    pub async fn send(
        &self,
        bodies: Vec<String>,
        attributes: &BTreeMap<String, String>,
    ) -> Result<()> {
        let extra = attributes.iter().map(|(name, value)| name.len() + value.len() + 16).sum();
        let with = |body| (body, attributes.clone());
        let tens = tens(bodies.into_iter().map(with).collect(), extra);
        let calls = tens.into_iter().map(|ten| self.send_ten(ten));
        stream::iter(calls).buffer_unordered(CALLS).try_collect().await
    }

    /// Sends at most ten messages, each with its own attributes.
    pub(crate) async fn send_ten(
        &self,
        ten: Vec<(String, BTreeMap<String, String>)>,
    ) -> Result<()> {
        let mut entries = Vec::with_capacity(ten.len());
        for (place, (body, attributes)) in ten.into_iter().enumerate() {
            let mut entry =
                SendMessageBatchRequestEntry::builder().id(place.to_string()).message_body(body);
            for (name, value) in attributes {
                entry = entry.message_attributes(name, text(value)?);
            }
            entries.push(entry.build().map_err(unbuilt)?);
        }
        let call = |entries| async {
            let call = self.client.send_message_batch().queue_url(&self.url);
            let answer = call.set_entries(Some(entries)).send().await;
            Ok(answer.map_err(Error::aws("sending messages"))?.failed)
        };
        repeat("sending messages", entries, SendMessageBatchRequestEntry::id, call).await
    }

    /// Receives up to ten messages and waits up to twenty seconds for the first. They stay hidden for the queue's
    /// visibility timeout, or for `hidden`.
    pub async fn receive(&self, wait: Duration, hidden: Option<Duration>) -> Result<Vec<Received>> {
        self.receive_some(AT_ONCE, wait, hidden).await
    }

    /// Receives up to `count` messages, at most ten.
    pub(crate) async fn receive_some(
        &self,
        count: usize,
        wait: Duration,
        hidden: Option<Duration>,
    ) -> Result<Vec<Received>> {
        let call = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(count.clamp(1, AT_ONCE) as i32)
            .wait_time_seconds(wait.min(LONG_POLL).as_secs() as i32)
            .set_visibility_timeout(hidden.map(|hidden| hidden.as_secs() as i32))
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
            .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp)
            .message_attribute_names("All");
        let answer = call.send().await.map_err(Error::aws("receiving messages"))?;
        Ok(answer.messages.unwrap_or_default().into_iter().map(Received::from).collect())
    }

    /// Deletes received messages.
    pub async fn delete(&self, received: &[Received]) -> Result<()> {
        for ten in received.chunks(AT_ONCE) {
            let entries = ten.iter().enumerate().map(|(place, received)| {
                DeleteMessageBatchRequestEntry::builder()
                    .id(place.to_string())
                    .receipt_handle(&received.handle)
                    .build()
            });
            let entries: Vec<_> =
                entries.map(|entry| entry.map_err(unbuilt)).collect::<Result<_>>()?;
            let call = |entries| async {
                let call = self.client.delete_message_batch().queue_url(&self.url);
                let answer = call.set_entries(Some(entries)).send().await;
                Ok(answer.map_err(Error::aws("deleting messages"))?.failed)
            };
            repeat("deleting messages", entries, DeleteMessageBatchRequestEntry::id, call).await?;
        }
        Ok(())
    }

    /// Hides received messages for this long from now. Zero releases them.
    pub async fn hide(&self, received: &[Received], hidden: Duration) -> Result<()> {
        for ten in received.chunks(AT_ONCE) {
            let entries = ten.iter().enumerate().map(|(place, received)| {
                ChangeMessageVisibilityBatchRequestEntry::builder()
                    .id(place.to_string())
                    .receipt_handle(&received.handle)
                    .visibility_timeout(hidden.as_secs() as i32)
                    .build()
            });
            let entries: Vec<_> =
                entries.map(|entry| entry.map_err(unbuilt)).collect::<Result<_>>()?;
            let call = self.client.change_message_visibility_batch().queue_url(&self.url);
            // A message that was delivered again or deleted meanwhile cannot be hidden, which is harmless.
            let answer = call.set_entries(Some(entries)).send().await;
            answer.map_err(Error::aws("hiding messages"))?;
        }
        Ok(())
    }

    /// The visibility timeout of the queue.
    pub async fn hidden(&self) -> Result<Duration> {
        let name = QueueAttributeName::VisibilityTimeout;
        let [seconds] = self.attributes([name]).await?;
        let seconds = seconds.and_then(|seconds| seconds.parse().ok());
        Ok(Duration::from_secs(seconds.unwrap_or(30)))
    }

    /// About how many messages wait, and about how many were received and not yet deleted.
    pub async fn depth(&self) -> Result<(u64, u64)> {
        use QueueAttributeName::{
            ApproximateNumberOfMessages as Waiting,
            ApproximateNumberOfMessagesNotVisible as Received,
        };
        let [waiting, received] = self.attributes([Waiting, Received]).await?;
        let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
        Ok((number(waiting).unwrap_or_default(), number(received).unwrap_or_default()))
    }

    /// The dead-letter queue of its redrive policy, if it has one.
    pub async fn dead_letter_queue(&self) -> Result<Option<DeadLetterQueue>> {
        let [policy] = self.attributes([QueueAttributeName::RedrivePolicy]).await?;
        let policy: Option<Json> = policy.and_then(|policy| serde_json::from_str(&policy).ok());
        let Some(policy) = policy else { return Ok(None) };
        let arn = policy["deadLetterTargetArn"].as_str().unwrap_or_default();
        let name = arn.rsplit(':').next().unwrap_or_default();
        // Both forms are accepted when a policy is set.
        let most = &policy["maxReceiveCount"];
        let most = most.as_u64().or_else(|| most.as_str()?.parse().ok()).unwrap_or(1);
        let queue = Queue { client: self.client.clone(), url: url_of(&self.client, name).await? };
        Ok(Some(DeadLetterQueue { queue, max_receives: most.try_into().unwrap_or(u32::MAX) }))
    }

    async fn attributes<const N: usize>(
        &self,
        names: [QueueAttributeName; N],
    ) -> Result<[Option<String>; N]> {
        let call = self.client.get_queue_attributes().queue_url(&self.url);
        let call = call.set_attribute_names(Some(names.to_vec()));
        let answer = call.send().await.map_err(Error::aws(format!("the queue {}", self.url)))?;
        let mut all = answer.attributes.unwrap_or_default();
        Ok(names.map(|name| all.remove(&name)))
    }

    /// The queue whose dead letters this queue receives.
    pub async fn source(&self) -> Result<Queue> {
        let call = self.client.list_dead_letter_source_queues().queue_url(&self.url);
        let answer = call.send().await;
        let answer = answer.map_err(Error::aws(format!("the queue {}", self.url)))?;
        match answer.queue_urls() {
            [url] => Ok(Queue { client: self.client.clone(), url: url.clone() }),
            urls => {
                let detail = format!(
                    "{} queues send their dead letters to {}; name one with --to",
                    urls.len(),
                    self.url
                );
                Err(Problem::field(Code::Request, "to", detail).into())
            }
        }
    }
}

/// The URL of the queue with this name.
async fn url_of(client: &Client, name: &str) -> Result<String> {
    let answer = client.get_queue_url().queue_name(name).send().await;
    let answer = answer.map_err(Error::aws(format!("the queue `{name}`")))?;
    Ok(answer.queue_url.unwrap_or_default())
}

/// Splits messages into requests within the limits of messages and bytes.
fn tens<T>(messages: Vec<(String, T)>, extra: usize) -> Vec<Vec<(String, T)>> {
    let mut tens = Vec::new();
    let (mut ten, mut bytes) = (Vec::new(), 0);
    for message in messages {
        let size = message.0.len() + extra;
        if ten.len() == AT_ONCE || (!ten.is_empty() && bytes + size > MAX_BYTES) {
            tens.push(std::mem::take(&mut ten));
            bytes = 0;
        }
        bytes += size;
        ten.push(message);
    }
    if !ten.is_empty() {
        tens.push(ten);
    }
    tens
}

/// Sends a request for some entries, and repeats it for those that were refused.
async fn repeat<E: Clone, F>(
    doing: &str,
    mut entries: Vec<E>,
    id: impl Fn(&E) -> &str,
    call: impl Fn(Vec<E>) -> F,
) -> Result<()>
where
    F: Future<Output = Result<Vec<BatchResultErrorEntry>>>,
{
    for tries in 1.. {
        let failed = call(entries.clone()).await?;
        let Some(first) = failed.first() else { break };
        if first.sender_fault() || tries == MAX_TRIES {
            let message = first.message().unwrap_or(first.code()).to_owned();
            let class =
                if first.sender_fault() { ErrorClass::Definition } else { ErrorClass::Retry };
            return Err(Error::Aws {
                doing: doing.to_owned(),
                error: DbError::new(class, message),
            });
        }
        entries.retain(|entry| failed.iter().any(|failed| failed.id() == id(entry)));
        tokio::time::sleep(backoff(tries)).await;
    }
    Ok(())
}

fn text(value: String) -> Result<MessageAttributeValue> {
    let value = MessageAttributeValue::builder().data_type("String").string_value(value);
    value.build().map_err(unbuilt)
}

/// All required fields are set, so this does not happen.
fn unbuilt(error: aws_sdk_sqs::error::BuildError) -> Error {
    let error = DbError::new(ErrorClass::Definition, error.to_string());
    Error::Aws { doing: "a call to SQS".to_owned(), error }
}

impl From<SdkMessage> for Received {
    fn from(message: SdkMessage) -> Received {
        let attribute = |name| message.attributes.as_ref()?.get(&name)?.parse().ok();
        let receives: Option<u64> = attribute(MessageSystemAttributeName::ApproximateReceiveCount);
        let sent = attribute(MessageSystemAttributeName::SentTimestamp).unwrap_or_default();
        let texts = message.message_attributes.unwrap_or_default().into_iter();
        let texts = texts.filter_map(|(name, value)| Some((name, value.string_value?)));
        Received {
            delivery: Delivery {
                id: message.message_id.unwrap_or_default(),
                body: message.body.unwrap_or_default(),
                receives: receives.map_or(1, |receives| receives as u32),
                sent,
                attributes: texts.collect(),
            },
            handle: message.receipt_handle.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_at_most_ten_messages_and_stays_below_the_byte_limit() {
        let sizes = |lengths: &[usize]| {
            let messages = lengths.iter().map(|length| ("x".repeat(*length), ())).collect();
            tens(messages, 100).iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&[]), Vec::<usize>::new());
        assert_eq!(sizes(&[1; 25]), [10, 10, 5]);
        assert_eq!(sizes(&[100 << 10; 5]), [2, 2, 1]);
        assert_eq!(sizes(&[MAX_BYTES - 100, 1, 1]), [1, 2]);
    }
}
