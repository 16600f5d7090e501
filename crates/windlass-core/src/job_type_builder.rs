//! A job type defined in Rust, with the same fields as `[jobs.NAME]` in windlass.toml.

use crate::commit_size::CommitSize;
use crate::durability::Durability;
use crate::{
    ChunkOptions, Consistency, Endpoint, Export, Failures, Guard, JobType, Load, OnBadRow,
    OnConflict, Param, Problem, QueueOptions, Report, Request, Retention, RetryPolicy, Schedule,
    Source, Step, StepKind, Throughput,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Builds a job type field by field. `S` is the step: [`NoStep`] until a method such as
/// [`sql`](JobTypeBuilder::sql) or [`handler`](JobTypeBuilder::handler) sets it. A job type without a
/// step, or with two, does not compile.
///
/// ```
/// use windlass_core::JobType;
///
/// let refresh = JobType::builder("REFRESH")
///     .connection("app")
///     .table("candidates")
///     .filter("year", "reporting_year")
///     .refresh()
///     .version("version")
///     .chunk_items(500)
///     .build()?;
/// assert_eq!(refresh.chunk_items(), 500);
/// # Ok::<(), windlass_core::Problem>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built or registered"]
pub struct JobTypeBuilder<S = NoStep> {
    job_type: JobType,
    step: S,
}

/// The builder has no step yet.
#[derive(Clone, Copy, Debug)]
pub struct NoStep;

/// The builder has a step that is data: a statement, a command, an endpoint, an export.
#[derive(Clone, Copy, Debug)]
pub struct Declared;

/// The builder has a Rust function as its step.
#[derive(Clone, Copy, Debug)]
pub struct Handler<F>(F);

impl JobType {
    /// Begins the definition of a job type; see [`JobTypeBuilder`].
    ///
    /// ```
    /// use windlass_core::JobType;
    ///
    /// let close = JobType::builder("CLOSE_VISITS")
    ///     .connection("app")
    ///     .table("visits")
    ///     .sql("UPDATE visits SET open = false WHERE {chunk}")
    ///     .build()?;
    /// assert_eq!(close.name, "CLOSE_VISITS");
    /// # Ok::<(), windlass_core::Problem>(())
    /// ```
    pub fn builder(name: impl Into<String>) -> JobTypeBuilder {
        let step = Step {
            kind: StepKind::Refresh,
            version: None,
            guard: None,
            on_conflict: OnConflict::default(),
            on_bad_row: None,
            mark: None,
            timeout: None,
            env: Vec::new(),
        };
        let job_type = JobType {
            name: name.into(),
            line: 0,
            variables: BTreeMap::new(),
            description: String::new(),
            source: Source::default(),
            step,
            params: BTreeMap::new(),
            timezone: None,
            chunk: ChunkOptions::default(),
            reduce: None,
            reduce_in: None,
            report: None,
            load: None,
            retry: RetryPolicy::default(),
            failures: Failures::default(),
            throughput: Throughput::default(),
            queue: QueueOptions::default(),
            schedule: None,
            retention: Retention::default(),
        };
        JobTypeBuilder { job_type, step: NoStep }
    }
}

impl JobTypeBuilder<NoStep> {
    /// `step.refresh`: write each record back as it is, with its version raised by one if it has one.
    pub fn refresh(self) -> JobTypeBuilder<Declared> {
        self.declare(StepKind::Refresh)
    }

    /// `step.sql`: one set-based statement per commit. It must contain `{chunk}`.
    pub fn sql(self, statement: impl Into<String>) -> JobTypeBuilder<Declared> {
        self.declare(StepKind::Sql(statement.into()))
    }

    /// `step.map`: a SELECT per chunk, computed by the source database. It must contain `{chunk}`.
    pub fn map(self, select: impl Into<String>) -> JobTypeBuilder<Declared> {
        self.declare(StepKind::Map(select.into()))
    }

    /// `step.export`: the records as files.
    pub fn export(self, export: Export) -> JobTypeBuilder<Declared> {
        self.declare(StepKind::Export(export))
    }

    /// `step.command`: a child process per slot that reads and writes JSON lines.
    pub fn command<W: Into<String>>(
        self,
        words: impl IntoIterator<Item = W>,
    ) -> JobTypeBuilder<Declared> {
        self.declare(StepKind::Command(words.into_iter().map(Into::into).collect()))
    }

    /// `step.http`: a POST per commit.
    pub fn http(self, url: impl Into<String>) -> JobTypeBuilder<Declared> {
        self.declare(StepKind::Http(Endpoint { url: url.into(), ..Endpoint::default() }))
    }

    /// A Rust function `async fn(Record, ItemContext) -> Result<Outcome, ItemError>`, called once per
    /// record. The engine registers it together with the job type, so no name has to match.
    pub fn handler<F>(mut self, function: F) -> JobTypeBuilder<Handler<F>> {
        self.job_type.step.kind = StepKind::Handler(self.job_type.name.clone());
        JobTypeBuilder { job_type: self.job_type, step: Handler(function) }
    }

    fn declare(mut self, kind: StepKind) -> JobTypeBuilder<Declared> {
        self.job_type.step.kind = kind;
        JobTypeBuilder { job_type: self.job_type, step: Declared }
    }
}

impl JobTypeBuilder<Declared> {
    /// The job type.
    ///
    /// # Errors
    /// The first field that is missing or out of range.
    pub fn build(self) -> Result<JobType, Problem> {
        match self.job_type.problems().into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(self.job_type),
        }
    }

    /// The job type, not checked.
    pub fn into_job_type(self) -> JobType {
        self.job_type
    }
}

impl<F> JobTypeBuilder<Handler<F>> {
    /// The job type, not checked, and its function.
    pub fn into_parts(self) -> (JobType, F) {
        (self.job_type, self.step.0)
    }
}

impl<S> JobTypeBuilder<S> {
    /// A request for the whole source of this job type.
    pub fn request(&self) -> Request {
        Request::new(self.job_type.name.clone())
    }

    /// What the job type is for.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.job_type.description = description.into();
        self
    }

    /// The connection that has the records.
    pub fn connection(mut self, name: impl Into<String>) -> Self {
        self.job_type.source.connection = name.into();
        self
    }

    /// The table whose rows are the records.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.job_type.source.table = Some(table.into());
        self
    }

    /// A SELECT whose rows are the records. It needs [`key`](JobTypeBuilder::key).
    pub fn query(mut self, select: impl Into<String>) -> Self {
        self.job_type.source.query = Some(select.into());
        self
    }

    /// The records come with the request, as `items`.
    pub fn inline_items(mut self) -> Self {
        self.job_type.source.items = true;
        self
    }

    /// The key columns; the primary key by default.
    pub fn key<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.job_type.source.key = columns.into_iter().map(Into::into).collect();
        self
    }

    /// `source.where`: a condition that restricts every job.
    pub fn condition(mut self, sql: impl Into<String>) -> Self {
        self.job_type.source.condition = Some(sql.into());
        self
    }

    /// `source.consistency`: whether `map` and `export` read all chunks at one instant.
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.job_type.source.consistency = Some(consistency);
        self
    }

    /// `source.match`: the value that an attribute of every record must have (DynamoDB).
    pub fn matching(
        mut self,
        attribute: impl Into<String>,
        value: impl Into<serde_json::Value>,
    ) -> Self {
        self.job_type.source.matches.insert(attribute.into(), value.into());
        self
    }

    /// A filter of the request and the indexed column it restricts.
    pub fn filter(mut self, name: impl Into<String>, column: impl Into<String>) -> Self {
        self.job_type.source.filters.insert(name.into(), column.into());
        self
    }

    /// A claim of the submitter and the column it restricts.
    pub fn claim(mut self, name: impl Into<String>, column: impl Into<String>) -> Self {
        self.job_type.source.claims.insert(name.into(), column.into());
        self
    }

    /// The optimistic lock column. Without it, updates are guarded by the row itself; see
    /// [`JobType::guard`].
    pub fn version(mut self, column: impl Into<String>) -> Self {
        self.job_type.step.version = Some(column.into());
        self
    }

    /// `step.guard`: what an update compares with the record that was read.
    ///
    /// ```
    /// use windlass_core::{Guard, JobType};
    ///
    /// let enrich = JobType::builder("ENRICH")
    ///     .connection("app")
    ///     .table("people")
    ///     .command(["python3", "enrich.py"])
    ///     .guard(Guard::Columns)
    ///     .build()?;
    /// assert_eq!(enrich.step.version, None);
    /// # Ok::<(), windlass_core::Problem>(())
    /// ```
    pub fn guard(mut self, guard: Guard) -> Self {
        self.job_type.step.guard = Some(guard);
        self
    }

    /// What happens when another writer changed a record.
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.job_type.step.on_conflict = on_conflict;
        self
    }

    /// What happens to a row that a `map` or `export` cannot read; by default it becomes a dead letter.
    pub fn on_bad_row(mut self, on_bad_row: OnBadRow) -> Self {
        self.job_type.step.on_bad_row = Some(on_bad_row);
        self
    }

    /// A column that marks the rows of a running chunk.
    pub fn mark(mut self, column: impl Into<String>) -> Self {
        self.job_type.step.mark = Some(column.into());
        self
    }

    /// Items per chunk.
    pub fn chunk_items(mut self, items: u32) -> Self {
        self.job_type.chunk.items = Some(items);
        self
    }

    /// Items per commit; by default as many as take about a quarter of a second.
    pub fn commit_items(mut self, items: u32) -> Self {
        self.job_type.chunk.commit = CommitSize::Items(items);
        self
    }

    /// When the commits of a chunk are on disk.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.job_type.chunk.durability = durability;
        self
    }

    /// The longest time one attempt of a chunk may take.
    pub fn chunk_timeout(mut self, timeout: Duration) -> Self {
        self.job_type.chunk.timeout = timeout;
        self
    }

    /// How long a lease lasts without a heartbeat.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.job_type.chunk.lease = lease;
        self
    }

    /// How failures are retried.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.job_type.retry = retry;
        self
    }

    /// How many dead letters are too many, and what happens then.
    pub fn failures(mut self, failures: Failures) -> Self {
        self.job_type.failures = failures;
        self
    }

    /// Chunks in progress at once, over all machines.
    pub fn concurrency(mut self, slots: u32) -> Self {
        self.job_type.throughput.concurrency = Some(slots);
        self
    }

    /// Items per second, over all machines.
    pub fn items_per_second(mut self, items: u32) -> Self {
        self.job_type.throughput.items_per_second = Some(items);
        self
    }

    /// When the job type is submitted by the scheduler.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.job_type.schedule = Some(schedule);
        self
    }

    /// A SELECT over the table `parts`, run once after the last chunk.
    pub fn reduce(mut self, select: impl Into<String>) -> Self {
        self.job_type.reduce = Some(select.into());
        self
    }

    /// The connection that runs `reduce`; the source's own by default.
    pub fn reduce_in(mut self, connection: impl Into<String>) -> Self {
        self.job_type.reduce_in = Some(connection.into());
        self
    }

    /// The file that the result is written to, such as `file:reports/{date}.csv`.
    pub fn report(mut self, report: Report) -> Self {
        self.job_type.report = Some(report);
        self
    }

    /// The table that the result is loaded into.
    pub fn load(mut self, load: Load) -> Self {
        self.job_type.load = Some(load);
        self
    }

    /// Declares a param of its requests. Once one is declared, no others are accepted.
    pub fn param(mut self, name: impl Into<String>, param: Param) -> Self {
        self.job_type.params.insert(name.into(), param);
        self
    }

    /// The time zone of the job's date; the schedule's by default, or UTC.
    pub fn timezone(mut self, timezone: chrono_tz::Tz) -> Self {
        self.job_type.timezone = Some(timezone);
        self
    }

    /// How long ended jobs are kept.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.job_type.retention = retention;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn a_built_job_type_equals_the_one_in_the_file() {
        let built = JobType::builder("CLOSE")
            .description("Close visits")
            .connection("app")
            .table("visits")
            .key(["id"])
            .filter("year", "year")
            .sql("UPDATE visits SET open = false WHERE {chunk}")
            .chunk_items(100)
            .concurrency(4)
            .build()
            .unwrap();
        let text = r#"
            [jobs.CLOSE]
            description = "Close visits"
            source = { connection = "app", table = "visits", key = ["id"], filters = { year = "year" } }
            step.sql = "UPDATE visits SET open = false WHERE {chunk}"
            chunk.items = 100
            throughput = { concurrency = 4 }
        "#;
        let config = Config::parse(text, |_| None).unwrap();
        assert_eq!(built.to_json(), config.jobs["CLOSE"].to_json());
    }

    #[test]
    fn what_is_missing_is_named() {
        let problem = JobType::builder("CLOSE").table("visits").refresh().build().unwrap_err();
        assert_eq!(problem.field.as_deref(), Some("jobs.CLOSE.source.connection"));
    }

    #[test]
    fn a_handler_is_registered_under_the_name_of_its_job_type() {
        let builder = JobType::builder("ENRICH").connection("app").table("visits").handler(|| 7);
        assert_eq!(builder.request().job_type, "ENRICH");
        let (job_type, function) = builder.into_parts();
        assert_eq!(job_type.step.kind, StepKind::Handler("ENRICH".to_owned()));
        assert_eq!(function(), 7);
    }
}
