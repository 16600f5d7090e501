//! Values as DynamoDB has them and as Windlass carries them, without loss in both directions.

use crate::{DataError, Result};
use serde_json::{Map, Value as Json, json};
use windlass_core::Value;
use windlass_db::dynamodb::sdk::{primitives::Blob, types::AttributeValue};
use windlass_db::{Class, Error};

/// A number that neither an integer nor a float holds exactly: `{"$number": "0.1000…"}`.
const NUMBER: &str = "$number";
/// Sets, which JSON does not have: `{"$strings": […]}`, `{"$numbers": […]}`, `{"$binaries": […]}`.
const STRINGS: &str = "$strings";
const NUMBERS: &str = "$numbers";
const BINARIES: &str = "$binaries";

/// A value of DynamoDB as Windlass carries it. What JSON has no form for is an object of one field
/// whose name begins with `$`, as bytes are.
pub fn from_attribute(attribute: AttributeValue) -> Value {
    match attribute {
        AttributeValue::S(text) => Value::Text(text),
        AttributeValue::N(text) => number(text),
        AttributeValue::Bool(value) => Value::Bool(value),
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::B(bytes) => Value::Bytes(bytes.into_inner()),
        AttributeValue::L(list) => {
            Value::Json(list.into_iter().map(|one| from_attribute(one).to_json()).collect())
        }
        AttributeValue::M(map) => {
            // Sorted, so that a record is the same text each time it is read.
            let mut fields: Vec<(String, AttributeValue)> = map.into_iter().collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            let json = fields.into_iter().map(|(name, one)| (name, from_attribute(one).to_json()));
            Value::Json(json.collect())
        }
        AttributeValue::Ss(list) => Value::Json(json!({ STRINGS: list })),
        AttributeValue::Ns(list) => Value::Json(json!({ NUMBERS: list })),
        AttributeValue::Bs(list) => {
            let list: Vec<String> = list.into_iter().map(|one| hex::encode(one.as_ref())).collect();
            Value::Json(json!({ BINARIES: list }))
        }
        other => Value::Json(json!({ "$unknown": format!("{other:?}") })),
    }
}

/// A value as DynamoDB stores it.
pub fn to_attribute(value: &Value) -> Result<AttributeValue> {
    Ok(match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(value) => AttributeValue::Bool(*value),
        Value::Int(value) => AttributeValue::N(value.to_string()),
        Value::Float(value) if value.is_finite() => AttributeValue::N(value.to_string()),
        Value::Float(value) => return Err(refused(format!("DynamoDB has no number {value}"))),
        Value::Text(text) => AttributeValue::S(text.clone()),
        Value::Bytes(bytes) => AttributeValue::B(Blob::new(bytes.clone())),
        Value::Json(json) => from_json(json)?,
    })
}

/// An integer where it is one, a float where it is exactly that; any other number is its text.
fn number(text: String) -> Value {
    if let Ok(int) = text.parse::<i64>() {
        return Value::Int(int);
    }
    match text.parse::<f64>() {
        Ok(float) if float.is_finite() && float.to_string() == text => Value::Float(float),
        _ => Value::Json(json!({ NUMBER: text })),
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

/// What an object of one field with one of our names stands for.
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

fn refused(message: String) -> DataError {
    Error::new(Class::Data, message).into()
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
            // Also after a step has had it as JSON.
            let back = Value::from_json(value.to_json());
            assert_eq!(to_attribute(&back).unwrap(), attribute, "{value:?}");
        }
    }

    #[test]
    fn a_map_that_only_looks_like_ours_stays_a_map() {
        let map = Value::Json(json!({ "N": "5" }));
        assert!(to_attribute(&map).unwrap().is_m());
        let two = Value::Json(json!({ "$number": "5", "more": 1 }));
        assert!(to_attribute(&two).unwrap().is_m());
    }

    #[test]
    fn what_is_no_number_is_refused() {
        assert!(to_attribute(&Value::Float(f64::NAN)).is_err());
    }
}
