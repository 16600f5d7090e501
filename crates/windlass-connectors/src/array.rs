//! A column of values as one typed array parameter of PostgreSQL.

use crate::array_text;
use std::borrow::Cow;
use windlass_core::{Column, ColumnType, Value};
#[cfg(feature = "postgres")]
use windlass_drivers::Param;

/// Values of one column. Integers, floats, booleans and bytes are sent natively where the column is of
/// that kind. Other values are sent as text, so that the server reports a value that does not fit as an
/// error of the value and not of its type.
#[derive(Debug)]
pub(crate) enum Array<'a> {
    Ints(Vec<Option<i64>>),
    Floats(Vec<Option<f64>>),
    Bools(Vec<Option<bool>>),
    Bytes(Vec<Option<Cow<'a, [u8]>>>),
    Texts(Vec<Option<Cow<'a, str>>>),
}

impl<'a> Array<'a> {
    /// An array that borrows the values.
    pub(crate) fn of(values: &[&'a Value], column: Option<&Column>) -> Array<'a> {
        let kind = column.map(|column| column.kind);
        let native = match kind {
            Some(ColumnType::Int) => gather(values, int).map(Array::Ints),
            Some(ColumnType::Float) => gather(values, float).map(Array::Floats),
            Some(ColumnType::Bool) => gather(values, bool).map(Array::Bools),
            Some(ColumnType::Bytes) => gather(values, bytes).map(Array::Bytes),
            _ => None,
        };
        native.unwrap_or_else(|| {
            Array::Texts(values.iter().map(|value| text(value, column)).collect())
        })
    }

    /// An array that owns the values.
    pub(crate) fn own(values: Vec<Value>, column: Option<&Column>) -> Array<'static> {
        let borrowed: Vec<&Value> = values.iter().collect();
        match Array::of(&borrowed, column) {
            Array::Ints(values) => Array::Ints(values),
            Array::Floats(values) => Array::Floats(values),
            Array::Bools(values) => Array::Bools(values),
            Array::Bytes(values) => Array::Bytes(values.into_iter().map(owned).collect()),
            Array::Texts(values) => Array::Texts(values.into_iter().map(owned).collect()),
        }
    }

    /// The type of the parameter.
    pub(crate) fn sql_type(&self) -> &'static str {
        match self {
            Array::Ints(_) => "int8[]",
            Array::Floats(_) => "float8[]",
            Array::Bools(_) => "bool[]",
            Array::Bytes(_) => "bytea[]",
            Array::Texts(_) => "text[]",
        }
    }

    /// The parameter.
    #[cfg(feature = "postgres")]
    pub(crate) fn param(&self) -> Param<'_> {
        match self {
            Array::Ints(values) => Param::Ints(Cow::Borrowed(values)),
            Array::Floats(values) => Param::Floats(Cow::Borrowed(values)),
            Array::Bools(values) => Param::Bools(Cow::Borrowed(values)),
            Array::Bytes(values) => {
                Param::BytesArray(values.iter().map(|value| value.as_deref()).collect())
            }
            Array::Texts(values) => {
                Param::Texts(values.iter().map(|value| value.as_deref()).collect())
            }
        }
    }
}

/// The text of a value as the server reads it. In a JSON column a text is a JSON string, as it is in the
/// records of steps.
fn text<'a>(value: &'a Value, column: Option<&Column>) -> Option<Cow<'a, str>> {
    match value {
        Value::Null => None,
        value if column.is_some_and(|column| column.kind == ColumnType::Json) => {
            Some(Cow::Owned(value.to_json_text()))
        }
        Value::Text(text) => Some(Cow::Borrowed(text)),
        Value::Json(json) => {
            let list = column.and_then(|column| array_text::from_json(json, column));
            Some(list.map_or(Cow::Borrowed(json.text()), Cow::Owned))
        }
        value => value.to_text().map(Cow::Owned),
    }
}

/// The values, if each is null or of the wanted kind.
fn gather<'a, T>(
    values: &[&'a Value],
    read: impl Fn(&'a Value) -> Option<T>,
) -> Option<Vec<Option<T>>> {
    let read = |value: &&'a Value| match value {
        Value::Null => Some(None),
        value => read(value).map(Some),
    };
    values.iter().map(read).collect()
}

fn int(value: &Value) -> Option<i64> {
    if let Value::Int(value) = value { Some(*value) } else { None }
}

fn float(value: &Value) -> Option<f64> {
    if let Value::Float(value) = value { Some(*value) } else { None }
}

fn bool(value: &Value) -> Option<bool> {
    if let Value::Bool(value) = value { Some(*value) } else { None }
}

fn bytes(value: &Value) -> Option<Cow<'_, [u8]>> {
    if let Value::Bytes(value) = value { Some(Cow::Borrowed(value)) } else { None }
}

fn owned<T: ToOwned + ?Sized>(value: Option<Cow<'_, T>>) -> Option<Cow<'static, T>> {
    value.map(|value| Cow::Owned(value.into_owned()))
}
