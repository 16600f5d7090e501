//! A value about halfway between two values of a key column. It need not exist in the table, and its place in the
//! order of the column's collation is only approximate: it says where to look for a key that does exist.

use super::value::to_utc;
use chrono::{NaiveDate, NaiveDateTime, TimeDelta};
use windlass_core::{Column, ColumnType, Value};

/// A value between two values of a column, or `None` if the type has no arithmetic or no value is between them.
pub(super) fn midpoint(low: &Value, high: &Value, column: &Column) -> Option<Value> {
    let texts = || Some((low.to_text()?, high.to_text()?));
    match column.kind {
        ColumnType::Int | ColumnType::Bool => {
            let (low, high) = texts()?;
            let (low, high): (i128, i128) = (low.parse().ok()?, high.parse().ok()?);
            // Rounds down, also below zero, so that it is less than the higher one.
            let middle = (low + high).div_euclid(2);
            Some(i64::try_from(middle).map_or_else(|_| middle.to_string().into(), Value::Int))
        }
        ColumnType::Float | ColumnType::Numeric => {
            let (low, high) = texts()?;
            let (low, high): (f64, f64) = (low.parse().ok()?, high.parse().ok()?);
            let middle = low / 2.0 + high / 2.0;
            let is_between = low <= middle && middle < high;
            is_between.then(|| match column.kind {
                ColumnType::Float => Value::Float(middle),
                _ => Value::Text(middle.to_string()),
            })
        }
        ColumnType::Date => {
            let (low, high) = texts()?;
            let (low, high): (NaiveDate, NaiveDate) = (low.parse().ok()?, high.parse().ok()?);
            let middle = low.checked_add_signed((high - low) / 2)?;
            Some(Value::Text(middle.to_string()))
        }
        ColumnType::Timestamp => {
            let (low, high) = texts()?;
            let (low, high) = (instant(&low)?, instant(&high)?);
            let half = TimeDelta::microseconds((high - low).num_microseconds()? / 2);
            let middle = low.checked_add_signed(half)?;
            Some(Value::Text(middle.format("%Y-%m-%d %H:%M:%S%.6f").to_string()))
        }
        ColumnType::Bytes => match (low, high) {
            (Value::Bytes(low), Value::Bytes(high)) => between_bytes(low, high).map(Value::Bytes),
            _ => None,
        },
        ColumnType::Uuid => {
            let (low, high) = texts()?;
            let middle = between_bytes(&stored_uuid(&low)?, &stored_uuid(&high)?)?;
            let middle = <[u8; 16]>::try_from(padded(middle)).ok()?;
            // Such a value would be stored with its groups in the opposite order.
            let is_swapped = is_reversed(&middle);
            (!is_swapped).then(|| Value::Text(uuid::Uuid::from_bytes(middle).to_string()))
        }
        ColumnType::Text => {
            let (low, high) = texts()?;
            between_texts(&low, &high, column.sql_type.ends_with("_bin")).map(Value::Text)
        }
        ColumnType::Json | ColumnType::Other => None,
    }
}

/// Whether [`midpoint`] can split values of this kind.
pub(super) fn has_midpoints(kind: ColumnType) -> bool {
    !matches!(kind, ColumnType::Json | ColumnType::Other)
}

fn instant(text: &str) -> Option<NaiveDateTime> {
    NaiveDateTime::parse_from_str(&to_utc(text)?, "%Y-%m-%d %H:%M:%S%.f").ok()
}

fn between_bytes(low: &[u8], high: &[u8]) -> Option<Vec<u8>> {
    let same = low.iter().zip(high).take_while(|(low, high)| low == high).count();
    let digit = |bytes: &[u8]| bytes.get(same).copied().map_or(0, u32::from);
    let mut middle = high.get(..same)?.to_vec();
    middle.push(u8::try_from(between(digit(low), digit(high))?).ok()?);
    Some(middle)
}

fn between_texts(low: &str, high: &str, is_binary: bool) -> Option<String> {
    let rank = |character: char| rank(character, is_binary);
    let same = low.chars().zip(high.chars()).take_while(|(low, high)| rank(*low) == rank(*high));
    let same = same.count();
    let digit = |text: &str| text.chars().nth(same).map_or(0, rank);
    let mut middle: String = high.chars().take(same).collect();
    middle.push(of_rank(between(digit(low), digit(high))?, is_binary));
    Some(middle)
}

/// The digit between two, or the higher one if none is between them: everything that begins with the lower one
/// is then on one side.
fn between(low: u32, high: u32) -> Option<u32> {
    match high.checked_sub(low)? {
        0 => None,
        1 => Some(high),
        distance => Some(low + distance / 2),
    }
}

/// The place of a character in the order of a collation. Collations without `_bin` compare letters without case,
/// and sort digits and letters after punctuation. Digits and letters follow each other without a gap, so that half
/// of the distance is about half of the keys.
fn rank(character: char, is_binary: bool) -> u32 {
    let code = u32::from(character);
    match character.to_ascii_lowercase() {
        _ if is_binary || !character.is_ascii() => code,
        digit @ '0'..='9' => FIRST_DIGIT + u32::from(digit) - u32::from('0'),
        letter @ 'a'..='z' => FIRST_DIGIT + 10 + u32::from(letter) - u32::from('a'),
        _ => code.min(FIRST_DIGIT - 1),
    }
}

/// The inverse of [`rank`].
fn of_rank(rank: u32, is_binary: bool) -> char {
    let code = match rank.checked_sub(FIRST_DIGIT) {
        _ if is_binary => rank,
        Some(digit @ 0..10) => u32::from('0') + digit,
        Some(letter @ 10..36) => u32::from('a') + letter - 10,
        _ => rank,
    };
    // Codes without a character are between two others.
    char::from_u32(code).unwrap_or('\u{d7ff}')
}

/// The rank of `0`. Digits and letters end before the first character beyond ASCII.
const FIRST_DIGIT: u32 = 92;

/// The bytes in the order in which MariaDB compares UUIDs: versions 1 to 5 with their groups reversed.
fn stored_uuid(text: &str) -> Option<[u8; 16]> {
    let bytes = uuid::Uuid::parse_str(text).ok()?.into_bytes();
    if !is_reversed(&bytes) {
        return Some(bytes);
    }
    let groups = [&bytes[10..16], &bytes[8..10], &bytes[6..8], &bytes[4..6], &bytes[0..4]];
    groups.concat().try_into().ok()
}

fn is_reversed(uuid: &[u8; 16]) -> bool {
    (1..6).contains(&(uuid[6] >> 4)) && uuid[8] & 0x80 != 0
}

/// 16 bytes.
fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(16, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between_values(kind: ColumnType, low: Value, high: Value) -> Option<Value> {
        let sql_type = "varchar(9) COLLATE utf8mb4_0900_ai_ci".to_owned();
        let column = Column { name: "k".to_owned(), kind, sql_type, nullable: false };
        midpoint(&low, &high, &column)
    }

    #[test]
    fn a_midpoint_is_between_its_values() {
        use ColumnType as T;
        let text = |text: &str| Value::from(text);
        for (kind, low, high, expected) in [
            (T::Int, Value::Int(-3), Value::Int(0), Some(Value::Int(-2))),
            (
                T::Int,
                Value::Int(3),
                text("18446744073709551615"),
                Some(text("9223372036854775809")),
            ),
            (T::Numeric, text("-1.50"), text("2.5"), Some(text("0.5"))),
            (T::Float, Value::Float(1.0), Value::Float(2.0), Some(Value::Float(1.5))),
            (T::Date, text("2025-01-01"), text("2025-01-31"), Some(text("2025-01-16"))),
            (
                T::Timestamp,
                text("2025-01-01 00:00:00"),
                text("2025-01-01 00:00:01"),
                Some(text("2025-01-01 00:00:00.500000")),
            ),
            (
                T::Bytes,
                Value::Bytes(vec![7, 0]),
                Value::Bytes(vec![7, 9]),
                Some(Value::Bytes(vec![7, 4])),
            ),
            (
                T::Bytes,
                Value::Bytes(vec![7]),
                Value::Bytes(vec![7, 1]),
                Some(Value::Bytes(vec![7, 1])),
            ),
            (T::Text, text("a17"), text("A39"), Some(text("A2"))),
            (T::Text, text("0f"), text("ff"), Some(text("7"))),
            (T::Text, text("ab"), text("b"), Some(text("b"))),
            (T::Text, text("日"), text("本"), Some(text("\u{6688}"))),
            (T::Text, text("a"), text("A"), None),
            (T::Other, text("10:00:00"), text("11:00:00"), None),
        ] {
            let (from, to) = (low.clone(), high.clone());
            assert_eq!(between_values(kind, low, high), expected, "{kind:?} {from} {to}");
        }
    }

    #[test]
    fn a_midpoint_of_uuids_follows_the_order_of_mariadb() {
        // Version 4 is ordered by its last group, version 7 by its first one.
        let random = |node: &str| Value::Text(format!("ffffffff-0000-4000-8000-{node}"));
        let middle =
            between_values(ColumnType::Uuid, random("100000000000"), random("300000000000"));
        assert_eq!(middle, Some("20000000-0000-0000-0000-000000000000".into()));
        let ordered = |time: &str| Value::Text(format!("{time}-0000-7000-8000-ffffffffffff"));
        let middle = between_values(ColumnType::Uuid, ordered("01000000"), ordered("03000000"));
        assert_eq!(middle, Some("02000000-0000-0000-0000-000000000000".into()));
    }
}
