//! One value of one column, as Windlass carries it between a database, a step and JSON.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

/// A value. Types that JSON or Rust has no exact form for (numeric, uuid, date, timestamp) are
/// their database's text, and the column's type says how to read them.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL `NULL`.
    Null,
    /// A boolean.
    Bool(bool),
    /// Any integer that fits 64 bits.
    Int(i64),
    /// A binary floating point number.
    Float(f64),
    /// Text, and the exact text of every type without a variant of its own.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A JSON document.
    Json(serde_json::Value),
}

impl Value {
    /// Whether this is `NULL`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// About how many bytes of memory the value takes, for the byte limit of a batch.
    pub fn size(&self) -> usize {
        16 + match self {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Json(json) => json.to_string().len(),
            _ => 0,
        }
    }

    /// The text a database can parse back into the value, `None` for `NULL`.
    pub fn to_text(&self) -> Option<String> {
        match self {
            Value::Null => None,
            Value::Bool(value) => Some(value.to_string()),
            Value::Int(value) => Some(value.to_string()),
            Value::Float(value) => Some(value.to_string()),
            Value::Text(text) => Some(text.clone()),
            Value::Bytes(bytes) => Some(format!("\\x{}", hex::encode(bytes))),
            Value::Json(json) => Some(json.to_string()),
        }
    }

    /// The value in a record shown to people and handed to steps.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// A row as one JSON document.
    pub fn from_row(row: crate::Row) -> Value {
        Value::Json(row.into_iter().map(|(name, value)| (name, value.to_json())).collect())
    }

    /// Reads what [`Value::to_json`] wrote. Objects and arrays become [`Value::Json`].
    pub fn from_json(json: serde_json::Value) -> Value {
        use serde_json::Value as Json;
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(value),
            Json::String(text) => Value::Text(text),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Value::Int(int),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::Object(map) => match bytes_of(&map) {
                Some(bytes) => Value::Bytes(bytes),
                None => Value::Json(Json::Object(map)),
            },
            list @ Json::Array(_) => Value::Json(list),
        }
    }
}

/// The one-field object that stands for bytes in JSON, which has no bytes of its own.
const BYTES: &str = "$bytes";

fn bytes_of(map: &serde_json::Map<String, serde_json::Value>) -> Option<Vec<u8>> {
    if map.len() != 1 {
        return None;
    }
    map.get(BYTES)?.as_str().and_then(|text| hex::decode(text).ok())
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Json(json) => json.serialize(serializer),
            Value::Bytes(bytes) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(BYTES, &hex::encode(bytes))?;
                map.end()
            }
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

    /// Any value that may stand in a key, of any type.
    pub(crate) fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<i64>().prop_map(Value::Int),
            any::<bool>().prop_map(Value::Bool),
            ".*".prop_map(Value::Text),
            any::<u128>().prop_map(|n| Value::Text(uuid::Uuid::from_u128(n).to_string())),
            (0i64..4_000_000_000).prop_map(|s| Value::Text(
                chrono::DateTime::from_timestamp(s, 0).unwrap().to_rfc3339()
            )),
            (any::<i64>(), 0u32..9).prop_map(|(n, d)| Value::Text(format!("{n}.{d}"))),
            any::<Vec<u8>>().prop_map(Value::Bytes),
        ]
    }

    proptest! {
        #[test]
        fn json_round_trips(value in any_value()) {
            let text = serde_json::to_string(&value).unwrap();
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }
}
