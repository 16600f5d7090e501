//! `[alerts]`: which alerts are raised, and where they are posted.

use crate::problem::{Code, Problem};
use crate::{AlertKind, Secret};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `[alerts]`. Every alert is also logged.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Alerts {
    /// Where alerts are posted.
    pub webhook: Option<Webhook>,
    /// Whether the webhook may be `http://…` on another machine.
    pub insecure: bool,
    /// The secrets that sign alerts. A second one allows rotation.
    #[serde(rename = "secret", deserialize_with = "secrets")]
    pub secrets: Vec<Secret>,
    /// The kinds that are posted.
    pub on: Vec<AlertKind>,
    /// The number of `new` dead letters of a job type above which an alert is raised.
    pub dead_letters: u32,
    /// How long work may wait without a worker that can run it, before an alert is raised.
    #[serde(with = "humantime_serde")]
    pub no_worker: Duration,
    /// How long a job type may be suspended by its circuit breaker, before an alert is raised.
    #[serde(with = "humantime_serde")]
    pub suspended: Duration,
    /// Its line in the file.
    #[serde(skip)]
    pub line: usize,
}

impl Default for Alerts {
    fn default() -> Self {
        Alerts {
            webhook: None,
            insecure: false,
            secrets: Vec::new(),
            on: AlertKind::ALL.to_vec(),
            dead_letters: 100,
            no_worker: Duration::from_secs(300),
            suspended: Duration::from_secs(60),
            line: 0,
        }
    }
}

impl Alerts {
    /// Whether an alert of this kind is posted.
    pub fn posts(&self, kind: AlertKind) -> bool {
        self.webhook.is_some() && self.on.contains(&kind)
    }

    /// The problems of the table beyond its single values.
    pub(super) fn problems(&self) -> Option<Problem> {
        let detail = match (&self.webhook, self.secrets.len()) {
            (Some(_), 0) => {
                "is missing; without a signature the receiver of alerts.webhook cannot verify alerts"
            }
            (None, 1..) => "is set, but alerts.webhook is missing",
            _ => return None,
        };
        let problem = Problem::field(Code::Configuration, "alerts.secret", detail);
        Some(problem.at_line(self.line))
    }
}

/// The URL that alerts are posted to. Such URLs often contain a secret, so it is not printed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Webhook(Secret);

impl Webhook {
    /// The URL, for the one place that posts.
    pub fn url(&self) -> &str {
        self.0.expose()
    }
}

impl<'de> Deserialize<'de> for Webhook {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Webhook, D::Error> {
        let text = String::deserialize(deserializer)?;
        let url = url::Url::parse(&text).ok();
        match url.is_some_and(|url| matches!(url.scheme(), "http" | "https")) {
            true => Ok(Webhook(text.into())),
            false => {
                Err(D::Error::custom("webhook is not a URL; expected `https://…` or `http://…`"))
            }
        }
    }
}

/// The shortest secret in bytes. Shorter ones could be found by brute force from a signed message.
const SHORTEST: usize = 24;

/// One secret or several. Errors do not quote them.
fn secrets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Secret>, D::Error> {
    let texts = match toml::Value::deserialize(deserializer)? {
        toml::Value::String(text) => vec![text],
        toml::Value::Array(texts) => {
            let texts = texts.into_iter().map(|text| text.try_into().ok());
            texts.collect::<Option<_>>().unwrap_or_default()
        }
        _ => Vec::new(),
    };
    if texts.is_empty() {
        return Err(D::Error::custom("secret must be a string, or a list of strings"));
    }
    let secrets: Vec<Secret> = texts.into_iter().map(Secret::from).collect();
    match secrets.iter().any(|secret| secret.expose().len() < SHORTEST) {
        true => Err(D::Error::custom(format!(
            "secret is shorter than {SHORTEST} bytes; create one with `openssl rand -base64 32`"
        ))),
        false => Ok(secrets),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const SECRET: &str = "0123456789abcdef01234567";

    fn refusals(text: &str) -> String {
        match Config::parse(text, |_| None) {
            Err(problem) => problem.to_string(),
            Ok(config) => config.problems().iter().map(|p| p.to_string() + "\n").collect(),
        }
    }

    #[test]
    fn a_whole_example_is_right_and_nothing_is_too() {
        let text = format!(
            "[alerts]\nwebhook = \"https://a.example/b\"\nsecret = [\"{SECRET}\", \"{SECRET}2\"]\n\
             dead_letters = 0\nno_worker = \"30s\"\non = [\"job-failed\", \"no-worker\"]\n"
        );
        assert_eq!(refusals(&text), "");
        let alerts = Config::parse(&text, |_| None).unwrap().alerts;
        assert_eq!(alerts.secrets.len(), 2);
        assert!(alerts.posts(AlertKind::NoWorker) && !alerts.posts(AlertKind::DeadLetters));
        let shown = format!("{alerts:?}");
        assert!(!shown.contains(SECRET) && !shown.contains("a.example"), "{shown}");
        assert_eq!(refusals(""), "");
        assert!(!Config::default().alerts.posts(AlertKind::JobFailed), "the log alone");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_no_secret_is() {
        let url = "webhook = \"https://a.example/b\"";
        for (line, expected) in [
            ("webhook = \"ftp://a\"".to_owned(), "https://"),
            ("webhook = \"a b\"".to_owned(), "not a URL"),
            (url.to_owned(), "alerts.secret: is missing"),
            (format!("secret = \"{SECRET}\""), "alerts.webhook is missing"),
            ("secret = \"hush-hush\"".to_owned(), "shorter than 24"),
            ("secret = 7".to_owned(), "a string"),
            ("secret = []".to_owned(), "a string"),
            ("secret = [7]".to_owned(), "a string"),
            ("on = [\"sometimes\"]".to_owned(), "sometimes"),
            ("dead_letters = -1".to_owned(), "line 3"),
            ("no_worker = \"soon\"".to_owned(), "line 3"),
            ("suspended = \"long\"".to_owned(), "line 3"),
            ("channel = 1".to_owned(), "channel"),
        ] {
            let message = refusals(&format!("\n[alerts]\n{line}\n"));
            assert!(message.contains(expected), "{line}: {message}");
            assert!(message.contains("line "), "{line}: {message}");
            assert!(!message.contains(SECRET) && !message.contains("hush"), "{line}: {message}");
        }
    }
}
