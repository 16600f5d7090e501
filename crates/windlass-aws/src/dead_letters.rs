//! Dead letters: what is in a dead-letter queue, and what is done about it.
//!
//! A queue can only be read by receiving, so what is looked at is hidden from others meanwhile and
//! given back at the end. What is redriven is sent first and deleted then: whoever dies in between
//! leaves a letter twice, which is harmless since a record remembers its jobs, and never loses one.

use crate::message::{Delivery, JOB_ID};
use crate::queue::{Queue, Received};
use crate::{Message, Result};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::time::{Duration, Instant, SystemTime};
use windlass_core::JobId;

/// Which letters.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// With these message ids; any where there are none.
    pub ids: Vec<String>,
    /// Of this job.
    pub job: Option<JobId>,
    /// Of this type: a message's, or a job type's.
    pub message_types: Vec<String>,
    /// Sent at least so long ago.
    pub older_than: Option<Duration>,
}

/// How long letters stay hidden while they are looked at.
const HIDDEN: Duration = Duration::from_secs(60);
/// How long to wait for a letter before the queue counts as empty. A queue lies on many machines,
/// and one that is asked without waiting may say that it is empty when it is not.
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
    }
}

/// The `type` that a letter says; empty where it says none.
pub fn type_of(letter: &Delivery) -> String {
    let said: Option<Json> = serde_json::from_str(&letter.body).ok();
    said.and_then(|said| Some(said.get("type")?.as_str()?.to_owned())).unwrap_or_default()
}

/// The keys that a letter names, as people read them.
pub fn keys_of(letter: &Delivery, config: &windlass_core::Config) -> String {
    match Message::read(&letter.body, config) {
        Ok(message) => {
            let keys: Vec<String> = message.keys.iter().map(ToString::to_string).collect();
            keys.join("; ")
        }
        Err(_) => letter.body.clone(),
    }
}

/// At most so many letters, which stay where they are.
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

/// Sends letters to the queue they came from, at most so many a second, and gives how many.
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
            // One that was sent by hand is named after itself, and so stays the same job.
            let mut attributes = delivery.attributes.clone();
            attributes.insert(JOB_ID.to_owned(), delivery.job().to_string());
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

/// Deletes letters, and gives how many.
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

/// Does something with the letters that are meant, and gives the others back.
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

/// The letters that were looked at, so that a walk ends although it gives them back.
#[derive(Default)]
struct Seen {
    ids: HashSet<String>,
    in_hand: Vec<Received>,
}

impl Seen {
    /// The next letters; none at the end.
    async fn next(&mut self, queue: &Queue) -> Result<Option<Vec<Received>>> {
        let received = queue.receive(WAIT, Some(HIDDEN)).await?;
        // One that comes again was hidden too short a time: the walk has been all around.
        let (new, again): (Vec<_>, Vec<_>) =
            received.into_iter().partition(|one| self.ids.insert(one.delivery.id.clone()));
        self.in_hand.extend(again);
        Ok((!new.is_empty()).then_some(new))
    }

    async fn give_back(&mut self, queue: &Queue) -> Result<()> {
        queue.hide(&std::mem::take(&mut self.in_hand), Duration::ZERO).await
    }
}
