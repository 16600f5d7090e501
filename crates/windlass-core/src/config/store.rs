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
}

fn default_connections() -> usize {
    10
}

impl Store {
    /// A store at this URL, with the default settings.
    pub fn new(url: impl Into<String>) -> Store {
        Store { url: url.into(), max_connections: default_connections() }
    }

    /// All problems of the table.
    pub(super) fn problems(&self) -> Option<Problem> {
        (self.max_connections < MIN_CONNECTIONS).then(|| {
            let detail = format!(
                "must be at least {MIN_CONNECTIONS}, got {}; the default is 10",
                self.max_connections
            );
            Problem::field(Code::Configuration, "store.max_connections", detail)
        })
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
}
