//! Texts and numbers that collations and types compare in surprising ways.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;

/// Pieces of texts: letters that differ by case, accent or width only, that expand or contract, that sort after others
/// of their first byte, and signs that a statement could misread.
const PIECES: [&str; 46] = [
    "a",
    "A",
    "á",
    "a\u{301}",
    "ä",
    "ae",
    "æ",
    "Ａ",
    "å",
    "\u{212b}",
    "b",
    "B",
    "ch",
    "c",
    "d",
    "i",
    "I",
    "ı",
    "İ",
    "ss",
    "ß",
    "ẞ",
    "ﬁ",
    "fi",
    "n",
    "ñ",
    "z",
    "日",
    "ひ",
    "ヒ",
    "\u{e000}",
    "\u{ffff}",
    "😀",
    "😁",
    "\u{10ffff}",
    "\u{200d}",
    "0",
    "1",
    "10",
    "٣",
    " ",
    "\u{a0}",
    "\t",
    "\\",
    "'",
    "_%-",
];

/// Short texts, often with blanks at the end.
pub(super) fn texts() -> BoxedStrategy<String> {
    let blanks = select(vec!["", "", "", " ", "  "]);
    let pieces = prop::collection::vec(select(&PIECES[..]), 0..3);
    (pieces, blanks).prop_map(|(pieces, blanks)| pieces.concat() + blanks).boxed()
}

/// What a long text begins with 600 times, and its end.
pub(super) fn long_texts() -> BoxedStrategy<(&'static str, String)> {
    (select(vec!["x", "x", "X", "é"]), texts()).boxed()
}

/// One of these texts.
pub(super) fn one_of(values: &'static [&'static str]) -> BoxedStrategy<String> {
    select(values).prop_map(str::to_owned).boxed()
}

/// Integers of a range, most of them close to each other, to zero or to an end.
pub(super) fn integers(least: i128, greatest: i128) -> BoxedStrategy<String> {
    let near = |place: i128| (place - 3..=place + 3).prop_map(move |n| n.clamp(least, greatest));
    prop_oneof![2 => near(0), 1 => near(least), 1 => near(greatest), 1 => least..=greatest]
        .prop_map(|number| number.to_string())
        .boxed()
}

/// Numbers with trailing zeros, signs and exponents. Many are equal, and many differ in the last of 17 or more digits.
pub(super) const DECIMALS: &[&str] = &[
    "0",
    "-0",
    "0.0",
    "0.00",
    "1",
    "1.0",
    "1.00",
    "-1",
    "-1.0",
    "1e2",
    "100",
    "100.0",
    "0.1",
    "0.10",
    "0.30000000000000004",
    "0.3",
    "9007199254740992",
    "9007199254740993",
    "9007199254740993.0",
    "12345678901234567890.123",
    "12345678901234567890.1230",
    "12345678901234567890.124",
    "-12345678901234567890.123",
    "0.00001",
    "1e-5",
];

/// Floats: both zeros, neighbours, and extremes.
pub(super) const FLOATS: &[&str] = &[
    "0",
    "-0.0",
    "0.1",
    "0.30000000000000004",
    "0.3",
    "1",
    "-1.5",
    "9007199254740992",
    "9007199254740993",
    "1e16",
    "1e19",
    "1.7976931348623157e308",
    "-1.7976931348623155e308",
    "2.2250738585072014e-308",
    "123456.78901234567",
];

/// Bytes as hexadecimal digits, with zeros, blanks and the bytes of letters.
pub(super) fn bytes() -> BoxedStrategy<String> {
    let byte = select(vec!["00", "20", "41", "61", "7f", "80", "c3", "ff"]);
    prop::collection::vec(byte, 0..4).prop_map(|bytes| bytes.concat()).boxed()
}

/// UUIDs of versions that MariaDB orders differently, some equal except for the case of their digits.
pub(super) const UUIDS: &[&str] = &[
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
    "018f3c2a-0000-7000-8000-000000000001",
    "018f3c2a-0000-7000-8000-000000000002",
    "018F3C2A-0000-7000-8000-000000000002",
    "f18f3c2a-0000-4000-8000-000000000001",
    "018f3c2a-0000-4000-8000-f00000000001",
    "018f3c2a-ffff-1000-8000-000000000001",
    "018f3c2a-0000-1fff-8000-000000000001",
];

/// Days and times of day, from the first year to the last one.
pub(super) const MOMENTS: &[&str] = &[
    "1000-01-01 00:00:00",
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:01",
    "2025-01-31 03:00:00",
    "2025-01-31 03:00:00.1",
    "2025-01-31 03:00:00.100001",
    "2025-01-31 03:00:01",
    "2025-02-28 23:59:59.4",
    "2038-01-19 03:14:07",
];
