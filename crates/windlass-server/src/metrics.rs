//! Metrics: cluster-wide figures sampled from the store, and the requests of this server.
//! docs/metrics.md lists every metric.

use crate::App;
use axum::http::Method;
use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use windlass_core::{Job, JobId, JobStatus};
use windlass_engine::{Engine, Pause};
use windlass_store::{DeadLetterFilter, JobFilter, Result, Stats};

/// Exports the metrics of this process in the Prometheus text format.
pub(crate) struct MetricsExporter {
    handle: Option<PrometheusHandle>,
}

/// How often the store is sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// How often it is sampled while it has no open work. A change is sampled at once.
const QUIET_SAMPLE_INTERVAL: Duration = Duration::from_secs(30);
/// Dead letters are counted with every sixth sample, because counting reads all of them.
const DEAD_LETTER_SAMPLES: u32 = 6;
/// Jobs whose last counts are remembered, so that only the increase is added.
const MAX_TRACKED_JOBS: usize = 10_000;
/// Jobs sampled for each status, and of the newest.
const PAGE_JOBS: u32 = 500;
/// Histogram buckets for the duration of a chunk, from a few rows to `chunk.timeout`.
const CHUNK_SECONDS: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0];
/// Histogram buckets for the duration of a request.
const REQUEST_SECONDS: [f64; 8] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

impl MetricsExporter {
    pub(crate) fn new() -> MetricsExporter {
        // The recorder is global to the process, which may run several servers.
        static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
        let install = || {
            let handle = install().map_err(|error| tracing::warn!(%error, "failed to install the metrics recorder; /metrics will be empty"));
            handle.ok()
        };
        MetricsExporter { handle: HANDLE.get_or_init(install).clone() }
    }

    /// The metrics as text.
    pub(crate) fn render(&self) -> String {
        self.handle.as_ref().map(PrometheusHandle::render).unwrap_or_default()
    }
}

fn install() -> std::result::Result<PrometheusHandle, BuildError> {
    let full = |name: &str| Matcher::Full(name.to_owned());
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(full("windlass_chunk_seconds"), &CHUNK_SECONDS)?
        .set_buckets_for_metric(full("windlass_http_request_seconds"), &REQUEST_SECONDS)?
        .build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::warn!("the program has its own metrics recorder; /metrics will be empty");
    }
    describe();
    Ok(handle)
}

fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    describe_gauge!("windlass_jobs", "Unfinished jobs by status");
    describe_gauge!("windlass_chunks_pending", "Chunks waiting to be leased");
    describe_gauge!("windlass_chunks_in_flight", "Chunks being processed");
    describe_gauge!(
        "windlass_dead_letters",
        "Dead letters with status new that are not being redriven"
    );
    describe_gauge!("windlass_workers", "Live worker processes");
    describe_gauge!("windlass_slots", "Total slots of the live workers");
    describe_counter!("windlass_items_total", "Items by outcome");
    describe_counter!("windlass_conflicts_total", "Concurrent writes detected before an overwrite");
    describe_counter!("windlass_lease_losses_total", "Chunk leases lost");
    describe_histogram!("windlass_chunk_seconds", "Time this process spent on a chunk");
    describe_counter!("windlass_http_requests_total", "Completed HTTP requests");
    describe_histogram!("windlass_http_request_seconds", "Time until the response headers");
}

/// Records a completed request.
pub(crate) fn record_response(method: &Method, route: String, status: u16, duration: Duration) {
    // Clients may send any method; unknown ones would create unbounded label values.
    let known = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE];
    let method = known.iter().find(|known| *known == method).map_or("other", Method::as_str);
    let labels = [("method", method.to_owned()), ("route", route)];
    histogram!("windlass_http_request_seconds", &labels).record(duration);
    let [method, route] = labels;
    let labels = [method, route, ("status", status.to_string())];
    counter!("windlass_http_requests_total", &labels).increment(1);
}

/// Samples the store until the server stops.
pub(crate) async fn run_sampler(app: Arc<App>) {
    let mut sampler = StoreSampler::new(app.engine.clone());
    let mut pause = Pause::new(&app.engine);
    for round in 0u32.. {
        if let Err(error) = sampler.sample(round % DEAD_LETTER_SAMPLES == 0).await {
            tracing::warn!(%error, "failed to sample the store for metrics; retrying");
        }
        if let Some(handle) = &app.metrics.handle {
            handle.run_upkeep();
        }
        pause.wait_at_most(SAMPLE_INTERVAL, QUIET_SAMPLE_INTERVAL).await;
    }
}

/// Turns the totals in the store into counters and gauges.
struct StoreSampler {
    engine: Engine,
    /// What has already been counted of each job.
    counted: BTreeMap<JobId, CountedJob>,
    /// Untracked jobs with smaller ids started before this sampler; their counts so far are ignored.
    baseline: JobId,
    /// The lost leases of each job at the last sample; `None` before the first.
    losses: Option<BTreeMap<JobId, i64>>,
    job_types: BTreeMap<String, QueueDepth>,
}

/// The counts of a job at the last sample.
#[derive(Clone, Default)]
struct CountedJob {
    processed: i64,
    skipped: i64,
    dead: i64,
    conflicts: i64,
    ended: bool,
}

/// The pending work of a job type.
#[derive(Clone, Default)]
struct QueueDepth {
    jobs: BTreeMap<&'static str, i64>,
    pending: i64,
    in_flight: i64,
    dead_letters: u64,
}

const UNFINISHED: [JobStatus; 3] = [JobStatus::Queued, JobStatus::Processing, JobStatus::Paused];

impl StoreSampler {
    fn new(engine: Engine) -> StoreSampler {
        let job_types =
            engine.config().jobs.keys().map(|name| (name.clone(), QueueDepth::default()));
        let job_types = job_types.collect();
        StoreSampler {
            engine,
            counted: BTreeMap::new(),
            baseline: JobId::now_v7(),
            losses: None,
            job_types,
        }
    }

    async fn sample(&mut self, mut count_dead_letters: bool) -> Result<()> {
        let store = self.engine.store().clone();
        self.update_depths(store.stats().await?);
        let mut jobs = BTreeMap::new();
        // Jobs that may have progressed, and the newest, which may have ended since the last sample.
        for status in [Some(JobStatus::Processing), Some(JobStatus::Paused), None] {
            let filter = JobFilter { status, limit: PAGE_JOBS, ..JobFilter::default() };
            jobs.extend(store.jobs(&filter).await?.into_iter().map(|job| (job.id, job)));
        }
        for job in jobs.values() {
            count_dead_letters |= self.count(job);
        }
        while self.counted.len() > MAX_TRACKED_JOBS {
            if let Some((oldest, _)) = self.counted.pop_first() {
                self.baseline = self.baseline.max(oldest);
            }
        }
        if count_dead_letters {
            self.job_types.values_mut().for_each(|depth| depth.dead_letters = 0);
            for root in store.redrivable(&DeadLetterFilter::default()).await? {
                self.job_types.entry(root.job_type).or_default().dead_letters += root.letters;
            }
        }
        let workers = store.workers().await?;
        let alive = || workers.iter().filter(|worker| !worker.vanished);
        gauge!("windlass_workers").set(alive().count() as f64);
        gauge!("windlass_slots").set(alive().map(|worker| worker.slots).sum::<i64>() as f64);
        self.job_types.iter().for_each(publish_depth);
        Ok(())
    }

    /// Stores the queue depths, and counts the leases lost since the last sample.
    fn update_depths(&mut self, stats: Stats) {
        for depth in self.job_types.values_mut() {
            *depth = QueueDepth { dead_letters: depth.dead_letters, ..QueueDepth::default() };
        }
        for row in stats.depths {
            let depth = self.job_types.entry(row.job_type).or_default();
            depth.jobs.insert(row.status.as_str(), row.jobs);
            depth.pending += row.pending;
            depth.in_flight += row.processing;
        }
        // Initialise the counters, so that the first loss is visible as an increase.
        for job_type in self.job_types.keys() {
            record_losses(job_type, 0);
        }
        if let Some(last) = &self.losses {
            for row in &stats.losses {
                let before = last.get(&row.job).copied().unwrap_or_default();
                record_losses(&row.job_type, row.losses - before);
            }
        }
        let now = stats.losses.into_iter().map(|row| (row.job, row.losses));
        self.losses = Some(now.collect());
    }

    /// Adds the items of a job since the last sample; true if some of them are dead letters.
    fn count(&mut self, job: &Job) -> bool {
        let (old, now) = (job.id < self.baseline, CountedJob::of(job));
        let last = self.counted.entry(job.id).or_insert_with(|| match old {
            true => now.clone(),
            false => CountedJob::default(),
        });
        let items = [
            ("processed", now.processed - last.processed),
            ("skipped", now.skipped - last.skipped),
            ("dead", now.dead - last.dead),
        ];
        for (outcome, more) in items {
            let labels = [("job_type", job.job_type.clone()), ("outcome", outcome.to_owned())];
            counter!("windlass_items_total", &labels).increment(more.max(0) as u64);
        }
        counter!("windlass_conflicts_total", "job_type" => job.job_type.clone())
            .increment((now.conflicts - last.conflicts).max(0) as u64);
        // The dead letters of a chunk are stored when it ends, shortly after its counts.
        let ends = now.ended && !last.ended;
        let more_dead = now.dead != last.dead || ends && now.dead > 0;
        *last = now;
        more_dead
    }
}

fn record_losses(job_type: &str, leases: i64) {
    counter!("windlass_lease_losses_total", "job_type" => job_type.to_owned())
        .increment(leases.max(0) as u64);
}

impl CountedJob {
    fn of(job: &Job) -> CountedJob {
        let items = job.items;
        CountedJob {
            processed: items.processed,
            skipped: items.skipped,
            dead: items.dead,
            conflicts: items.conflicts,
            ended: job.has_ended(),
        }
    }
}

fn publish_depth((job_type, depth): (&String, &QueueDepth)) {
    for status in UNFINISHED {
        let jobs = depth.jobs.get(status.as_str()).copied().unwrap_or_default();
        let labels = [("job_type", job_type.clone()), ("status", status.as_str().to_owned())];
        gauge!("windlass_jobs", &labels).set(jobs as f64);
    }
    let labels = [("job_type", job_type.clone())];
    gauge!("windlass_chunks_pending", &labels).set(depth.pending as f64);
    gauge!("windlass_chunks_in_flight", &labels).set(depth.in_flight as f64);
    gauge!("windlass_dead_letters", &labels).set(depth.dead_letters as f64);
}
