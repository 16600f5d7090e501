//! The caller of a request, and the extractors by which a handler requires a permission.

use super::authenticate::{loopback_caller, token_of};
use super::{Authenticator, JwtVerifier};
use crate::App;
use crate::problem::{ApiError, ApiResult};
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;
use chrono::DateTime;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use windlass_core::config::{Permission, Role};
use windlass_core::{Claims, Config, Identity, Secret};

/// The last second of the year 9999, the latest time that every database can store.
const LAST_EXPIRY: u64 = 253_402_300_799;

/// An authenticated caller.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(super) name: String,
    pub(super) roles: Vec<Role>,
    /// The permission that the current route requires. Roles without it are ignored.
    pub(super) permission: Permission,
    pub(super) claims: Claims,
    pub(super) token: Option<Secret>,
    /// When the token expires, in seconds since 1970.
    pub(super) expires: Option<u64>,
}

impl Caller {
    /// The name, for logs.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the caller may use the required permission on a job of this type and submitter.
    pub(crate) fn sees(&self, job_type: &str, submitter: &str) -> bool {
        self.covers(job_type) && (submitter == self.name || self.sees_all_of(job_type))
    }

    /// Whether a role grants the required permission for this job type.
    pub(crate) fn covers(&self, job_type: &str) -> bool {
        self.may_on(self.permission, job_type)
    }

    fn sees_all_of(&self, job_type: &str) -> bool {
        self.roles.iter().any(|role| role.all_jobs && role.covers(job_type))
    }

    /// Whether the caller may see every job of every type.
    pub(crate) fn sees_all(&self) -> bool {
        self.roles_with(self.permission).any(Role::covers_all)
            && self.roles.iter().any(|role| role.all_jobs && role.covers_all())
    }

    /// The job types that the caller is restricted to; `None` without restriction.
    pub(crate) fn visible_types(&self, config: &Config) -> Option<Vec<String>> {
        if self.roles_with(self.permission).any(Role::covers_all) {
            return None;
        }
        Some(config.jobs.keys().filter(|name| self.covers(name)).cloned().collect())
    }

    /// The submitter whose jobs the caller is restricted to; `None` without restriction. A list shows the
    /// jobs of all submitters only if the caller may see them for each of the types in the list.
    pub(crate) fn visible_submitter(&self, types: Option<&[String]>) -> Option<String> {
        let all = match types {
            Some(types) => types.iter().all(|name| self.sees_all_of(name)),
            None => self.sees_all(),
        };
        (!all).then(|| self.name.clone())
    }

    /// Whether a role grants this permission for any job type.
    pub(crate) fn may(&self, permission: Permission) -> bool {
        self.roles_with(permission).next().is_some()
    }

    /// Whether a role grants this permission for this job type.
    pub(crate) fn may_on(&self, permission: Permission, job_type: &str) -> bool {
        self.roles_with(permission).any(|role| role.covers(job_type))
    }

    /// Whether a role grants this permission for every job type.
    pub(crate) fn may_on_all(&self, permission: Permission) -> bool {
        self.roles_with(permission).any(Role::covers_all)
    }

    /// The highest priority with which the caller may submit jobs of this type.
    pub(crate) fn max_priority(&self, job_type: &str) -> u8 {
        let roles = self.roles_with(Permission::Submit).filter(|role| role.covers(job_type));
        roles.map(Role::highest_priority).max().unwrap_or_default()
    }

    fn roles_with(&self, permission: Permission) -> impl Iterator<Item = &Role> {
        self.roles.iter().filter(move |role| role.may.contains(&permission))
    }

    /// Seconds until the token expires; `None` if it does not.
    pub(crate) fn seconds_left(&self) -> Option<u64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.expires.map(|at| at.saturating_sub(now.as_secs()))
    }

    /// The identity that the caller's jobs run under.
    pub(crate) fn identity(&self) -> Identity {
        let (name, claims, token) = (self.name.clone(), self.claims.clone(), self.token.clone());
        let expires = self.expires.map(|at| at.min(LAST_EXPIRY) as i64);
        let expires = expires.and_then(|at| DateTime::from_timestamp(at, 0));
        Identity { name, claims, expires, token, sealed_token: None }
    }

    /// The caller as the engine needs it to authorize retries and redrives.
    pub(crate) fn for_engine(&self, config: &Config) -> windlass_engine::Caller {
        let types = config.jobs.keys();
        let operated = types.filter(|name| self.covers(name) && self.sees_all_of(name));
        let operated_types = operated.cloned().collect();
        let roles_claim = config.auth.as_ref().map(|auth| auth.roles_claim.clone());
        windlass_engine::Caller { identity: self.identity(), operated_types, roles_claim }
    }

    /// Completes when the token expires, which ends a streaming response.
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

    /// Authenticates a caller who signs in to the dashboard with a token.
    pub(crate) async fn sign_in(parts: &Parts, app: &App, token: &str) -> ApiResult<Caller> {
        match &app.authenticator {
            Authenticator::Loopback => loopback_caller(&parts.headers, &parts.uri),
            Authenticator::Jwt(verifier) => {
                Caller::authenticate(verifier, Some(token), app, parts).await
            }
        }
    }

    /// The caller that a token names. Failed attempts count against the client's address.
    async fn authenticate(
        verifier: &JwtVerifier,
        token: Option<&str>,
        app: &App,
        parts: &Parts,
    ) -> ApiResult<Caller> {
        let caller = match token {
            Some(token) => verifier.identify(token).await,
            None => Err(ApiError::unauthorized()),
        };
        if caller.is_err() {
            app.limiter.check(&client_address(parts))?;
        }
        caller
    }

    /// Authenticates the caller, applies the rate limit, and checks the permission.
    async fn authorize(parts: &Parts, app: &App, permission: Permission) -> ApiResult<Caller> {
        let mut caller = match &app.authenticator {
            Authenticator::Loopback => loopback_caller(&parts.headers, &parts.uri)?,
            Authenticator::Jwt(verifier) => {
                Caller::authenticate(verifier, token_of(parts), app, parts).await?
            }
        };
        app.limiter.check(&format!("caller {}", caller.name))?;
        if caller.may(permission) {
            caller.permission = permission;
            return Ok(caller);
        }
        let name = serde_json::to_value(permission).unwrap_or_default();
        let detail = format!("none of your roles has the permission {name}");
        Err(ApiError::new(StatusCode::FORBIDDEN, detail))
    }
}

fn client_address(parts: &Parts) -> String {
    let address = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    address.map_or_else(String::new, |ConnectInfo(address)| format!("address {}", address.ip()))
}

/// Defines an extractor that requires a permission.
macro_rules! permitted {
    ($($(#[$doc:meta])* $name:ident = $permission:ident;)+) => {$(
        $(#[$doc])*
        pub(crate) struct $name(pub(crate) Caller);

        impl FromRequestParts<Arc<App>> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> ApiResult<Self> {
                Caller::authorize(parts, app, Permission::$permission).await.map($name)
            }
        }
    )+};
}

permitted! {
    /// A caller who may view.
    Viewer = View;
    /// A caller who may submit jobs.
    Submitter = Submit;
    /// A caller who may operate jobs: cancel, pause, resume, retry, redrive.
    Operator = Operate;
    /// A caller who may administer: stop, start, limits, schedules.
    Administrator = Administer;
}
