//! Responses of the dashboard: security headers, errors as pages, and the redirect to sign in.

use super::layout;
use crate::problem::{self, ProblemDetails};
use axum::extract::Request;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

/// Only resources of this server, no inline scripts or styles, no embedding.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Middleware: renders errors as pages and adds the security headers.
pub(super) async fn as_page(request: Request, next: Next) -> Response {
    let is_read = request.method() == Method::GET;
    let path = request.uri().path_and_query().map(|path| path.as_str().to_owned());
    let return_to = path.filter(|_| is_read).unwrap_or_else(|| "/".to_owned());
    page_response(next.run(request).await, &return_to)
}

/// The fallback for unknown paths: a page for browsers, problem details for other clients.
pub(crate) async fn not_found(request: Request) -> Response {
    let accepted = request.headers().get(ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let is_browser = accepted.is_some_and(|accepted| accepted.contains("text/html"));
    let response = problem::not_found(request.uri().clone()).await.into_response();
    if is_browser { page_response(response, "/") } else { response }
}

fn page_response(mut response: Response, return_to: &str) -> Response {
    if let Some(problem) = response.extensions_mut().remove::<ProblemDetails>() {
        response = error_response(&problem, return_to, response);
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// An error as a page. 401 redirects to the sign-in page, which returns to `return_to`.
fn error_response(problem: &ProblemDetails, return_to: &str, response: Response) -> Response {
    if problem.status == StatusCode::UNAUTHORIZED.as_u16() {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("to", return_to)
            .finish();
        return Redirect::to(&format!("/sign-in?{query}")).into_response();
    }
    (response.status(), layout::error_page(problem)).into_response()
}

/// A redirect target on this server. Other targets, which a link could contain, become the overview.
pub(super) fn local_path(text: &str) -> &str {
    let ours = text.starts_with('/')
        && !text.starts_with("//")
        && !text.contains(|letter: char| letter == '\\' || letter.is_control());
    if ours { text } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_on_this_server() {
        assert_eq!(local_path("/jobs?status=FAILED"), "/jobs?status=FAILED");
        for elsewhere in
            ["https://evil.example", "//evil.example", "/\\evil.example", "", "/a\r\nb: c"]
        {
            assert_eq!(local_path(elsewhere), "/", "{elsewhere}");
        }
    }
}
