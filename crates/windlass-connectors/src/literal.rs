//! Writes values as literals of PostgreSQL, for statements that cannot bind them.

use crate::array::Array;
use windlass_core::Value;

/// PostgreSQL's texts cannot contain NUL, bound or not.
const NUL: &str = "a value has a NUL character, which PostgreSQL cannot store";

/// A value as a quoted literal, whose type the context determines.
pub(crate) fn of_value(value: &Value) -> Result<String, &'static str> {
    value.to_text().map_or_else(|| Ok("NULL".to_owned()), |text| quote(&text))
}

/// An array as a quoted literal, to be cast to its type.
pub(crate) fn of_array(array: &Array<'_>) -> Result<String, &'static str> {
    let elements = match array {
        Array::Ints(values) => joined(values, i64::to_string),
        Array::Floats(values) => joined(values, |value| match value {
            value if value.is_infinite() && *value > 0.0 => "Infinity".to_owned(),
            value if value.is_infinite() => "-Infinity".to_owned(),
            // `Debug` uses an exponent for very large and very small numbers.
            value => format!("{value:?}"),
        }),
        Array::Bools(values) => joined(values, bool::to_string),
        Array::Bytes(values) => {
            joined(values, |bytes| element(&format!("\\x{}", hex::encode(bytes))))
        }
        Array::Texts(values) => joined(values, |text| element(text)),
    };
    quote(&format!("{{{elements}}}"))
}

fn joined<T>(values: &[Option<T>], write: impl Fn(&T) -> String) -> String {
    let write = |value: &Option<T>| value.as_ref().map_or_else(|| "NULL".to_owned(), &write);
    values.iter().map(write).collect::<Vec<_>>().join(",")
}

/// Quotes an element of an array, so that commas, braces and NULL in it have no meaning.
pub(crate) fn element(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// With `E`, the meaning of a backslash does not depend on the server's settings.
fn quote(text: &str) -> Result<String, &'static str> {
    if text.contains('\0') {
        return Err(NUL);
    }
    Ok(format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn values_are_escaped() {
        for (value, literal) in [
            (Value::Null, "NULL"),
            (Value::Int(-5), "E'-5'"),
            (Value::from("it's"), "E'it''s'"),
            (Value::from("\\'; DROP TABLE t; --"), "E'\\\\''; DROP TABLE t; --'"),
            (Value::from("$1 ü"), "E'$1 ü'"),
            (Value::Bytes(vec![0, 255]), "E'\\\\x00ff'"),
        ] {
            assert_eq!(of_value(&value).unwrap(), literal);
        }
        assert!(of_value(&Value::from("a\0b")).is_err());
    }

    #[test]
    fn array_elements_are_escaped() {
        let texts = [Some("NULL"), None, Some("a\",b}'\\"), Some("")];
        let texts = texts.iter().map(|text| text.map(Cow::Borrowed)).collect();
        let literal = of_array(&Array::Texts(texts)).unwrap();
        assert_eq!(literal, "E'{\"NULL\",NULL,\"a\\\\\",b}''\\\\\\\\\",\"\"}'");
        let floats = Array::Floats(vec![Some(f64::NEG_INFINITY), Some(f64::NAN), Some(1e300)]);
        assert_eq!(of_array(&floats).unwrap(), "E'{-Infinity,NaN,1e300}'");
        assert_eq!(of_array(&Array::Ints(vec![])).unwrap(), "E'{}'");
        assert!(of_array(&Array::Texts(vec![Some("\0".into())])).is_err());
    }
}
