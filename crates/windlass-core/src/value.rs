//! One value of one column, as Windlass carries it between a database, a step and JSON.

use crate::json::{JSON, Json};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;

/// A value. Types without an exact form in JSON or Rust (numeric, uuid, date, timestamp) are the text of
/// the database; the type of the column tells how to read them.
///
/// Two values are equal if databases consider them equal: NaN equals NaN, and 0 equals -0.
///
/// ```
/// use windlass_core::Value;
///
/// assert_eq!(Value::from(7), Value::Int(7));
/// assert_eq!(Value::from("Kent").to_json(), serde_json::json!("Kent"));
/// assert!(Value::Null.is_null());
/// ```
#[derive(Clone, Debug)]
pub enum Value {
    /// SQL `NULL`.
    Null,
    /// A boolean.
    Bool(bool),
    /// Any integer that fits 64 bits.
    Int(i64),
    /// A binary floating point number.
    Float(f64),
    /// Text, and the exact text of every type without its own variant.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A JSON document, or a number that no other variant holds exactly.
    Json(Json),
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(one), Value::Bool(other)) => one == other,
            (Value::Int(one), Value::Int(other)) => one == other,
            // A boundary that is NaN must equal itself, or its ranges do not tile.
            (Value::Float(one), Value::Float(other)) => {
                one == other || (one.is_nan() && other.is_nan())
            }
            (Value::Text(one), Value::Text(other)) => one == other,
            (Value::Bytes(one), Value::Bytes(other)) => one == other,
            (Value::Json(one), Value::Json(other)) => one == other,
            _ => false,
        }
    }
}

impl Value {
    /// Whether this is `NULL`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The approximate size in memory in bytes, for the byte limit of a batch.
    pub fn size(&self) -> usize {
        16 + match self {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Json(json) => json.text().len(),
            _ => 0,
        }
    }

    /// The text a database can parse back into the value, `None` for `NULL`.
    pub fn to_text(&self) -> Option<String> {
        match self {
            Value::Null => None,
            Value::Bool(value) => Some(value.to_string()),
            Value::Int(value) => Some(value.to_string()),
            Value::Float(value) => {
                Some(non_finite(*value).map_or_else(|| value.to_string(), str::to_owned))
            }
            Value::Text(text) => Some(text.clone()),
            Value::Bytes(bytes) => Some(format!("\\x{}", hex::encode(bytes))),
            Value::Json(json) => Some(json.text().to_owned()),
        }
    }

    /// The value as JSON, as people see it. Numbers inside a document become floats;
    /// [`Value::to_json_text`] keeps their digits.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Json(json) if json.text() != "null" => json.to_value(),
            value => serde_json::to_value(value).unwrap_or_default(),
        }
    }

    /// The text of the value in a JSON column. A text is a JSON string, as it is in the records of steps.
    pub fn to_json_text(&self) -> String {
        match self {
            Value::Json(json) => json.text().to_owned(),
            value => value.to_json().to_string(),
        }
    }

    /// A row as one JSON document.
    pub fn from_row(row: crate::Row) -> Value {
        Json::of(&row).map_or(Value::Null, Value::Json)
    }

    /// A float of 32 bits as the float of 64 bits with the same shortest decimal: 0.1 stays 0.1. Rounded
    /// to 32 bits it is the same float again.
    pub fn from_f32(value: f32) -> Value {
        let shortest = value.to_string().parse();
        Value::Float(shortest.unwrap_or_else(|_| f64::from(value)))
    }

    /// Reads JSON text as [`Value::from_json`] does, and keeps a number that neither an integer nor a
    /// float holds with all its digits as [`Value::Json`].
    ///
    /// ```
    /// use windlass_core::Value;
    ///
    /// let read = |text: &str| Value::from_json_text(text).unwrap();
    /// assert_eq!(read("1.5"), Value::Float(1.5));
    /// assert_eq!(read("1.50").to_text().unwrap(), "1.50");
    /// assert_eq!(read("12345678901234567890.1").to_text().unwrap(), "12345678901234567890.1");
    /// ```
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn from_json_text(text: &str) -> Result<Value, serde_json::Error> {
        serde_json::from_str::<&RawValue>(text).map(Value::from_raw)
    }

    fn from_raw(raw: &RawValue) -> Value {
        let text = raw.get();
        let plain = || serde_json::from_str(text).map(Value::from_json);
        match text.as_bytes().first() {
            Some(b'-' | b'0'..=b'9') if text.contains(['.', 'e', 'E']) => match text.parse() {
                Ok(float) if is_exact(float, text) => Value::Float(float),
                _ => Value::Json(raw.into()),
            },
            Some(b'-' | b'0'..=b'9') => match text.parse() {
                Ok(int) if text != "-0" => Value::Int(int),
                _ if text == "-0" => Value::Float(-0.0),
                _ => Value::Json(raw.into()),
            },
            // Only an object of one field may represent another value.
            Some(b'{') if text.len() <= MAX_TAGGED_BYTES || text.contains("\"$bytes\"") => {
                match plain() {
                    // Not this document, but the one that it represents.
                    Ok(Value::Json(json)) if json.text() == "null" => Value::Json(json),
                    Ok(Value::Json(_)) | Err(_) => Value::Json(raw.into()),
                    Ok(value) => value,
                }
            }
            Some(b'{' | b'[') => Value::Json(raw.into()),
            _ => plain().unwrap_or_else(|_| Value::Json(raw.into())),
        }
    }

    /// Reads what [`Value::to_json`] wrote. Objects, arrays and integers beyond 63 bits, which no
    /// other variant holds exactly, become [`Value::Json`].
    pub fn from_json(json: serde_json::Value) -> Value {
        use serde_json::Value as Document;
        match json {
            Document::Null => Value::Null,
            Document::Bool(value) => Value::Bool(value),
            Document::String(text) => Value::Text(text),
            Document::Number(number) => match number.as_i64() {
                Some(int) => Value::Int(int),
                None => match number.as_f64().filter(|_| number.is_f64()) {
                    Some(float) => Value::Float(float),
                    None => Value::Json(Document::Number(number).into()),
                },
            },
            Document::Object(map) => match tagged(&map) {
                Some(value) => value,
                None => Value::Json(Document::Object(map).into()),
            },
            list @ Document::Array(_) => Value::Json(list.into()),
        }
    }
}

/// A value that is deserialized from JSON text with all digits of its numbers.
///
/// It can be read only by serde_json itself, not inside an untagged or flattened type.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactValue(pub Value);

impl<'de> Deserialize<'de> for ExactValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(ExactValue(Value::from_raw(&raw)))
    }
}

/// Whether a float has the digits of a number, so that nothing is lost: 1.5 has those of `1.5` and `15e-1`,
/// but not the decimal places of `1.50`.
fn is_exact(float: f64, text: &str) -> bool {
    float.is_finite()
        && digits(text) == digits(&format!("{float:e}"))
        && (text.contains(['e', 'E']) || !text.ends_with('0') || text.ends_with(".0"))
}

/// The significant digits of a number and the power of ten of the last one.
fn digits(text: &str) -> Option<(bool, String, i64)> {
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => (true, mantissa),
        None => (false, mantissa),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{part}");
    let significant = all.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some((negative, String::new(), 0));
    }
    let zeros = all.len() - all.trim_end_matches('0').len();
    let power = power.parse::<i64>().ok()? - part.len() as i64 + zeros as i64;
    Some((negative, significant.to_owned(), power))
}

/// The greatest size of an object that represents a value other than bytes.
const MAX_TAGGED_BYTES: usize = 64;

/// The keys of one-field objects that represent values without a JSON form.
const BYTES: &str = "$bytes";
const FLOAT: &str = "$float";

/// The name of a float that JSON has no number for, as PostgreSQL writes it.
fn non_finite(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_finite() => None,
        _ if value.is_nan() => Some("NaN"),
        _ if value > 0.0 => Some("Infinity"),
        _ => Some("-Infinity"),
    }
}

/// The value that a one-field object represents. Any other object is a document of the user.
fn tagged(map: &serde_json::Map<String, serde_json::Value>) -> Option<Value> {
    let (tag, json) = map.iter().next().filter(|_| map.len() == 1)?;
    if tag == JSON && json.is_null() {
        return Some(Value::Json(serde_json::Value::Null.into()));
    }
    let text = json.as_str()?;
    match (tag.as_str(), text) {
        (BYTES, _) => hex::decode(text).ok().map(Value::Bytes),
        (FLOAT, "NaN") => Some(Value::Float(f64::NAN)),
        (FLOAT, "Infinity") => Some(Value::Float(f64::INFINITY)),
        (FLOAT, "-Infinity") => Some(Value::Float(f64::NEG_INFINITY)),
        _ => None,
    }
}

fn serialize_tagged<S: Serializer>(
    serializer: S,
    tag: &str,
    text: &str,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(tag, text)?;
    map.end()
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Float(value) => match non_finite(*value) {
                Some(name) => serialize_tagged(serializer, FLOAT, name),
                None => serializer.serialize_f64(*value),
            },
            Value::Text(text) => serializer.serialize_str(text),
            Value::Json(json) => json.serialize(serializer),
            Value::Bytes(bytes) => serialize_tagged(serializer, BYTES, &hex::encode(bytes)),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_json::Value::deserialize(deserializer).map(Value::from_json).map_err(D::Error::custom)
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.to_text() {
            Some(text) => f.write_str(&text),
            None => f.write_str("null"),
        }
    }
}

macro_rules! from {
    ($($source:ty => $variant:ident),+) => {$(
        impl From<$source> for Value {
            fn from(value: $source) -> Value { Value::$variant(value.into()) }
        }
    )+};
}
from!(bool => Bool, i64 => Int, i32 => Int, f64 => Float, String => Text, &str => Text, Vec<u8> => Bytes);

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Any value that may stand in a key, of any type.
    pub(crate) fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<i64>().prop_map(Value::Int),
            any::<bool>().prop_map(Value::Bool),
            any_float().prop_map(Value::Float),
            ".*".prop_map(Value::Text),
            any::<u128>().prop_map(|n| Value::Text(uuid::Uuid::from_u128(n).to_string())),
            (0i64..4_000_000_000).prop_map(|s| Value::Text(
                chrono::DateTime::from_timestamp(s, 0).unwrap().to_rfc3339()
            )),
            (any::<i64>(), 0u32..9).prop_map(|(n, d)| Value::Text(format!("{n}.{d}"))),
            any::<Vec<u8>>().prop_map(Value::Bytes),
        ]
    }

    /// Any float at all, of 64 bits or of 32.
    fn any_float() -> impl Strategy<Value = f64> {
        let extremes = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.0,
            -0.0,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324,
            1e16,
            9_007_199_254_740_993.0,
            1e19,
            1.7976931348623155e308,
        ];
        prop_oneof![
            any::<u64>().prop_map(f64::from_bits),
            any::<u32>().prop_map(|bits| f64::from(f32::from_bits(bits))),
            proptest::sample::select(extremes.to_vec()),
        ]
    }

    /// Whether a float came back with all its bits; one NaN is as good as another.
    fn same_bits(one: &Value, other: &Value) -> bool {
        match (one, other) {
            (Value::Float(one), Value::Float(other)) => {
                one.to_bits() == other.to_bits() || (one.is_nan() && other.is_nan())
            }
            _ => one == other,
        }
    }

    proptest! {
        #[test]
        fn json_round_trips(value in any_value()) {
            let text = serde_json::to_string(&value).unwrap();
            let read = serde_json::from_str::<Value>(&text).unwrap();
            prop_assert!(same_bits(&read, &value), "{text} is {read:?}");
            prop_assert!(same_bits(&Value::from_json(value.to_json()), &value));
        }

        #[test]
        fn the_text_of_a_float_reads_back_as_the_same_float(value in any_float()) {
            let text = Value::Float(value).to_text().unwrap();
            prop_assert!(same_bits(&Value::Float(text.parse().unwrap()), &Value::Float(value)));
        }
    }

    #[test]
    fn a_float_without_a_json_number_is_an_object_of_one_field() {
        for (value, json, text) in [
            (f64::NAN, json!({"$float": "NaN"}), "NaN"),
            (f64::INFINITY, json!({"$float": "Infinity"}), "Infinity"),
            (f64::NEG_INFINITY, json!({"$float": "-Infinity"}), "-Infinity"),
        ] {
            let value = Value::Float(value);
            assert_eq!((value.to_json(), value.to_string()), (json, text.to_owned()));
            assert_eq!(Value::from_json(value.to_json()), value);
        }
        for document in [json!({"$float": "1.5"}), json!({"$float": "NaN", "b": 1}), json!({})] {
            assert_eq!(Value::from_json(document.clone()), Value::Json(document.into()));
        }
    }

    proptest! {
        #[test]
        fn a_float_of_32_bits_is_read_as_it_prints(bits in any::<u32>()) {
            let float = f32::from_bits(bits);
            let Value::Float(value) = Value::from_f32(float) else { panic!() };
            prop_assert!(value as f32 == float || float.is_nan(), "{float}");
            if float.is_finite() {
                prop_assert_eq!(value.to_string(), float.to_string());
            }
        }

        #[test]
        fn a_number_keeps_its_digits(text in "-?(0|[1-9][0-9]{0,25})([.][0-9]{1,25})?(e[+-]?[0-9]{1,3})?") {
            let value = Value::from_json_text(&text).unwrap();
            let written = value.to_text().unwrap();
            prop_assert_eq!(digits(&written), digits(&text), "{}", value);
        }
    }

    #[test]
    fn a_json_null_differs_from_null() {
        let null = Value::Json(json!(null).into());
        assert_eq!(null.to_json(), json!({"$json": null}));
        assert_eq!(null.to_json_text(), "null");
        assert_eq!(Value::from_json_text("{\"$json\":null}").unwrap(), null);
        assert_eq!(Value::from_json_text("null").unwrap(), Value::Null);
    }

    #[test]
    fn an_integer_beyond_63_bits_is_not_rounded() {
        let value = Value::from_json(json!(u64::MAX));
        assert_eq!(value.to_text().as_deref(), Some("18446744073709551615"));
        assert_eq!(value.to_json(), json!(u64::MAX));
    }
}
