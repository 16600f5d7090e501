//! Metrics: what the store says of all machines, and what this server answers. docs/metrics.md has
//! every name.

use crate::App;
use axum::http::Method;
use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use windlass_core::{Job, JobId, JobStatus};
use windlass_engine::Engine;
use windlass_store::{DeadLetterFilter, JobFilter, Result, Stats};

/// Turns the metrics of this process into text.
pub(crate) struct Meter {
    handle: Option<PrometheusHandle>,
}

/// How often the store is looked at.
const EVERY: Duration = Duration::from_secs(5);
/// Every so many looks the letters are counted, which reads them all.
const LETTERS_EVERY: u32 = 6;
/// Jobs that are remembered, so that nothing of them is counted twice.
const MOST_JOBS: usize = 10_000;
/// Jobs looked at for each status, and among the newest.
const PAGE: u32 = 500;
/// The bounds of a chunk's seconds, from a handful of rows to `chunk.timeout`.
const CHUNK_SECONDS: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0];
/// The bounds of an answer's seconds.
const ANSWER_SECONDS: [f64; 8] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

impl Meter {
    pub(crate) fn new() -> Meter {
        // The metrics are the process's, however many servers it has.
        static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
        let install = || {
            let handle = install().map_err(|error| tracing::warn!(%error, "there are no metrics"));
            handle.ok()
        };
        Meter { handle: HANDLE.get_or_init(install).clone() }
    }

    /// The text that Prometheus reads.
    pub(crate) fn render(&self) -> String {
        self.handle.as_ref().map(PrometheusHandle::render).unwrap_or_default()
    }
}

fn install() -> std::result::Result<PrometheusHandle, BuildError> {
    let full = |name: &str| Matcher::Full(name.to_owned());
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(full("windlass_chunk_seconds"), &CHUNK_SECONDS)?
        .set_buckets_for_metric(full("windlass_http_request_seconds"), &ANSWER_SECONDS)?
        .build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::warn!("the program records metrics by itself: /metrics has none of them");
    }
    describe();
    Ok(handle)
}

fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    describe_gauge!("windlass_jobs", "Jobs that have not ended, by status");
    describe_gauge!("windlass_chunks_pending", "Chunks that wait");
    describe_gauge!("windlass_chunks_in_flight", "Chunks at work");
    describe_gauge!("windlass_dead_letters", "Dead letters that are new and not being redriven");
    describe_gauge!("windlass_workers", "Processes that work");
    describe_gauge!("windlass_slots", "Chunks that those can work at once");
    describe_counter!("windlass_items_total", "Items by what became of them");
    describe_counter!("windlass_conflicts_total", "Concurrent writes found in time");
    describe_counter!("windlass_lease_losses_total", "Leases lost");
    describe_histogram!("windlass_chunk_seconds", "How long this process was at work on a chunk");
    describe_counter!("windlass_http_requests_total", "Requests answered");
    describe_histogram!("windlass_http_request_seconds", "How long answers took to begin");
}

/// Counts an answer.
pub(crate) fn answered(method: &Method, route: String, status: u16, took: Duration) {
    // A method that nobody knows would be a label that a stranger chooses.
    let known = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE];
    let method = known.iter().find(|known| *known == method).map_or("other", Method::as_str);
    let labels = [("method", method.to_owned()), ("route", route)];
    histogram!("windlass_http_request_seconds", &labels).record(took);
    let [method, route] = labels;
    let labels = [method, route, ("status", status.to_string())];
    counter!("windlass_http_requests_total", &labels).increment(1);
}

/// Looks at the store for as long as the server runs.
pub(crate) async fn run(app: Arc<App>) {
    let mut looker = StoreSampler::new(app.engine.clone());
    for round in 0u32.. {
        let looked = looker.look(round % LETTERS_EVERY == 0).await;
        if let Err(error) = looked {
            tracing::warn!(%error, "cannot measure for the moment");
        }
        if let Some(handle) = &app.meter.handle {
            handle.run_upkeep();
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// What was counted so far.
struct StoreSampler {
    engine: Engine,
    known: BTreeMap<JobId, Seen>,
    /// Jobs up to this one that are not known are not counted from zero.
    before: JobId,
    /// The leases that each job had lost at the last look; unknown before the first.
    losses: Option<BTreeMap<JobId, i64>>,
    job_types: BTreeMap<String, Depth>,
}

/// A job, as far as it is counted.
#[derive(Clone, Default)]
struct Seen {
    processed: i64,
    skipped: i64,
    dead: i64,
    conflicts: i64,
    ended: bool,
}

#[derive(Clone, Default)]
struct Depth {
    jobs: BTreeMap<&'static str, i64>,
    pending: i64,
    in_flight: i64,
    letters: u64,
}

const UNENDED: [JobStatus; 3] = [JobStatus::Queued, JobStatus::Processing, JobStatus::Paused];

impl StoreSampler {
    fn new(engine: Engine) -> StoreSampler {
        let job_types = engine.config().jobs.keys().map(|name| (name.clone(), Depth::default()));
        let job_types = job_types.collect();
        StoreSampler {
            engine,
            known: BTreeMap::new(),
            before: JobId::now_v7(),
            losses: None,
            job_types,
        }
    }

    async fn look(&mut self, mut letters: bool) -> Result<()> {
        let store = self.engine.store().clone();
        self.measure_depth(store.stats().await?);
        let mut jobs = BTreeMap::new();
        // Those of which something may have been done, and the newest, which may have ended since.
        for status in [Some(JobStatus::Processing), Some(JobStatus::Paused), None] {
            let filter = JobFilter { status, limit: PAGE, ..JobFilter::default() };
            jobs.extend(store.jobs(&filter).await?.into_iter().map(|job| (job.id, job)));
        }
        for job in jobs.values() {
            letters |= self.count(job);
        }
        while self.known.len() > MOST_JOBS {
            if let Some((oldest, _)) = self.known.pop_first() {
                self.before = self.before.max(oldest);
            }
        }
        if letters {
            self.job_types.values_mut().for_each(|depth| depth.letters = 0);
            for root in store.redrivable(&DeadLetterFilter::default()).await? {
                self.job_types.entry(root.job_type).or_default().letters += root.letters;
            }
        }
        let workers = store.workers().await?;
        let alive = || workers.iter().filter(|worker| !worker.vanished);
        gauge!("windlass_workers").set(alive().count() as f64);
        gauge!("windlass_slots").set(alive().map(|worker| worker.slots).sum::<i64>() as f64);
        self.job_types.iter().for_each(say);
        Ok(())
    }

    /// Takes up what there is to do, and adds the leases lost since the last look.
    fn measure_depth(&mut self, stats: Stats) {
        for depth in self.job_types.values_mut() {
            *depth = Depth { letters: depth.letters, ..Depth::default() };
        }
        for row in stats.depths {
            let depth = self.job_types.entry(row.job_type).or_default();
            depth.jobs.insert(row.status.as_str(), row.jobs);
            depth.pending += row.pending;
            depth.in_flight += row.processing;
        }
        // Named from the beginning, so that the first loss is seen as one.
        for job_type in self.job_types.keys() {
            lost(job_type, 0);
        }
        if let Some(known) = &self.losses {
            for row in &stats.losses {
                let before = known.get(&row.job).copied().unwrap_or_default();
                lost(&row.job_type, row.losses - before);
            }
        }
        let now = stats.losses.into_iter().map(|row| (row.job, row.losses));
        self.losses = Some(now.collect());
    }

    /// Adds what has become of a job since the last look; true when more of its items are dead.
    fn count(&mut self, job: &Job) -> bool {
        let (old, now) = (job.id < self.before, Seen::of(job));
        let seen = self.known.entry(job.id).or_insert_with(|| match old {
            true => now.clone(),
            false => Seen::default(),
        });
        let items = [
            ("processed", now.processed - seen.processed),
            ("skipped", now.skipped - seen.skipped),
            ("dead", now.dead - seen.dead),
        ];
        for (outcome, more) in items {
            let labels = [("job_type", job.job_type.clone()), ("outcome", outcome.to_owned())];
            counter!("windlass_items_total", &labels).increment(more.max(0) as u64);
        }
        counter!("windlass_conflicts_total", "job_type" => job.job_type.clone())
            .increment((now.conflicts - seen.conflicts).max(0) as u64);
        // The letters of a chunk are there when it has ended, a little after they are counted.
        let ends = now.ended && !seen.ended;
        let died = now.dead != seen.dead || ends && now.dead > 0;
        *seen = now;
        died
    }
}

fn lost(job_type: &str, leases: i64) {
    counter!("windlass_lease_losses_total", "job_type" => job_type.to_owned())
        .increment(leases.max(0) as u64);
}

impl Seen {
    fn of(job: &Job) -> Seen {
        let items = job.items;
        Seen {
            processed: items.processed,
            skipped: items.skipped,
            dead: items.dead,
            conflicts: items.conflicts,
            ended: job.has_ended(),
        }
    }
}

fn say((job_type, depth): (&String, &Depth)) {
    for status in UNENDED {
        let jobs = depth.jobs.get(status.as_str()).copied().unwrap_or_default();
        let labels = [("job_type", job_type.clone()), ("status", status.as_str().to_owned())];
        gauge!("windlass_jobs", &labels).set(jobs as f64);
    }
    let labels = [("job_type", job_type.clone())];
    gauge!("windlass_chunks_pending", &labels).set(depth.pending as f64);
    gauge!("windlass_chunks_in_flight", &labels).set(depth.in_flight as f64);
    gauge!("windlass_dead_letters", &labels).set(depth.letters as f64);
}
