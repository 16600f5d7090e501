//! What a change of the table means for the index.

use serde_json::{Map, Value as Json};

/// A change of a candidate.
#[derive(Debug, PartialEq)]
pub(crate) struct Change {
    /// The position in the stream, by which a failure is reported.
    pub(crate) sequence: String,
    pub(crate) identifier: String,
    pub(crate) version: u64,
    /// The document to put; `None` to delete it.
    pub(crate) document: Option<Json>,
}

const CANDIDATE: &str = "CANDIDATE";

/// The change that a record of the stream stands for. `None` for other record types.
pub(crate) fn of_record(record: &Json) -> Option<Change> {
    let change = &record["dynamodb"];
    let image = |name: &str| candidate(&change[name]);
    let (candidate, is_deleted) = match image("NewImage") {
        Some(new) => (new, false),
        // It was deleted, or became another type.
        None => (image("OldImage")?, true),
    };
    let version = candidate["version"].as_u64()?;
    Some(Change {
        sequence: change["SequenceNumber"].as_str()?.to_owned(),
        identifier: candidate["identifier"].as_str()?.to_owned(),
        // A deletion comes after the version that was deleted.
        version: version + u64::from(is_deleted),
        document: (!is_deleted).then(|| document(&candidate)),
    })
}

fn candidate(image: &Json) -> Option<Map<String, Json>> {
    let attributes = image.as_object()?.iter();
    let plain: Map<String, Json> =
        attributes.map(|(name, value)| (name.clone(), plain(value))).collect();
    (plain.get("type").and_then(Json::as_str) == Some(CANDIDATE)).then_some(plain)
}

/// What is searched for: the candidate's document, and the columns that it is looked up by.
fn document(candidate: &Map<String, Json>) -> Json {
    let mut document = candidate["document"].as_object().cloned().unwrap_or_default();
    for name in ["identifier", "reportingYear", "institutionId", "status"] {
        if let Some(value) = candidate.get(name) {
            document.insert(name.to_owned(), value.clone());
        }
    }
    document.into()
}

/// A value without DynamoDB's types.
fn plain(value: &Json) -> Json {
    let Some((kind, value)) = value.as_object().and_then(|typed| typed.iter().next()) else {
        return Json::Null;
    };
    match (kind.as_str(), value) {
        ("N", Json::String(number)) => serde_json::from_str(number).unwrap_or(Json::Null),
        ("M", Json::Object(fields)) => {
            fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
        }
        ("L", Json::Array(list)) => list.iter().map(plain).collect(),
        ("NULL", _) => Json::Null,
        (_, value) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn image(kind: &str) -> Json {
        json!({"type": {"S": kind}, "identifier": {"S": "b7"}, "version": {"N": "3"},
               "reportingYear": {"S": "2024"}, "windlass_jobs": {"L": [{"S": "job"}]},
               "document": {"M": {"creators": {"L": [{"S": "Ada"}]}, "points": {"N": "2.5"},
                                  "note": {"NULL": true}, "open": {"BOOL": true}}}})
    }

    fn change(old: Option<Json>, new: Option<Json>) -> Option<Change> {
        let mut record = json!({"SequenceNumber": "11"});
        for (name, image) in [("OldImage", old), ("NewImage", new)] {
            if let Some(image) = image {
                record[name] = image;
            }
        }
        of_record(&json!({"dynamodb": record}))
    }

    #[test]
    fn a_written_candidate_becomes_its_document() {
        let change = change(Some(image(CANDIDATE)), Some(image(CANDIDATE))).unwrap();
        assert_eq!((change.identifier.as_str(), change.version), ("b7", 3));
        let document = json!({"identifier": "b7", "reportingYear": "2024", "creators": ["Ada"],
                              "points": 2.5, "note": null, "open": true});
        assert_eq!(change.document, Some(document));
    }

    #[test]
    fn a_deleted_candidate_and_one_of_another_type_leave_the_index() {
        for new in [None, Some(image("ARCHIVED"))] {
            let change = change(Some(image(CANDIDATE)), new).unwrap();
            assert_eq!((change.version, change.document), (4, None));
        }
    }

    #[test]
    fn other_record_types_are_not_indexed() {
        assert_eq!(change(Some(image("PERIOD")), Some(image("PERIOD"))), None);
        assert_eq!(change(None, Some(image("PERIOD"))), None);
        assert_eq!(change(Some(image("PERIOD")), None), None);
    }
}
