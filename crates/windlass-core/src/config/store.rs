//! `[store]`: where Windlass keeps its own state.

use crate::problem::{Code, Problem};
use serde::Deserialize;

/// `[store]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Store {
    /// `sqlite:FILE` or `postgres://…`.
    pub url: String,
    /// The most connections that one process opens to a store in PostgreSQL, besides the one that listens
    /// for changes.
    #[serde(default = "default_connections")]
    pub max_connections: usize,
    /// How a store in PostgreSQL uses its database.
    #[serde(default)]
    pub dialect: Dialect,
    /// The line of `[store]`; 0 for a configuration made in code.
    #[serde(skip)]
    pub line: usize,
}

/// How a store in PostgreSQL uses its database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Dialect {
    /// READ COMMITTED with row locks, advisory locks and notifications.
    #[default]
    Postgres,
    /// SERIALIZABLE, and only what distributed databases that speak PostgreSQL's protocol have as well: neither
    /// notifications nor advisory locks. A transaction that cannot be serialized is repeated.
    Strict,
}

impl Dialect {
    /// Why a store at another URL cannot have the dialect `strict`.
    pub const STRICT_NEEDS_POSTGRES: &str = "`strict` is a dialect of a store in PostgreSQL: remove it, or write \
        store.url = \"postgres://USER:PASSWORD@HOST:PORT/DATABASE\"";
}

fn default_connections() -> usize {
    10
}

impl Store {
    /// A store at this URL, with the default settings.
    pub fn new(url: impl Into<String>) -> Store {
        Store {
            url: url.into(),
            max_connections: default_connections(),
            dialect: Dialect::default(),
            line: 0,
        }
    }

    /// All problems of the table.
    pub(super) fn problems(&self) -> impl Iterator<Item = Problem> {
        let refuse = |field: &str, detail: String| {
            Problem::field(Code::Configuration, field, detail).at_line(self.line)
        };
        let connections = (self.max_connections < MIN_CONNECTIONS).then(|| {
            let detail = format!(
                "must be at least {MIN_CONNECTIONS}, got {}; the default is 10",
                self.max_connections
            );
            refuse("store.max_connections", detail)
        });
        let elsewhere = self.dialect == Dialect::Strict && !self.url.starts_with("postgres");
        let dialect =
            elsewhere.then(|| refuse("store.dialect", Dialect::STRICT_NEEDS_POSTGRES.to_owned()));
        connections.into_iter().chain(dialect)
    }
}

/// A long transaction must not hold up the heartbeat.
const MIN_CONNECTIONS: usize = 2;

impl Default for Store {
    fn default() -> Self {
        Store::new("sqlite:windlass.db")
    }
}

#[cfg(test)]
mod tests {
    use super::Dialect;
    use crate::Config;

    #[test]
    fn max_connections_has_a_default_and_a_minimum() {
        let read = |text: &str| Config::parse(text, |_| None).unwrap();
        let store = "[store]\nurl = \"postgres://localhost/store\"\n";
        assert_eq!(read(store).store.max_connections, 10);
        let config = read(&format!("{store}max_connections = 1\n"));
        let problem = config.problems().remove(0).to_string();
        assert!(
            problem.contains("store.max_connections")
                && problem.contains("must be at least 2, got 1"),
            "{problem}"
        );
    }

    #[test]
    fn the_dialect_is_postgres_or_strict_and_strict_needs_postgresql() {
        let read = |url: &str, dialect: &str| {
            Config::parse(&format!("[store]\nurl = \"{url}\"\n{dialect}\n"), |_| None)
        };
        let (postgres, strict) = ("postgres://localhost/store", "dialect = \"strict\"");
        assert_eq!(read(postgres, "").unwrap().store.dialect, Dialect::Postgres);
        let config = read(postgres, strict).unwrap();
        assert_eq!(config.store.dialect, Dialect::Strict);
        assert!(config.problems().is_empty(), "{:?}", config.problems());
        let problem = read("sqlite:store.db", strict).unwrap().problems().remove(0).to_string();
        assert!(
            ["line 1", "store.dialect", "postgres://USER"]
                .iter()
                .all(|part| problem.contains(part)),
            "{problem}"
        );
        let error = read(postgres, "dialect = \"cockroach\"").unwrap_err().to_string();
        for part in ["line 3", "cockroach", "`postgres`", "`strict`"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
