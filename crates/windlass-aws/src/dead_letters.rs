//! Listing, exporting, redriving and deleting the messages of a dead-letter queue.
//!
//! A queue can only be read by receiving. Messages that are read are hidden from other readers and released at the
//! end. A redrive sends a message before it deletes the letter: a crash in between leaves both, which is harmless
//! because a record remembers its jobs, and no message is lost.

use crate::message::{ATTEMPTS, Delivery, ERROR, FAILED_AT, JOB_ID};
use crate::queue::{Queue, Received};
use crate::{Message, Result};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::time::{Duration, Instant, SystemTime};
use windlass_core::JobId;

/// A filter for dead letters.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// With one of these message ids; empty means any.
    pub ids: Vec<String>,
    /// Of this job.
    pub job: Option<JobId>,
    /// With this message type, or of this job type.
    pub message_types: Vec<String>,
    /// Sent at least this long ago.
    pub older_than: Option<Duration>,
    /// With this text in the error.
    pub error: Option<String>,
}

/// How long letters stay hidden while they are read.
const HIDDEN: Duration = Duration::from_secs(60);
/// How long to wait for a letter before the queue counts as empty. SQS distributes a queue over machines, and a
/// request without waiting may find none although there are some.
const WAIT: Duration = Duration::from_secs(1);

impl Which {
    fn is(&self, letter: &Delivery) -> bool {
        let age = || {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            now.saturating_sub(Duration::from_millis(letter.sent))
        };
        (self.ids.is_empty() || self.ids.contains(&letter.id))
            && self.job.is_none_or(|job| job == letter.job())
            && (self.message_types.is_empty() || self.message_types.contains(&type_of(letter)))
            && self.older_than.is_none_or(|older| age() >= older)
            && self.error.as_ref().is_none_or(|text| {
                letter.error().is_some_and(|error| error.contains(text.as_str()))
            })
    }
}

/// The `type` field of a letter; empty if there is none.
pub fn type_of(letter: &Delivery) -> String {
    let said: Option<Json> = serde_json::from_str(&letter.body).ok();
    said.and_then(|said| Some(said.get("type")?.as_str()?.to_owned())).unwrap_or_default()
}

/// The keys that a letter names, as text.
pub fn keys_of(letter: &Delivery, config: &windlass_core::Config) -> String {
    match Message::read(&letter.body, config) {
        Ok(message) => {
            let keys: Vec<String> = message.keys.iter().map(ToString::to_string).collect();
            keys.join("; ")
        }
        Err(_) => letter.body.clone(),
    }
}

/// Up to `limit` letters. They stay in the queue.
pub async fn list(queue: &Queue, which: &Which, limit: usize) -> Result<Vec<Delivery>> {
    let mut seen = Seen::default();
    let mut letters = Vec::new();
    while letters.len() < limit {
        let Some(received) = seen.next(queue).await? else { break };
        let wanted = received.iter().filter(|one| which.is(&one.delivery));
        letters.extend(wanted.map(|one| one.delivery.clone()));
        seen.in_hand.extend(received);
    }
    seen.give_back(queue).await?;
    letters.truncate(limit);
    Ok(letters)
}

/// Sends letters back to the queue that they came from, at most `rate` per second. Returns their number.
pub async fn redrive(from: &Queue, to: &Queue, which: &Which, rate: Option<u32>) -> Result<usize> {
    let begun = Instant::now();
    let mut redriven = 0;
    take(from, which, async |letters: &[Received]| {
        if let Some(rate) = rate {
            let due = Duration::from_secs_f64(redriven as f64 / f64::from(rate.max(1)));
            tokio::time::sleep(due.saturating_sub(begun.elapsed())).await;
        }
        let ten = letters.iter().map(|letter| {
            let delivery = &letter.delivery;
            // A message that was sent by hand has no job id, so its message id becomes the job id and stays it.
            let mut attributes = delivery.attributes.clone();
            attributes.insert(JOB_ID.to_owned(), delivery.job().to_string());
            [ERROR, FAILED_AT, ATTEMPTS].iter().for_each(|name| drop(attributes.remove(*name)));
            (delivery.body.clone(), attributes)
        });
        to.send_ten(ten.collect()).await?;
        from.delete(letters).await?;
        redriven += letters.len();
        Ok(())
    })
    .await?;
    Ok(redriven)
}

/// Deletes letters. Returns their number.
pub async fn ignore(queue: &Queue, which: &Which) -> Result<usize> {
    let mut ignored = 0;
    take(queue, which, async |letters: &[Received]| {
        queue.delete(letters).await?;
        ignored += letters.len();
        Ok(())
    })
    .await?;
    Ok(ignored)
}

/// Calls a function with the matching letters, and releases the others.
async fn take(
    queue: &Queue,
    which: &Which,
    mut act: impl AsyncFnMut(&[Received]) -> Result<()>,
) -> Result<()> {
    let mut seen = Seen::default();
    let mut acted = Ok(());
    while acted.is_ok() {
        let Some(received) = seen.next(queue).await? else { break };
        let (meant, others): (Vec<_>, Vec<_>) =
            received.into_iter().partition(|one| which.is(&one.delivery));
        seen.in_hand.extend(others);
        if !meant.is_empty() {
            acted = act(&meant).await;
        }
        if acted.is_err() {
            seen.in_hand.extend(meant);
        }
    }
    seen.give_back(queue).await?;
    acted
}

/// The letters received so far. A letter that arrives again ends the walk.
#[derive(Default)]
struct Seen {
    ids: HashSet<String>,
    in_hand: Vec<Received>,
}

impl Seen {
    /// The next letters, or `None` at the end.
    async fn next(&mut self, queue: &Queue) -> Result<Option<Vec<Received>>> {
        let received = queue.receive(WAIT, Some(HIDDEN)).await?;
        // A letter that is received again was hidden for too short a time: all have been seen.
        let (new, again): (Vec<_>, Vec<_>) =
            received.into_iter().partition(|one| self.ids.insert(one.delivery.id.clone()));
        self.in_hand.extend(again);
        Ok((!new.is_empty()).then_some(new))
    }

    async fn give_back(&mut self, queue: &Queue) -> Result<()> {
        queue.hide(&std::mem::take(&mut self.in_hand), Duration::ZERO).await
    }
}
