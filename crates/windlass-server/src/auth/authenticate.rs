//! Where callers are told from strangers: by their token, or, without `[auth]`, by being on this
//! machine.

use super::keys::Keys;
use super::{AuthError, Caller, session};
use crate::problem::{Answer, Failure};
use axum::http::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderName, StatusCode, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Validation;
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use windlass_core::claims::UNRESTRICTED;
use windlass_core::config::{Auth, Permission, Role};
use windlass_core::request::{MAX_SUBMITTER_BYTES, RESERVED_SUBMITTERS};
use windlass_core::{Config, Secret, Value};
use windlass_engine::Engine;

/// The door of the server.
pub(crate) enum Authenticator {
    /// Everybody on this machine may do everything.
    Open,
    /// A token says who comes.
    Locked(Box<Lock>),
}

/// What it takes to know a caller by their token.
pub(crate) struct Lock {
    keys: Keys,
    auth: Auth,
    roles: BTreeMap<String, Role>,
    /// The claims that some job type filters by; the others are not kept.
    claims: BTreeSet<String>,
}

impl Authenticator {
    pub(crate) async fn new(config: &Config) -> Result<Authenticator, AuthError> {
        let Some(auth) = config.auth.clone() else { return Ok(Authenticator::Open) };
        let claims = config.jobs.values().flat_map(|job_type| job_type.source.claims.keys());
        let claims = claims.cloned().collect();
        let (keys, roles) = (Keys::load(&auth).await?, auth.roles.clone());
        Ok(Authenticator::Locked(Box::new(Lock { keys, auth, roles, claims })))
    }
}

impl Lock {
    /// The caller that a token names. A stranger is not told why they are one; whose token is
    /// genuine is told why it cannot be used.
    pub(crate) async fn identify(&self, token: &str) -> Answer<Caller> {
        let claims = self.verify(token).await.ok_or_else(Failure::unauthorized)?;
        let name = claims.get("sub").and_then(Json::as_str).unwrap_or_default();
        check_name(name).map_err(Failure::unusable_token)?;
        let name = name.to_owned();
        let leeway = self.auth.leeway.as_secs();
        let given = roles(&claims, &self.auth.roles_claim);
        let roles = given.iter().filter_map(|role| self.roles.get(role)).cloned().collect();
        let kept = self.claims.iter().filter_map(|name| {
            let values = claim_values(claims.get(name)?);
            (!values.is_empty()).then(|| (name.clone(), values))
        });
        // A number of seconds beyond what any clock shows saturates.
        let expires = claims.get("exp").and_then(Json::as_f64);
        let expires = expires.map(|at| (at as u64).saturating_add(leeway));
        Ok(Caller {
            name,
            roles,
            needed: Permission::View,
            claims: kept.collect(),
            token: Some(Secret::from(token.to_owned())),
            expires,
        })
    }

    /// The claims of a token that is genuine, for us, and of now.
    async fn verify(&self, token: &str) -> Option<Map<String, Json>> {
        // A header with `alg: none`, or with any other that we do not know, cannot even be read.
        let header = jsonwebtoken::decode_header(token).ok().filter(|_| !is_critical(token))?;
        let key = self.keys.find(header.kid.as_deref()).await?;
        // The key decides the algorithm, never the token.
        let mut validation = Validation::new(key.algorithm);
        validation.leeway = self.auth.leeway.as_secs();
        validation.validate_nbf = true;
        let mut required = vec!["exp", "sub"];
        if let Some(issuer) = &self.auth.issuer {
            validation.set_issuer(&[issuer]);
            required.push("iss");
        }
        match &self.auth.audience {
            Some(audience) => {
                validation.set_audience(&[audience]);
                required.push("aud");
            }
            None => validation.validate_aud = false,
        }
        validation.set_required_spec_claims(&required);
        let claims = jsonwebtoken::decode::<Map<String, Json>>(token, &key.key, &validation);
        let claims = claims.ok()?.claims;
        // The library passes over an `nbf` that is not a number.
        claims.get("nbf").is_none_or(Json::is_number).then_some(claims)
    }
}

/// Refuses a `sub` that cannot be shown as a name in a list and in the log, or that would be
/// taken for Windlass itself.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.contains(char::is_control) {
        return Err("the token's `sub` is empty or has control characters".to_owned());
    }
    if name.len() > MAX_SUBMITTER_BYTES {
        let bytes = name.len();
        return Err(format!("the token's `sub` has {bytes} bytes; at most {MAX_SUBMITTER_BYTES}"));
    }
    // Names that look the same in a list are the same.
    let plain = name.trim().to_lowercase();
    if RESERVED_SUBMITTERS.contains(&plain.as_str()) {
        return Err(format!("the token's `sub` is `{plain}`, a name that Windlass itself has"));
    }
    Ok(())
}

/// Whether a token's header asks for something that we would have to understand (RFC 7515, 4.1.11).
fn is_critical(token: &str) -> bool {
    let header = token.split('.').next().and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let header = header.and_then(|text| serde_json::from_slice::<Map<String, Json>>(&text).ok());
    header.is_none_or(|header| header.contains_key("crit"))
}

/// The token of a request: a bearer's, or else that of somebody who signed in to the dashboard.
pub(super) fn token_of(parts: &Parts) -> Option<&str> {
    match parts.headers.contains_key(AUTHORIZATION) {
        true => bearer(&parts.headers),
        false => session::token(parts),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (scheme, token) = all.next()?.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && all.next().is_none()).then(|| token.trim())
}

/// The roles a token gives: a name, several apart by spaces, or a list.
fn roles(claims: &Map<String, Json>, place: &str) -> Vec<String> {
    let path = || {
        let mut parts = place.split('.');
        let first = claims.get(parts.next()?)?;
        parts.try_fold(first, |found, part| found.get(part))
    };
    match claims.get(place).or_else(path) {
        Some(Json::String(names)) => names.split_whitespace().map(str::to_owned).collect(),
        Some(Json::Array(names)) => {
            names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

/// A claim's values. What cannot be compared with a column is no value, and spoils its list.
fn claim_values(claim: &Json) -> Vec<Value> {
    let scalar = |value: &Json| match value {
        // It would restrict nothing, which a token never says.
        Json::String(text) if text == UNRESTRICTED => None,
        Json::String(_) | Json::Number(_) | Json::Bool(_) => Some(Value::from_json(value.clone())),
        _ => None,
    };
    match claim {
        Json::Array(values) => values.iter().map(scalar).collect::<Option<_>>().unwrap_or_default(),
        single => scalar(single).into_iter().collect(),
    }
}

/// Headers that proxies add.
const FORWARDING: [&str; 9] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "x-client-ip",
    "cf-connecting-ip",
    "true-client-ip",
];

/// Somebody on this machine, who may do everything. A page in their browser is not them: its
/// requests carry another origin, or a host name that merely points here.
pub(super) fn local(headers: &HeaderMap, uri: &Uri) -> Answer<Caller> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let authority = || uri.authority().map(Authority::as_str);
    let host = text(HOST).or_else(authority).unwrap_or_default();
    let same = text(ORIGIN).is_none_or(|origin| origin == format!("http://{host}"));
    let elsewhere = text(HeaderName::from_static("sec-fetch-site")) == Some("cross-site");
    if !same || elsewhere || !is_loopback(host) {
        let detail = "without [auth] only requests of this machine to this machine are served";
        return Err(Failure::new(StatusCode::FORBIDDEN, detail));
    }
    // A proxy on this machine brings requests of others.
    if let Some(name) = FORWARDING.iter().find(|name| headers.contains_key(**name)) {
        let detail = format!(
            "the request was forwarded ({name}); a server behind a proxy needs an [auth] table"
        );
        return Err(Failure::new(StatusCode::FORBIDDEN, detail));
    }
    Ok(Caller {
        name: Engine::local_identity().name,
        roles: vec![Role { may: Permission::ALL.to_vec(), all_jobs: true, ..Role::default() }],
        needed: Permission::View,
        claims: BTreeMap::new(),
        token: None,
        expires: None,
    })
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_is_one_value_or_a_list_of_them() {
        assert_eq!(claim_values(&json!("Kent")), [Value::from("Kent")]);
        assert_eq!(claim_values(&json!(["Kent", 7])), [Value::from("Kent"), Value::Int(7)]);
        for nothing in [json!(null), json!([]), json!({"a": 1}), json!(["Kent", null]), json!([[]])]
        {
            assert_eq!(claim_values(&nothing), [], "{nothing}");
        }
    }

    #[test]
    fn roles_are_found_where_the_issuer_puts_them() {
        let claims = json!({"roles": "clerk  chief", "realm_access": {"roles": ["a", 1]},
            "https://x.y/roles": ["b"]});
        let claims = claims.as_object().unwrap();
        assert_eq!(roles(claims, "roles"), ["clerk", "chief"]);
        assert_eq!(roles(claims, "realm_access.roles"), ["a"]);
        assert_eq!(roles(claims, "https://x.y/roles"), ["b"]);
        assert!(roles(claims, "none.at.all").is_empty());
    }

    #[test]
    fn a_page_in_the_browser_is_not_somebody_on_this_machine() {
        let asks = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            local(&headers, &Uri::from_static("/")).is_ok()
        };
        for host in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "127.1.2.3"] {
            assert!(asks(host, None), "{host}");
        }
        assert!(asks("127.0.0.1:8080", Some("http://127.0.0.1:8080")));
        assert!(!asks("127.0.0.1:8080", Some("https://evil.example")));
        assert!(!asks("127.0.0.1:8080", Some("null")));
        assert!(!asks("evil.example:8080", None));
        assert!(!asks("localhost.evil.example", None));
        for (name, value) in FORWARDING
            .iter()
            .map(|name| (*name, "for=192.0.2.1"))
            .chain([("sec-fetch-site", "cross-site")])
        {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "127.0.0.1:8080".parse().unwrap());
            assert!(local(&headers, &Uri::from_static("/")).is_ok());
            headers.insert(name, value.parse().unwrap());
            assert!(local(&headers, &Uri::from_static("/")).is_err(), "{name}");
        }
        // HTTP/2 has the host in the address.
        let address = |text: &'static str| Uri::from_static(text);
        assert!(local(&HeaderMap::new(), &address("http://127.0.0.1:8080/")).is_ok());
        assert!(local(&HeaderMap::new(), &address("http://evil.example/")).is_err());
    }
}
