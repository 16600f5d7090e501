//! `[server]` and `[auth]`: where the API listens, and who may do what there.

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
    /// The most requests a second of one caller; a second's worth may come at once.
    pub requests_per_second: u32,
    /// How long answers may take to finish after the server was told to stop.
    #[serde(with = "humantime_serde")]
    pub shutdown: Duration,
}

impl Default for Server {
    fn default() -> Self {
        Server {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            max_body: DEFAULT_BODY,
            requests_per_second: 1000,
            shutdown: Duration::from_secs(10),
        }
    }
}

/// Room for the largest request, also where it is written with line breaks and spaces: what is too
/// large is told so by the request's own limit.
const DEFAULT_BODY: usize = 2 * Request::MOST_BYTES;

/// `[auth]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// The key itself: a secret of 32 bytes or more (HS256), or a public key as PEM.
    #[serde(default)]
    pub key: Option<Secret>,
    /// A file with the same.
    #[serde(default)]
    pub key_file: Option<String>,
    /// A set of public keys: `https://…` or a file. An unknown key is looked up again.
    #[serde(default)]
    pub jwks: Option<String>,
    /// The `iss` that tokens must have.
    #[serde(default)]
    pub issuer: Option<String>,
    /// The `aud` that tokens must have.
    #[serde(default)]
    pub audience: Option<String>,
    /// How far the clocks may be apart.
    #[serde(default = "default_leeway", with = "humantime_serde")]
    pub leeway: Duration,
    /// The claim that has the caller's roles, one or a list; a dot leads into an object.
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
    /// Whether with everybody's jobs, rather than only one's own.
    #[serde(default)]
    pub all_jobs: bool,
}

/// What one may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// Look at jobs, chunks, output, dead letters, limits and workers.
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

/// Everything that is wrong with the two tables by themselves.
pub(super) fn problems(server: &Server, auth: Option<&Auth>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut refuse = |field: &str, detail: &str| {
        problems.push(Problem::field(Code::Configuration, field, detail))
    };
    if server.max_body == 0 {
        refuse("server.max_body", &format!("is 0; {DEFAULT_BODY} is the default"));
    }
    if server.requests_per_second == 0 {
        refuse("server.requests_per_second", "is 0; 1000 is the default");
    }
    match auth {
        None if !server.listen.ip().is_loopback() => refuse(
            "server.listen",
            "is an address that others can reach, and there is no [auth] to tell who may do what; \
             127.0.0.1:8080 would be right, or an [auth] table",
        ),
        None => {}
        Some(auth) => {
            let keys = [auth.key.is_some(), auth.key_file.is_some(), auth.jwks.is_some()];
            if keys.iter().filter(|given| **given).count() != 1 {
                refuse("auth", "needs exactly one of key, key_file and jwks");
            }
            if auth.roles.is_empty() {
                refuse("auth.roles", "is empty, so that nobody may do anything");
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
    fn what_is_wrong_is_named() {
        let roles = "[auth.roles]\na = { may = [] }\n";
        for (text, expected) in [
            ("[server]\nlisten = \"0.0.0.0:80\"\n".to_owned(), "no [auth]"),
            ("[server]\nlisten = \"here\"\n".to_owned(), "line 2"),
            ("[server]\nmax_body = 0\n".to_owned(), "max_body"),
            ("[server]\nrequests_per_second = 0\n".to_owned(), "requests_per_second"),
            (format!("[auth]\n{roles}"), "exactly one"),
            (format!("[auth]\nkey = \"a\"\njwks = \"b\"\n{roles}"), "exactly one"),
            ("[auth]\nkey = \"a\"\nroles = {}\n".to_owned(), "nobody"),
            ("[auth]\nkey = \"a\"\n".to_owned(), "roles"),
            (roles.replace("may = []", "may = [\"fly\"]"), "fly"),
        ] {
            let message = refusals(&text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
