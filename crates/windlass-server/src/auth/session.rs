//! Being signed in to the dashboard: the token in a cookie that scripts cannot read.
//!
//! The cookie is the token itself, so that any server behind an address knows it, and it says no
//! more than the token does: who they are and what they may do is verified with every request.

use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method};

/// The cookie's name.
const NAME: &str = "windlass_session";
/// Browsers keep no longer cookies.
pub(crate) const LONGEST: usize = 4000;

/// The token of somebody who signed in. A browser sends its cookies with whatever any page makes it
/// send, so they are good for looking, and for more only from our own pages.
pub(super) fn token(parts: &Parts) -> Option<&str> {
    let looks = matches!(parts.method, Method::GET | Method::HEAD);
    if !looks && !is_from_here(&parts.headers) {
        return None;
    }
    let cookies = parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|all| all.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(name, _)| name.trim() == NAME).map(|(_, token)| token.trim())
}

/// Whether a page of ours sent the request, as the browser says, which no page can make it lie about.
pub(crate) fn is_from_here(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site")) {
        return site == "same-origin";
    }
    let origin = text(ORIGIN).and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, origin)| !origin.is_empty() && Some(origin) == text(HOST))
}

/// The cookie of somebody who signs in, for so many seconds; over TLS it stays there.
pub(crate) fn begin(token: &str, headers: &HeaderMap, seconds: Option<u64>) -> String {
    let age = seconds.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
    format!("{NAME}={token}; Path=/; HttpOnly; SameSite=Lax{age}{}", secure(headers))
}

/// The cookie of somebody who signs out.
pub(crate) fn end(headers: &HeaderMap) -> String {
    format!("{NAME}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0{}", secure(headers))
}

/// A form's origin says whether the browser came by TLS, whoever ends it before us.
fn secure(headers: &HeaderMap) -> &'static str {
    let origin = headers.get(ORIGIN).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if origin.starts_with("https://") { "; Secure" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn asked(method: Method, headers: &[(&str, &str)]) -> Option<String> {
        let mut request = Request::builder().method(method).header("host", "w.example");
        request = request.header("cookie", "a=b; windlass_session=t.o.k");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        token(&request.body(()).unwrap().into_parts().0).map(str::to_owned)
    }

    #[test]
    fn a_cookie_is_good_for_looking_and_for_more_from_our_own_pages() {
        let known = Some("t.o.k".to_owned());
        assert_eq!(asked(Method::GET, &[]), known);
        assert_eq!(asked(Method::POST, &[]), None);
        assert_eq!(asked(Method::POST, &[("origin", "https://w.example")]), known);
        assert_eq!(asked(Method::POST, &[("sec-fetch-site", "same-origin")]), known);
        for evil in [
            [("origin", "https://evil.example"), ("x", "y")],
            [("origin", "null"), ("x", "y")],
            [("origin", "https://w.example.evil"), ("x", "y")],
            [("origin", "https://w.example"), ("sec-fetch-site", "cross-site")],
            [("origin", "https://w.example"), ("sec-fetch-site", "same-site")],
            [("origin", "https://w.example"), ("sec-fetch-site", "none")],
        ] {
            assert_eq!(asked(Method::POST, &evil), None, "{evil:?}");
            assert_eq!(asked(Method::PUT, &evil), None, "{evil:?}");
        }
    }

    #[test]
    fn a_cookie_that_came_by_tls_stays_there() {
        let mut headers = HeaderMap::new();
        assert!(!begin("t", &headers, Some(9)).contains("Secure"));
        headers.insert(ORIGIN, "https://w.example".parse().unwrap());
        let cookie = begin("t", &headers, Some(9));
        assert_eq!(cookie, "windlass_session=t; Path=/; HttpOnly; SameSite=Lax; Max-Age=9; Secure");
    }
}
