//! Arrays of results as PostgreSQL writes them, to compare them with keys.

use windlass_core::Value;

/// A value of a result. An array, which is JSON there, becomes PostgreSQL's text, as in a key.
pub(super) fn array_as_text(value: &Value) -> Value {
    let Value::Json(json) = value else { return value.clone() };
    match serde_json::from_str(json.text()) {
        Ok(array @ serde_json::Value::Array(_)) => Value::Text(element_as_text(&array)),
        _ => value.clone(),
    }
}

fn element_as_text(element: &serde_json::Value) -> String {
    use serde_json::Value as Json;
    match element {
        Json::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(element_as_text).collect();
            format!("{{{}}}", elements.join(","))
        }
        Json::Null => "NULL".to_owned(),
        Json::String(text) => {
            let special = text.contains(['{', '}', ',', '"', '\\', ' ']);
            match special || text.is_empty() || text.eq_ignore_ascii_case("null") {
                true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
                false => text.clone(),
            }
        }
        Json::Object(tagged) => element_as_text(tagged.values().next().unwrap()),
        other => other.to_string(),
    }
}
