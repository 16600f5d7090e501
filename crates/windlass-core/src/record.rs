//! A record as a step sees it: its values, with column names shared by the batch.

use crate::Value;
use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use std::sync::Arc;

/// The column names of a batch, in the order of the values.
pub type Columns = Arc<[String]>;

/// One record of the source. Cheap to clone: steps, write-back and dead letters share one copy.
///
/// ```
/// use windlass_core::{Record, Value};
///
/// let columns = vec!["id".to_owned(), "name".to_owned()].into();
/// let record = Record::new(columns, vec![Value::from(1), Value::from("Ada")]);
/// assert_eq!(record.get("name"), Some(&Value::from("Ada")));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    columns: Columns,
    values: Arc<[Value]>,
}

impl Record {
    /// A record with these columns. A missing value at the end is null.
    pub fn new(columns: Columns, values: Vec<Value>) -> Record {
        Record { columns, values: values.into() }
    }

    /// The value of a column; `None` if there is no such column.
    pub fn get(&self, column: &str) -> Option<&Value> {
        let place = self.columns.iter().position(|name| name == column)?;
        self.values.get(place)
    }

    /// The columns with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.columns.iter().map(String::as_str).zip(self.values.iter())
    }

    /// The values in the order of the columns.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The record as a type of the caller. Text is parsed as a number where the field is one, because exact
    /// decimals arrive as text.
    ///
    /// # Errors
    /// The record does not fit the type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, RecordError> {
        T::deserialize(MapDeserializer::new(
            self.iter().map(|(name, value)| (StrDeserializer::new(name), Field(value))),
        ))
    }

    /// The record as a JSON object.
    pub fn to_json(&self) -> serde_json::Value {
        self.iter().map(|(name, value)| (name.to_owned(), value.to_json())).collect()
    }

    /// The approximate size in memory, in bytes.
    pub fn size(&self) -> usize {
        self.values.iter().map(Value::size).sum()
    }
}

impl serde::Serialize for Record {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// A record does not fit the type it was read as.
pub type RecordError = serde::de::value::Error;

struct Field<'a>(&'a Value);

impl<'de> IntoDeserializer<'de, RecordError> for Field<'_> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

/// Numbers may arrive as text: the parsed form is tried first, then the text.
macro_rules! numbers {
    ($($method:ident => $visit:ident),+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RecordError> {
            match self.0 {
                Value::Text(text) => match text.parse() {
                    Ok(number) => visitor.$visit(number),
                    Err(_) => self.deserialize_any(visitor),
                },
                _ => self.deserialize_any(visitor),
            }
        }
    )+};
}

impl<'de> Deserializer<'de> for Field<'_> {
    type Error = RecordError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RecordError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_str(text),
            Value::Bytes(bytes) => visitor.visit_bytes(bytes),
            Value::Json(json) => json.visit(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RecordError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RecordError> {
        match self.0 {
            // SQLite has no booleans.
            Value::Int(0) => visitor.visit_bool(false),
            Value::Int(1) => visitor.visit_bool(true),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, RecordError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RecordError> {
        match self.0 {
            Value::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            Value::Json(json) => json
                .to_value()
                .deserialize_enum(name, variants, visitor)
                .map_err(RecordError::custom),
            other => Err(RecordError::custom(format!("{other} is not a variant of {name}"))),
        }
    }

    numbers!(deserialize_i8 => visit_i8, deserialize_i16 => visit_i16, deserialize_i32 => visit_i32,
        deserialize_i64 => visit_i64, deserialize_i128 => visit_i128, deserialize_u8 => visit_u8,
        deserialize_u16 => visit_u16, deserialize_u32 => visit_u32, deserialize_u64 => visit_u64,
        deserialize_u128 => visit_u128, deserialize_f32 => visit_f32, deserialize_f64 => visit_f64);

    serde::forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Visit {
        id: i64,
        amount: f64,
        note: Option<String>,
        paid: bool,
        kind: Kind,
        tags: Vec<String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Home,
    }

    fn record(amount: Value) -> Record {
        let columns: Columns =
            ["id", "amount", "note", "paid", "kind", "tags"].map(str::to_owned).into();
        let values = vec![
            Value::Int(7),
            amount,
            Value::Null,
            Value::Int(1),
            Value::from("home"),
            Value::Json(json!(["a"]).into()),
        ];
        Record::new(columns, values)
    }

    #[test]
    fn reads_as_a_users_type() {
        let visit: Visit = record(Value::from("12.50")).parse().unwrap();
        let tags = vec!["a".to_owned()];
        let expected =
            Visit { id: 7, amount: 12.5, note: None, paid: true, kind: Kind::Home, tags };
        assert_eq!(visit, expected);
    }

    #[test]
    fn a_record_that_does_not_fit_says_what_it_found() {
        let error = record(Value::from("much")).parse::<Visit>().unwrap_err();
        assert!(error.to_string().contains("much"), "{error}");
    }

    #[test]
    fn is_a_json_object_for_people() {
        let json = record(Value::from("12.50")).to_json();
        assert_eq!(json["amount"], "12.50");
        assert_eq!(json["note"], serde_json::Value::Null);
    }
}
