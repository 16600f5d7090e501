//! Converts arrays of PostgreSQL between the server's text, `{1,NULL}`, and JSON, `[1,null]`.

use serde_json::value::RawValue;
use windlass_core::{Column, Json, Value};

/// How the elements of an array are written in JSON: in the form that a column of their type has.
#[derive(Clone, Copy, PartialEq)]
enum Element {
    Number,
    Bool,
    Bytes,
    Json,
    Text,
}

impl Element {
    /// The elements of a column. `None` if it is not an array.
    fn of(column: &Column) -> Option<(Element, char)> {
        let base = column.sql_type.strip_suffix("[]")?;
        let element = match base {
            "smallint" | "integer" | "bigint" | "real" | "double precision" => Element::Number,
            "boolean" => Element::Bool,
            "bytea" => Element::Bytes,
            "json" | "jsonb" => Element::Json,
            _ => Element::Text,
        };
        Some((element, if base == "box" { ';' } else { ',' }))
    }

    /// The JSON of an element's text.
    #[cfg(feature = "postgres")]
    fn json(self, text: &str) -> Option<String> {
        let value = match self {
            Element::Number => match text {
                "NaN" => Value::Float(f64::NAN),
                "Infinity" => Value::Float(f64::INFINITY),
                "-Infinity" => Value::Float(f64::NEG_INFINITY),
                number => return Some(number.to_owned()),
            },
            Element::Bool => Value::Bool(text == "t"),
            Element::Bytes => Value::Bytes(hex::decode(text.strip_prefix("\\x")?).ok()?),
            Element::Json => Value::Json(Json::from_text(text)?),
            Element::Text => Value::Text(text.to_owned()),
        };
        serde_json::to_string(&value).ok()
    }

    /// The element's text for the server. `None` for NULL.
    fn text(self, raw: &RawValue) -> Option<String> {
        match Value::from_json_text(raw.get()).ok()? {
            Value::Null => None,
            Value::Json(json) => Some(json.text().to_owned()),
            value if self == Element::Json => Some(value.to_json_text()),
            value => value.to_text(),
        }
    }
}

/// The JSON array of an array's text. `None` if the column is not an array, or if JSON has no form for the
/// array: one whose indexes do not begin at 1, and one of JSON documents with several dimensions.
#[cfg(feature = "postgres")]
pub(crate) fn to_json(text: &str, column: &Column) -> Option<Json> {
    let (element, delimiter) = Element::of(column)?;
    let mut json = String::with_capacity(text.len() + 2);
    let mut depth = 0;
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '{' if depth > 0 && element == Element::Json => return None,
            '{' => {
                depth += 1;
                json.push('[');
            }
            '}' => {
                depth -= 1;
                json.push(']');
            }
            _ if depth == 0 => return None,
            _ if next == delimiter => json.push(','),
            '"' => {
                let mut quoted = String::new();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => quoted.push(rest.next()?),
                        other => quoted.push(other),
                    }
                }
                json.push_str(&element.json(&quoted)?);
            }
            first => {
                let mut bare = String::from(first);
                while let Some(more) = rest.next_if(|c| *c != delimiter && *c != '}') {
                    bare.push(more);
                }
                match bare.as_str() {
                    "NULL" => json.push_str("null"),
                    bare => json.push_str(&element.json(bare)?),
                }
            }
        }
    }
    Json::from_text(json)
}

/// The same for an array with any indexes, which a list has no place for.
#[cfg(all(feature = "export", feature = "postgres"))]
pub(crate) fn to_list(text: &str, column: &Column) -> Option<Json> {
    match text.strip_prefix('[').and_then(|text| text.split_once('=')) {
        Some((_, elements)) => to_json(elements, column),
        None => to_json(text, column),
    }
}

/// The text of a JSON array for the server. `None` if the column is not an array or the value not a list.
pub(crate) fn from_json(json: &Json, column: &Column) -> Option<String> {
    let (element, delimiter) = Element::of(column)?;
    let mut text = String::with_capacity(json.text().len() + 2);
    push_list(&mut text, json.text(), element, delimiter)?;
    Some(text)
}

fn push_list(to: &mut String, list: &str, element: Element, delimiter: char) -> Option<()> {
    let elements: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    to.push('{');
    for (n, raw) in elements.into_iter().enumerate() {
        if n > 0 {
            to.push(delimiter);
        }
        if raw.get().starts_with('[') && element != Element::Json {
            push_list(to, raw.get(), element, delimiter)?;
            continue;
        }
        match element.text(raw) {
            None => to.push_str("NULL"),
            Some(text) => to.push_str(&crate::literal::element(&text)),
        }
    }
    to.push('}');
    Some(())
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;
    use windlass_core::ColumnType;

    fn column(sql_type: &str) -> Column {
        let kind = ColumnType::Other;
        Column { name: "c".to_owned(), kind, sql_type: sql_type.to_owned(), nullable: true }
    }

    #[test]
    fn arrays_are_json_arrays_both_ways() {
        for (sql_type, text, json, written) in [
            ("integer[]", "{1,NULL,-3}", "[1,null,-3]", r#"{"1",NULL,"-3"}"#),
            ("integer[]", "{}", "[]", "{}"),
            ("integer[]", "{{1,2},{3,4}}", "[[1,2],[3,4]]", r#"{{"1","2"},{"3","4"}}"#),
            (
                "real[]",
                "{0.1,1e+20,NaN}",
                r#"[0.1,1e+20,{"$float":"NaN"}]"#,
                r#"{"0.1","100000000000000000000","NaN"}"#,
            ),
            ("boolean[]", "{t,f,NULL}", "[true,false,null]", r#"{"true","false",NULL}"#),
            (
                "text[]",
                r#"{a,"b,c","NULL",NULL,"q\"\\","{}",""}"#,
                r#"["a","b,c","NULL",null,"q\"\\","{}",""]"#,
                r#"{"a","b,c","NULL",NULL,"q\"\\","{}",""}"#,
            ),
            ("numeric(9,2)[]", "{1.10,NaN}", r#"["1.10","NaN"]"#, r#"{"1.10","NaN"}"#),
            (
                "bytea[]",
                r#"{"\\x00ff",NULL}"#,
                r#"[{"$bytes":"00ff"},null]"#,
                r#"{"\\x00ff",NULL}"#,
            ),
            (
                "jsonb[]",
                r#"{"{\"a\": 1.10}","[1, 2]","\"s\"","null",NULL}"#,
                r#"[{"a": 1.10},[1, 2],"s",{"$json":null},null]"#,
                r#"{"{\"a\": 1.10}","[1, 2]","\"s\"","null",NULL}"#,
            ),
            ("box[]", "{(1,1),(0,0);(2,2),(1,1)}", r#"["(1,1),(0,0)","(2,2),(1,1)"]"#, ""),
        ] {
            let read = to_json(text, &column(sql_type)).unwrap();
            assert_eq!(read.text(), json, "{sql_type}");
            let back = from_json(&read, &column(sql_type)).unwrap();
            if !written.is_empty() {
                assert_eq!(back, written, "{sql_type}");
            }
        }
        let boxes = Json::from_text(r#"["(1,1),(0,0)","x"]"#).unwrap();
        assert_eq!(from_json(&boxes, &column("box[]")).unwrap(), r#"{"(1,1),(0,0)";"x"}"#);
    }

    #[test]
    fn arrays_without_a_json_form_stay_text() {
        assert!(to_json("[0:1]={1,2}", &column("integer[]")).is_none());
        assert!(to_json(r#"{{"1"},{"2"}}"#, &column("json[]")).is_none());
        assert!(to_json("{1}", &column("text")).is_none());
        assert!(from_json(&Json::from_text("7").unwrap(), &column("integer[]")).is_none());
    }
}
