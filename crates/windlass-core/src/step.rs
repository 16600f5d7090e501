//! The step of a job type: what it does with each record.

mod on_bad_row;

pub use on_bad_row::OnBadRow;

use crate::{Guard, JobType, Secret, Template};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use url::Url;

/// What to do with each record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StepFields", into = "StepFields")]
pub struct Step {
    /// Exactly one kind.
    pub kind: StepKind,
    /// The optimistic lock column.
    pub version: Option<String>,
    /// What an update compares; see [`JobType::guard`].
    pub guard: Option<Guard>,
    /// What happens when another writer changed the record.
    pub on_conflict: OnConflict,
    /// What happens to a row that a `map` or `export` cannot read; by default a dead letter.
    pub on_bad_row: Option<OnBadRow>,
    /// A column that marks the rows of a running chunk.
    pub mark: Option<String>,
    /// How long a command or endpoint may take for one batch; see [`JobType::step_timeout`].
    pub timeout: Option<Duration>,
    /// The environment variables that a command gets; see [`Step::environment`].
    pub env: Vec<String>,
}

/// The kinds of step.
///
/// ```
/// use windlass_core::StepKind;
///
/// assert_eq!(StepKind::Sql("UPDATE visits SET seen = true WHERE {chunk}".to_owned()).field(), "step.sql");
/// assert!(!StepKind::Refresh.makes_parts());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum StepKind {
    /// Write each record back unchanged, with its version raised by one if it has one.
    Refresh,
    /// One set-based statement per commit.
    Sql(String),
    /// A Rust function registered under this name.
    Handler(String),
    /// A long-lived child process per slot: the program and its arguments. `${VAR}` is replaced on the
    /// machine that starts it.
    Command(Vec<String>),
    /// A POST per batch.
    Http(Endpoint),
    /// Write the records to files.
    Export(Export),
    /// A SELECT that the source database computes for each chunk; its rows are the chunk's part.
    Map(String),
}

/// `export = { to = "s3://bucket/{job_id}/", format = "parquet", columns = [...] }`
///
/// ```
/// use windlass_core::Export;
///
/// let export = Export {
///     to: "file:exports/{job_id}/".to_owned(),
///     format: "parquet".to_owned(),
///     columns: vec!["id".to_owned(), "amount".to_owned()],
///     compression: None,
/// };
/// assert_eq!(export.format, "parquet");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// Where the parts go: `file:FOLDER/` or `s3://BUCKET/PREFIX/`.
    pub to: String,
    /// `parquet`, `csv` or `jsonl`.
    pub format: String,
    /// The columns; all of them if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// `gzip`, for csv and jsonl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<String>,
}

/// The endpoint of an `http` step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Endpoint {
    /// `http://…` or `https://…`. `${VAR}` is replaced on the machine that sends.
    pub url: String,
    /// Headers of every request. A job stores their names; each machine has the values in its configuration.
    pub headers: BTreeMap<String, Secret>,
    /// Concurrent requests of one process; one per slot by default.
    pub concurrency: Option<u32>,
    /// Whether the submitter's own token is sent as `Authorization`.
    pub forward_token: bool,
    /// Whether secrets may be sent over `http://…` to another machine.
    pub insecure: bool,
}

/// What happens when another writer changed the record.
///
/// ```
/// use windlass_core::OnConflict;
///
/// assert_eq!(OnConflict::default(), OnConflict::Retry);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnConflict {
    /// The record is read and processed again, at most [`MAX_CONFLICTS`] times, then becomes a dead letter.
    #[default]
    Retry,
    /// The item is skipped: the other write stays.
    Skip,
    /// The item is a dead letter at once.
    DeadLetter,
}

/// The most concurrent writes to one item before it becomes a dead letter.
pub const MAX_CONFLICTS: u32 = 10;

impl StepKind {
    /// The field that names the kind.
    pub fn field(&self) -> &'static str {
        match self {
            StepKind::Refresh => "step.refresh",
            StepKind::Sql(_) => "step.sql",
            StepKind::Handler(_) => "step.handler",
            StepKind::Command(_) => "step.command",
            StepKind::Http(_) => "step.http",
            StepKind::Export(_) => "step.export",
            StepKind::Map(_) => "step.map",
        }
    }

    /// Whether a chunk makes a part and changes nothing in the source.
    pub fn makes_parts(&self) -> bool {
        matches!(self, StepKind::Export(_) | StepKind::Map(_))
    }

    /// Whether a handler receives the records, and answers for each.
    pub fn is_handler(&self) -> bool {
        matches!(self, StepKind::Handler(_) | StepKind::Command(_) | StepKind::Http(_))
    }

    /// Whether the submitter's own token is sent.
    pub fn forwards_token(&self) -> bool {
        matches!(self, StepKind::Http(endpoint) if endpoint.forward_token)
    }
}

/// Variables that every command gets.
const ALWAYS: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];
/// Variables with tokens of jobs, or the keys that decrypt them. No command gets them.
const TOKENS: [&str; 2] = ["WINDLASS_TOKEN_KEYS", "WINDLASS_TOKEN"];

impl Step {
    /// The names of the environment variables that a command gets. All others may hold secrets.
    pub fn environment(&self) -> impl Iterator<Item = &str> {
        let named = self.env.iter().map(String::as_str).filter(|name| !TOKENS.contains(name));
        ALWAYS.into_iter().chain(named)
    }

    /// The problems of `step.env`.
    fn env_problems(&self) -> Vec<(&'static str, String)> {
        let is_name = |name: &str| {
            let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
            name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
        };
        let mut problems = Vec::new();
        if !self.env.is_empty() && !matches!(self.kind, StepKind::Command(_)) {
            problems.push(("step.env", "requires step.command".to_owned()));
        }
        for name in &self.env {
            if !is_name(name) {
                let detail = format!(
                    "`{name}` is not the name of a variable; expected names without values, such as \
                     [\"ENRICH_URL\"]"
                );
                problems.push(("step.env", detail));
            }
            if TOKENS.contains(&name.as_str()) {
                let detail =
                    format!("`{name}` gives access to the tokens of jobs; no command gets it");
                problems.push(("step.env", detail));
            }
        }
        problems
    }

    /// All problems of the step, each with its field.
    pub(crate) fn problems(&self, job_type: &JobType) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let mut refuse = |field: &'static str, detail: String| problems.push((field, detail));
        let field = self.kind.field();
        let is_query = job_type.source.query.is_some();
        let fixed = job_type.fixed_columns();
        match &self.kind {
            StepKind::Sql(sql) => match Template::parse(sql) {
                Err(detail) => refuse(field, detail),
                Ok(template) if !template.is_confined() => refuse(
                    field,
                    "has no {chunk}, so every chunk would reach the whole table; \
                     add `WHERE {chunk}`"
                        .into(),
                ),
                Ok(template) => {
                    for column in template.assigned_columns() {
                        if fixed.contains(&column.as_str()) {
                            refuse(field, moves(&column));
                        }
                    }
                }
            },
            StepKind::Map(sql) => match Template::parse(sql) {
                Err(detail) => refuse(field, detail),
                Ok(template) if !template.is_confined() => refuse(
                    field,
                    "has no {chunk}, so every chunk would read the whole table; \
                     write `SELECT … FROM {source} WHERE {chunk} GROUP BY …`"
                        .into(),
                ),
                Ok(_) => {}
            },
            StepKind::Export(export) => {
                for (field, detail) in export.problems() {
                    refuse(field, detail);
                }
            }
            StepKind::Refresh if is_query => {
                refuse(field, "needs source.table: a query cannot be written back".into());
            }
            StepKind::Command(words) if words.first().is_none_or(String::is_empty) => {
                refuse(field, "is empty; expected a program with its arguments, such as [\"python3\", \"enrich.py\"]".into());
            }
            StepKind::Http(endpoint) => {
                let url = job_type.expand(&endpoint.url);
                for (field, detail) in (Endpoint { url, ..endpoint.clone() }).problems() {
                    refuse(field, detail);
                }
            }
            _ => {}
        }
        if let Some((field, detail)) = self.guard_problem(job_type) {
            refuse(field, detail);
        }
        if self.version.is_some() && self.kind.makes_parts() {
            refuse(
                "step.version",
                format!("does not apply to {field}, which writes no records back"),
            );
        }
        if job_type.source.items && self.kind.makes_parts() {
            refuse(field, "needs source.table or source.query".into());
        }
        if self.on_bad_row.is_some() && !self.kind.makes_parts() {
            refuse("step.on_bad_row", "requires step.map or step.export".into());
        }
        if self.mark.is_some() && (is_query || !matches!(self.kind, StepKind::Sql(_))) {
            refuse("step.mark", "requires step.sql on a source.table".into());
        }
        if let Some(version) = self.version.as_deref().filter(|version| fixed.contains(version)) {
            refuse("step.version", moves(version));
        }
        for (field, detail) in self.env_problems() {
            refuse(field, detail);
        }
        if let Some(timeout) = self.timeout {
            if !matches!(self.kind, StepKind::Command(_) | StepKind::Http(_)) {
                refuse("step.timeout", "requires step.command or step.http".into());
            }
            if timeout < Duration::from_millis(10) || timeout > job_type.chunk.timeout / 4 {
                let detail = "must be at least 10ms and at most a quarter of chunk.timeout, so that \
                              a batch that hangs can be halved in time";
                refuse("step.timeout", detail.into());
            }
        }
        problems
    }
}

impl Export {
    /// All columns to this folder, as `parquet`, `csv` or `jsonl`.
    pub fn to(to: impl Into<String>, format: impl Into<String>) -> Export {
        Export { to: to.into(), format: format.into(), columns: Vec::new(), compression: None }
    }

    fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let is_folder = self.to.starts_with("file:") || self.to.starts_with("s3://");
        if !(is_folder && self.to.ends_with('/')) {
            let detail = format!(
                "`{}` is not a folder; expected `file:FOLDER/` or `s3://BUCKET/PREFIX/`",
                self.to
            );
            problems.push(("step.export.to", detail));
        }
        if is_folder && !self.to.contains("{job_id}") {
            let detail = "has no {job_id}, so the parts of two jobs would be in one folder; \
                          use a folder such as `s3://BUCKET/{job_id}/`";
            problems.push(("step.export.to", detail.to_owned()));
        }
        if !["parquet", "csv", "jsonl"].contains(&self.format.as_str()) {
            let detail =
                format!("unknown format `{}`; expected `parquet`, `csv` or `jsonl`", self.format);
            problems.push(("step.export.format", detail));
        }
        match self.compression.as_deref() {
            None => {}
            Some("gzip") if self.format != "parquet" => {}
            Some(_) => {
                let detail = "must be `gzip`, with csv or jsonl; parquet is always compressed";
                problems.push(("step.export.compression", detail.to_owned()));
            }
        }
        problems
    }
}

/// Headers that Windlass sets itself.
const OUR_HEADERS: [&str; 4] = ["content-type", "content-length", "host", "idempotency-key"];

impl Endpoint {
    /// The scheme, host and port.
    pub fn origin(&self) -> String {
        Url::parse(&self.url)
            .map_or_else(|_| self.url.clone(), |url| url.origin().ascii_serialization())
    }

    fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let url = Url::parse(&self.url).ok().filter(|url| url.has_host());
        if !url.as_ref().is_some_and(|url| matches!(url.scheme(), "http" | "https")) {
            let detail = format!("`{}` is not a URL, `http://…` or `https://…`", self.url);
            problems.push(("step.http", detail));
        }
        if url.is_some_and(|url| !url.username().is_empty() || url.password().is_some()) {
            let detail = "has credentials in the URL, which is stored with every job; put them \
                          into step.headers, as { Authorization = \"Basic ${SECRET}\" }";
            problems.push(("step.http", detail.to_owned()));
        }
        for (name, value) in &self.headers {
            let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            if name.is_empty() || !name.chars().all(token) {
                problems.push(("step.headers", format!("`{name}` is not a header's name")));
            }
            if OUR_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                let detail = format!("`{name}` is set by Windlass; remove it");
                problems.push(("step.headers", detail));
            }
            if value.expose().chars().any(|c| c.is_control()) {
                let detail = format!("the value of `{name}` has a line break or control character");
                problems.push(("step.headers", detail));
            }
            if self.forward_token && name.eq_ignore_ascii_case("authorization") {
                let detail = "must not set Authorization, because step.forward_token sends it";
                problems.push(("step.headers", detail.to_owned()));
            }
        }
        if self.concurrency == Some(0) {
            problems.push(("step.concurrency", "must be at least 1, got 0".to_owned()));
        }
        problems
    }
}

fn moves(column: &str) -> String {
    format!(
        "sets `{column}`, which is a key, filter or claim column: the row would move into \
         another chunk and be processed again; set another column"
    )
}

/// The fields of a step in the file, where every kind is optional.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StepFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sql: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    export: Option<Export>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<BTreeMap<String, Secret>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forward_token: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    insecure: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    env: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", with = "humantime_serde")]
    timeout: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guard: Option<Guard>,
    on_conflict: OnConflict,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_bad_row: Option<OnBadRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
}

impl TryFrom<StepFields> for Step {
    type Error = String;

    fn try_from(fields: StepFields) -> Result<Step, String> {
        let StepFields { headers, concurrency, forward_token, insecure, .. } = fields;
        let is_http = fields.http.is_some();
        let is_sent = headers.is_some() || concurrency.is_some() || forward_token.is_some();
        if !is_http && (is_sent || insecure.is_some()) {
            let message = "`headers`, `concurrency`, `forward_token` and `insecure` require \
                           `step.http`";
            return Err(message.to_owned());
        }
        let endpoint = |url| Endpoint {
            url,
            headers: headers.unwrap_or_default(),
            concurrency,
            forward_token: forward_token.unwrap_or_default(),
            insecure: insecure.unwrap_or_default(),
        };
        let mut kinds = Vec::new();
        if fields.refresh == Some(true) {
            kinds.push(StepKind::Refresh);
        }
        kinds.extend(fields.sql.map(StepKind::Sql));
        kinds.extend(fields.handler.map(StepKind::Handler));
        kinds.extend(fields.command.map(StepKind::Command));
        kinds.extend(fields.http.map(endpoint).map(StepKind::Http));
        kinds.extend(fields.export.map(StepKind::Export));
        kinds.extend(fields.map.map(StepKind::Map));
        let [kind] = <[StepKind; 1]>::try_from(kinds).map_err(|kinds| {
            format!(
                "a job type has exactly one kind of step, this one has {}; give one of \
                 `step.refresh = true`, `step.sql`, `step.command`, `step.http`, `step.handler`, \
                 `step.export`, `step.map`",
                kinds.len()
            )
        })?;
        let StepFields { version, guard, on_conflict, on_bad_row, mark, timeout, env, .. } = fields;
        Ok(Step { kind, version, guard, on_conflict, on_bad_row, mark, timeout, env })
    }
}

impl From<Step> for StepFields {
    fn from(step: Step) -> StepFields {
        let mut fields = StepFields {
            version: step.version,
            guard: step.guard,
            on_conflict: step.on_conflict,
            on_bad_row: step.on_bad_row,
            mark: step.mark,
            timeout: step.timeout,
            env: step.env,
            ..StepFields::default()
        };
        match step.kind {
            StepKind::Refresh => fields.refresh = Some(true),
            StepKind::Sql(sql) => fields.sql = Some(sql),
            StepKind::Handler(name) => fields.handler = Some(name),
            StepKind::Command(words) => fields.command = Some(words),
            StepKind::Export(export) => fields.export = Some(export),
            StepKind::Map(sql) => fields.map = Some(sql),
            StepKind::Http(endpoint) => {
                fields.http = Some(endpoint.url);
                fields.headers = Some(endpoint.headers).filter(|headers| !headers.is_empty());
                fields.concurrency = endpoint.concurrency;
                fields.forward_token = endpoint.forward_token.then_some(true);
                fields.insecure = endpoint.insecure.then_some(true);
            }
        }
        fields
    }
}

#[cfg(test)]
mod tests;
