//! Lists a page at a time: an array, and a link to what comes after it.

use crate::problem::Answer;
use axum::Json;
use axum::http::Uri;
use axum::http::header::{HeaderValue, LINK};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use windlass_core::Problem;
use windlass_core::problem::Code;

/// The most rows of a page.
const MOST: u32 = 1000;

/// The size of a page that was asked for.
pub(super) fn limit(asked: Option<u32>, default: u32) -> Answer<u32> {
    match asked.unwrap_or(default) {
        limit @ 1..=MOST => Ok(limit),
        limit => {
            let detail = format!("is {limit}; 1 to {MOST} would be right");
            Err(Problem::field(Code::Request, "limit", detail).into())
        }
    }
}

/// A page. Where it is full there may be more: `cursor` of its last row, under that name.
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
    fn a_full_page_names_the_next_with_everything_else_as_it_was() {
        assert_eq!(next(1, "/a?limit=2"), None);
        assert_eq!(next(2, "/a"), Some("</a?after=1>; rel=\"next\"".to_owned()));
        let expected = "</a?x=%201&limit=2&after=1>; rel=\"next\"";
        assert_eq!(next(2, "/a?x=%201&after=0&limit=2"), Some(expected.to_owned()));
    }
}
