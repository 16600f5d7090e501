//! What holds for every page: no script but ours, strangers sign in first, and a failure is a page.

use super::layout;
use crate::problem::{ProblemDetails, no_route};
use axum::extract::Request;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

/// Nothing but what this server sends, and nothing that stands inside a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Serves a page.
pub(super) async fn guard(request: Request, next: Next) -> Response {
    let looks = request.method() == Method::GET;
    let address = request.uri().path_and_query().map(|path| path.as_str().to_owned());
    let address = address.filter(|_| looks).unwrap_or_else(|| "/".to_owned());
    as_page(next.run(request).await, &address)
}

/// There is nothing at an address: people are told so by a page, programs by a problem.
pub(crate) async fn no_page(request: Request) -> Response {
    let kinds = request.headers().get(ACCEPT).and_then(|kinds| kinds.to_str().ok());
    let reads = kinds.is_some_and(|kinds| kinds.contains("text/html"));
    let failed = no_route(request.uri().clone()).await.into_response();
    if reads { as_page(failed, "/") } else { failed }
}

/// An answer as a browser takes it.
fn as_page(mut response: Response, address: &str) -> Response {
    if let Some(problem) = response.extensions_mut().remove::<ProblemDetails>() {
        response = failed(&problem, address, response);
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A failure as a page; a stranger is sent to sign in, and comes back to where they wanted to go.
fn failed(problem: &ProblemDetails, address: &str, response: Response) -> Response {
    if problem.status == StatusCode::UNAUTHORIZED.as_u16() {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("to", address)
            .finish();
        return Redirect::to(&format!("/sign-in?{query}")).into_response();
    }
    (response.status(), layout::failure(problem)).into_response()
}

/// A place of ours to go to. Anything else, which a link could have brought, is the first page.
pub(super) fn place(text: &str) -> &str {
    let ours = text.starts_with('/')
        && !text.starts_with("//")
        && !text.contains(|letter: char| letter == '\\' || letter.is_control());
    if ours { text } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_to_places_of_ours_only() {
        assert_eq!(place("/jobs?status=FAILED"), "/jobs?status=FAILED");
        for elsewhere in
            ["https://evil.example", "//evil.example", "/\\evil.example", "", "/a\r\nb: c"]
        {
            assert_eq!(place(elsewhere), "/", "{elsewhere}");
        }
    }
}
