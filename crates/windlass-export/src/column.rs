//! Builds one column of a batch. Values are stored exactly or refused.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
    Float64Array, Int64Array, ListArray, StringArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, TimeUnit};
use serde_json::value::RawValue;
use windlass_core::{Json, Value};

use crate::cell::Cell;
use crate::decimal::{Decimal, fits};
use crate::{datetime, schema};

/// Why a value does not fit.
pub(crate) type Reason = Cow<'static, str>;

/// The values of one column so far.
pub(crate) struct Column {
    nullable: bool,
    json: bool,
    nulls: NullBufferBuilder,
    values: Values,
}

enum Values {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    UInt(Vec<u64>),
    Float(Vec<f64>),
    Decimal128(Vec<i128>, u8, i8),
    Decimal256(Vec<i256>, u8, i8),
    Date(Vec<i32>),
    Timestamp(Vec<i64>, Option<Arc<str>>),
    Text(Strings),
    Bytes(Strings),
    List(List),
}

/// The elements of all lists, one list after the other.
struct List {
    field: FieldRef,
    ends: Vec<i32>,
    elements: Box<Column>,
}

/// Values of any length, one after the other.
struct Strings {
    ends: Vec<i32>,
    bytes: Vec<u8>,
}

impl Column {
    /// An empty column. `None` for a type that [`crate::schema`] never returns.
    pub(crate) fn new(field: &Field) -> Option<Column> {
        let values = match field.data_type() {
            DataType::Boolean => Values::Bool(Vec::new()),
            DataType::Int64 => Values::Int(Vec::new()),
            DataType::UInt64 => Values::UInt(Vec::new()),
            DataType::Float64 => Values::Float(Vec::new()),
            DataType::Decimal128(precision, scale) => {
                Values::Decimal128(Vec::new(), *precision, *scale)
            }
            DataType::Decimal256(precision, scale) => {
                Values::Decimal256(Vec::new(), *precision, *scale)
            }
            DataType::Date32 => Values::Date(Vec::new()),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                Values::Timestamp(Vec::new(), zone.clone())
            }
            DataType::Utf8 => Values::Text(Strings::new()),
            DataType::Binary => Values::Bytes(Strings::new()),
            DataType::List(field) => Values::List(List {
                field: field.clone(),
                ends: vec![0],
                elements: Box::new(Column::new(field)?),
            }),
            _ => return None,
        };
        let nulls = NullBufferBuilder::new(0);
        Some(Column { nullable: field.is_nullable(), json: schema::is_json(field), nulls, values })
    }

    /// Adds a value, and returns its approximate size. A value that does not fit leaves the column unchanged.
    pub(crate) fn push(&mut self, cell: &Cell<'_>) -> Result<usize, Reason> {
        if cell.is_null() {
            if !self.nullable {
                return Err("it must not be null".into());
            }
            self.values.push_null();
            self.nulls.append_null();
            return Ok(1);
        }
        let size = self.values.push(cell, self.json)?;
        self.nulls.append_non_null();
        Ok(size)
    }

    /// Removes the last value, after another column of its row refused.
    pub(crate) fn pop(&mut self) {
        self.values.pop();
        self.nulls.truncate(self.nulls.len().saturating_sub(1));
    }

    /// Returns the values as an array, and empties the column.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let nulls = self.nulls.finish();
        Ok(match &mut self.values {
            Values::Bool(values) => {
                let bits = BooleanBuffer::from(std::mem::take(values));
                Arc::new(BooleanArray::new(bits, nulls))
            }
            Values::Int(values) => Arc::new(Int64Array::try_new(take(values), nulls)?),
            Values::UInt(values) => Arc::new(UInt64Array::try_new(take(values), nulls)?),
            Values::Float(values) => Arc::new(Float64Array::try_new(take(values), nulls)?),
            Values::Decimal128(values, precision, scale) => {
                let array = Decimal128Array::try_new(take(values), nulls)?;
                Arc::new(array.with_precision_and_scale(*precision, *scale)?)
            }
            Values::Decimal256(values, precision, scale) => {
                let array = Decimal256Array::try_new(take(values), nulls)?;
                Arc::new(array.with_precision_and_scale(*precision, *scale)?)
            }
            Values::Date(values) => Arc::new(Date32Array::try_new(take(values), nulls)?),
            Values::Timestamp(values, zone) => {
                let array = TimestampMicrosecondArray::try_new(take(values), nulls)?;
                Arc::new(array.with_timezone_opt(zone.clone()))
            }
            Values::Text(strings) => {
                let (offsets, bytes) = strings.finish();
                Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
            }
            Values::Bytes(strings) => {
                let (offsets, bytes) = strings.finish();
                Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?)
            }
            Values::List(List { field, ends, elements }) => {
                let offsets = OffsetBuffer::new(std::mem::replace(ends, vec![0]).into());
                Arc::new(ListArray::try_new(field.clone(), offsets, elements.finish()?, nulls)?)
            }
        })
    }
}

impl Values {
    /// Copies a cell in the form of the column directly, and converts others by their value.
    fn push(&mut self, cell: &Cell<'_>, json: bool) -> Result<usize, Reason> {
        match (self, cell) {
            (Values::Bool(values), Cell::Bool(value)) => values.push(*value),
            (Values::Int(values), Cell::Int(value)) => values.push(*value),
            (Values::Float(values), Cell::Float(value)) => values.push(*value),
            (Values::Decimal128(values, precision, scale), Cell::Units(units)) => {
                if !fits(*units, *precision) {
                    return Err(too_long(*precision, *scale));
                }
                values.push(*units);
            }
            (Values::Decimal128(values, precision, scale), Cell::Text(text)) => {
                values.push(parse_decimal(text, *precision, *scale, |number, p, s| {
                    number.to_i128(p, s)
                })?);
            }
            (Values::Date(values), Cell::Days(days)) => values.push(*days),
            (Values::Timestamp(values, _), Cell::Micros(micros)) => values.push(*micros),
            (Values::Text(strings), Cell::Text(text)) if !json => {
                return strings.push(text.as_bytes());
            }
            (Values::Bytes(strings), Cell::Bytes(bytes)) => return strings.push(bytes),
            (values, cell) => {
                let value = cell.to_value().ok_or("its type does not match the column")?;
                return values.push_value(&value, json);
            }
        }
        Ok(16)
    }

    fn push_value(&mut self, value: &Value, json: bool) -> Result<usize, Reason> {
        match self {
            Values::Bool(values) => values.push(bool(value)?),
            Values::Int(values) => values.push(int(value)?),
            Values::UInt(values) => values.push(unsigned(value)?),
            Values::Float(values) => values.push(float(value)?),
            Values::Decimal128(values, precision, scale) => {
                values
                    .push(decimal(value, *precision, *scale, |number, p, s| number.to_i128(p, s))?);
            }
            Values::Decimal256(values, precision, scale) => {
                values
                    .push(decimal(value, *precision, *scale, |number, p, s| number.to_i256(p, s))?);
            }
            Values::Date(values) => {
                let day = plain_text(value).and_then(datetime::date);
                values.push(day.ok_or("it is not a date, such as 2025-01-31")?);
            }
            Values::Timestamp(values, zone) => {
                let text = plain_text(value).ok_or("it is not the text of a timestamp")?;
                values.push(datetime::timestamp(text, zone.is_some())?);
            }
            Values::Text(strings) => {
                let text = if json { json_text(value)? } else { text(value)? };
                return strings.push(text.as_bytes());
            }
            Values::Bytes(strings) => match value {
                Value::Bytes(bytes) => return strings.push(bytes),
                _ => return Err("it is not bytes".into()),
            },
            Values::List(list) => return list.push(value),
        }
        Ok(16)
    }

    /// A null has a fixed placeholder value, so that files are deterministic.
    fn push_null(&mut self) {
        match self {
            Values::Bool(values) => values.push(false),
            Values::Int(values) | Values::Timestamp(values, _) => values.push(0),
            Values::UInt(values) => values.push(0),
            Values::Float(values) => values.push(0.0),
            Values::Decimal128(values, ..) => values.push(0),
            Values::Decimal256(values, ..) => values.push(i256::ZERO),
            Values::Date(values) => values.push(0),
            Values::Text(strings) | Values::Bytes(strings) => strings.ends.push(strings.end()),
            Values::List(list) => list.ends.push(list.end()),
        }
    }

    fn pop(&mut self) {
        match self {
            Values::Bool(values) => drop(values.pop()),
            Values::Int(values) | Values::Timestamp(values, _) => drop(values.pop()),
            Values::UInt(values) => drop(values.pop()),
            Values::Float(values) => drop(values.pop()),
            Values::Decimal128(values, ..) => drop(values.pop()),
            Values::Decimal256(values, ..) => drop(values.pop()),
            Values::Date(values) => drop(values.pop()),
            Values::Text(strings) | Values::Bytes(strings) => strings.pop(),
            Values::List(list) => list.pop(),
        }
    }
}

impl List {
    fn end(&self) -> i32 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Adds a JSON array. If an element does not fit, the elements before it are removed.
    fn push(&mut self, value: &Value) -> Result<usize, Reason> {
        let Value::Json(json) = value else { return Err("it is not a list".into()) };
        let elements: Vec<&RawValue> =
            serde_json::from_str(json.text()).map_err(|_| "it is not a list")?;
        let mut size = 4;
        for (pushed, raw) in elements.iter().enumerate() {
            match self.push_element(raw) {
                Ok(element) => size += element,
                Err(why) => {
                    (0..pushed).for_each(|_| self.elements.pop());
                    return Err(format!("element {}: {why}", pushed + 1).into());
                }
            }
        }
        let end =
            i32::try_from(elements.len()).ok().and_then(|count| self.end().checked_add(count));
        match end {
            Some(end) => self.ends.push(end),
            None => {
                elements.iter().for_each(|_| self.elements.pop());
                return Err("the batch already has 2^31 elements of this column".into());
            }
        }
        Ok(size)
    }

    fn push_element(&mut self, raw: &RawValue) -> Result<usize, Reason> {
        if raw.get().starts_with('[') && !self.elements.json {
            return Err("it is a list itself, and the column's lists have one dimension".into());
        }
        let value = match Value::from_json_text(raw.get()).map_err(|error| error.to_string())? {
            value @ (Value::Null | Value::Json(_)) => value,
            _ if self.elements.json => Value::Json(Json::from(raw)),
            value => value,
        };
        self.elements.push(&Cell::Value(Cow::Owned(value)))
    }

    fn pop(&mut self) {
        let end = self.ends.pop().unwrap_or(0);
        (self.end()..end).for_each(|_| self.elements.pop());
    }
}

impl Strings {
    fn new() -> Strings {
        Strings { ends: vec![0], bytes: Vec::new() }
    }

    fn end(&self) -> i32 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn push(&mut self, value: &[u8]) -> Result<usize, Reason> {
        let end = i32::try_from(self.bytes.len() + value.len())
            .map_err(|_| "the batch already has 2 GiB of this column")?;
        self.bytes.extend_from_slice(value);
        self.ends.push(end);
        Ok(4 + value.len())
    }

    fn pop(&mut self) {
        self.ends.pop();
        self.bytes.truncate(usize::try_from(self.end()).unwrap_or(0));
    }

    fn finish(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        let ends = std::mem::replace(&mut self.ends, vec![0]);
        (OffsetBuffer::new(ends.into()), Buffer::from_vec(std::mem::take(&mut self.bytes)))
    }
}

fn take<T: arrow_buffer::ArrowNativeType>(values: &mut Vec<T>) -> ScalarBuffer<T> {
    let capacity = values.len();
    ScalarBuffer::from(std::mem::replace(values, Vec::with_capacity(capacity)))
}

/// SQLite and MySQL return booleans as numbers.
fn bool(value: &Value) -> Result<bool, Reason> {
    match value {
        Value::Bool(value) => Ok(*value),
        Value::Int(0) => Ok(false),
        Value::Int(1) => Ok(true),
        Value::Text(text) if matches!(text.as_str(), "true" | "t") => Ok(true),
        Value::Text(text) if matches!(text.as_str(), "false" | "f") => Ok(false),
        _ => Err("it is neither true nor false".into()),
    }
}

fn int(value: &Value) -> Result<i64, Reason> {
    match value {
        Value::Int(value) => Some(*value),
        Value::Text(text) => text.parse().ok(),
        Value::Float(value) => whole(*value),
        _ => None,
    }
    .ok_or_else(|| "it is not an integer of 64 bits".into())
}

fn unsigned(value: &Value) -> Result<u64, Reason> {
    match value {
        Value::Int(value) => u64::try_from(*value).ok(),
        Value::Text(text) => text.parse().ok(),
        Value::Float(value) => whole(*value).and_then(|value| u64::try_from(value).ok()),
        _ => None,
    }
    .ok_or_else(|| "it is not an unsigned integer of 64 bits".into())
}

/// Floats represent all integers up to here exactly.
const MAX_EXACT_INTEGER: i64 = 1 << 53;

fn whole(value: f64) -> Option<i64> {
    let fits = value.fract() == 0.0 && value.abs() <= MAX_EXACT_INTEGER as f64;
    fits.then_some(value as i64)
}

fn float(value: &Value) -> Result<f64, Reason> {
    match value {
        Value::Float(value) => Ok(*value),
        Value::Int(value) if value.abs() <= MAX_EXACT_INTEGER => Ok(*value as f64),
        Value::Text(text) => match text.parse::<f64>() {
            // A text with more digits than the float would lose them.
            Ok(value) if value.is_nan() || same_text(value, text) => Ok(value),
            _ => Err("it is not exactly a floating point number of 64 bits".into()),
        },
        _ => Err("it is not exactly a floating point number of 64 bits".into()),
    }
}

fn same_text(value: f64, text: &str) -> bool {
    value.is_infinite() || value.to_string() == text || format!("{value:?}") == text
}

fn decimal<T>(
    value: &Value,
    precision: u8,
    scale: i8,
    fit: impl Fn(Decimal<'_>, u8, i8) -> Option<T>,
) -> Result<T, Reason> {
    let text: Cow<'_, str> = match value {
        Value::Text(text) => Cow::Borrowed(text.as_str()),
        // The shortest decimal that parses to the same float.
        Value::Int(_) | Value::Float(_) => Cow::Owned(value.to_text().unwrap_or_default()),
        _ => return Err("it is not a decimal number".into()),
    };
    parse_decimal(&text, precision, scale, fit)
}

/// Parses a decimal.
fn parse_decimal<T>(
    text: &str,
    precision: u8,
    scale: i8,
    fit: impl Fn(Decimal<'_>, u8, i8) -> Option<T>,
) -> Result<T, Reason> {
    let Some(decimal) = Decimal::parse(text) else {
        return Err("it is not a decimal number; use a column without a precision".into());
    };
    fit(decimal, precision, scale).ok_or_else(|| too_long(precision, scale))
}

fn too_long(precision: u8, scale: i8) -> Reason {
    format!("it needs more than {precision} digits, or more than {scale} decimal places").into()
}

fn text(value: &Value) -> Result<Cow<'_, str>, Reason> {
    match value {
        Value::Text(text) => Ok(Cow::Borrowed(text)),
        Value::Bytes(_) => Err("it is bytes, which may not be text".into()),
        other => Ok(Cow::Owned(other.to_text().unwrap_or_default())),
    }
}

/// The JSON formats copy JSON columns verbatim, so the text must be valid JSON.
fn json_text(value: &Value) -> Result<Cow<'_, str>, Reason> {
    match value {
        Value::Text(text) => match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => Ok(Cow::Borrowed(text)),
            Err(error) => Err(format!("it is not JSON: {error}").into()),
        },
        Value::Bytes(_) => Err("it is bytes, which are not JSON".into()),
        Value::Float(value) if !value.is_finite() => Err("JSON has no such number".into()),
        other => Ok(Cow::Owned(other.to_json_text())),
    }
}

fn plain_text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
