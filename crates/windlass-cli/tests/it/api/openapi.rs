//! The OpenAPI document describes every route, and its references resolve.

use crate::api::server_fixture::{TestServer, auth};
use crate::common::{CliSandbox, Data, raise, text};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

#[tokio::test]
async fn the_document_is_complete_and_consistent() {
    let data = Data::sqlite().with_accounts(1).await;
    let server = TestServer::start(CliSandbox::on(&data, &(raise(10) + &auth()))).await;
    let document = server.get("/api/v1/openapi.json").await.is(200);
    assert_eq!(document["openapi"], "3.1.0");
    let mut names = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        assert!(names.insert(text(&operation["operationId"])), "{method} {path}");
        let responses = operation["responses"].as_object().unwrap();
        for (status, response) in responses {
            let problem = &response["content"]["application/problem+json"]["schema"]["$ref"];
            let is_error = status.as_str() >= "400";
            assert_eq!(!problem.is_null(), is_error, "{method} {path} {status}");
        }
        let open = ["/healthz", "/readyz", "/api/v1/openapi.json"].contains(&path.as_str());
        assert_eq!(operation["security"].is_null(), open, "{method} {path}");
        assert_eq!(responses.contains_key("401"), !open, "{method} {path}");
        assert!(responses.contains_key("404") || !path.contains('{'), "{method} {path}");
    }
    let mut references = Vec::new();
    collect(&document, &mut references);
    for reference in references {
        let pointer = reference.trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn declared_params_are_in_the_document() {
    let data = Data::sqlite().with_accounts(1).await;
    let params = "params.by = { type = \"integer\", default = 7, description = \"what to add\" }\n\
                  params.factor = { type = \"number\" }\n\
                  params.note = { type = \"text\", required = false }\n\
                  params.day = { type = \"date\" }\nparams.loud = { type = \"boolean\", default = false }\n\
                  params.more = { type = \"json\", required = false }\n";
    let other = raise(10).replace("jobs.RAISE", "jobs.OTHER");
    let server = TestServer::start(CliSandbox::on(&data, &(raise(10) + params + &other))).await;
    let document = server.get("/api/v1/openapi.json").await.is(200);
    let schemas = &document["components"]["schemas"];
    let expected = json!({
        "by": {"type": "integer", "description": "what to add", "default": 7},
        "factor": {"type": "number"},
        "note": {"type": "string"},
        "day": {"type": "string", "format": "date"},
        "loud": {"type": "boolean", "default": false},
        "more": {"type": ["object", "array", "string", "number", "boolean", "null"]},
    });
    assert_eq!(schemas["Params.RAISE"]["properties"], expected);
    let mut required = schemas["Params.RAISE"]["required"].clone();
    required.as_array_mut().unwrap().sort_by_key(text);
    assert_eq!(required, json!(["day", "factor"]));
    assert_eq!(schemas["Params.RAISE"]["additionalProperties"], false);
    assert!(schemas["Params.OTHER"].is_null(), "a job type without declared params has no schema");
    // The API refuses what the schema excludes.
    for (params, field) in [
        (json!({"factor": 1, "day": "2025-01-31", "by": 1.5}), "params.by"),
        (json!({"factor": "much", "day": "2025-01-31"}), "params.factor"),
        (json!({"factor": 1, "day": "tomorrow"}), "params.day"),
        (json!({"factor": 1}), "params.day"),
        (json!({"factor": 1, "day": "2025-01-31", "x": 1}), "params.x"),
    ] {
        let request = json!({"jobType": "RAISE", "params": params});
        let problem = server.post("/api/v1/jobs", &request).await.is(400);
        assert_eq!(problem["field"], field, "{problem:#}");
    }
    let valid = json!({"factor": 1.5, "day": "2025-01-31", "loud": true, "more": [1]});
    server.post("/api/v1/jobs", &json!({"jobType": "RAISE", "params": valid})).await.is(201);
}

/// Every operation of the document.
pub(crate) fn operations(document: &Json) -> Vec<(String, String, &Json)> {
    let paths = document["paths"].as_object().unwrap();
    let mut all = Vec::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            all.push((path.clone(), method.to_uppercase(), operation));
        }
    }
    all
}

fn collect(value: &Json, references: &mut Vec<String>) {
    match value {
        Json::Object(fields) => {
            references.extend(fields.get("$ref").map(text));
            fields.values().for_each(|field| collect(field, references));
        }
        Json::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}
