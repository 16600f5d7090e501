//! A job type: `[jobs.NAME]` in windlass.toml, and the checks that need no database.

use crate::commit_size::CommitSize;
use crate::durability::Durability;
use crate::problem::{Code, Problem};
use crate::retry::{DEFAULT_FACTOR, Growth};
use crate::{
    Failures, Load, Param, QueueOptions, Report, Retention, RetryPolicy, Schedule, Secret, Step,
    StepKind, Template, inline_items, message_key,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The definition of a job type. A job runs by the definition that it was submitted with.
/// [`JobType::builder`] makes one in code.
///
/// ```
/// use windlass_core::JobType;
///
/// let job_type = JobType::builder("REFRESH").connection("app").table("visits").sql("UPDATE visits SET seen = true WHERE {chunk}").into_job_type();
/// assert_eq!(job_type.name, "REFRESH");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JobType {
    /// The name; `NAME` of `[jobs.NAME]`.
    #[serde(skip)]
    pub name: String,
    /// The line of the file it begins at; 0 if it was defined in code.
    #[serde(skip)]
    pub line: usize,
    /// The values of the variables in its step. They stay on this machine: a job stores the names.
    #[serde(skip)]
    pub variables: BTreeMap<String, Secret>,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Which records.
    pub source: Source,
    /// What to do with each.
    pub step: Step,
    /// The params of its requests, by name. If there are any, no others are accepted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Param>,
    /// The time zone of the job's date; the schedule's by default, or UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<chrono_tz::Tz>,
    /// How they are split into chunks, leased and committed.
    #[serde(default)]
    pub chunk: ChunkOptions,
    /// A SELECT over the table `parts`, run once after the last chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduce: Option<String>,
    /// The connection that runs `reduce`; the source's own by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduce_in: Option<String>,
    /// The file that the result is written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// The table that the result is loaded into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// How failures are retried.
    #[serde(default)]
    pub retry: RetryPolicy,
    /// The failure budget.
    #[serde(default)]
    pub failures: Failures,
    /// Limits over all machines.
    #[serde(default, skip_serializing_if = "Throughput::is_unlimited")]
    pub throughput: Throughput,
    /// The messages of its items on an SQS queue.
    #[serde(default, skip_serializing_if = "QueueOptions::is_default")]
    pub queue: QueueOptions,
    /// When the scheduler submits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// How long ended jobs are kept.
    #[serde(default, skip_serializing_if = "Retention::is_default")]
    pub retention: Retention,
}

/// Limits of a job type over all machines; unlimited by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Throughput {
    /// Chunks in progress at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Items per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_per_second: Option<u32>,
}

impl Throughput {
    fn is_unlimited(&self) -> bool {
        *self == Throughput::default()
    }
}

/// The records of a job type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Source {
    /// The connection's name.
    pub connection: String,
    /// The table, unless there is a query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// A SELECT whose rows are the records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Whether the requests carry the records themselves, as `items`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub items: bool,
    /// The field that must have the same value in all items of one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Fields of a payload and the fields of the request that they stand for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rename: BTreeMap<String, String>,
    /// The key columns, or the key fields of an item; the primary key if empty.
    pub key: Vec<String>,
    /// A condition that restricts every job.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Attributes, and the value that each must have: the record type in a table with several (DynamoDB).
    #[serde(rename = "match", skip_serializing_if = "BTreeMap::is_empty")]
    pub matches: BTreeMap<String, serde_json::Value>,
    /// Request filters and their indexed columns.
    pub filters: BTreeMap<String, String>,
    /// The submitter's claims and the columns they filter.
    pub claims: BTreeMap<String, String>,
    /// Whether a job ends when the token of its claims expires. Otherwise they stay valid until the job
    /// ends.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub claims_expire: bool,
    /// Whether `map` and `export` read all chunks at one instant; see [`JobType::wants_snapshot`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consistency: Option<Consistency>,
}

/// At which instant the chunks of a `map` or `export` are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// All chunks at one instant, under one snapshot of the database.
    Snapshot,
    /// Each chunk at its own instant.
    Chunk,
}

/// How the source is split into chunks, leased and committed.
///
/// ```
/// use std::time::Duration;
/// use windlass_core::ChunkOptions;
///
/// let chunks = ChunkOptions { items: Some(500), ..ChunkOptions::default() };
/// assert_eq!(chunks.lease, Duration::from_secs(30));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChunkOptions {
    /// Items per chunk; see [`JobType::chunk_items`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<u32>,
    /// Items per commit.
    #[serde(skip_serializing_if = "CommitSize::is_auto")]
    pub commit: CommitSize,
    /// How long a commit should take if the number of its items is not set; see [`JobType::commit_time`].
    #[serde(skip_serializing_if = "Option::is_none", with = "humantime_serde")]
    pub commit_time: Option<Duration>,
    /// When commits are on disk.
    #[serde(skip_serializing_if = "Durability::is_group")]
    pub durability: Durability,
    /// The longest time that one attempt of a chunk may take.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// How long a lease lasts without a heartbeat.
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
}

impl Default for ChunkOptions {
    fn default() -> Self {
        ChunkOptions {
            items: None,
            commit: CommitSize::Auto,
            commit_time: None,
            durability: Durability::Group,
            timeout: Duration::from_secs(300),
            lease: Duration::from_secs(30),
        }
    }
}

/// Default items per chunk, for a step that gets the items and for a chunk that lists its keys.
const DEFAULT_CHUNK_ITEMS: u32 = 1000;
/// For a statement on a range of keys: a larger chunk costs less of the store.
const DEFAULT_STATEMENT_ITEMS: u32 = 10_000;
/// For `map` and `export`, which process a chunk in one go.
const DEFAULT_PART_ITEMS: u32 = 100_000;
const DEFAULT_COMMIT_TIME: Duration = Duration::from_millis(250);

impl JobType {
    /// Items per chunk.
    pub fn chunk_items(&self) -> u32 {
        let default = match &self.step.kind {
            kind if kind.makes_parts() => DEFAULT_PART_ITEMS,
            StepKind::Sql(_) | StepKind::Refresh => DEFAULT_STATEMENT_ITEMS,
            _ => DEFAULT_CHUNK_ITEMS,
        };
        self.chunk.items.unwrap_or(default)
    }

    /// Whether all chunks are read under one snapshot where the database has such: `map` and `export`, unless
    /// `source.consistency` is `"chunk"`.
    pub fn wants_snapshot(&self) -> bool {
        let is_chunk = self.source.consistency == Some(Consistency::Chunk);
        self.step.kind.makes_parts() && !self.source.items && !is_chunk
    }

    /// Items per chunk that lists its keys.
    pub fn listed_items(&self) -> u32 {
        match self.step.kind.makes_parts() {
            true => self.chunk_items(),
            false => self.chunk.items.unwrap_or(DEFAULT_CHUNK_ITEMS),
        }
    }

    /// The most items per commit.
    pub fn commit_items(&self) -> u32 {
        match self.chunk.commit {
            CommitSize::Items(items) => items,
            CommitSize::Auto => self.chunk_items(),
        }
    }

    /// How long a commit should take; `None` if the number of its items is set.
    pub fn commit_time(&self) -> Option<Duration> {
        let time = self.chunk.commit_time.unwrap_or(DEFAULT_COMMIT_TIME);
        self.chunk.commit.is_auto().then_some(time)
    }

    /// The definition as it is stored with a job.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads a definition that was stored with a job.
    ///
    /// # Errors
    /// The JSON is not a definition.
    pub fn from_json(name: &str, json: serde_json::Value) -> Result<JobType, serde_json::Error> {
        let mut job_type: JobType = serde_json::from_value(json)?;
        job_type.name = name.to_owned();
        Ok(job_type)
    }

    /// The parsed statement of a `sql` or `map` step.
    ///
    /// # Errors
    /// The statement has an unknown placeholder.
    pub fn statement(&self) -> Result<Option<Template>, Problem> {
        match &self.step.kind {
            kind @ (StepKind::Sql(sql) | StepKind::Map(sql)) => {
                Template::parse(sql).map(Some).map_err(|detail| self.problem(kind.field(), detail))
            }
            _ => Ok(None),
        }
    }

    /// Whether the rows that the step's statement affects are rows of the source, and so items. True for
    /// steps that have an outcome per item, or change nothing.
    ///
    /// # Errors
    /// The statement has an unknown placeholder.
    pub fn changes_source(&self) -> Result<bool, Problem> {
        match (&self.step.kind, self.statement()?, &self.source.table) {
            (StepKind::Sql(_), Some(statement), Some(table)) => Ok(statement.changes(table)),
            (StepKind::Sql(_), ..) => Ok(false),
            _ => Ok(true),
        }
    }

    /// The parsed statement over the parts.
    ///
    /// # Errors
    /// The statement has an unknown placeholder.
    pub fn reduction(&self) -> Result<Option<Template>, Problem> {
        let template = self.reduce.as_deref().map(Template::parse).transpose();
        template.map_err(|detail| self.problem("reduce", detail))
    }

    /// How long a `command` or `http` step may take for one batch. The default leaves time to halve a batch
    /// that hangs before the chunk times out.
    pub fn step_timeout(&self) -> Duration {
        self.step.timeout.unwrap_or(self.chunk.timeout / 4)
    }

    /// The guarantee of the job type, as `windlass check` prints it.
    pub fn guarantee(&self) -> &'static str {
        match (&self.step.kind, &self.step.version) {
            (StepKind::Sql(_), None) => {
                "exactly once: each commit's effect and its ledger row are one transaction. \
                 Without a version column the statement handles concurrent writes itself: it sees \
                 the rows as they are when it locks them"
            }
            (StepKind::Sql(_) | StepKind::Refresh, _) => {
                "exactly once: each commit's effect and its ledger row are one transaction"
            }
            (StepKind::Export(_) | StepKind::Map(_), _) if self.wants_snapshot() => {
                "read-only: each chunk is one part, counted exactly once; the result is made of exactly \
                 these parts. PostgreSQL 14 and later read all chunks at one instant, other databases \
                 each chunk at its own"
            }
            (StepKind::Export(_) | StepKind::Map(_), _) => {
                "read-only: each chunk is one part, read at its own instant and counted exactly once; \
                 the result is made of exactly these parts"
            }
            _ if self.source.items || self.source.query.is_some() => {
                "inserts exactly once, in one transaction with the ledger row; other effects of the \
                 handler at least once, with a stable idempotency key"
            }
            (StepKind::Handler(_) | StepKind::Command(_) | StepKind::Http(_), _) => {
                "updates and inserts exactly once, under the guard, in one transaction with the \
                 ledger row; other effects of the handler at least once, with a stable idempotency \
                 key"
            }
        }
    }

    /// Replaces the variables in a text of its step. Unknown variables stay.
    pub fn expand(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let known = after
                .split_once('}')
                .and_then(|(name, after)| Some((self.variables.get(name)?.expose(), after)));
            match known {
                Some((value, after)) => {
                    out.push_str(value);
                    rest = after;
                }
                None => {
                    out.push_str("${");
                    rest = after;
                }
            }
        }
        out + rest
    }

    /// All problems of the definition that can be found without a database.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |field: &str, detail: String| problems.push(self.problem(field, detail));
        let source = &self.source;
        if source.connection.is_empty() {
            refuse("source.connection", "is missing; name one of [connections]".into());
        }
        match (&source.table, &source.query) {
            (None, None) if source.items => {}
            (None, None) => {
                refuse("source.table", "is missing; name a table, or give source.query".into())
            }
            (Some(_), Some(_)) if !source.items => refuse(
                "source.query",
                "cannot be combined with source.table; keep one of them".into(),
            ),
            (None, Some(_)) if source.key.is_empty() && !source.items => {
                refuse("source.key", "is missing; a query has no primary key to take".into());
            }
            _ => {}
        }
        for (column, value) in &source.matches {
            if !(value.is_string() || value.is_number() || value.is_boolean()) {
                let detail = format!("must be a text, a number or a boolean, got {value}");
                refuse(&format!("source.match.{column}"), detail);
            }
        }
        if source.consistency.is_some() && (!self.step.kind.makes_parts() || source.items) {
            let detail = "applies only to step.map and step.export on a table or query; remove it";
            refuse("source.consistency", detail.into());
        }
        let chunk = &self.chunk;
        let (items, commit) = (self.chunk_items(), self.commit_items());
        if !(1..=10_000_000).contains(&items) {
            refuse("chunk.items", format!("must be 1 to 10000000, got {items}"));
        }
        if !(1..=items.max(1)).contains(&commit) {
            refuse("chunk.commit", format!("must be 1 to chunk.items, got {commit}"));
        }
        for (field, is_set) in [
            ("chunk.commit", !chunk.commit.is_auto()),
            ("chunk.commit_time", chunk.commit_time.is_some()),
            ("chunk.durability", !chunk.durability.is_group()),
        ] {
            if is_set && self.step.kind.makes_parts() {
                let kind = self.step.kind.field();
                refuse(field, format!("does not apply to {kind}, which writes one part per chunk"));
            }
        }
        if let Some(time) = chunk.commit_time {
            if !chunk.commit.is_auto() {
                let detail = "applies only to chunk.commit = \"auto\"; remove one of them";
                refuse("chunk.commit_time", detail.into());
            }
            if time < Duration::from_millis(1) || time > chunk.timeout {
                let detail = "must be at least 1ms and at most chunk.timeout";
                refuse("chunk.commit_time", detail.into());
            }
        }
        if chunk.lease < Duration::from_millis(100) || chunk.lease > chunk.timeout {
            refuse("chunk.lease", "must be at least 100ms and at most chunk.timeout".into());
        }
        if self.retry.attempts == 0 {
            refuse("retry.attempts", "must be at least 1, got 0; the default is 3".into());
        }
        if !(self.retry.factor >= 1.0 && self.retry.factor.is_finite()) {
            refuse("retry.factor", format!("must be at least 1.0, got {}", self.retry.factor));
        }
        if self.retry.growth == Growth::Linear && self.retry.factor != DEFAULT_FACTOR {
            let detail = "applies to growth = \"exponential\"; with \"linear\" each wait is `backoff` longer";
            refuse("retry.factor", detail.into());
        }
        if self.throughput.concurrency == Some(0) {
            refuse(
                "throughput.concurrency",
                "must be at least 1, got 0; `windlass stop` stops a job type".into(),
            );
        }
        if self.throughput.items_per_second == Some(0) {
            refuse("throughput.items_per_second", "must be at least 1, got 0".into());
        }
        if let Some((field, detail)) = self.schedule.as_ref().and_then(Schedule::problem) {
            refuse(field, detail);
        }
        let mut wrong = self.step.problems(self);
        wrong.extend(inline_items::problems(self));
        wrong.extend(self.queue.problems());
        wrong.extend(message_key::problems(self));
        wrong.extend(self.fan_in_problems());
        let wrong = wrong.into_iter().map(|(field, detail)| (field.to_owned(), detail));
        let wrong = wrong.chain(self.param_problems()).chain(self.rename_problems());
        problems.extend(wrong.map(|(field, detail)| self.problem(&field, detail)));
        problems
    }

    /// The columns that a step must not set: a row whose key, filter or claim changes would move to another
    /// chunk, and one that `source.match` no longer selects would leave the job.
    pub fn fixed_columns(&self) -> Vec<&str> {
        let source = &self.source;
        let named = source.filters.values().chain(source.claims.values());
        let named = named.chain(source.matches.keys());
        source.key.iter().chain(named).map(String::as_str).collect()
    }

    /// A problem with one of this job type's fields.
    pub fn problem(&self, field: &str, detail: impl Into<String>) -> Problem {
        Problem::field(Code::Source, format!("jobs.{}.{field}", self.name), detail)
            .at_line(self.line)
    }
}
