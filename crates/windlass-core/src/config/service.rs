//! `[server]` and `[auth]`: where the API listens, and who may use it.

use crate::problem::{Code, Problem};
use crate::{Request, Secret};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// `[server]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// The address; without `[auth]` only a loopback one.
    pub listen: SocketAddr,
    /// The most bytes of a request's body.
    pub max_body: usize,
    /// The most requests per second of one caller, with bursts of up to one second.
    pub requests_per_second: u32,
    /// How long answers may take to finish after a shutdown was requested.
    #[serde(with = "humantime_serde")]
    pub shutdown: Duration,
    /// The most open connections. Default: half of the file descriptors of the process, at most 4096, so
    /// that the rest is left for jobs.
    pub max_connections: Option<u32>,
    /// How long a request's header may take to arrive.
    #[serde(with = "humantime_serde")]
    pub header_timeout: Duration,
    /// How long a request's body may take to arrive, and a client may stall while it reads an answer.
    #[serde(with = "humantime_serde")]
    pub body_timeout: Duration,
    /// How long a connection stays open without a request.
    #[serde(with = "humantime_serde")]
    pub idle_timeout: Duration,
    /// The most event streams at once; never more than half of the connections.
    pub max_streams: u32,
    /// The most event streams at once of one caller.
    pub max_streams_per_caller: u32,
}

impl Default for Server {
    fn default() -> Self {
        Server {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            max_body: DEFAULT_BODY,
            requests_per_second: 1000,
            shutdown: Duration::from_secs(10),
            max_connections: None,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            max_streams: 256,
            max_streams_per_caller: 32,
        }
    }
}

/// Larger than the largest request with line breaks and spaces, so that the limit of requests reports the
/// error.
const DEFAULT_BODY: usize = 2 * Request::MAX_BYTES;

/// The shortest timeout; clients on slow networks need at least this.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(100);

/// `[auth]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// The key itself: a secret of 32 bytes or more (HS256), or a public key as PEM.
    #[serde(default)]
    pub key: Option<Secret>,
    /// A file with the key.
    #[serde(default)]
    pub key_file: Option<String>,
    /// A set of public keys: `https://…` or a file. An unknown key id reloads it.
    #[serde(default)]
    pub jwks: Option<String>,
    /// Whether `jwks` may be `http://…` on another machine.
    #[serde(default)]
    pub insecure: bool,
    /// The `iss` that tokens must have.
    #[serde(default)]
    pub issuer: Option<String>,
    /// The `aud` that tokens must have.
    #[serde(default)]
    pub audience: Option<String>,
    /// The tolerated clock skew.
    #[serde(default = "default_leeway", with = "humantime_serde")]
    pub leeway: Duration,
    /// The claim with the caller's roles, one or a list; a dot selects a field of an object.
    #[serde(default = "default_roles_claim")]
    pub roles_claim: String,
    /// What each role may do.
    pub roles: BTreeMap<String, Role>,
}

/// `[auth.roles] NAME = { may = ["view", "submit"], all_jobs = false }`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// What it may do.
    pub may: Vec<Permission>,
    /// Whether with the jobs of every submitter instead of the caller's own.
    #[serde(default)]
    pub all_jobs: bool,
    /// The job types it applies to, with `*` as a wildcard: `REPORT_*`. All of them if empty.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// The highest priority of the jobs it submits. Default: [`SUBMITTER_PRIORITY`], or 9 for a role that
    /// may administer.
    #[serde(default)]
    pub max_priority: Option<u8>,
}

/// The highest priority that a role may submit with by default. Higher ones are reserved for
/// administrators, so that they can always submit something more urgent.
pub const SUBMITTER_PRIORITY: u8 = 7;

impl Role {
    /// Whether it applies to a job type.
    pub fn covers(&self, job_type: &str) -> bool {
        self.covers_all() || self.jobs.iter().any(|pattern| matches(pattern, job_type))
    }

    /// Whether it applies to every job type, present and future.
    pub fn covers_all(&self) -> bool {
        self.jobs.is_empty() || self.jobs.iter().any(|pattern| pattern == "*")
    }

    /// The highest priority it may submit with.
    pub fn highest_priority(&self) -> u8 {
        let administers = self.may.contains(&Permission::Administer);
        self.max_priority.unwrap_or(if administers { 9 } else { SUBMITTER_PRIORITY })
    }
}

/// Whether a name matches a pattern with `*` as a wildcard.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        // The first match leaves the most text for the rest of the pattern.
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(end)
}

/// What a role may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// Read jobs, chunks, output, dead letters, limits and workers.
    View,
    /// Submit jobs.
    Submit,
    /// Cancel, pause, resume, retry and limit jobs; redrive and ignore dead letters.
    Operate,
    /// Limit, stop and start job types.
    Administer,
}

impl Permission {
    /// Every permission.
    pub const ALL: &'static [Permission] =
        &[Permission::View, Permission::Submit, Permission::Operate, Permission::Administer];
}

fn default_leeway() -> Duration {
    Duration::from_secs(30)
}

fn default_roles_claim() -> String {
    "roles".to_owned()
}

/// All problems of the two tables.
pub(super) fn problems(server: &Server, auth: Option<&Auth>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut refuse = |field: &str, detail: &str| {
        problems.push(Problem::field(Code::Configuration, field, detail))
    };
    if server.max_body == 0 {
        refuse(
            "server.max_body",
            &format!("must be at least 1, got 0; the default is {DEFAULT_BODY}"),
        );
    }
    if server.requests_per_second == 0 {
        refuse("server.requests_per_second", "must be at least 1, got 0; the default is 1000");
    }
    for (field, count) in [
        ("server.max_connections", server.max_connections.unwrap_or(1)),
        ("server.max_streams", server.max_streams),
        ("server.max_streams_per_caller", server.max_streams_per_caller),
    ] {
        if count == 0 {
            refuse(field, "must be at least 1, got 0");
        }
    }
    for (field, time) in [
        ("server.header_timeout", server.header_timeout),
        ("server.body_timeout", server.body_timeout),
        ("server.idle_timeout", server.idle_timeout),
    ] {
        if time < SHORTEST_TIMEOUT {
            refuse(field, "must be at least 100ms");
        }
    }
    match auth {
        None if !server.listen.ip().is_loopback() => refuse(
            "server.listen",
            "is reachable from other machines, but there is no [auth]; use 127.0.0.1:8080, or add an \
             [auth] table",
        ),
        None => {}
        Some(auth) => {
            let keys = [auth.key.is_some(), auth.key_file.is_some(), auth.jwks.is_some()];
            if keys.iter().filter(|given| **given).count() != 1 {
                refuse("auth", "needs exactly one of key, key_file and jwks");
            }
            if auth.roles.is_empty() {
                refuse("auth.roles", "is empty, so no caller may do anything");
            }
            for (name, role) in &auth.roles {
                if let Some(priority) = role.max_priority.filter(|priority| *priority > 9) {
                    let detail = format!("must be 0 to 9, got {priority}");
                    refuse(&format!("auth.roles.{name}.max_priority"), &detail);
                }
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn refusals(text: &str) -> String {
        match Config::parse(text, |_| None) {
            Err(problem) => problem.to_string(),
            Ok(config) => config.problems().iter().map(|p| p.to_string() + "\n").collect(),
        }
    }

    #[test]
    fn a_whole_example_is_right_and_defaults_are_too() {
        let text = "[server]\nlisten = \"0.0.0.0:80\"\nmax_body = 1_000\n[auth]\nkey = \"k\"\n\
                    issuer = \"i\"\naudience = \"a\"\nleeway = \"5s\"\n[auth.roles]\n\
                    clerk = { may = [\"view\", \"submit\"] }\n\
                    chief = { may = [\"view\", \"administer\"], all_jobs = true }\n";
        assert_eq!(refusals(text), "");
        let auth = Config::parse(text, |_| None).unwrap().auth.unwrap();
        assert_eq!(auth.roles["clerk"].may, [Permission::View, Permission::Submit]);
        assert!(auth.roles["chief"].all_jobs && !auth.roles["clerk"].all_jobs);
        assert_eq!(refusals(""), "");
    }

    #[test]
    fn a_pattern_has_stars_for_any_letters() {
        for (pattern, names, others) in [
            ("REPORT_*", &["REPORT_", "REPORT_A"][..], &["REPORT", "A_REPORT_A", "report_a"][..]),
            ("*_DAILY", &["A_DAILY", "_DAILY"], &["A_DAILY_B", "DAILY"]),
            ("A*B*C", &["ABC", "AxBxC", "ABBCC"], &["AB", "ACB", "xABC"]),
            ("A*A", &["AA", "AxA"], &["A"]),
            ("TAKE", &["TAKE"], &["TAKEN", "RETAKE"]),
            ("*", &["", "TAKE"], &[]),
        ] {
            let role = Role { jobs: vec![pattern.to_owned()], ..Role::default() };
            names.iter().for_each(|name| assert!(role.covers(name), "{pattern} {name}"));
            others.iter().for_each(|name| assert!(!role.covers(name), "{pattern} {name}"));
        }
        assert!(Role::default().covers("TAKE"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let roles = "[auth.roles]\na = { may = [] }\n";
        for (text, expected) in [
            ("[server]\nlisten = \"0.0.0.0:80\"\n".to_owned(), "there is no [auth]"),
            ("[server]\nlisten = \"here\"\n".to_owned(), "line 2"),
            ("[server]\nmax_body = 0\n".to_owned(), "max_body"),
            ("[server]\nrequests_per_second = 0\n".to_owned(), "requests_per_second"),
            ("[server]\nmax_connections = 0\n".to_owned(), "max_connections"),
            ("[server]\nmax_streams_per_caller = 0\n".to_owned(), "max_streams_per_caller"),
            ("[server]\nbody_timeout = \"1ms\"\n".to_owned(), "at least 100ms"),
            (
                format!("[auth]\nkey = \"a\"\n{}", roles.replace("[]", "[], max_priority = 10")),
                "0 to 9",
            ),
            (format!("[auth]\n{roles}"), "exactly one"),
            (format!("[auth]\nkey = \"a\"\njwks = \"b\"\n{roles}"), "exactly one"),
            ("[auth]\nkey = \"a\"\nroles = {}\n".to_owned(), "no caller"),
            ("[auth]\nkey = \"a\"\n".to_owned(), "roles"),
            (roles.replace("may = []", "may = [\"fly\"]"), "fly"),
        ] {
            let message = refusals(&text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
