//! Sends items that failed for good to the dead-letter queue, each with its error.
//!
//! SQS moves a message that was received too often, but says nothing about the cause. Therefore *process* sends the
//! failed items of a last delivery itself, one message per item, and reports the delivered message as done. A message
//! whose last delivery is not answered, because the process was killed, is still moved by SQS.

use crate::batch_tracker::{BatchTracker, FailedMessage, MessageError};
use crate::message::{ATTEMPTS, ERROR, FAILED_AT};
use crate::{Delivery, Message, Process, Queue, Result};
use std::collections::BTreeMap;
use std::time::SystemTime;
use windlass_core::{JobType, Key};

/// The dead-letter queue of a work queue.
#[derive(Clone)]
pub struct DeadLetterQueue {
    /// The queue.
    pub queue: Queue,
    /// After how many deliveries a message is a dead letter: `maxReceiveCount` of the redrive policy.
    pub max_receives: u32,
}

/// A message to send, with its attributes.
type Letter = (String, BTreeMap<String, String>);

/// The most characters of an error. A message with all its attributes may have 256 KB.
const MAX_ERROR_CHARS: usize = 8_000;
/// SQS's limit of messages per request.
const AT_ONCE: usize = 10;

impl DeadLetterQueue {
    /// Moves the messages that were delivered for the last time. Returns those that the queue must deliver again.
    pub(crate) async fn take(
        &self,
        process: &Process,
        deliveries: &[Delivery],
        failed: Vec<FailedMessage>,
        tracker: &BatchTracker,
    ) -> Vec<FailedMessage> {
        let mut left = Vec::new();
        for message in failed {
            let delivery = &deliveries[message.index];
            if delivery.receives < self.max_receives {
                left.push(message);
                continue;
            }
            match self.bury(process, delivery, &message, tracker).await {
                // Its items are done, so SQS may move the message if the rest fails again.
                Ok(()) if message.error == Some(MessageError::Afterwards) => left.push(message),
                Ok(()) => {}
                Err(error) => {
                    let id = &delivery.id;
                    tracing::error!(message = id, %error, "failed to send dead letters; SQS moves the message");
                    left.push(message);
                }
            }
        }
        left
    }

    async fn bury(
        &self,
        process: &Process,
        delivery: &Delivery,
        message: &FailedMessage,
        tracker: &BatchTracker,
    ) -> Result<()> {
        let mut letters = Vec::new();
        if let Some(MessageError::Malformed(error)) = &message.error {
            letters.push((delivery.body.clone(), attributes(delivery, error)));
        }
        if !message.items.is_empty() {
            let job_type = process.job_type(delivery)?;
            let keys: Vec<Key> = message.items.iter().map(|(key, _)| key.clone()).collect();
            let dead = process.count_dead(delivery, job_type, &keys).await?;
            for ((key, error), _) in message.items.iter().zip(dead).filter(|(_, dead)| *dead) {
                letters.push(letter(job_type, delivery, key, error)?);
            }
        }
        let count = letters.len() as u64;
        for ten in letters.chunks(AT_ONCE) {
            self.queue.send_ten(ten.to_vec()).await?;
        }
        tracker.count(|stats| stats.dead += count);
        Ok(())
    }
}

fn letter(job_type: &JobType, delivery: &Delivery, key: &Key, error: &str) -> Result<Letter> {
    Ok((Message::body(job_type, std::slice::from_ref(key))?, attributes(delivery, error)))
}

/// The attributes of a dead letter: those of its message, and its error.
fn attributes(delivery: &Delivery, error: &str) -> BTreeMap<String, String> {
    let mut attributes = delivery.attributes.clone();
    let job = (crate::message::JOB_ID, delivery.job().to_string());
    let failed_at = chrono::DateTime::<chrono::Utc>::from(SystemTime::now()).to_rfc3339();
    let attempts = (ATTEMPTS, delivery.receives.to_string());
    for (name, value) in [job, (ERROR, printable(error)), (FAILED_AT, failed_at), attempts] {
        attributes.insert(name.to_owned(), value);
    }
    attributes
}

/// The text as SQS accepts it: not empty, without most control characters, and not too long.
fn printable(error: &str) -> String {
    let allowed = |char: &char| {
        matches!(char, '\t' | '\n' | '\r')
            || (!char.is_control() && !('\u{fffe}'..='\u{ffff}').contains(char))
    };
    let text: String = error.chars().filter(allowed).take(MAX_ERROR_CHARS).collect();
    if text.trim().is_empty() { "no error message".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_text_that_sqs_accepts() {
        assert_eq!(printable("a\0b\u{1}\n\u{fffe}c"), "ab\nc");
        assert_eq!(printable(" \0"), "no error message");
        assert_eq!(printable(&"é".repeat(9_000)).chars().count(), MAX_ERROR_CHARS);
    }
}
