//! A JSON document as its database or its handler wrote it.

use serde::de::value::Error as DeserializeError;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A JSON document. It is kept as text, so that numbers keep all their digits, objects the order of their
/// keys, and numbers beyond every float and documents of any depth can be carried.
///
/// ```
/// use windlass_core::Json;
///
/// let json = Json::from_text(r#"{"b": 1e400, "a": 0.10}"#).unwrap();
/// assert_eq!(json.text(), r#"{"b": 1e400, "a": 0.10}"#);
/// assert_eq!(Json::from(serde_json::json!([1, 2])).text(), "[1,2]");
/// assert!(Json::from_text("{").is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Json(Box<RawValue>);

/// The key of the object that represents a JSON `null` of a JSON column. Without it, it would be the same as
/// SQL `NULL`.
pub(crate) const JSON: &str = "$json";

impl Json {
    /// The document of this text. `None` if the text is not JSON.
    pub fn from_text(text: impl Into<String>) -> Option<Json> {
        RawValue::from_string(text.into()).ok().map(Json)
    }

    /// The document that a value is serialized as. `None` if it cannot be serialized.
    pub fn of(value: &impl Serialize) -> Option<Json> {
        serde_json::value::to_raw_value(value).ok().map(Json)
    }

    /// The text, exactly as it was given.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The text on one line. A line break in JSON is only white space, but ends a message of the
    /// protocol for handlers.
    pub fn line(&self) -> Cow<'_, str> {
        match self.text().contains(['\n', '\r']) {
            true => Cow::Owned(self.text().replace(['\n', '\r'], " ")),
            false => Cow::Borrowed(self.text()),
        }
    }

    /// The document for reading. Numbers become integers of 64 bits or floats. A document that this
    /// cannot represent, such as `1e400`, is returned as its text.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(self.text())
            .unwrap_or_else(|_| serde_json::Value::String(self.text().to_owned()))
    }

    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        self.text().starts_with(|first: char| first == '-' || first.is_ascii_digit())
    }

    /// Deserializes into any type, with the digits of the text.
    pub(crate) fn visit<'de, V: Visitor<'de>>(
        &self,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        // From a reader, since the visitor may not borrow from this document.
        let mut deserializer = serde_json::Deserializer::from_reader(self.text().as_bytes());
        deserializer.deserialize_any(visitor).map_err(DeserializeError::custom)
    }
}

/// Documents are equal if their texts are, or if they mean the same.
impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.text() == other.text() || self.to_value() == other.to_value()
    }
}

impl From<serde_json::Value> for Json {
    fn from(json: serde_json::Value) -> Json {
        // The text of a value is always JSON.
        Json::from_text(json.to_string()).unwrap_or_else(|| Json(RawValue::NULL.to_owned()))
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Json {
        Json(raw.to_owned())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.line() {
            line if line == "null" => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(JSON, &())?;
                map.end()
            }
            Cow::Borrowed(_) => self.0.serialize(serializer),
            Cow::Owned(line) => match Json::from_text(line) {
                Some(json) => json.0.serialize(serializer),
                None => self.0.serialize(serializer),
            },
        }
    }
}

impl std::fmt::Display for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_is_serialized_with_its_digits_and_on_one_line() {
        let json = Json::from_text("{\"a\":\n 1e400,\r\n \"b\": 0.10}").unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), "{\"a\":  1e400,   \"b\": 0.10}");
    }

    #[test]
    fn a_document_that_serde_json_cannot_hold_is_its_text() {
        assert_eq!(Json::from_text("[1e400]").unwrap().to_value(), json!("[1e400]"));
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(Json::from_text(deep.as_str()).unwrap().to_value(), json!(deep));
    }

    #[test]
    fn documents_are_equal_by_their_meaning() {
        let text = |text: &str| Json::from_text(text).unwrap();
        assert_eq!(text("{\"b\": 1, \"a\": 2}"), Json::from(json!({"a": 2, "b": 1})));
        assert_ne!(text("[1e400]"), text("[1e401]"));
    }
}
