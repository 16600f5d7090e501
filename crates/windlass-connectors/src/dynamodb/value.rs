//! Converts values from and to DynamoDB, without loss in both directions.

use crate::{ConnectorError, Result};
use serde_json::{Map, Value as Json, json};
use windlass_core::{ColumnType, Value};
use windlass_drivers::dynamodb::sdk::{primitives::Blob, types::AttributeValue};
use windlass_drivers::{Error, ErrorClass};

/// A number that neither an integer nor a float represents exactly: `{"$number": "0.1000…"}`.
const NUMBER: &str = "$number";
/// Sets, which JSON does not have: `{"$strings": […]}`, `{"$numbers": […]}`, `{"$binaries": […]}`.
const STRINGS: &str = "$strings";
const NUMBERS: &str = "$numbers";
const BINARIES: &str = "$binaries";

/// Converts a value of DynamoDB. A value without a JSON form becomes an object with one field whose name
/// begins with `$`, like bytes.
pub fn from_attribute(attribute: AttributeValue) -> Value {
    match attribute {
        AttributeValue::S(text) => Value::Text(text),
        AttributeValue::N(text) => number(text),
        AttributeValue::Bool(value) => Value::Bool(value),
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::B(bytes) => Value::Bytes(bytes.into_inner()),
        AttributeValue::L(list) => Value::Json(
            list.into_iter().map(|one| from_attribute(one).to_json()).collect::<Json>().into(),
        ),
        AttributeValue::M(map) => {
            // Sorted, so that a record always has the same text.
            let mut fields: Vec<(String, AttributeValue)> = map.into_iter().collect();
            fields.sort_by(|left, right| left.0.cmp(&right.0));
            let json = fields.into_iter().map(|(name, one)| (name, from_attribute(one).to_json()));
            Value::Json(json.collect::<Json>().into())
        }
        AttributeValue::Ss(list) => Value::Json(json!({ STRINGS: list }).into()),
        AttributeValue::Ns(list) => Value::Json(json!({ NUMBERS: list }).into()),
        AttributeValue::Bs(list) => {
            let list: Vec<String> = list.into_iter().map(|one| hex::encode(one.as_ref())).collect();
            Value::Json(json!({ BINARIES: list }).into())
        }
        other => Value::Json(json!({ "$unknown": format!("{other:?}") }).into()),
    }
}

/// Converts a value to an attribute.
pub fn to_attribute(value: &Value) -> Result<AttributeValue> {
    Ok(match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(value) => AttributeValue::Bool(*value),
        Value::Int(value) => AttributeValue::N(value.to_string()),
        Value::Float(value) if value.is_finite() => AttributeValue::N(value.to_string()),
        Value::Float(value) => {
            return Err(refused(format!("DynamoDB cannot store the number {value}")));
        }
        Value::Text(text) => AttributeValue::S(text.clone()),
        Value::Bytes(bytes) => AttributeValue::B(Blob::new(bytes.clone())),
        Value::Json(json) if json.is_number() => AttributeValue::N(json.text().to_owned()),
        Value::Json(json) => from_json(&json.to_value())?,
    })
}

/// Converts a value to an attribute of a declared type, so that `"7"` finds the key 7.
pub(super) fn to_typed(kind: Option<ColumnType>, value: &Value) -> Result<AttributeValue> {
    let text = || value.to_text().unwrap_or_default();
    Ok(match (kind, value) {
        (_, Value::Null) => AttributeValue::Null(true),
        (Some(ColumnType::Text), _) => AttributeValue::S(text()),
        (Some(ColumnType::Numeric), Value::Int(_) | Value::Text(_)) => match canonical(&text()) {
            Some(number) => AttributeValue::N(number),
            None => return Err(refused(format!("`{value}` is not a number"))),
        },
        _ => to_attribute(value)?,
    })
}

/// Whether two attributes are equal as DynamoDB compares them: 1.0 is 1.
pub(super) fn same(left: &AttributeValue, right: &AttributeValue) -> bool {
    match (left, right) {
        (AttributeValue::N(left), AttributeValue::N(right)) => {
            left == right || canonical(left).is_some_and(|left| Some(left) == canonical(right))
        }
        _ => left == right,
    }
}

/// The canonical form of a number, without superfluous signs, zeros or exponents. `None` if it is not a
/// number.
fn canonical(text: &str) -> Option<String> {
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let power: i32 = power.parse().ok().filter(|power: &i32| power.abs() < 400)?;
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{part}");
    if all.is_empty() || !all.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    // The position of the decimal point after applying the exponent.
    let point = whole.len() as i32 + power;
    let before = (0..point).map(|n| all.as_bytes().get(n as usize).copied().unwrap_or(b'0'));
    let after = (point..all.len() as i32).map(|n| {
        usize::try_from(n).ok().and_then(|n| all.as_bytes().get(n).copied()).unwrap_or(b'0')
    });
    let before: String = before.map(char::from).collect();
    let after: String = after.map(char::from).collect();
    let (before, after) = (before.trim_start_matches('0'), after.trim_end_matches('0'));
    let sign = if negative && !(before.is_empty() && after.is_empty()) { "-" } else { "" };
    let before = if before.is_empty() { "0" } else { before };
    let dot = if after.is_empty() { "" } else { "." };
    Some(format!("{sign}{before}{dot}{after}"))
}

/// An integer or a float if that is exact. Any other number keeps its text.
fn number(text: String) -> Value {
    if let Ok(int) = text.parse::<i64>() {
        return Value::Int(int);
    }
    match text.parse::<f64>() {
        Ok(float) if float.is_finite() && float.to_string() == text => Value::Float(float),
        _ => Value::Json(json!({ NUMBER: text }).into()),
    }
}

fn from_json(json: &Json) -> Result<AttributeValue> {
    Ok(match json {
        Json::Array(list) => {
            AttributeValue::L(list.iter().map(from_json).collect::<Result<Vec<_>>>()?)
        }
        Json::Object(fields) => match special(fields) {
            Some(attribute) => attribute,
            None => match Value::from_json(json.clone()) {
                Value::Bytes(bytes) => AttributeValue::B(Blob::new(bytes)),
                _ => {
                    let field = |(name, one): (&String, &Json)| Ok((name.clone(), from_json(one)?));
                    AttributeValue::M(fields.iter().map(field).collect::<Result<_>>()?)
                }
            },
        },
        Json::Number(number) => AttributeValue::N(number.to_string()),
        scalar => to_attribute(&Value::from_json(scalar.clone()))?,
    })
}

/// The attribute of an object with one field of a special name.
fn special(fields: &Map<String, Json>) -> Option<AttributeValue> {
    let (name, value) = fields.iter().next().filter(|_| fields.len() == 1)?;
    let texts = || -> Option<Vec<String>> {
        value.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect()
    };
    match name.as_str() {
        NUMBER => Some(AttributeValue::N(value.as_str()?.to_owned())),
        STRINGS => Some(AttributeValue::Ss(texts()?)),
        NUMBERS => Some(AttributeValue::Ns(texts()?)),
        BINARIES => {
            let bytes = texts()?.into_iter().map(|text| hex::decode(text).ok().map(Blob::new));
            Some(AttributeValue::Bs(bytes.collect::<Option<Vec<Blob>>>()?))
        }
        _ => None,
    }
}

fn refused(message: String) -> ConnectorError {
    Error::new(ErrorClass::Data, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn n(text: &str) -> AttributeValue {
        AttributeValue::N(text.to_owned())
    }

    #[test]
    fn values_survive_both_ways() {
        let blob = || Blob::new(vec![0, 255]);
        let nested = HashMap::from([
            ("exact".to_owned(), n("0.10000000000000000000000000000001")),
            ("bytes".to_owned(), AttributeValue::B(blob())),
            ("list".to_owned(), AttributeValue::L(vec![AttributeValue::Null(true), n("-7")])),
        ]);
        for attribute in [
            AttributeValue::S("text".to_owned()),
            AttributeValue::S(String::new()),
            n("42"),
            n("-9223372036854775808"),
            n("9223372036854775808"),
            n("1.5"),
            n("1.10"),
            n("12345678901234567890123456789012345678"),
            AttributeValue::Bool(true),
            AttributeValue::Null(true),
            AttributeValue::B(blob()),
            AttributeValue::Ss(vec!["a".to_owned(), "b".to_owned()]),
            AttributeValue::Ns(vec!["1".to_owned(), "2.5".to_owned()]),
            AttributeValue::Bs(vec![blob()]),
            AttributeValue::M(nested),
        ] {
            let value = from_attribute(attribute.clone());
            assert_eq!(to_attribute(&value).unwrap(), attribute, "{value:?}");
            // The same after a step received it as JSON.
            let back = Value::from_json(value.to_json());
            assert_eq!(to_attribute(&back).unwrap(), attribute, "{value:?}");
        }
    }

    #[test]
    fn a_map_with_other_fields_stays_a_map() {
        let map = Value::Json(json!({ "N": "5" }).into());
        assert!(to_attribute(&map).unwrap().is_m());
        let two = Value::Json(json!({ "$number": "5", "more": 1 }).into());
        assert!(to_attribute(&two).unwrap().is_m());
    }

    #[test]
    fn equal_numbers_have_one_canonical_form() {
        for (text, expected) in [
            ("7", "7"),
            ("007.50", "7.5"),
            ("-0.0", "0"),
            ("+1.5e3", "1500"),
            ("1.25E-3", "0.00125"),
            ("-12e1", "-120"),
            (".5", "0.5"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
            assert!(same(&n(text), &n(expected)), "{text}");
        }
        for text in ["", "-", "seven", "1e", "1 ", "0x1"] {
            assert_eq!(canonical(text), None, "{text}");
        }
        assert!(!same(&n("1"), &AttributeValue::S("1".to_owned())));
    }

    #[test]
    fn nan_is_refused() {
        assert!(to_attribute(&Value::Float(f64::NAN)).is_err());
    }
}
