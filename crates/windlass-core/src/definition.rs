//! A job type: what `[jobs.NAME]` in windlass.toml says, and what of it can be checked without a
//! database.

use crate::problem::{Code, Problem};
use crate::{
    Failures, Load, QueueOptions, Report, Retention, RetryPolicy, Schedule, Secret, Step, StepKind,
    Template, inline_items,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The definition of a job type. A job keeps the one it was submitted with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobType {
    /// Its name; the table's name in the file.
    #[serde(skip)]
    pub name: String,
    /// The line of the file it begins at; zero when it was made in code.
    #[serde(skip)]
    pub line: usize,
    /// The values of the variables that its step names as `${VAR}`. They are of this machine: a job
    /// keeps the names.
    #[serde(skip)]
    pub variables: BTreeMap<String, Secret>,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Which records.
    pub source: Source,
    /// What to do with each.
    pub step: Step,
    /// How they are cut, leased and committed.
    #[serde(default)]
    pub chunk: ChunkOptions,
    /// A SELECT over the table `parts`, run once after the last chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduce: Option<String>,
    /// The connection it runs on; the source's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduce_in: Option<String>,
    /// A file that is made of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// A table that the result goes into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// When failures are tried again.
    #[serde(default)]
    pub retry: RetryPolicy,
    /// When the job stops by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<Failures>,
    /// How fast it may go, over all machines.
    #[serde(default, skip_serializing_if = "Throughput::is_unlimited")]
    pub throughput: Throughput,
    /// How its items travel where a queue carries them.
    #[serde(default, skip_serializing_if = "QueueOptions::is_default")]
    pub queue: QueueOptions,
    /// When it is submitted by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// How long what has ended is kept.
    #[serde(default, skip_serializing_if = "Retention::is_default")]
    pub retention: Retention,
}

/// How fast a job type may go, over all machines; no limit where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Throughput {
    /// Chunks at work at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Items worked a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_per_second: Option<u32>,
}

impl Throughput {
    fn is_unlimited(&self) -> bool {
        *self == Throughput::default()
    }
}

/// Which records a job type works on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Source {
    /// The connection's name.
    pub connection: String,
    /// The table; or else a query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// A SELECT whose rows are the records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Whether the requests carry the records themselves, as `items`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub items: bool,
    /// The field that all items of one request must have in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The key columns, or the key fields of an item; the primary key when empty.
    pub key: Vec<String>,
    /// A fixed condition.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Request filters and their indexed columns.
    pub filters: BTreeMap<String, String>,
    /// The submitter's claims and the columns they filter.
    pub claims: BTreeMap<String, String>,
    /// Whether a job ends when the token that its claims came from does. Otherwise they are good
    /// for as long as it runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub claims_expire: bool,
}

/// How the source is cut, leased and committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChunkOptions {
    /// Items a chunk; see [`JobType::chunk_items`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<u32>,
    /// Items a commit; the whole chunk when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<u32>,
    /// No claim of a chunk lasts longer than this.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// A worker silent for this long loses its chunk.
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
}

impl Default for ChunkOptions {
    fn default() -> Self {
        ChunkOptions {
            items: None,
            commit: None,
            timeout: Duration::from_secs(300),
            lease: Duration::from_secs(30),
        }
    }
}

/// Items a chunk where nothing is said. What adds up a chunk or writes it out is done in one go, and
/// more of that at once is faster.
const ITEMS: u32 = 1000;
const ITEMS_OF_A_PART: u32 = 100_000;

impl JobType {
    /// Items a chunk.
    pub fn chunk_items(&self) -> u32 {
        let default = if self.step.kind.makes_parts() { ITEMS_OF_A_PART } else { ITEMS };
        self.chunk.items.unwrap_or(default)
    }

    /// Items a commit.
    pub fn commit_items(&self) -> u32 {
        self.chunk.commit.unwrap_or(self.chunk_items())
    }

    /// The definition as it is snapshot in a job.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads a snapshot definition.
    pub fn from_json(name: &str, json: serde_json::Value) -> Result<JobType, serde_json::Error> {
        let mut job_type: JobType = serde_json::from_value(json)?;
        job_type.name = name.to_owned();
        Ok(job_type)
    }

    /// The statement of a `sql` or `map` step, taken apart.
    pub fn statement(&self) -> Result<Option<Template>, Problem> {
        match &self.step.kind {
            kind @ (StepKind::Sql(sql) | StepKind::Map(sql)) => {
                Template::parse(sql).map(Some).map_err(|detail| self.problem(kind.field(), detail))
            }
            _ => Ok(None),
        }
    }

    /// Whether the rows that the step's statement affects are rows of the source, and so items. True
    /// for steps that have an outcome per item, or change nothing.
    pub fn changes_source(&self) -> Result<bool, Problem> {
        match (&self.step.kind, self.statement()?, &self.source.table) {
            (StepKind::Sql(_), Some(statement), Some(table)) => Ok(statement.changes(table)),
            (StepKind::Sql(_), ..) => Ok(false),
            _ => Ok(true),
        }
    }

    /// The statement over the parts, taken apart.
    pub fn reduction(&self) -> Result<Option<Template>, Problem> {
        let template = self.reduce.as_deref().map(Template::parse).transpose();
        template.map_err(|detail| self.problem("reduce", detail))
    }

    /// How long a `command` or `http` step may take for one batch. The default leaves time to halve
    /// a batch that hangs before the claim of its chunk ends.
    pub fn step_timeout(&self) -> Duration {
        self.step.timeout.unwrap_or(self.chunk.timeout / 4)
    }

    /// What the job type promises, in the words `windlass check` says it.
    pub fn guarantee(&self) -> &'static str {
        match (&self.step.kind, &self.step.version) {
            (StepKind::Sql(_), None) => {
                "exactly once: each commit's effect and its ledger row are one transaction. \
                 There is no version column, so the statement decides by itself what a concurrent \
                 write means: it sees the rows as they are when it locks them"
            }
            (StepKind::Sql(_) | StepKind::Refresh, _) => {
                "exactly once: each commit's effect and its ledger row are one transaction"
            }
            (StepKind::Export(_) | StepKind::Map(_), _) => {
                "reads only: each chunk is one part, read at its own instant and counted exactly \
                 once; what is made of the parts is made of exactly those"
            }
            _ if self.source.items => {
                "inserts exactly once, in one transaction with the ledger row; what the handler \
                 does elsewhere at least once, with a stable idempotency key"
            }
            (StepKind::Handler(_) | StepKind::Command(_) | StepKind::Http(_), _) => {
                "updates and inserts exactly once, under the version check, in one transaction \
                 with the ledger row; what the handler does elsewhere at least once, with a \
                 stable idempotency key"
            }
        }
    }

    /// A text of its step with the values of the variables in it; what is no variable stays.
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

    /// Everything that is wrong with the definition by itself.
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
            (Some(_), Some(_)) if !source.items => {
                refuse("source.query", "stands beside source.table; keep one".into())
            }
            (None, Some(_)) if source.key.is_empty() && !source.items => {
                refuse("source.key", "is missing; a query has no primary key to take".into());
            }
            _ => {}
        }
        let chunk = &self.chunk;
        let (items, commit) = (self.chunk_items(), self.commit_items());
        if !(1..=10_000_000).contains(&items) {
            refuse("chunk.items", format!("is {items}; 1 to 10000000 would be right"));
        }
        if !(1..=items.max(1)).contains(&commit) {
            refuse("chunk.commit", format!("is {commit}; 1 to chunk.items would be right"));
        }
        if chunk.commit.is_some() && self.step.kind.makes_parts() {
            let detail =
                format!("{} makes one part of a chunk; leave it out", self.step.kind.field());
            refuse("chunk.commit", detail);
        }
        if chunk.lease < Duration::from_millis(100) || chunk.lease > chunk.timeout {
            refuse("chunk.lease", "must be at least 100ms and at most chunk.timeout".into());
        }
        if self.retry.attempts == 0 {
            refuse("retry.attempts", "is 0; 1 means one try, 3 is the default".into());
        }
        if !(self.retry.factor >= 1.0 && self.retry.factor.is_finite()) {
            refuse("retry.factor", format!("is {}; 1.0 or more would be right", self.retry.factor));
        }
        if self.throughput.concurrency == Some(0) {
            refuse("throughput.concurrency", "is 0; `windlass stop` stops a job type".into());
        }
        if self.throughput.items_per_second == Some(0) {
            refuse("throughput.items_per_second", "is 0; 1 or more would be right".into());
        }
        if let Some((field, detail)) = self.schedule.as_ref().and_then(Schedule::problem) {
            refuse(field, detail);
        }
        let mut wrong = self.step.problems(self);
        wrong.extend(inline_items::problems(self));
        wrong.extend(self.queue.problems());
        wrong.extend(self.fan_in_problems());
        problems.extend(wrong.into_iter().map(|(field, detail)| self.problem(field, detail)));
        problems
    }

    /// The columns a step must not set: a row whose key, filter or claim changed would move into
    /// another chunk.
    pub fn fixed_columns(&self) -> Vec<&str> {
        let source = &self.source;
        let named = source.filters.values().chain(source.claims.values());
        source.key.iter().chain(named).map(String::as_str).collect()
    }

    /// A problem with one of this job type's fields.
    pub fn problem(&self, field: &str, detail: impl Into<String>) -> Problem {
        Problem::field(Code::Source, format!("jobs.{}.{field}", self.name), detail)
            .at_line(self.line)
    }
}
