//! `[connections.NAME]`: a database with records, its replicas and its health statement.

use crate::problem::{Code, Problem};
use serde::Deserialize;
use std::time::Duration;

/// `[connections.NAME]`
///
/// ```
/// use windlass_core::config::Connection;
///
/// let connection = Connection::new("postgres://localhost/app");
/// assert_eq!(connection.max_connections, 16);
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Connection {
    /// `sqlite:FILE`, `postgres://…`, `mysql://…`, `dynamodb://…` or `redshift://…`.
    pub url: String,
    /// Replicas that serve reads.
    #[serde(default)]
    pub replicas: Vec<String>,
    /// A replica that lags further behind is not used.
    #[serde(default = "default_lag", with = "humantime_serde")]
    pub max_lag: Duration,
    /// The most connections that one process opens to it, and to each of its replicas.
    #[serde(default = "default_connections")]
    pub max_connections: usize,
    /// The most connections that all processes together open to it, and to each of its replicas.
    #[serde(default)]
    pub max_connections_total: Option<usize>,
    /// Whether applications enqueue requests in its outbox, for the relay to submit.
    #[serde(default)]
    pub outbox: bool,
    /// A statement that measures the load of the database.
    #[serde(default)]
    pub health: Option<Health>,
    /// A variable that is not set, so that the connection cannot be opened.
    #[serde(skip)]
    pub unset: Option<Problem>,
}

/// `health = { sql = "SELECT …", limit = 10, every = "5s" }`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// A SELECT of one number: replica lag, lock waits, load. NULL counts as healthy.
    pub sql: String,
    /// While the number is above this, work on the connection is throttled.
    pub limit: f64,
    /// The interval of measurements.
    #[serde(default = "default_every", with = "humantime_serde")]
    pub every: Duration,
}

fn default_every() -> Duration {
    Duration::from_secs(5)
}

fn default_lag() -> Duration {
    Duration::from_secs(10)
}

fn default_connections() -> usize {
    16
}

impl Connection {
    /// A connection to this database, with the default settings.
    ///
    /// ```
    /// let connection = windlass_core::config::Connection::new("postgres://localhost/app");
    /// assert_eq!(connection.max_connections, 16);
    /// ```
    pub fn new(url: impl Into<String>) -> Connection {
        Connection {
            url: url.into(),
            replicas: Vec::new(),
            max_lag: default_lag(),
            max_connections: default_connections(),
            max_connections_total: None,
            outbox: false,
            health: None,
            unset: None,
        }
    }

    /// Notes which of these variables, named with their lines, stands in one of the texts.
    pub(super) fn find_unset(&mut self, name: &str, unset: &[(String, usize)]) {
        let health = self.health.iter().map(|health| ("health.sql", &health.sql));
        let replicas = self.replicas.iter().map(|replica| ("replicas", replica));
        let texts = [("url", &self.url)].into_iter().chain(replicas).chain(health);
        let found = texts.flat_map(|(field, text)| {
            unset
                .iter()
                .find(|(unset, _)| text.contains(&format!("${{{unset}}}")))
                .map(|found| (field, found))
        });
        self.unset = found.min_by_key(|(_, (_, line))| *line).map(|(field, (variable, line))| {
            let detail = format!("the environment variable `{variable}` is not set");
            let field = format!("connections.{name}.{field}");
            Problem::field(Code::Configuration, field, detail).at_line(*line)
        });
    }

    /// All problems of the table.
    pub(super) fn problems(&self, name: &str) -> Vec<Problem> {
        if let Some(unset) = &self.unset {
            return vec![unset.clone()];
        }
        let mut problems = Vec::new();
        let mut refuse = |field: &str, detail: &str| {
            let field = format!("connections.{name}.{field}");
            problems.push(Problem::field(Code::Configuration, field, detail));
        };
        if self.max_connections == 0 {
            refuse("max_connections", "must be at least 1, got 0; the default is 16");
        } else if self.max_connections < 1 + self.reserved() {
            let detail = match (self.outbox, self.replicas.is_empty()) {
                (true, true) => "must be at least 2 with an outbox, which uses one of them",
                (false, _) => "must be at least 2 with replicas: one measures their lag",
                (true, false) => "must be at least 3 with an outbox and replicas",
            };
            refuse("max_connections", detail);
        }
        if let Some(total) = self.max_connections_total {
            let most = self.max_connections;
            if !matches!(kind(&self.url), "postgres" | "mysql") {
                refuse("max_connections_total", "is only for PostgreSQL and MySQL");
            } else if total < most {
                let detail = format!(
                    "must be at least max_connections ({most}), which each process takes of it, got {total}"
                );
                refuse("max_connections_total", &detail);
            }
        }
        for (place, replica) in self.replicas.iter().enumerate() {
            let field = format!("replicas[{place}]");
            // URLs are not shown, because they may contain a password.
            if kind(replica) != kind(&self.url) {
                let right = kind(&self.url);
                refuse(
                    &field,
                    &format!("must be a replica of url, so it must begin with `{right}:`"),
                );
            } else if *replica == self.url {
                refuse(&field, "is the same as url; expected the url of a replica");
            } else if self.replicas[..place].contains(replica) {
                refuse(&field, "is listed twice");
            }
        }
        if self.is_redshift() {
            let detail =
                "is not available on Redshift, which only serves as the connection of a load";
            let given = [
                ("replicas", !self.replicas.is_empty()),
                ("outbox", self.outbox),
                ("health", self.health.is_some()),
            ];
            given.iter().filter(|(_, given)| *given).for_each(|(field, _)| refuse(field, detail));
        }
        if self.max_lag < SHORTEST_LAG {
            refuse("max_lag", "must be at least 1s; the default is 10s");
        }
        if self.max_lag > LONGEST_LAG {
            refuse("max_lag", "must be at most 1d; the default is 10s");
        }
        if let Some(health) = &self.health {
            if !health.limit.is_finite() {
                refuse("health.limit", "must be a finite number, such as 10");
            }
            if health.every < Duration::from_millis(100) {
                refuse("health.every", "must be at least 100ms");
            }
        }
        problems
    }

    /// Whether it is Redshift, which only loads.
    pub fn is_redshift(&self) -> bool {
        kind(&self.url) == "redshift"
    }

    /// The most connections that one process opens.
    pub fn pool_size(&self) -> usize {
        self.max_connections.max(1 + self.reserved())
    }

    /// The connections that are reserved: one for the outbox relay while it submits, one to measure the
    /// lag of replicas.
    pub fn reserved(&self) -> usize {
        usize::from(self.outbox) + usize::from(!self.replicas.is_empty())
    }
}

/// How far a replica lags is asked a few times in this long.
const SHORTEST_LAG: Duration = Duration::from_secs(1);

/// Beyond this a replica is no copy of today's records.
pub const LONGEST_LAG: Duration = Duration::from_secs(24 * 3600);

/// Which database a URL is of, by its first word.
fn kind(url: &str) -> &str {
    match url.trim().split(':').next().unwrap_or_default() {
        "postgresql" => "postgres",
        "mariadb" => "mysql",
        other => other,
    }
}

impl From<&str> for Connection {
    fn from(url: &str) -> Connection {
        Connection::new(url)
    }
}

impl From<String> for Connection {
    fn from(url: String) -> Connection {
        Connection::new(url)
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn refusal(lines: &str) -> String {
        let text = format!("[connections.app]\nurl = \"postgres://u:secret@h/app\"\n{lines}");
        match Config::parse(&text, |_| None) {
            Err(problem) => problem.to_string(),
            Ok(config) => config.problems().iter().map(|p| p.to_string() + "\n").collect(),
        }
    }

    #[test]
    fn replicas_are_copies_of_the_same_kind() {
        assert_eq!(refusal("replicas = [\"postgresql://a/app\", \"postgres://b/app\"]"), "");
        for (lines, part) in [
            ("replicas = [\"mysql://a/app\"]", "connections.app.replicas[0]: must be a replica"),
            ("replicas = [\"a\"]", "begin with `postgres:`"),
            ("replicas = [\"postgres://u:secret@h/app\"]", "is the same as url"),
            ("replicas = [\"postgres://a\", \"postgres://a\"]", "replicas[1]: is listed twice"),
            ("replicas = \"postgres://a\"", "line 3"),
        ] {
            let message = refusal(lines);
            assert!(message.contains(part), "{lines}: `{part}` not in: {message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn a_limit_that_cannot_be_watched_is_refused() {
        assert_eq!(refusal("max_lag = \"1s\""), "");
        assert!(
            refusal("max_lag = \"0s\"").contains("connections.app.max_lag: must be at least 1s")
        );
        assert!(
            refusal("max_lag = \"2d\"").contains("connections.app.max_lag: must be at most 1d")
        );
        assert!(refusal("max_lag = \"soon\"").contains("line 3"));
        assert!(refusal("max_lag = 10").contains("line 3"));
    }

    #[test]
    fn the_total_is_at_least_what_one_process_takes() {
        assert_eq!(refusal("max_connections_total = 16"), "");
        let message = refusal("max_connections_total = 8");
        assert!(
            message.contains(
                "connections.app.max_connections_total: must be at least max_connections (16)"
            ),
            "{message}"
        );
        assert_eq!(refusal("max_connections = 2\nmax_connections_total = 8"), "");
        let text = "[connections.app]\nurl = \"sqlite:a.db\"\nmax_connections_total = 99";
        let problems = crate::Config::parse(text, |_| None).unwrap().problems();
        assert!(
            problems[0].to_string().contains("is only for PostgreSQL and MySQL"),
            "{}",
            problems[0]
        );
    }

    #[test]
    fn asking_replicas_takes_a_connection() {
        let with = |lines: &str| refusal(&format!("replicas = [\"postgres://a\"]\n{lines}"));
        assert!(with("max_connections = 1").contains("at least 2 with replicas"));
        assert!(with("max_connections = 2\noutbox = true").contains("at least 3"));
        assert_eq!(with("max_connections = 2"), "");
    }
}
