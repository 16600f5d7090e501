//! Range requests (RFC 9110, section 14), by which clients resume downloads.

use axum::http::HeaderMap;
use axum::http::header::{IF_RANGE, RANGE};
use std::ops::Range;

/// The bytes that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ByteRange {
    /// All bytes: there is no range, or it is of a form that we do not support.
    Full,
    /// These bytes.
    Part(Range<u64>),
    /// The range is beyond the end.
    Unsatisfiable,
}

/// Whether the request has a range that applies to the version with this entity tag.
pub(crate) fn applies(headers: &HeaderMap, tag: &str) -> bool {
    let same = headers.get(IF_RANGE).is_none_or(|version| version.as_bytes() == tag.as_bytes());
    headers.contains_key(RANGE) && same
}

/// Parses the range of a request for a document of `total` bytes.
pub(crate) fn parse(headers: &HeaderMap, total: u64) -> ByteRange {
    let text = headers.get(RANGE).and_then(|range| range.to_str().ok()).unwrap_or_default();
    let Some((first, last)) = text.strip_prefix("bytes=").and_then(|range| range.split_once('-'))
    else {
        return ByteRange::Full;
    };
    let range = match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(total),
        (Ok(first), Err(_)) if last.trim().is_empty() => first..total,
        (Err(_), Ok(suffix)) if first.trim().is_empty() => total.saturating_sub(suffix)..total,
        _ => return ByteRange::Full,
    };
    if range.is_empty() { ByteRange::Unsatisfiable } else { ByteRange::Part(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_single_range_is_parsed() {
        for (text, expected) in [
            ("bytes=0-9", ByteRange::Part(0..10)),
            ("bytes=90-", ByteRange::Part(90..100)),
            ("bytes=-10", ByteRange::Part(90..100)),
            ("bytes=-1000", ByteRange::Part(0..100)),
            ("bytes=95-1000", ByteRange::Part(95..100)),
            ("bytes=99-18446744073709551615", ByteRange::Part(99..100)),
            ("bytes=100-", ByteRange::Unsatisfiable),
            ("bytes=-0", ByteRange::Unsatisfiable),
            ("bytes=9-1", ByteRange::Full),
            ("bytes=0-1,5-6", ByteRange::Full),
            ("rows=0-1", ByteRange::Full),
            ("bytes=a-b", ByteRange::Full),
        ] {
            let headers = HeaderMap::from_iter([(RANGE, text.parse().unwrap())]);
            assert_eq!(parse(&headers, 100), expected, "{text}");
        }
    }
}
