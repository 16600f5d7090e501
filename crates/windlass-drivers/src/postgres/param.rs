//! Parameters of statements.

use std::{borrow::Cow, error::Error as StdError};

use bytes::BytesMut;
use serde_json::Value;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

/// A value for a `$n`. All except `Text` have a type and are sent in binary format.
#[derive(Clone, Debug, PartialEq)]
pub enum Param<'a> {
    /// Text whose type the server infers from the context or from a cast, such as `$1::numeric`.
    Text(Option<Cow<'a, str>>),
    /// `int8`
    Int(Option<i64>),
    /// `float8`
    Float(Option<f64>),
    /// `bool`
    Bool(Option<bool>),
    /// `uuid`
    Uuid(Option<Uuid>),
    /// `jsonb`
    Json(Option<Cow<'a, Value>>),
    /// `bytea`
    Bytes(Option<Cow<'a, [u8]>>),
    /// `int8[]`
    Ints(Cow<'a, [Option<i64>]>),
    /// `float8[]`
    Floats(Cow<'a, [Option<f64>]>),
    /// `bool[]`
    Bools(Cow<'a, [Option<bool>]>),
    /// `uuid[]`
    Uuids(Cow<'a, [Option<Uuid>]>),
    /// `text[]`; cast it for arrays of other types: `$1::text[]::numeric[]`.
    Texts(Vec<Option<&'a str>>),
    /// `bytea[]`
    BytesArray(Vec<Option<&'a [u8]>>),
}

impl<'a> Param<'a> {
    /// A `text[]` of strings.
    pub fn texts<T: AsRef<str> + ?Sized + 'a>(values: impl IntoIterator<Item = &'a T>) -> Self {
        Param::Texts(values.into_iter().map(|value| Some(value.as_ref())).collect())
    }

    /// A `text[]` with NULLs.
    pub fn nullable_texts<T: AsRef<str> + 'a>(
        values: impl IntoIterator<Item = &'a Option<T>>,
    ) -> Self {
        Param::Texts(values.into_iter().map(|value| value.as_ref().map(AsRef::as_ref)).collect())
    }

    /// A `bytea[]` of byte strings.
    pub fn bytes_array<T: AsRef<[u8]> + ?Sized + 'a>(
        values: impl IntoIterator<Item = &'a T>,
    ) -> Self {
        Param::BytesArray(values.into_iter().map(|value| Some(value.as_ref())).collect())
    }

    /// A `bytea[]` with NULLs.
    pub fn nullable_bytes_array<T: AsRef<[u8]> + 'a>(
        values: impl IntoIterator<Item = &'a Option<T>>,
    ) -> Self {
        let values = values.into_iter().map(|value| value.as_ref().map(AsRef::as_ref));
        Param::BytesArray(values.collect())
    }

    /// The type with which the statement is parsed.
    pub(super) fn kind(&self) -> Type {
        match self {
            Param::Text(_) => Type::UNKNOWN,
            Param::Int(_) => Type::INT8,
            Param::Float(_) => Type::FLOAT8,
            Param::Bool(_) => Type::BOOL,
            Param::Uuid(_) => Type::UUID,
            Param::Json(_) => Type::JSONB,
            Param::Bytes(_) => Type::BYTEA,
            Param::Ints(_) => Type::INT8_ARRAY,
            Param::Floats(_) => Type::FLOAT8_ARRAY,
            Param::Bools(_) => Type::BOOL_ARRAY,
            Param::Uuids(_) => Type::UUID_ARRAY,
            Param::Texts(_) => Type::TEXT_ARRAY,
            Param::BytesArray(_) => Type::BYTEA_ARRAY,
        }
    }
}

impl ToSql for Param<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Param::Text(None) => Ok(IsNull::Yes),
            // The text format of every type is the bytes of the text.
            Param::Text(Some(text)) => {
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
            Param::Int(value) => value.to_sql(ty, out),
            Param::Float(value) => value.to_sql(ty, out),
            Param::Bool(value) => value.to_sql(ty, out),
            Param::Uuid(value) => value.to_sql(ty, out),
            Param::Json(value) => value.as_deref().to_sql(ty, out),
            Param::Bytes(value) => value.as_deref().to_sql(ty, out),
            Param::Ints(values) => values.as_ref().to_sql(ty, out),
            Param::Floats(values) => values.as_ref().to_sql(ty, out),
            Param::Bools(values) => values.as_ref().to_sql(ty, out),
            Param::Uuids(values) => values.as_ref().to_sql(ty, out),
            Param::Texts(values) => values.to_sql(ty, out),
            Param::BytesArray(values) => values.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // A parameter is always sent with the type of `kind`.
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        if matches!(self, Param::Text(_)) { Format::Text } else { Format::Binary }
    }

    to_sql_checked!();
}

/// Implements `From` for a value and for an optional value.
macro_rules! from_value {
    ($($source:ty => $variant:ident),* $(,)?) => {$(
        impl<'a> From<$source> for Param<'a> {
            fn from(value: $source) -> Self {
                Param::$variant(Some(value.into()))
            }
        }

        impl<'a> From<Option<$source>> for Param<'a> {
            fn from(value: Option<$source>) -> Self {
                Param::$variant(value.map(Into::into))
            }
        }
    )*};
}

from_value! {
    &'a str => Text,
    &'a String => Text,
    String => Text,
    Cow<'a, str> => Text,
    i64 => Int,
    i32 => Int,
    u32 => Int,
    f64 => Float,
    bool => Bool,
    Uuid => Uuid,
}

impl<'a> From<&'a Value> for Param<'a> {
    fn from(value: &'a Value) -> Self {
        Param::Json(Some(Cow::Borrowed(value)))
    }
}

impl<'a> From<Option<&'a Value>> for Param<'a> {
    fn from(value: Option<&'a Value>) -> Self {
        Param::Json(value.map(Cow::Borrowed))
    }
}

impl From<Value> for Param<'_> {
    fn from(value: Value) -> Self {
        Param::Json(Some(Cow::Owned(value)))
    }
}

impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(value: &'a [u8]) -> Self {
        Param::Bytes(Some(Cow::Borrowed(value)))
    }
}

impl<'a> From<Option<&'a [u8]>> for Param<'a> {
    fn from(value: Option<&'a [u8]>) -> Self {
        Param::Bytes(value.map(Cow::Borrowed))
    }
}

/// Writes `From` for the slices and vectors of one element type.
macro_rules! from_array {
    ($($element:ty => $variant:ident),* $(,)?) => {$(
        impl<'a> From<&'a [Option<$element>]> for Param<'a> {
            fn from(values: &'a [Option<$element>]) -> Self {
                Param::$variant(Cow::Borrowed(values))
            }
        }

        impl From<Vec<Option<$element>>> for Param<'_> {
            fn from(values: Vec<Option<$element>>) -> Self {
                Param::$variant(Cow::Owned(values))
            }
        }

        impl From<&[$element]> for Param<'_> {
            fn from(values: &[$element]) -> Self {
                Param::$variant(values.iter().copied().map(Some).collect())
            }
        }

        impl From<Vec<$element>> for Param<'_> {
            fn from(values: Vec<$element>) -> Self {
                Param::$variant(values.into_iter().map(Some).collect())
            }
        }
    )*};
}

from_array! {
    i64 => Ints,
    f64 => Floats,
    bool => Bools,
    Uuid => Uuids,
}

impl<'a> From<&'a [Option<String>]> for Param<'a> {
    fn from(values: &'a [Option<String>]) -> Self {
        Param::nullable_texts(values)
    }
}

impl<'a> From<&'a [String]> for Param<'a> {
    fn from(values: &'a [String]) -> Self {
        Param::texts(values)
    }
}

impl<'a> From<&[&'a str]> for Param<'a> {
    fn from(values: &[&'a str]) -> Self {
        Param::Texts(values.iter().copied().map(Some).collect())
    }
}
