//! Range requests (RFC 9110, section 14): a part of the bytes, for downloads that go on.

use axum::http::HeaderMap;
use axum::http::header::{IF_RANGE, RANGE};
use std::ops::Range;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Everything: no range, one of a kind we do not serve, or one of something that has changed.
    All,
    /// These bytes.
    Part(Range<u64>),
    /// Bytes that are not there.
    Nothing,
}

/// Whether a range is asked for at all, of the version with this tag.
pub(crate) fn is_asked(headers: &HeaderMap, tag: &str) -> bool {
    let same = headers.get(IF_RANGE).is_none_or(|version| version.as_bytes() == tag.as_bytes());
    headers.contains_key(RANGE) && same
}

/// The range of a request, of so many bytes.
pub(crate) fn of(headers: &HeaderMap, total: u64) -> Asked {
    let text = headers.get(RANGE).and_then(|range| range.to_str().ok()).unwrap_or_default();
    let Some((first, last)) = text.strip_prefix("bytes=").and_then(|range| range.split_once('-'))
    else {
        return Asked::All;
    };
    let range = match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(total),
        (Ok(first), Err(_)) if last.trim().is_empty() => first..total,
        (Err(_), Ok(suffix)) if first.trim().is_empty() => total.saturating_sub(suffix)..total,
        _ => return Asked::All,
    };
    if range.is_empty() { Asked::Nothing } else { Asked::Part(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_one_range() {
        for (text, expected) in [
            ("bytes=0-9", Asked::Part(0..10)),
            ("bytes=90-", Asked::Part(90..100)),
            ("bytes=-10", Asked::Part(90..100)),
            ("bytes=-1000", Asked::Part(0..100)),
            ("bytes=95-1000", Asked::Part(95..100)),
            ("bytes=99-18446744073709551615", Asked::Part(99..100)),
            ("bytes=100-", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=9-1", Asked::All),
            ("bytes=0-1,5-6", Asked::All),
            ("rows=0-1", Asked::All),
            ("bytes=a-b", Asked::All),
        ] {
            let headers = HeaderMap::from_iter([(RANGE, text.parse().unwrap())]);
            assert_eq!(of(&headers, 100), expected, "{text}");
        }
    }
}
