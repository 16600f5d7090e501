//! One value of a row in the form in which the driver returned it.

use std::borrow::Cow;

use windlass_core::Value;

/// A value for [`RowBuilder::push_with`](crate::RowBuilder::push_with). Numbers, days and text in the form of their
/// column are copied directly, without a conversion to [`Value`].
#[derive(Clone, Debug)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating point number.
    Float(f64),
    /// A decimal as units of its column's scale: 12.50 of `decimal(12,2)` is 1250.
    Units(i128),
    /// A date as days since 1970.
    Days(i32),
    /// A timestamp as microseconds since 1970, in UTC where its column has a zone.
    Micros(i64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Anything else.
    Value(Cow<'a, Value>),
}

impl Cell<'_> {
    pub(crate) fn is_null(&self) -> bool {
        match self {
            Cell::Null => true,
            Cell::Value(value) => value.is_null(),
            _ => false,
        }
    }

    /// The value. `None` for a form that only a column of the same form accepts.
    pub(crate) fn to_value(&self) -> Option<Cow<'_, Value>> {
        Some(match self {
            Cell::Value(value) => Cow::Borrowed(value.as_ref()),
            Cell::Null => Cow::Owned(Value::Null),
            Cell::Bool(value) => Cow::Owned(Value::Bool(*value)),
            Cell::Int(value) => Cow::Owned(Value::Int(*value)),
            Cell::Float(value) => Cow::Owned(Value::Float(*value)),
            Cell::Text(text) => Cow::Owned(Value::Text((*text).to_owned())),
            Cell::Bytes(bytes) => Cow::Owned(Value::Bytes(bytes.to_vec())),
            Cell::Units(_) | Cell::Days(_) | Cell::Micros(_) => return None,
        })
    }

    /// The value for error messages.
    pub(crate) fn display(&self) -> String {
        match self {
            Cell::Units(units) => format!("{units} units"),
            Cell::Days(days) => format!("day {days}"),
            Cell::Micros(micros) => format!("microsecond {micros}"),
            other => other.to_value().map_or_else(String::new, |value| value.to_string()),
        }
    }
}
