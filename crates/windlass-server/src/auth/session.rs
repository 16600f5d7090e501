//! Dashboard sessions: the token in a cookie that scripts cannot read.
//!
//! The cookie is the token itself, so that every server behind a load balancer accepts it. There is no
//! session state: identity and roles are verified with each request.

use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method};

/// The cookie's name.
const NAME: &str = "windlass_session";
/// The maximum length of a token in a cookie; browsers discard longer cookies.
pub(crate) const MAX_TOKEN_BYTES: usize = 4000;

/// The token of a session. A browser also sends the cookie with requests that other sites trigger, so
/// it is accepted for reads, and for writes only from our own pages.
pub(super) fn token(parts: &Parts) -> Option<&str> {
    let is_read = matches!(parts.method, Method::GET | Method::HEAD);
    if !is_read && !is_same_origin(&parts.headers) {
        return None;
    }
    let cookies = parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|all| all.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(name, _)| name.trim() == NAME).map(|(_, token)| token.trim())
}

/// Whether one of our own pages sent the request. The browser sets these headers; pages cannot.
pub(crate) fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site")) {
        return site == "same-origin";
    }
    let origin = text(ORIGIN).and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, origin)| !origin.is_empty() && Some(origin) == text(HOST))
}

/// The cookie that starts a session. Browsers that use TLS send it only over TLS.
pub(crate) fn start(token: &str, headers: &HeaderMap, seconds: Option<u64>) -> String {
    let age = seconds.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
    format!("{NAME}={token}; Path=/; HttpOnly; SameSite=Lax{age}{}", secure(headers))
}

/// The cookie that ends a session.
pub(crate) fn end(headers: &HeaderMap) -> String {
    format!("{NAME}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0{}", secure(headers))
}

/// The origin of the form tells whether the browser uses TLS, even if a proxy terminates it.
fn secure(headers: &HeaderMap) -> &'static str {
    let origin = headers.get(ORIGIN).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if origin.starts_with("https://") { "; Secure" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn token_for(method: Method, headers: &[(&str, &str)]) -> Option<String> {
        let mut request = Request::builder().method(method).header("host", "w.example");
        request = request.header("cookie", "a=b; windlass_session=t.o.k");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        token(&request.body(()).unwrap().into_parts().0).map(str::to_owned)
    }

    #[test]
    fn a_cookie_authorizes_reads_and_writes_only_from_our_own_pages() {
        let accepted = Some("t.o.k".to_owned());
        assert_eq!(token_for(Method::GET, &[]), accepted);
        assert_eq!(token_for(Method::POST, &[]), None);
        assert_eq!(token_for(Method::POST, &[("origin", "https://w.example")]), accepted);
        assert_eq!(token_for(Method::POST, &[("sec-fetch-site", "same-origin")]), accepted);
        for evil in [
            [("origin", "https://evil.example"), ("x", "y")],
            [("origin", "null"), ("x", "y")],
            [("origin", "https://w.example.evil"), ("x", "y")],
            [("origin", "https://w.example"), ("sec-fetch-site", "cross-site")],
            [("origin", "https://w.example"), ("sec-fetch-site", "same-site")],
            [("origin", "https://w.example"), ("sec-fetch-site", "none")],
        ] {
            assert_eq!(token_for(Method::POST, &evil), None, "{evil:?}");
            assert_eq!(token_for(Method::PUT, &evil), None, "{evil:?}");
        }
    }

    #[test]
    fn a_cookie_set_over_tls_is_secure() {
        let mut headers = HeaderMap::new();
        assert!(!start("t", &headers, Some(9)).contains("Secure"));
        headers.insert(ORIGIN, "https://w.example".parse().unwrap());
        let cookie = start("t", &headers, Some(9));
        assert_eq!(cookie, "windlass_session=t; Path=/; HttpOnly; SameSite=Lax; Max-Age=9; Secure");
    }
}
