//! The caller of a request, and the extractors that say what a handler asks of them.

use super::{Authenticator, Lock};
use crate::App;
use crate::problem::{Answer, Failure};
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;
use chrono::DateTime;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use windlass_core::config::{Permission, Role};
use windlass_core::{Claims, Config, Identity, Secret};

/// The last second of the year 9999: every database can write it down.
const LAST_EXPIRY: u64 = 253_402_300_799;

/// Somebody we know.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(super) name: String,
    pub(super) roles: Vec<Role>,
    /// What they are asked for: a role without it opens nothing here.
    pub(super) needed: Permission,
    pub(super) claims: Claims,
    pub(super) token: Option<Secret>,
    /// When the token is no longer good, in seconds since 1970.
    pub(super) expires: Option<u64>,
}

impl Caller {
    /// Their name, for the log.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether a job of this type and submitter is theirs to see, or to do what they ask for.
    pub(crate) fn sees(&self, job_type: &str, submitter: &str) -> bool {
        self.covers(job_type) && (submitter == self.name || self.sees_all_of(job_type))
    }

    /// Whether one of their roles allows what they ask for with jobs of this type.
    pub(crate) fn covers(&self, job_type: &str) -> bool {
        self.may_on(self.needed, job_type)
    }

    fn sees_all_of(&self, job_type: &str) -> bool {
        self.roles.iter().any(|role| role.all_jobs && role.covers(job_type))
    }

    /// Whether every job of every type is.
    pub(crate) fn sees_all(&self) -> bool {
        self.holding(self.needed).any(Role::covers_all)
            && self.roles.iter().any(|role| role.all_jobs && role.covers_all())
    }

    /// The job types that they are kept to, of those there are; none when to nothing.
    pub(crate) fn only_types(&self, config: &Config) -> Option<Vec<String>> {
        if self.holding(self.needed).any(Role::covers_all) {
            return None;
        }
        Some(config.jobs.keys().filter(|name| self.covers(name)).cloned().collect())
    }

    /// Whose jobs they list; everybody's when no name is given. A list is of one kind: it has
    /// everybody's jobs only if that holds for each type in it.
    pub(crate) fn only_submitter(&self, types: Option<&[String]>) -> Option<String> {
        let all = match types {
            Some(types) => types.iter().all(|name| self.sees_all_of(name)),
            None => self.sees_all(),
        };
        (!all).then(|| self.name.clone())
    }

    /// Whether they may do something with some job type: what they may not, they are not offered.
    pub(crate) fn may(&self, permission: Permission) -> bool {
        self.holding(permission).next().is_some()
    }

    /// Whether they may do something with jobs of this type.
    pub(crate) fn may_on(&self, permission: Permission, job_type: &str) -> bool {
        self.holding(permission).any(|role| role.covers(job_type))
    }

    /// Whether they may do something with every job type.
    pub(crate) fn may_on_all(&self, permission: Permission) -> bool {
        self.holding(permission).any(Role::covers_all)
    }

    /// The highest priority they may submit a job of this type with.
    pub(crate) fn highest_priority(&self, job_type: &str) -> u8 {
        let roles = self.holding(Permission::Submit).filter(|role| role.covers(job_type));
        roles.map(Role::highest_priority).max().unwrap_or_default()
    }

    fn holding(&self, permission: Permission) -> impl Iterator<Item = &Role> {
        self.roles.iter().filter(move |role| role.may.contains(&permission))
    }

    /// For how many seconds they are known, where that ends.
    pub(crate) fn seconds_left(&self) -> Option<u64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.expires.map(|at| at.saturating_sub(now.as_secs()))
    }

    /// The identity of a job that the caller submits.
    pub(crate) fn identity(&self) -> Identity {
        let (name, claims, token) = (self.name.clone(), self.claims.clone(), self.token.clone());
        let expires = self.expires.map(|at| at.min(LAST_EXPIRY) as i64);
        let expires = expires.and_then(|at| DateTime::from_timestamp(at, 0));
        Identity { name, claims, expires, token, sealed_token: None }
    }

    /// Who asks for a job to be run again.
    pub(crate) fn again(&self, config: &Config) -> windlass_engine::Caller {
        let types = config.jobs.keys();
        let operated = types.filter(|name| self.covers(name) && self.sees_all_of(name));
        let operated_types = operated.cloned().collect();
        let roles_claim = config.auth.as_ref().map(|auth| auth.roles_claim.clone());
        windlass_engine::Caller { identity: self.identity(), operated_types, roles_claim }
    }

    /// Waits until the caller is no longer known: an answer that goes on ends then.
    pub(crate) fn expiry(&self) -> impl Future<Output = ()> + Send + use<> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let left = self.expires.map(|at| Duration::from_secs(at).saturating_sub(now));
        async move {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Who signs in with a token.
    pub(crate) async fn signing_in(parts: &Parts, app: &App, token: &str) -> Answer<Caller> {
        match &app.door {
            Authenticator::Open => super::authenticate::local(&parts.headers, &parts.uri),
            Authenticator::Locked(lock) => Caller::known(lock, Some(token), app, parts).await,
        }
    }

    /// Whom a token names. Strangers are counted by where they come from.
    async fn known(lock: &Lock, token: Option<&str>, app: &App, parts: &Parts) -> Answer<Caller> {
        let caller = match token {
            Some(token) => lock.identify(token).await,
            None => Err(Failure::unauthorized()),
        };
        if caller.is_err() {
            app.limiter.admit(&address(parts), Instant::now())?;
        }
        caller
    }

    /// Finds out who asks, counts the request, and looks whether they may.
    async fn of(parts: &Parts, app: &App, permission: Permission) -> Answer<Caller> {
        let mut caller = match &app.door {
            Authenticator::Open => super::authenticate::local(&parts.headers, &parts.uri)?,
            Authenticator::Locked(lock) => {
                Caller::known(lock, super::authenticate::token_of(parts), app, parts).await?
            }
        };
        app.limiter.admit(&format!("caller {}", caller.name), Instant::now())?;
        if caller.may(permission) {
            caller.needed = permission;
            return Ok(caller);
        }
        let word = serde_json::to_value(permission).unwrap_or_default();
        let detail = format!("none of your roles has the permission {word}");
        Err(Failure::new(StatusCode::FORBIDDEN, detail))
    }
}

fn address(parts: &Parts) -> String {
    let address = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    address.map_or_else(String::new, |ConnectInfo(address)| format!("address {}", address.ip()))
}

/// Writes an extractor for callers with a permission.
macro_rules! permitted {
    ($($(#[$doc:meta])* $name:ident = $permission:ident;)+) => {$(
        $(#[$doc])*
        pub(crate) struct $name(pub(crate) Caller);

        impl FromRequestParts<Arc<App>> for $name {
            type Rejection = Failure;

            async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Answer<Self> {
                Caller::of(parts, app, Permission::$permission).await.map($name)
            }
        }
    )+};
}

permitted! {
    /// May look.
    Viewer = View;
    /// May submit.
    Submitter = Submit;
    /// May steer.
    Operator = Operate;
    /// May steer everything.
    Administrator = Administer;
}
