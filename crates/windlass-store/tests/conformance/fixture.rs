//! A store to test, and helpers that most tests use.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use windlass_core::config::{self, Dialect};
use windlass_core::{
    ChunkStatus, Counts, Cursor, Identity, Job, JobId, JobStatus, JobType, Key, KeyRange, KeySet,
    PaginationState, Request, Value,
};
use windlass_drivers::rusqlite::Connection;
use windlass_store::{
    Capabilities, ChunkRow, LeasedChunk, LeasedSegment, NewChunk, NewJob, NewSegment, OldJobs,
    Page, Progress, Result, SegmentLease, Store, StoreError, connect_with,
};
use windlass_testkit::{Database, PostgresServer};

use crate::statement_log::StatementLog;

/// A migrated store of one test, on either backend.
pub(crate) struct StoreFixture {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: config::Store,
    place: Place,
    /// What the stores of a strict fixture have sent. It is checked when the fixture is dropped.
    pub(crate) log: Option<StatementLog>,
}

enum Place {
    Sqlite(tempfile::TempDir),
    Postgres(Database),
}

/// The timeout for events that must happen. It is long, for machines under load.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// At most ten jobs of a type that ended longer ago than this.
pub(crate) fn old(job_type: &str, age: Duration, connections: &[String]) -> OldJobs {
    OldJobs { job_type: job_type.to_owned(), age, connections: connections.to_vec(), limit: 10 }
}

impl StoreFixture {
    pub(crate) async fn sqlite() -> StoreFixture {
        let fixture = StoreFixture::sqlite_unmigrated().await;
        fixture.store.migrate().await.unwrap();
        fixture
    }

    pub(crate) async fn postgres() -> StoreFixture {
        let fixture = StoreFixture::postgres_unmigrated().await;
        fixture.store.migrate().await.unwrap();
        fixture
    }

    /// In PostgreSQL, in the dialect `strict`.
    pub(crate) async fn strict() -> StoreFixture {
        let fixture = StoreFixture::strict_unmigrated().await;
        fixture.store.migrate().await.unwrap();
        fixture
    }

    pub(crate) async fn sqlite_unmigrated() -> StoreFixture {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("store.db").display());
        StoreFixture::open(config::Store::new(url), Place::Sqlite(folder)).await
    }

    pub(crate) async fn postgres_unmigrated() -> StoreFixture {
        let database = PostgresServer::shared().database().await;
        StoreFixture::open(config::Store::new(database.url()), Place::Postgres(database)).await
    }

    pub(crate) async fn strict_unmigrated() -> StoreFixture {
        let (database, log) = StatementLog::of_new_database().await;
        let mut settings = config::Store::new(database.url());
        settings.dialect = Dialect::Strict;
        let fixture = StoreFixture::open(settings, Place::Postgres(database)).await;
        StoreFixture { log: Some(log), ..fixture }
    }

    /// A migrated store in a database that the test has created.
    pub(crate) async fn postgres_on(database: Database) -> StoreFixture {
        let settings = config::Store::new(database.url());
        let fixture = StoreFixture::open(settings, Place::Postgres(database)).await;
        fixture.store.migrate().await.unwrap();
        fixture
    }

    async fn open(settings: config::Store, place: Place) -> StoreFixture {
        let store = connect_with(&settings).await.unwrap();
        StoreFixture { store, settings, place, log: None }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.place, Place::Sqlite(_))
    }

    /// How often a race is repeated. Fewer in the dialect `strict`, where each round takes longer and its conflicts are
    /// found at once.
    pub(crate) fn rounds(&self, usual: i64) -> i64 {
        if self.settings.dialect == Dialect::Strict { usual / 10 } else { usual }
    }

    /// A second handle on the same store, like that of another process.
    pub(crate) async fn other(&self) -> Arc<dyn Store> {
        connect_with(&self.settings).await.unwrap()
    }

    /// The database of a store in PostgreSQL.
    pub(crate) fn database(&self) -> &Database {
        match &self.place {
            Place::Sqlite(_) => panic!("a store in SQLite has no server"),
            Place::Postgres(database) => database,
        }
    }

    /// Reads a number that the trait does not provide.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        match &self.place {
            Place::Sqlite(folder) => {
                let connection = Connection::open(folder.path().join("store.db")).unwrap();
                connection.busy_timeout(LIMIT).unwrap();
                connection.query_row(sql, [], |row| row.get(0)).unwrap()
            }
            Place::Postgres(database) => database.one(sql).await,
        }
    }

    /// Runs SQL for which the trait has no method.
    pub(crate) async fn run(&self, sql: &str) {
        match &self.place {
            Place::Sqlite(folder) => {
                let connection = Connection::open(folder.path().join("store.db")).unwrap();
                connection.busy_timeout(LIMIT).unwrap();
                connection.execute_batch(sql).unwrap();
            }
            Place::Postgres(database) => database.run(sql).await,
        }
    }

    /// A time long ago, as SQL.
    pub(crate) fn past(&self) -> &'static str {
        if self.is_sqlite() { "1" } else { "'epoch'" }
    }

    /// Expires the leases of all segments, which are too long for a test.
    pub(crate) async fn shorten_segment_leases(&self) {
        self.run(&format!("UPDATE windlass_segments SET lease_until = {}", self.past())).await;
    }

    /// Submits a job with the default definition.
    pub(crate) async fn submit(&self) -> JobId {
        let job = new_job();
        self.store.submit(job).await.unwrap().id()
    }

    /// A planned job with this many chunks of ten items each.
    pub(crate) async fn planned(&self, chunks: usize) -> JobId {
        self.planned_as(new_job(), chunks).await
    }

    pub(crate) async fn planned_as(&self, job: NewJob, chunks: usize) -> JobId {
        let id = self.store.submit(job).await.unwrap().id();
        let segment = self.segment_of(id).await;
        let page = last_page(segment.lease, PaginationState::Plan, scan(10), cut(chunks));
        self.store.commit_page(page).await.unwrap();
        id
    }

    /// Leases one segment of a job.
    pub(crate) async fn segment_of(&self, job: JobId) -> LeasedSegment {
        let by = Capabilities { only_job: Some(job), ..by() };
        self.store.lease_segments(&by, 1).await.unwrap().remove(0)
    }

    /// Leases chunks of a job.
    pub(crate) async fn lease(&self, job: JobId, limit: u32) -> Vec<LeasedChunk> {
        let by = Capabilities { only_job: Some(job), ..by() };
        self.store.lease_chunks(&by, limit).await.unwrap()
    }

    pub(crate) async fn complete(&self, chunk: &LeasedChunk) -> Result<()> {
        self.store.complete(chunk.lease, &done(10), &[]).await
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.store.job(id).await.unwrap().unwrap()
    }

    pub(crate) async fn status(&self, id: JobId) -> JobStatus {
        self.job(id).await.status
    }

    pub(crate) async fn chunks(&self, job: JobId) -> Vec<ChunkRow> {
        self.store.chunks(job, None, None, 100_000).await.unwrap()
    }

    pub(crate) async fn chunk(&self, job: JobId, number: usize) -> ChunkRow {
        self.chunks(job).await.remove(number)
    }

    /// Checks invariants that hold when no call is in progress: the counters equal the counted rows, and
    /// the status of the job agrees with its segments and chunks.
    pub(crate) async fn check(&self, id: JobId) {
        let (job, chunks) = (self.job(id).await, self.chunks(id).await);
        let segments = self.store.segments(id).await.unwrap();
        let count = |status| chunks.iter().filter(|chunk| chunk.status == status).count() as i64;
        assert_eq!(job.chunks.total, chunks.len() as i64);
        assert_eq!(job.chunks.pending, count(ChunkStatus::Pending), "{job:?}");
        assert_eq!(job.chunks.processing, count(ChunkStatus::Processing), "{job:?}");
        assert_eq!(job.chunks.completed, count(ChunkStatus::Completed), "{job:?}");
        assert_eq!(job.chunks.failed, count(ChunkStatus::Failed), "{job:?}");
        assert_eq!(job.chunks.cancelled, count(ChunkStatus::Cancelled), "{job:?}");
        assert_eq!(job.items.total, chunks.iter().map(|chunk| chunk.items).sum::<i64>());
        let sum = |of: fn(&Counts) -> i64| chunks.iter().map(|c| of(&c.counts)).sum::<i64>();
        assert_eq!(job.items.processed, sum(|counts| counts.processed));
        assert_eq!(job.items.dead, sum(|counts| counts.dead));
        assert!(chunks.iter().enumerate().all(|(place, chunk)| chunk.chunk == place as i64));

        let is_open = |s| matches!(s, ChunkStatus::Pending | ChunkStatus::Processing);
        let open_chunks = chunks.iter().filter(|chunk| is_open(chunk.status)).count() as i64;
        let open_segments = segments.iter().filter(|s| is_open(s.status)).count() as i64;
        let counter = |name| format!("SELECT {name} FROM windlass_jobs WHERE id = '{id}'");
        assert_eq!(self.number(&counter("open_chunks")).await, open_chunks, "{job:?}");
        assert_eq!(self.number(&counter("open_segments")).await, open_segments, "{job:?}");

        let open = open_chunks + open_segments > 0;
        match job.status {
            JobStatus::Queued | JobStatus::Processing => assert!(open, "never ended: {job:?}"),
            JobStatus::Completed => assert!(!open && job.chunks.failed == 0, "{job:?}"),
            JobStatus::Cancelled => assert_eq!(job.finished_at.is_none(), open, "{job:?}"),
            JobStatus::Failed => assert!(job.finished_at.is_some() && job.error.is_some()),
            JobStatus::Paused => assert_eq!(job.finished_at, None, "{job:?}"),
        }
        for chunk in &chunks {
            assert_eq!(chunk.finished_at.is_some(), !is_open(chunk.status), "{chunk:?}");
        }
    }
}

/// Asserts that a call was refused because its lease is lost.
#[track_caller]
pub(crate) fn assert_lost<T: std::fmt::Debug>(result: Result<T>) {
    assert!(matches!(result, Err(StoreError::LeaseLost)), "{result:?}");
}

pub(crate) fn by() -> Capabilities {
    Capabilities {
        worker: "worker-1".to_owned(),
        connections: vec!["app".to_owned()],
        ..Capabilities::default()
    }
}

pub(crate) fn definition(more: serde_json::Value) -> JobType {
    let mut json = json!({
        "source": { "connection": "app", "table": "t", "key": ["id"] },
        "step": { "refresh": true, "version": "version" },
    });
    for (name, value) in more.as_object().unwrap() {
        json[name] = value.clone();
    }
    JobType::from_json("REFRESH", json).unwrap()
}

pub(crate) fn new_job() -> NewJob {
    job_with(json!({}), Request::new("REFRESH"))
}

pub(crate) fn job_with(more: serde_json::Value, request: Request) -> NewJob {
    let id = JobId::now_v7();
    let identity = Identity { name: "clerk".to_owned(), ..Identity::default() };
    let definition = definition(more);
    NewJob { id, definition, request, identity, root: id, rules: Vec::new(), plan: None }
}

/// A job whose leases expire during the test.
pub(crate) fn with_short_lease(lease: &str, timeout: &str) -> NewJob {
    let chunk = json!({ "chunk": { "lease": lease, "timeout": timeout } });
    job_with(chunk, Request::new("REFRESH"))
}

pub(crate) fn key(number: i64) -> Key {
    Key(vec![Value::Int(number)])
}

pub(crate) fn cut(chunks: usize) -> Vec<NewChunk> {
    let key_set = |n: i64| KeySet::range(Some(key(n * 10)), Some(key(n * 10 + 10)));
    (0..chunks as i64).map(|n| NewChunk { key_set: key_set(n), items: 10 }).collect()
}

/// The state of a scan that has enqueued this many items.
pub(crate) fn scan(items_enqueued: u64) -> PaginationState {
    let last_evaluated_key = match items_enqueued {
        0 => None,
        n => Some([("id".to_owned(), json!(n))].into_iter().collect()),
    };
    PaginationState::TableScan { segment: 0, total_segments: 1, last_evaluated_key, items_enqueued }
}

pub(crate) fn page(
    lease: SegmentLease,
    from: PaginationState,
    to: PaginationState,
    chunks: Vec<NewChunk>,
) -> Page {
    let segments = Vec::new();
    let read_snapshot = None;
    Page { lease, from, to, last: false, segments, chunks, planned: false, read_snapshot }
}

pub(crate) fn last_page(
    lease: SegmentLease,
    from: PaginationState,
    to: PaginationState,
    chunks: Vec<NewChunk>,
) -> Page {
    Page { last: true, ..page(lease, from, to, chunks) }
}

pub(crate) fn new_segments(count: u64) -> Vec<NewSegment> {
    let segment = |n| NewSegment { state: scan(n), range: KeyRange::ALL };
    (0..count).map(segment).collect()
}

/// The progress of a chunk with this many processed items.
pub(crate) fn done(processed: i64) -> Progress {
    let counts = Counts { read: processed, processed, ..Counts::default() };
    Progress { cursor: Cursor::End, counts, marked: None }
}

/// The progress of a chunk with this many dead items.
pub(crate) fn with_dead(dead: i64) -> Progress {
    let counts = Counts { read: 10, processed: 10 - dead, dead, ..Counts::default() };
    Progress { cursor: Cursor::End, counts, marked: None }
}
