//! Authentication: by a JWT, or, without `[auth]`, by connecting from this machine.

use super::keys::VerificationKeys;
use super::{AuthError, Caller, session};
use crate::problem::{ApiError, ApiResult};
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

/// How callers are authenticated.
pub(crate) enum Authenticator {
    /// Without `[auth]`: every request from this machine may do everything.
    Loopback,
    /// With `[auth]`: a JWT identifies the caller.
    Jwt(Box<JwtVerifier>),
}

/// Verifies tokens and maps their claims to roles.
pub(crate) struct JwtVerifier {
    keys: VerificationKeys,
    auth: Auth,
    roles: BTreeMap<String, Role>,
    /// The claims that at least one job type filters by. Other claims are dropped.
    claims: BTreeSet<String>,
}

impl Authenticator {
    pub(crate) async fn new(config: &Config) -> Result<Authenticator, AuthError> {
        let Some(auth) = config.auth.clone() else { return Ok(Authenticator::Loopback) };
        let claims = config.jobs.values().flat_map(|job_type| job_type.source.claims.keys());
        let claims = claims.cloned().collect();
        let (keys, roles) = (VerificationKeys::load(&auth).await?, auth.roles.clone());
        Ok(Authenticator::Jwt(Box::new(JwtVerifier { keys, auth, roles, claims })))
    }
}

impl JwtVerifier {
    /// The caller that a token names. The response to an invalid token does not say what is wrong with
    /// it; the response to a valid token with an unusable `sub` does.
    pub(crate) async fn identify(&self, token: &str) -> ApiResult<Caller> {
        let claims = self.verify(token).await.ok_or_else(ApiError::unauthorized)?;
        let name = claims.get("sub").and_then(Json::as_str).unwrap_or_default();
        check_name(name).map_err(ApiError::unusable_token)?;
        let name = name.to_owned();
        let leeway = self.auth.leeway.as_secs();
        let given = roles(&claims, &self.auth.roles_claim);
        let roles = given.iter().filter_map(|role| self.roles.get(role)).cloned().collect();
        let kept = self.claims.iter().filter_map(|name| {
            let values = claim_values(claims.get(name)?);
            (!values.is_empty()).then(|| (name.clone(), values))
        });
        // The cast and the addition saturate for expiry times beyond the range of a clock.
        let expires = claims.get("exp").and_then(Json::as_f64);
        let expires = expires.map(|at| (at as u64).saturating_add(leeway));
        Ok(Caller {
            name,
            roles,
            permission: Permission::View,
            claims: kept.collect(),
            token: Some(Secret::from(token.to_owned())),
            expires,
        })
    }

    /// The claims of a token whose signature, issuer, audience and times are valid.
    async fn verify(&self, token: &str) -> Option<Map<String, Json>> {
        // Decoding fails for `alg: none` and for every algorithm that the library does not know.
        let header = jsonwebtoken::decode_header(token).ok().filter(|_| !is_critical(token))?;
        let key = self.keys.find(header.kid.as_deref()).await?;
        // The algorithm comes from the key, never from the token.
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
        // The library ignores an `nbf` that is not a number.
        claims.get("nbf").is_none_or(Json::is_number).then_some(claims)
    }
}

/// Rejects a `sub` that cannot be shown in lists and logs, or that is a name of Windlass itself.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.contains(char::is_control) {
        return Err("the token's `sub` is empty or has control characters".to_owned());
    }
    if name.len() > MAX_SUBMITTER_BYTES {
        let bytes = name.len();
        return Err(format!(
            "the token's `sub` has {bytes} bytes; the maximum is {MAX_SUBMITTER_BYTES}"
        ));
    }
    // Compared without case and surrounding space: such names look the same in a list.
    let plain = name.trim().to_lowercase();
    if RESERVED_SUBMITTERS.contains(&plain.as_str()) {
        return Err(format!(
            "the token's `sub` is `{plain}`, which is reserved for Windlass itself"
        ));
    }
    Ok(())
}

/// Whether a token's header has critical extensions, which we do not support (RFC 7515, 4.1.11).
fn is_critical(token: &str) -> bool {
    let header = token.split('.').next().and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let header = header.and_then(|text| serde_json::from_slice::<Map<String, Json>>(&text).ok());
    header.is_none_or(|header| header.contains_key("crit"))
}

/// The token of a request: the bearer token, or else the session cookie of the dashboard.
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

/// The roles of a token: one name, several names separated by spaces, or a list.
fn roles(claims: &Map<String, Json>, location: &str) -> Vec<String> {
    let path = || {
        let mut parts = location.split('.');
        let first = claims.get(parts.next()?)?;
        parts.try_fold(first, |found, part| found.get(part))
    };
    match claims.get(location).or_else(path) {
        Some(Json::String(names)) => names.split_whitespace().map(str::to_owned).collect(),
        Some(Json::Array(names)) => {
            names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

/// A claim's values. Empty when one of them cannot be compared with a column.
fn claim_values(claim: &Json) -> Vec<Value> {
    let scalar = |value: &Json| match value {
        // `*` means unrestricted, which only the configuration may say.
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

/// A caller on this machine, who may do everything. Rejects requests that a web page of another site
/// makes in a local browser: these carry a foreign origin, or a host name that resolves to loopback.
pub(super) fn loopback_caller(headers: &HeaderMap, uri: &Uri) -> ApiResult<Caller> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let authority = || uri.authority().map(Authority::as_str);
    let host = text(HOST).or_else(authority).unwrap_or_default();
    let same = text(ORIGIN).is_none_or(|origin| origin == format!("http://{host}"));
    let elsewhere = text(HeaderName::from_static("sec-fetch-site")) == Some("cross-site");
    if !same || elsewhere || !is_loopback(host) {
        let detail = "without an [auth] table, only requests from this machine to a loopback address are allowed";
        return Err(ApiError::new(StatusCode::FORBIDDEN, detail));
    }
    // A proxy on this machine forwards requests of other machines.
    if let Some(name) = FORWARDING.iter().find(|name| headers.contains_key(**name)) {
        let detail = format!(
            "the request was forwarded ({name}); a server behind a proxy needs an [auth] table"
        );
        return Err(ApiError::new(StatusCode::FORBIDDEN, detail));
    }
    Ok(Caller {
        name: Engine::local_identity().name,
        roles: vec![Role { may: Permission::ALL.to_vec(), all_jobs: true, ..Role::default() }],
        permission: Permission::View,
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
    fn roles_are_read_from_the_configured_claim() {
        let claims = json!({"roles": "clerk  chief", "realm_access": {"roles": ["a", 1]},
            "https://x.y/roles": ["b"]});
        let claims = claims.as_object().unwrap();
        assert_eq!(roles(claims, "roles"), ["clerk", "chief"]);
        assert_eq!(roles(claims, "realm_access.roles"), ["a"]);
        assert_eq!(roles(claims, "https://x.y/roles"), ["b"]);
        assert!(roles(claims, "none.at.all").is_empty());
    }

    #[test]
    fn requests_of_other_sites_in_a_local_browser_are_rejected() {
        let is_allowed = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            loopback_caller(&headers, &Uri::from_static("/")).is_ok()
        };
        for host in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "127.1.2.3"] {
            assert!(is_allowed(host, None), "{host}");
        }
        assert!(is_allowed("127.0.0.1:8080", Some("http://127.0.0.1:8080")));
        assert!(!is_allowed("127.0.0.1:8080", Some("https://evil.example")));
        assert!(!is_allowed("127.0.0.1:8080", Some("null")));
        assert!(!is_allowed("evil.example:8080", None));
        assert!(!is_allowed("localhost.evil.example", None));
        for (name, value) in FORWARDING
            .iter()
            .map(|name| (*name, "for=192.0.2.1"))
            .chain([("sec-fetch-site", "cross-site")])
        {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "127.0.0.1:8080".parse().unwrap());
            assert!(loopback_caller(&headers, &Uri::from_static("/")).is_ok());
            headers.insert(name, value.parse().unwrap());
            assert!(loopback_caller(&headers, &Uri::from_static("/")).is_err(), "{name}");
        }
        // HTTP/2 has the host in the URI.
        let address = |text: &'static str| Uri::from_static(text);
        assert!(loopback_caller(&HeaderMap::new(), &address("http://127.0.0.1:8080/")).is_ok());
        assert!(loopback_caller(&HeaderMap::new(), &address("http://evil.example/")).is_err());
    }
}
