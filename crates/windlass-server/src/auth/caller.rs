//! The caller of a request, and the extractors that say what a handler asks of them.

use super::{Door, Lock};
use crate::App;
use crate::problem::{Answer, Failure};
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;
use chrono::DateTime;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use windlass_core::config::Permission;
use windlass_core::{Claims, Identity, Job, Secret};

/// Somebody we know.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(super) name: String,
    pub(super) may: BTreeSet<Permission>,
    pub(super) all_jobs: bool,
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

    /// Whether a job is for the caller's eyes.
    pub(crate) fn sees(&self, job: &Job) -> bool {
        self.sees_jobs_of(&job.submitted_by)
    }

    /// Whether somebody's jobs are.
    pub(crate) fn sees_jobs_of(&self, name: &str) -> bool {
        self.all_jobs || name == self.name
    }

    /// Whether every job is.
    pub(crate) fn sees_all(&self) -> bool {
        self.all_jobs
    }

    /// Whether they may do something: what they may not, they are not offered.
    pub(crate) fn may(&self, permission: Permission) -> bool {
        self.may.contains(&permission)
    }

    /// For how many seconds they are known, where that ends.
    pub(crate) fn seconds_left(&self) -> Option<u64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.expires.map(|at| at.saturating_sub(now.as_secs()))
    }

    /// The identity of a job that the caller submits.
    pub(crate) fn identity(&self) -> Identity {
        let (name, claims, token) = (self.name.clone(), self.claims.clone(), self.token.clone());
        let expires = self.expires.and_then(|at| DateTime::from_timestamp(at as i64, 0));
        Identity { name, claims, expires, token, sealed_token: None }
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
            Door::Open => super::door::local(&parts.headers, &parts.uri),
            Door::Locked(lock) => Caller::known(lock, Some(token), app, parts).await,
        }
    }

    /// Whom a token names. Strangers are counted by where they come from.
    async fn known(lock: &Lock, token: Option<&str>, app: &App, parts: &Parts) -> Answer<Caller> {
        let caller = match token {
            Some(token) => lock.identify(token).await,
            None => None,
        };
        if caller.is_none() {
            app.limiter.admit(&address(parts), Instant::now())?;
        }
        caller.ok_or_else(Failure::unauthorized)
    }

    /// Finds out who asks, counts the request, and looks whether they may.
    async fn of(parts: &Parts, app: &App, permission: Permission) -> Answer<Caller> {
        let caller = match &app.door {
            Door::Open => super::door::local(&parts.headers, &parts.uri)?,
            Door::Locked(lock) => {
                Caller::known(lock, super::door::token_of(parts), app, parts).await?
            }
        };
        app.limiter.admit(&format!("caller {}", caller.name), Instant::now())?;
        if caller.may.contains(&permission) {
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
