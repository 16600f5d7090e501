//! The OpenAPI document: the annotations of the routes, completed with what applies to all of them.

use crate::problem::{PROBLEM_JSON, ProblemDetails};
use crate::request_id::X_REQUEST_ID;
use serde_json::{Map, Value as Json, json};
use utoipa::OpenApi as _;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::schema::{AdditionalProperties, Object, Schema};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};
use windlass_core::params::DATE;
use windlass_core::{Config, Param, ParamType};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Windlass",
        description = "Batch jobs over records: every record once, none lost, none overwritten.\n\n\
            Lists are arrays. If there are more entries, the `link` header has the URL of the next page \
            as `rel=\"next\"`. Errors are problem details (RFC 9457)."
    ),
    components(schemas(ProblemDetails))
)]
struct Document;

/// The document without routes.
pub(crate) fn base() -> OpenApi {
    Document::openapi()
}

/// Completes the document: security, common errors, headers and exact schemas.
pub(crate) fn complete(document: &mut OpenApi, with_auth: bool) {
    if let Some(components) = &mut document.components {
        merge_flattened(components);
        close_objects(components);
    }
    if let (true, Some(components)) = (with_auth, &mut document.components) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT");
        components.add_security_scheme("bearer", SecurityScheme::Http(scheme.build()));
    }
    for (path, item) in &mut document.paths.paths {
        let authenticated =
            !matches!(path.as_str(), "/healthz" | "/readyz" | "/api/v1/openapi.json");
        for operation in operations(item) {
            qualify_id(operation);
            if authenticated {
                add_security(operation, with_auth);
            }
            if operation.request_body.is_some() {
                add(operation, "408", "The body did not arrive in time");
                add(operation, "413", "The body is too large");
                add(operation, "415", "The body is not JSON");
            }
            add(operation, "500", "Internal error; see the server log");
            operation.responses.responses.iter_mut().for_each(complete_response);
        }
    }
}

/// Describes the declared params of each job type, as the schema `Params.TYPE`.
pub(crate) fn add_params(document: &mut OpenApi, config: &Config) {
    let Some(components) = &mut document.components else { return };
    for job_type in config.jobs.values().filter(|job_type| !job_type.params.is_empty()) {
        let is_required = |param: &Param| param.required && param.default.is_none();
        let required = job_type.params.iter().filter(|(_, param)| is_required(param));
        let required: Vec<_> =
            required.map(|(name, _)| name).filter(|name| *name != DATE).collect();
        let properties = job_type.params.iter().map(|(name, param)| (name.clone(), schema(param)));
        let schema = json!({
            "type": "object",
            "description": format!("The params of a request for the job type {}", job_type.name),
            "properties": properties.collect::<Map<_, _>>(),
            "required": required,
            "additionalProperties": false,
        });
        // Names of schemas have a limited alphabet.
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let name = job_type.name.replace(|c| !is_allowed(c), "_");
        if let Ok(schema) = serde_json::from_value::<Schema>(schema) {
            components.schemas.insert(format!("Params.{name}"), RefOr::T(schema));
        }
    }
}

fn schema(param: &Param) -> Json {
    let mut schema = match param.kind {
        ParamType::Text => json!({"type": "string"}),
        ParamType::Integer => json!({"type": "integer"}),
        ParamType::Number => json!({"type": "number"}),
        ParamType::Boolean => json!({"type": "boolean"}),
        ParamType::Date => json!({"type": "string", "format": "date"}),
        // A schema without a type cannot be read again.
        ParamType::Json => {
            json!({"type": ["object", "array", "string", "number", "boolean", "null"]})
        }
    };
    if !param.description.is_empty() {
        schema["description"] = param.description.as_str().into();
    }
    if let Some(default) = &param.default {
        schema["default"] = default.clone();
    }
    schema
}

/// Merges the fields of a flattened struct into the object that contains it: the derive writes `allOf`,
/// whose parts cannot each forbid the fields of the other.
fn merge_flattened(components: &mut Components) {
    let mut flattened = Vec::new();
    let mut merged = Vec::new();
    for (name, schema) in &components.schemas {
        let RefOr::T(Schema::AllOf(all_of)) = schema else { continue };
        let mut object = Object::new();
        object.description.clone_from(&all_of.description);
        for item in &all_of.items {
            let part = match item {
                RefOr::T(part) => Some(part),
                RefOr::Ref(reference) => {
                    let target = reference.ref_location.rsplit('/').next().unwrap_or_default();
                    flattened.push(target.to_owned());
                    components.schemas.get(target).and_then(|schema| match schema {
                        RefOr::T(part) => Some(part),
                        RefOr::Ref(_) => None,
                    })
                }
            };
            if let Some(Schema::Object(part)) = part {
                object.properties.extend(part.properties.clone());
                object.required.extend(part.required.clone());
            }
        }
        merged.push((name.clone(), object));
    }
    for (name, object) in merged {
        components.schemas.insert(name, RefOr::T(Schema::Object(object)));
    }
    flattened.iter().for_each(|name| drop(components.schemas.remove(name)));
}

/// The API sends exactly the fields that the document has, so that clients and tests can rely on it.
fn close_objects(components: &mut Components) {
    for schema in components.schemas.values_mut() {
        if let RefOr::T(Schema::Object(object)) = schema
            && !object.properties.is_empty()
        {
            object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post].into_iter().flatten()
}

/// Prefixes the operation id with its tag: handlers of several topics have the same name, and generated
/// clients need unique ids.
fn qualify_id(operation: &mut Operation) {
    let tag = operation.tags.iter().flatten().next().map(|tag| tag.replace(' ', "_"));
    let name = operation.operation_id.take().unwrap_or_default();
    operation.operation_id = Some(format!("{}_{name}", tag.unwrap_or_default()));
}

fn add_security(operation: &mut Operation, with_auth: bool) {
    if with_auth {
        operation.security = Some(vec![SecurityRequirement::new("bearer", [""; 0])]);
        add(operation, "401", "The token is missing or invalid");
    }
    add(operation, "403", "The caller has no permission");
    add(operation, "429", "Too many requests; retry after `retry-after` seconds");
    add(operation, "503", "The store or a database is unavailable");
}

fn add(operation: &mut Operation, status: &str, description: &str) {
    let response = ResponseBuilder::new().description(description).build();
    operation.responses.responses.entry(status.to_owned()).or_insert(RefOr::T(response));
}

/// Adds the request id header to every response, and problem details to every error.
fn complete_response((status, response): (&String, &mut RefOr<Response>)) {
    let RefOr::T(response) = response else { return };
    let id =
        HeaderBuilder::new().description(Some("The id of the request in the server log")).build();
    response.headers.insert(X_REQUEST_ID.to_string(), id);
    if status.starts_with(['4', '5']) {
        let problem = Ref::from_schema_name("Problem");
        let content = ContentBuilder::new().schema(Some(problem)).build();
        response.content.insert(PROBLEM_JSON.to_owned(), content);
    }
}

#[cfg(test)]
mod tests;
