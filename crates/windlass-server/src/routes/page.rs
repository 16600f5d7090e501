//! Pagination: an array, and a `link` header with the URL of the next page.

use crate::problem::ApiResult;
use axum::Json;
use axum::http::Uri;
use axum::http::header::{HeaderValue, LINK};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use windlass_core::Problem;
use windlass_core::problem::Code;

/// The maximum size of a page.
const MAX_LIMIT: u32 = 1000;

/// The requested page size.
pub(super) fn limit(requested: Option<u32>, default: u32) -> ApiResult<u32> {
    match requested.unwrap_or(default) {
        limit @ 1..=MAX_LIMIT => Ok(limit),
        limit => {
            let detail = format!("must be between 1 and {MAX_LIMIT}, got {limit}");
            Err(Problem::field(Code::Request, "limit", detail).into())
        }
    }
}

/// A page. If it is full, the link to the next page has `name` set to the cursor of the last row.
pub(super) fn page<T: Serialize, C: std::fmt::Display>(
    rows: Vec<T>,
    limit: u32,
    uri: &Uri,
    name: &str,
    cursor: impl Fn(&T) -> C,
) -> Response {
    let last = rows.last().filter(|_| rows.len() >= limit as usize).map(cursor);
    let link = last.and_then(|last| {
        let query = uri.query().unwrap_or_default().split('&');
        let kept = query.filter(|pair| !pair.is_empty() && pair.split('=').next() != Some(name));
        let next = format!("{name}={last}");
        let query: Vec<&str> = kept.chain([next.as_str()]).collect();
        HeaderValue::try_from(format!("<{}?{}>; rel=\"next\"", uri.path(), query.join("&"))).ok()
    });
    let mut response = Json(rows).into_response();
    if let Some(link) = link {
        response.headers_mut().insert(LINK, link);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(rows: usize, uri: &str) -> Option<String> {
        let response = page((0..rows).collect(), 2, &uri.parse().unwrap(), "after", |n| *n);
        Some(response.headers().get(LINK)?.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_full_page_links_to_the_next_with_the_other_parameters_unchanged() {
        assert_eq!(next(1, "/a?limit=2"), None);
        assert_eq!(next(2, "/a"), Some("</a?after=1>; rel=\"next\"".to_owned()));
        let expected = "</a?x=%201&limit=2&after=1>; rel=\"next\"";
        assert_eq!(next(2, "/a?x=%201&after=0&limit=2"), Some(expected.to_owned()));
    }
}
