//! windlass.toml: the text, its environment variables, and where in it something is wrong.

mod alerts;
mod connection;
mod plaintext;
mod redshift;
mod service;
mod store;

pub use alerts::{Alerts, Webhook};
pub use connection::{Connection, Health, LONGEST_LAG};
pub use plaintext::{endpoint_problem, is_plaintext};
pub use service::{Auth, Permission, Role, SUBMITTER_PRIORITY, Server};
pub use store::{Dialect, Store};

use crate::problem::{Code, Problem};
use crate::{Dependency, JobType, Secret, StepKind};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The configuration: the content of windlass.toml.
///
/// ```
/// use windlass_core::Config;
///
/// let config = Config::new("sqlite:windlass.db").connection("app", "sqlite:app.db");
/// assert_eq!(config.connections["app"].url, "sqlite:app.db");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Where Windlass keeps its own state.
    pub store: Store,
    /// The databases that hold the records.
    pub connections: BTreeMap<String, Connection>,
    /// The job types by name.
    pub jobs: BTreeMap<String, JobType>,
    /// Which job types run after which.
    pub dependencies: Vec<Dependency>,
    /// Where the API listens.
    pub server: Server,
    /// Who may use the API; without it the API is open to this machine.
    pub auth: Option<Auth>,
    /// Which alerts are posted where.
    pub alerts: Alerts,
}

impl Config {
    /// Reads a windlass.toml. `${VAR}` is replaced by the environment variable of that name.
    ///
    /// ```no_run
    /// let config = windlass_core::Config::from_path("windlass.toml")?;
    /// println!("{} job types", config.jobs.len());
    /// # Ok::<(), windlass_core::Problem>(())
    /// ```
    ///
    /// # Errors
    /// The file cannot be read, is not valid, or names a variable that is not set. The problem names the
    /// line where there is one. A variable of a connection may be unset: only what uses the connection
    /// fails.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Config, Problem> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let detail = format!("{} cannot be read: {error}", path.display());
            Problem::new(Code::Configuration, detail)
        })?;
        Config::parse(&text, |name| std::env::var(name).ok())
    }

    /// Reads the text of a windlass.toml. `${VAR}` is looked up with `env`.
    ///
    /// ```
    /// use windlass_core::Config;
    ///
    /// let text = "[connections.app]\nurl = \"${DATABASE_URL}\"";
    /// let config = Config::parse(text, |_| Some("sqlite:app.db".to_owned()))?;
    /// assert_eq!(config.connections["app"].url, "sqlite:app.db");
    /// # Ok::<(), windlass_core::Problem>(())
    /// ```
    ///
    /// # Errors
    /// The text is not valid TOML, has an unknown key, or names a variable that `env` does not know.
    pub fn parse(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<Config, Problem> {
        let substituted = substitute(text, env)?;
        let text = &substituted.expanded;
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| line_at(text, span.start));
            Problem::new(Code::Configuration, error.message()).at_line(line)
        })?;
        let mut jobs = BTreeMap::new();
        for (name, spanned) in file.jobs {
            let line = line_at(text, spanned.span().start);
            jobs.insert(name.clone(), JobType { name, line, ..spanned.into_inner() });
        }
        name_variables(&mut jobs, &substituted)?;
        let rule = |spanned: toml::Spanned<Dependency>| {
            let line = line_at(text, spanned.span().start);
            Dependency { line, ..spanned.into_inner() }
        };
        let dependencies = file.dependencies.into_iter().map(rule).collect();
        let alerts = file.alerts.map_or_else(Alerts::default, |spanned| {
            let line = line_at(text, spanned.span().start);
            Alerts { line, ..spanned.into_inner() }
        });
        let store = file.store.map_or_else(Store::default, |spanned| {
            let line = line_at(text, spanned.span().start);
            Store { line, ..spanned.into_inner() }
        });
        let File { mut connections, server, auth, .. } = file;
        for (name, connection) in &mut connections {
            connection.find_unset(name, &substituted.unset);
        }
        Ok(Config { store, connections, jobs, dependencies, server, auth, alerts })
    }

    /// A configuration made in code, with its state in this store: `sqlite:FILE` or `postgres://…`.
    ///
    /// ```
    /// use windlass_core::Config;
    ///
    /// let config = Config::new("sqlite:windlass.db").connection("app", "sqlite:app.db");
    /// assert!(config.problems().is_empty());
    /// ```
    pub fn new(store_url: impl Into<String>) -> Config {
        Config { store: Store::new(store_url), ..Config::default() }
    }

    /// Adds a connection: a URL, or a [`Connection`] with settings.
    pub fn connection(
        mut self,
        name: impl Into<String>,
        connection: impl Into<Connection>,
    ) -> Config {
        self.connections.insert(name.into(), connection.into());
        self
    }

    /// All problems that can be found without a database.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut messages = BTreeMap::new();
        for job_type in self.jobs.values() {
            problems.extend(job_type.problems());
            if let Some(other) = messages.insert(job_type.message_type(), &job_type.name) {
                let message = job_type.message_type();
                let detail =
                    format!("`{message}` is already the message of `{other}`; choose another name");
                problems.push(job_type.problem("queue.message", detail));
            }
            let named = [
                ("source.connection", Some(&job_type.source.connection)),
                ("reduce_in", job_type.reduce_in.as_ref()),
                ("load.connection", job_type.load.as_ref().map(|load| &load.connection)),
            ];
            for (field, connection) in named {
                let Some(connection) = connection.filter(|name| !name.is_empty()) else { continue };
                if !self.connections.contains_key(connection) {
                    let known = names(self.connections.keys());
                    let detail =
                        format!("unknown connection `{connection}`; known connections are {known}");
                    problems.push(job_type.problem(field, detail));
                }
            }
            problems.extend(redshift::problems(job_type, &self.connections));
        }
        for (name, connection) in &self.connections {
            problems.extend(connection.problems(name));
        }
        problems.extend(self.store.problems());
        problems.extend(Dependency::problems(&self.dependencies, &self.jobs));
        problems.extend(service::problems(&self.server, self.auth.as_ref()));
        problems.extend(self.alerts.problems());
        problems.extend(self.plaintext_problems());
        problems
    }

    /// Secrets that would be sent, and keys that would be read, without TLS. No process starts with such
    /// a configuration.
    pub fn plaintext_problems(&self) -> Vec<Problem> {
        plaintext::problems(self)
    }

    /// The job type of that name.
    ///
    /// # Errors
    /// There is none; the problem proposes similar names.
    pub fn job_type(&self, name: &str) -> Result<&JobType, Problem> {
        self.jobs.get(name).ok_or_else(|| {
            let detail = match similar(name, self.jobs.keys()).as_slice() {
                [] => {
                    let known = names(self.jobs.keys());
                    format!("there is no job type `{name}`; known job types are {known}")
                }
                close => format!("there is no job type `{name}`; did you mean {}?", names(close)),
            };
            Problem::field(Code::UnknownJobType, "jobType", detail)
        })
    }
}

/// A list of names for a message; `none` if it is empty.
pub fn names<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    store: Option<toml::Spanned<Store>>,
    #[serde(default)]
    connections: BTreeMap<String, Connection>,
    #[serde(default)]
    jobs: BTreeMap<String, toml::Spanned<JobType>>,
    #[serde(default)]
    dependencies: Vec<toml::Spanned<Dependency>>,
    #[serde(default)]
    server: Server,
    #[serde(default)]
    auth: Option<Auth>,
    #[serde(default)]
    alerts: Option<toml::Spanned<Alerts>>,
}

/// The names that differ in few letters from this one, the most similar first, at most three. Case and
/// the part before a dot, such as a schema, are ignored.
pub fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let fold = |text: &str| text.rsplit('.').next().unwrap_or(text).to_lowercase();
    let wanted = fold(name);
    let distance = |known: &'a String| (strsim::levenshtein(&wanted, &fold(known)), known);
    let mut ranked: Vec<_> = known.into_iter().map(distance).collect();
    ranked.retain(|(distance, _)| *distance <= 1 + wanted.len() / 3);
    ranked.sort();
    ranked.into_iter().take(3).map(|(_, known)| known.clone()).collect()
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The text with the values of its variables (`expanded`), and with their names inside strings
/// (`named`).
struct Substituted {
    expanded: String,
    named: String,
    variables: BTreeMap<String, Secret>,
    /// The variables of connections that are not set, with their lines. They stay in the text.
    unset: Vec<(String, usize)>,
}

/// Replaces `${VAR}` outside comments. The value is escaped as TOML wants it inside a quoted
/// string, and never adds a line, so that later messages name the right one.
fn substitute(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<Substituted, Problem> {
    let mut out = Substituted {
        expanded: String::with_capacity(text.len()),
        named: String::with_capacity(text.len()),
        variables: BTreeMap::new(),
        unset: Vec::new(),
    };
    let mut in_connection = false;
    // The quote that ends the current string.
    let mut quote: Option<&str> = None;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let mut rest = line;
        // Only a string in triple quotes spans lines.
        quote = quote.filter(|quote| quote.len() == 3);
        if quote.is_none() && line.trim_start().starts_with('[') {
            in_connection = line.trim_start().starts_with("[connections.");
        }
        while let Some(c) = rest.chars().next() {
            if c == '#' && quote.is_none() {
                break;
            }
            if let Some((name, after)) =
                rest.strip_prefix("${").and_then(|inner| inner.split_once('}'))
            {
                let value = match env(name) {
                    Some(value) => value,
                    None if in_connection && quote.is_some() => {
                        out.unset.push((name.to_owned(), number + 1));
                        let written = &rest[..rest.len() - after.len()];
                        out.expanded.push_str(written);
                        out.named.push_str(written);
                        rest = after;
                        continue;
                    }
                    None => {
                        let detail = format!("the environment variable `{name}` is not set");
                        return Err(Problem::new(Code::Configuration, detail).at_line(number + 1));
                    }
                };
                let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                out.expanded.push_str(&escaped);
                match quote {
                    Some(_) => out.named.push_str(&rest[..rest.len() - after.len()]),
                    None => out.named.push_str(&escaped),
                }
                out.variables.insert(name.to_owned(), Secret::from(value));
                rest = after;
                continue;
            }
            let token = match quote {
                None => {
                    ["\"\"\"", "'''", "\"", "'"].into_iter().find(|open| rest.starts_with(open))
                }
                // An escaped quote does not end its string.
                Some(end) if end.starts_with('"') && c == '\\' => None,
                Some(end) => Some(end).filter(|end| rest.starts_with(end)),
            };
            let length = match token {
                Some(token) => {
                    quote = if quote.is_some() { None } else { Some(token) };
                    token.len()
                }
                None if quote.is_some_and(|end| end.starts_with('"')) && c == '\\' => {
                    1 + rest[1..].chars().next().map_or(0, char::len_utf8)
                }
                None => c.len_utf8(),
            };
            out.expanded.push_str(&rest[..length]);
            out.named.push_str(&rest[..length]);
            rest = &rest[length..];
        }
        out.expanded.push_str(rest);
        out.named.push_str(rest);
    }
    Ok(out)
}

/// The texts of a job type that keep the names of their variables.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    jobs: BTreeMap<String, NamedJob>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NamedJob {
    step: NamedStep,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NamedStep {
    command: Option<Vec<String>>,
    http: Option<String>,
}

/// Restores `${VAR}` in texts that are stored with every job, and keeps the values beside them.
fn name_variables(jobs: &mut BTreeMap<String, JobType>, text: &Substituted) -> Result<(), Problem> {
    // Differs from the expanded text only inside strings, so it parses if that one does.
    let mut named: Named = toml::from_str(&text.named)
        .map_err(|error| Problem::new(Code::Configuration, error.message()))?;
    for (name, job_type) in jobs {
        let step = named.jobs.remove(name).unwrap_or_default().step;
        match &mut job_type.step.kind {
            StepKind::Command(words) => *words = step.command.unwrap_or_default(),
            StepKind::Http(endpoint) => endpoint.url = step.http.unwrap_or_default(),
            _ => continue,
        }
        job_type.variables.clone_from(&text.variables);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, OnConflict, StepKind};

    const CONTRACT: &str = r#"
[store]
url = "sqlite:windlass.db"            # or postgres://…

[connections.app]
url = "${DATABASE_URL}"
max_connections = 16

[jobs.REFRESH_CANDIDATES]
description = "Rewrite every candidate"
source.connection = "app"
source.table = "candidates"
source.key = ["identifier"]
source.where = "kind = 'CANDIDATE'"
source.filters = { reportingYears = "reporting_year" }
source.claims = { county = "county" }
step.refresh = true
step.version = "version"
step.on_conflict = "retry"
chunk.items = 1000
chunk.commit = 1000
chunk.timeout = "5m"
chunk.lease = "30s"
retry = { attempts = 3, backoff = "1s", factor = 2.0, max = "1m" }
failures = { budget = "0.01%", on_exceeded = "pause" }

[jobs.REINDEX]
source = { connection = "app", table = "candidates" }
step.sql = "UPDATE candidates SET indexed = true WHERE {chunk}"

[[dependencies]]
job = "REINDEX"
after = ["REFRESH_CANDIDATES"]
match = ["month"]
"#;

    fn env(name: &str) -> Option<String> {
        (name == "DATABASE_URL").then(|| "postgres://u:p\"w@h/app".to_owned())
    }

    #[test]
    fn reads_the_contracts_example() {
        let config = Config::parse(CONTRACT, env).unwrap();
        assert_eq!(config.problems(), []);
        assert_eq!(config.connections["app"].url, "postgres://u:p\"w@h/app");
        let job_type = &config.jobs["REFRESH_CANDIDATES"];
        assert_eq!(job_type.line, 9);
        assert_eq!(job_type.step.kind, StepKind::Refresh);
        assert_eq!(job_type.step.on_conflict, OnConflict::Retry);
        assert_eq!(job_type.failures.budget, Budget::Share(0.0001));
        let again = JobType::from_json("REFRESH_CANDIDATES", job_type.to_json()).unwrap();
        assert_eq!(JobType { line: 9, ..again }, *job_type);
    }

    fn refusal(change: impl Fn(String) -> String) -> String {
        match Config::parse(&change(CONTRACT.to_owned()), env) {
            Err(problem) => problem.to_string(),
            Ok(config) => config.problems().iter().map(|p| p.to_string() + "\n").collect(),
        }
    }

    #[test]
    fn says_which_line_is_wrong_and_what_would_be_right() {
        let cases: &[(&str, &str, &[&str])] = &[
            ("chunk.items", "chunk.itemz", &["line 20", "itemz", "items"]),
            ("\"30s\"", "\"soon\"", &["line 23"]),
            ("[store]", "[store", &["line 2"]),
            ("step.refresh = true", "step.sql = \"UPDATE a SET b = 1\"", &["line 9", "{chunk}"]),
            ("step.refresh = true", "", &["exactly one kind"]),
            (
                "step.version = \"version\"",
                "step.guard = \"version\"",
                &["line 9", "step.guard", "needs step.version"],
            ),
            ("source.connection = \"app\"", "source.connection = \"ap\"", &["`app`"]),
            ("${DATABASE_URL}", "${NO_SUCH}", &["line 6", "NO_SUCH"]),
            ("\"0.01%\"", "\"many\"", &["line 25", "0.01%"]),
            ("attempts = 3", "attempts = 0", &["retry.attempts"]),
            ("factor = 2.0", "growth = \"cubic\"", &["line 24", "`exponential` or `linear`"]),
            ("factor = 2.0", "growth = \"linear\", factor = 3.0", &["retry.factor", "exponential"]),
            ("chunk.items = 1000", "chunk.items = 0", &["chunk.items"]),
            ("step.version = \"version\"", "step.version = \"identifier\"", &["another chunk"]),
            ("job = \"REINDEX\"", "job = \"INDEX\"", &["line 31", "unknown job type `INDEX`"]),
            ("after = [\"REFRESH_CANDIDATES\"]", "after = []", &["line 31", "dependencies.after"]),
            ("after = [\"", "after = [\"REINDEX\", \"", &["REINDEX → REINDEX"]),
            ("match = [\"month\"]", "on_failed = \"wait\"", &["line 34", "`block`"]),
        ];
        for (find, replace, expected) in cases {
            let message = refusal(|text| text.replacen(find, replace, 1));
            for part in *expected {
                assert!(message.contains(part), "{find} -> {replace}: `{part}` not in: {message}");
            }
        }
    }

    #[test]
    fn an_outbox_needs_two_connections() {
        let message = refusal(|text| text.replace("max_connections = 16", "outbox = true"));
        assert_eq!(message, "");
        let one = "max_connections = 1\noutbox = true";
        let message = refusal(|text| text.replace("max_connections = 16", one));
        assert!(
            message.contains("connections.app.max_connections: must be at least 2"),
            "{message}"
        );
    }

    #[test]
    fn a_variable_in_a_comment_needs_no_value() {
        assert!(
            Config::parse("# ${UNSET}\n[store]\nurl = \"sqlite:x\" # ${UNSET}\n", |_| None).is_ok()
        );
    }
}
