//! Generates values as SQL: literals of each kind, sometimes NULL, with the extremes of the kind.

use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;

/// The SQL of a value.
pub(super) type Literal = BoxedStrategy<String>;

/// A quoted literal.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A value, or NULL now and then.
pub(super) fn or_null(values: impl Strategy<Value = String> + 'static) -> Literal {
    prop_oneof![9 => values, 1 => Just("NULL".to_owned())].boxed()
}

/// Quoted texts.
pub(super) fn texts(values: impl Strategy<Value = String> + 'static) -> Literal {
    or_null(values.prop_map(|text| quoted(&text)))
}

/// One of these quoted texts.
pub(super) fn one_of(values: &'static [&'static str]) -> Literal {
    texts(proptest::sample::select(values).prop_map(str::to_owned))
}

/// Integers of a range, with its ends.
pub(super) fn integers(least: i128, greatest: i128) -> Literal {
    or_null(
        prop_oneof![4 => least..=greatest, 1 => Just(least), 1 => Just(greatest)]
            .prop_map(|number| number.to_string()),
    )
}

/// Any characters that every database can store.
pub(super) fn words(longest: usize) -> impl Strategy<Value = String> {
    let character = any::<char>().prop_filter("is no marker", |c| !matches!(c, '\0' | '\u{e000}'));
    let special = proptest::sample::select(vec!['\'', '"', '\\', ',', '{', '}', '\n', '\r', ' ']);
    proptest::collection::vec(prop_oneof![character, special], 0..longest)
        .prop_map(|characters| characters.into_iter().collect())
}

/// The digits of a decimal with at most this many digits before and behind its point.
pub(super) fn decimals(whole: usize, places: usize) -> impl Strategy<Value = String> {
    let digits = |most: usize| proptest::collection::vec(0..10u8, most.min(1)..=most);
    (any::<bool>(), digits(whole), digits(places)).prop_map(|(negative, whole, places)| {
        let text = |digits: &[u8]| digits.iter().map(u8::to_string).collect::<String>();
        let point = if places.is_empty() { "" } else { "." };
        let sign = if negative { "-" } else { "" };
        let whole = text(&whole);
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        format!("{sign}{whole}{point}{}", text(&places))
    })
}

/// Finite floats of 32 bits as they print.
pub(super) fn singles() -> impl Strategy<Value = String> {
    any::<u32>()
        .prop_map(f32::from_bits)
        .prop_filter("is finite", |float| float.is_finite() && !float.is_subnormal())
        .prop_map(|float| format!("{float:e}"))
}

/// Finite floats of 64 bits as they print.
pub(super) fn doubles() -> impl Strategy<Value = String> {
    any::<u64>()
        .prop_map(f64::from_bits)
        .prop_filter("is finite", |float| float.is_finite() && !float.is_subnormal())
        .prop_map(|float| format!("{float:e}"))
}

/// Hexadecimal digits of bytes.
pub(super) fn bytes(sizes: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = String> {
    proptest::collection::vec(any::<u8>(), sizes).prop_map(hex::encode)
}

/// Dates from 1001 to 9999.
pub(super) fn dates() -> impl Strategy<Value = String> {
    (1001..10_000, 1..13, 1..29).prop_map(|(y, m, d)| format!("{y:04}-{m:02}-{d:02}"))
}

/// Times of day with microseconds.
pub(super) fn times() -> impl Strategy<Value = String> {
    (0..24, 0..60, 0..60, 0..1_000_000)
        .prop_map(|(h, m, s, micros)| format!("{h:02}:{m:02}:{s:02}.{micros:06}"))
}

/// Dates with times.
pub(super) fn moments() -> impl Strategy<Value = String> {
    (dates(), times()).prop_map(|(date, time)| format!("{date} {time}"))
}

/// UUIDs.
pub(super) fn uuids() -> impl Strategy<Value = String> {
    let uuid = |bytes| uuid::Builder::from_random_bytes(bytes).into_uuid().to_string();
    any::<[u8; 16]>().prop_map(uuid)
}

/// Numbers of JSON: with many digits, with exponents, at and beyond the limits of integers and floats.
pub(super) fn json_numbers() -> impl Strategy<Value = String> {
    let special = proptest::sample::select(vec![
        "0",
        "-0",
        "0.0",
        "-0.0",
        "0e5",
        "1.0",
        "1.10",
        "1E2",
        "1e+2",
        "100e-2",
        "2.5",
        "-32769",
        "2147483648",
        "9007199254740993",
        "9007199254740993.0",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "0.30000000000000004",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "4.9e-324",
        "1e-400",
        "1e400",
        "-1e400",
        "3.4028236e38",
        "16777217",
        "12345678901234567890.123456789",
    ]);
    let digits = "-?(0|[1-9][0-9]{0,30})([.][0-9]{1,25})?([eE][+-]?[0-9]{1,2})?";
    prop_oneof![1 => special.prop_map(str::to_owned), 1 => digits]
}

/// JSON documents whose numbers have many digits.
pub(super) fn documents() -> impl Strategy<Value = String> {
    let string = |text: String| serde_json::to_string(&text).unwrap();
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("0.10".to_owned()),
        decimals(25, 20),
        // In a list, since a number alone may be written in another notation.
        json_numbers().prop_map(|number| format!("[{number}]")),
        words(6).prop_map(string),
    ];
    leaf.prop_recursive(3, 12, 4, move |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..4);
        let object = proptest::collection::btree_map(words(4).prop_map(string), inner, 0..4);
        prop_oneof![
            list.prop_map(|list| format!("[{}]", list.join(", "))),
            object.prop_map(|fields| {
                let fields: Vec<String> =
                    fields.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
                format!("{{{}}}", fields.join(", "))
            }),
        ]
    })
}
