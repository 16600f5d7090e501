//! Following jobs: one look at the store for all who follow the same thing, however many.

use bytes::Bytes;
use futures::Stream;
use futures::stream;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use windlass_core::{ChunkStatus, Job, JobId, JobStatus};
use windlass_engine::Engine;
use windlass_store::{ChunkRow, JobFilter, Result, Store};

/// What is followed: one job with its chunks, or all jobs.
pub(crate) type Topic = Option<JobId>;

/// What one look found, as it is sent: written once for all listeners.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Events `job` and `chunk` with what the rest of the API shows of them.
    pub(crate) text: Bytes,
    /// Who submitted the job.
    pub(crate) owner: String,
    pub(crate) job_type: String,
}

impl Change {
    /// How a job is now.
    pub(crate) fn of_job(job: &Job) -> Change {
        Change::new(event("job", job), job)
    }

    fn new(text: String, job: &Job) -> Change {
        let (owner, job_type) = (job.submitted_by.clone(), job.job_type.clone());
        Change { text: text.into(), owner, job_type }
    }
}

/// One event. It has an id, so that browsers say whether they were here before.
fn event(name: &str, shown: &impl Serialize) -> String {
    let data = serde_json::to_string(shown).unwrap_or_default();
    format!("event: {name}\nid: {}\ndata: {data}\n\n", Uuid::now_v7().simple())
}

/// Everything that is being followed.
pub(crate) struct Watch {
    engine: Engine,
    stopping: CancellationToken,
    topics: Arc<Mutex<Topics>>,
}

type Topics = HashMap<Topic, broadcast::Sender<Change>>;

/// The shortest time between two looks: a job at work changes many times in a moment.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// The longest: what a chunk has done so far is not signalled.
const AT_MOST: Duration = Duration::from_secs(1);
/// Looks that a slow listener may be behind; it misses those before.
const BUFFER: usize = 256;
/// Jobs looked at for those who follow all of them.
const MOST_JOBS: u32 = 200;
/// Chunks in flight that are looked at.
const MOST_CHUNKS: u32 = 1000;

impl Watch {
    pub(crate) fn new(engine: Engine, stopping: CancellationToken) -> Watch {
        Watch { engine, stopping, topics: Arc::default() }
    }

    /// Follows a topic from now on. The stream ends when the job has ended or the server stops.
    pub(crate) fn follow(&self, topic: Topic) -> impl Stream<Item = Change> + use<> {
        let receiver = {
            let mut topics = lock(&self.topics);
            match topics.get(&topic) {
                Some(sender) => sender.subscribe(),
                None => {
                    let (sender, receiver) = broadcast::channel(BUFFER);
                    topics.insert(topic, sender.clone());
                    let looker = Looker { engine: self.engine.clone(), topic, sender };
                    let (topics, stopping) = (self.topics.clone(), self.stopping.clone());
                    tokio::spawn(async move {
                        tokio::select! {
                            () = looker.run(&topics) => {}
                            () = stopping.cancelled() => lock(&topics).clear(),
                        }
                    });
                    receiver
                }
            }
        };
        stream::unfold(receiver, |mut receiver| async move {
            loop {
                match receiver.recv().await {
                    Ok(change) => return Some((change, receiver)),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            }
        })
    }
}

fn lock(topics: &Mutex<Topics>) -> MutexGuard<'_, Topics> {
    topics.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks for all who follow one topic.
struct Looker {
    engine: Engine,
    topic: Topic,
    sender: broadcast::Sender<Change>,
}

impl Looker {
    /// Looks until nobody follows any more, or there is nothing left to follow.
    async fn run(&self, topics: &Mutex<Topics>) {
        let (mut jobs, mut chunks) = (None, BTreeMap::new());
        let mut changes = self.engine.store().subscribe();
        loop {
            let looked = match self.topic {
                Some(job) => self.look_at(job, &mut jobs, &mut chunks).await,
                None => self.look_around(&mut jobs).await,
            };
            let ended = looked.unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot look at what is followed; waiting");
                false
            });
            if !ended {
                tokio::time::sleep(BETWEEN_LOOKS).await;
                changes.changed(AT_MOST - BETWEEN_LOOKS).await;
            }
            // Whoever comes after this finds the topic gone, and begins it anew.
            let mut topics = lock(topics);
            if ended || self.sender.receiver_count() == 0 {
                topics.remove(&self.topic);
                return;
            }
        }
    }

    /// One look at a job and its chunks; true when it has ended.
    async fn look_at(
        &self,
        id: JobId,
        known: &mut Option<Jobs>,
        chunks: &mut BTreeMap<i64, ChunkRow>,
    ) -> Result<bool> {
        let store = self.engine.store();
        let Some(job) = listed(store.as_ref(), id).await? else { return Ok(true) };
        let now = Jobs::from([(id, job.clone())]);
        if known.as_ref() == Some(&now) {
            return Ok(job.has_ended());
        }
        let flying = store.chunks(id, Some(ChunkStatus::Processing), None, MOST_CHUNKS).await?;
        let flying: BTreeMap<_, _> = flying.into_iter().map(|row| (row.chunk, row)).collect();
        let landed = self.landed(id, chunks, &flying).await?;
        let moved = flying.values().filter(|row| chunks.get(&row.chunk) != Some(row));
        let mut text: String = landed.iter().chain(moved).map(|row| event("chunk", row)).collect();
        text += &event("job", &job);
        self.say(Change::new(text, &job));
        (*chunks, *known) = (flying, Some(now));
        Ok(job.has_ended())
    }

    /// The chunks that were in flight before and are not any more.
    async fn landed(
        &self,
        id: JobId,
        before: &BTreeMap<i64, ChunkRow>,
        flying: &BTreeMap<i64, ChunkRow>,
    ) -> Result<Vec<ChunkRow>> {
        let landed = |chunk: &i64| before.contains_key(chunk) && !flying.contains_key(chunk);
        let mut numbers = before.keys().filter(|chunk| landed(chunk));
        let Some(first) = numbers.next() else { return Ok(Vec::new()) };
        let last = numbers.next_back().unwrap_or(first);
        let span = u32::try_from(last - first + 1).unwrap_or(MOST_CHUNKS).min(MOST_CHUNKS);
        let mut rows = self.engine.store().chunks(id, None, Some(first - 1), span).await?;
        rows.retain(|row| landed(&row.chunk));
        Ok(rows)
    }

    /// One look at the newest jobs and at those at work. The first only finds out how things are.
    async fn look_around(&self, known: &mut Option<Jobs>) -> Result<bool> {
        let store = self.engine.store();
        let newest = JobFilter { limit: MOST_JOBS, ..JobFilter::default() };
        let working = JobFilter { status: Some(JobStatus::Processing), ..newest.clone() };
        let mut now = Jobs::new();
        for job in store.jobs(&newest).await?.into_iter().chain(store.jobs(&working).await?) {
            now.insert(job.id, job);
        }
        if let Some(known) = known {
            // Those that left the page since were at work, and have ended.
            let gone = known.values().filter(|job| !job.has_ended() && !now.contains_key(&job.id));
            for id in gone.map(|job| job.id).collect::<Vec<_>>() {
                if let Some(job) = listed(store.as_ref(), id).await? {
                    now.insert(id, job);
                }
            }
            for job in now.values().filter(|job| known.get(&job.id) != Some(job)) {
                self.say(Change::of_job(job));
            }
        }
        *known = Some(now);
        Ok(false)
    }

    /// Tells everybody; that nobody listens is found out after the look.
    fn say(&self, change: Change) {
        let _ = self.sender.send(change);
    }
}

type Jobs = BTreeMap<JobId, Job>;

/// A job as listings show it: its request may be megabytes, and nothing is looked at more often.
pub(crate) async fn listed(store: &dyn Store, id: JobId) -> Result<Option<Job>> {
    let only = JobFilter { id: Some(id), limit: 1, ..JobFilter::default() };
    Ok(store.jobs(&only).await?.pop())
}

#[cfg(test)]
mod tests;
