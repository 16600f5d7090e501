//! The migration on read: whatever reads a candidate gets its document in the current form.

use serde_json::{Map, Value as Json};

/// A document in the current form. The old form has one creator, the current one a list of creators. On PostgreSQL a
/// trigger does the same on every write.
pub(crate) fn current(mut document: Map<String, Json>) -> Map<String, Json> {
    if let Some(creator) = document.remove("creator") {
        document.entry("creators").or_insert_with(|| Json::Array(vec![creator]));
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn restructured(document: Json) -> Json {
        current(document.as_object().cloned().unwrap()).into()
    }

    #[test]
    fn an_old_document_is_restructured_and_a_current_one_stays() {
        let old = json!({"creator": "Ada", "points": 2.5});
        let new = json!({"creators": ["Ada"], "points": 2.5});
        assert_eq!(restructured(old), new);
        assert_eq!(restructured(new.clone()), new);
    }
}
