//! Watches jobs for event streams: one poller per topic, shared by all its subscribers.

use bytes::Bytes;
use futures::Stream;
use futures::stream;
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use windlass_core::{ChunkStatus, Job, JobId, JobStatus};
use windlass_engine::Engine;
use windlass_store::{ChunkRow, JobFilter, Result, Store};

/// What a stream watches: one job with its chunks, or all jobs (`None`).
pub(crate) type Topic = Option<JobId>;

/// A change that a poll found, formatted once for all subscribers.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Server-sent events `job` and `chunk`, with the same JSON as the rest of the API.
    pub(crate) text: Bytes,
    pub(crate) submitted_by: String,
    pub(crate) job_type: String,
}

impl Change {
    /// The current state of a job.
    pub(crate) fn of_job(job: &Job) -> Change {
        Change::new(event("job", job), job)
    }

    fn new(text: String, job: &Job) -> Change {
        let (submitted_by, job_type) = (job.submitted_by.clone(), job.job_type.clone());
        Change { text: text.into(), submitted_by, job_type }
    }
}

/// Formats one event. Its id makes a browser send `last-event-id` when it reconnects.
fn event(name: &str, value: &impl Serialize) -> String {
    let data = serde_json::to_string(value).unwrap_or_default();
    format!("event: {name}\nid: {}\ndata: {data}\n\n", Uuid::now_v7().simple())
}

/// The watched topics and their subscribers.
pub(crate) struct JobWatch {
    engine: Engine,
    stopping: CancellationToken,
    topics: Arc<Mutex<Topics>>,
}

type Topics = HashMap<Topic, Subscribers>;

/// The subscribers of a topic.
struct Subscribers {
    changes: broadcast::Sender<Change>,
    /// Whether the topic was polled since it is watched.
    polled: watch::Receiver<bool>,
}

/// The minimum time between two polls. A running job changes many times in this time.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum time between two polls: the progress within a chunk sends no notification.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Changes buffered for a slow subscriber; it loses older ones.
const CHANNEL_CAPACITY: usize = 256;
/// Jobs polled for the topic of all jobs.
const MAX_JOBS: u32 = 200;
/// Running chunks polled for the topic of one job.
const MAX_CHUNKS: u32 = 1000;

impl JobWatch {
    pub(crate) fn new(engine: Engine, stopping: CancellationToken) -> JobWatch {
        JobWatch { engine, stopping, topics: Arc::default() }
    }

    /// Subscribes to a topic. The stream has every change after the return. It ends when the job has ended or the server
    /// stops.
    pub(crate) async fn subscribe(&self, topic: Topic) -> impl Stream<Item = Change> + use<> {
        let (receiver, mut polled) = self.join(topic);
        // A change before the first poll is not detected. An error means that the poller has ended.
        let _ = polled.wait_for(|polled| *polled).await;
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

    /// Adds a subscriber to a topic, and starts to poll it if this is the first one.
    fn join(&self, topic: Topic) -> (broadcast::Receiver<Change>, watch::Receiver<bool>) {
        let mut topics = self.topics.lock();
        if let Some(Subscribers { changes, polled }) = topics.get(&topic) {
            return (changes.subscribe(), polled.clone());
        }
        let (sender, receiver) = broadcast::channel(CHANNEL_CAPACITY);
        let (has_polled, polled) = watch::channel(false);
        topics.insert(topic, Subscribers { changes: sender.clone(), polled: polled.clone() });
        let poller = Poller { engine: self.engine.clone(), topic, sender, has_polled };
        let (topics, stopping) = (self.topics.clone(), self.stopping.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = poller.run(&topics) => {}
                () = stopping.cancelled() => topics.lock().clear(),
            }
        });
        (receiver, polled)
    }
}

/// Polls the store for all subscribers of one topic.
struct Poller {
    engine: Engine,
    topic: Topic,
    sender: broadcast::Sender<Change>,
    has_polled: watch::Sender<bool>,
}

impl Poller {
    /// Polls until the last subscriber is gone or the job has ended.
    async fn run(&self, topics: &Mutex<Topics>) {
        let (mut jobs, mut chunks) = (None, BTreeMap::new());
        let mut changes = self.engine.store().subscribe();
        loop {
            let polled = match self.topic {
                Some(job) => self.poll_job(job, &mut jobs, &mut chunks).await,
                None => self.poll_all(&mut jobs).await,
            };
            let ended = polled.unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to poll jobs for event streams; retrying");
                false
            });
            self.has_polled.send_replace(true);
            if !ended {
                tokio::time::sleep(MIN_POLL_INTERVAL).await;
                changes.changed(MAX_POLL_INTERVAL - MIN_POLL_INTERVAL).await;
            }
            // Under the lock: a later subscriber finds the topic gone and starts a new poller.
            let mut topics = topics.lock();
            if ended || self.sender.receiver_count() == 0 {
                topics.remove(&self.topic);
                return;
            }
        }
    }

    /// Polls one job and its chunks; true when the job has ended.
    async fn poll_job(
        &self,
        id: JobId,
        known: &mut Option<Jobs>,
        chunks: &mut BTreeMap<i64, ChunkRow>,
    ) -> Result<bool> {
        let store = self.engine.store();
        let Some(job) = job_summary(store.as_ref(), id).await? else { return Ok(true) };
        let now = Jobs::from([(id, job.clone())]);
        if known.as_ref() == Some(&now) {
            return Ok(job.has_ended());
        }
        let running = store.chunks(id, Some(ChunkStatus::Processing), None, MAX_CHUNKS).await?;
        let running: BTreeMap<_, _> = running.into_iter().map(|row| (row.chunk, row)).collect();
        let ended = self.ended_chunks(id, chunks, &running).await?;
        let changed = running.values().filter(|row| chunks.get(&row.chunk) != Some(row));
        let mut text: String = ended.iter().chain(changed).map(|row| event("chunk", row)).collect();
        text += &event("job", &job);
        self.publish(Change::new(text, &job));
        (*chunks, *known) = (running, Some(now));
        Ok(job.has_ended())
    }

    /// The chunks that were running at the last poll and are not any more.
    async fn ended_chunks(
        &self,
        id: JobId,
        before: &BTreeMap<i64, ChunkRow>,
        running: &BTreeMap<i64, ChunkRow>,
    ) -> Result<Vec<ChunkRow>> {
        let ended = |chunk: &i64| before.contains_key(chunk) && !running.contains_key(chunk);
        let mut numbers = before.keys().filter(|chunk| ended(chunk));
        let Some(first) = numbers.next() else { return Ok(Vec::new()) };
        let last = numbers.next_back().unwrap_or(first);
        let span = u32::try_from(last - first + 1).unwrap_or(MAX_CHUNKS).min(MAX_CHUNKS);
        let mut rows = self.engine.store().chunks(id, None, Some(first - 1), span).await?;
        rows.retain(|row| ended(&row.chunk));
        Ok(rows)
    }

    /// Polls the newest jobs and the running ones. The first poll publishes nothing: it is the baseline.
    async fn poll_all(&self, known: &mut Option<Jobs>) -> Result<bool> {
        let store = self.engine.store();
        let newest = JobFilter { limit: MAX_JOBS, ..JobFilter::default() };
        let working = JobFilter { status: Some(JobStatus::Processing), ..newest.clone() };
        let mut now = Jobs::new();
        for job in store.jobs(&newest).await?.into_iter().chain(store.jobs(&working).await?) {
            now.insert(job.id, job);
        }
        if let Some(known) = known {
            // Jobs that are no longer in these lists were running, and have ended.
            let gone = known.values().filter(|job| !job.has_ended() && !now.contains_key(&job.id));
            for id in gone.map(|job| job.id).collect::<Vec<_>>() {
                if let Some(job) = job_summary(store.as_ref(), id).await? {
                    now.insert(id, job);
                }
            }
            for job in now.values().filter(|job| known.get(&job.id) != Some(job)) {
                self.publish(Change::of_job(job));
            }
        }
        *known = Some(now);
        Ok(false)
    }

    /// Sends a change to all subscribers. It is not an error if there are none: `run` checks that.
    fn publish(&self, change: Change) {
        let _ = self.sender.send(change);
    }
}

type Jobs = BTreeMap<JobId, Job>;

/// A job as lists show it, without large parts of its request, which may have megabytes.
pub(crate) async fn job_summary(store: &dyn Store, id: JobId) -> Result<Option<Job>> {
    let only = JobFilter { id: Some(id), limit: 1, ..JobFilter::default() };
    Ok(store.jobs(&only).await?.pop())
}

#[cfg(test)]
mod tests;
