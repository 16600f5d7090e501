//! The OpenAPI document: what the routes say of themselves, and what holds for all of them.

use crate::problem::{PROBLEM_JSON, ProblemDetails};
use crate::request_id::X_REQUEST_ID;
use utoipa::OpenApi as _;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::schema::{AdditionalProperties, Object, Schema};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Windlass",
        description = "Batch jobs over records: every record once, none lost, none overwritten.\n\n\
            Lists are arrays; where there is more, the header `link` has the next page as \
            `rel=\"next\"`. Every error is a problem as RFC 9457 has it."
    ),
    components(schemas(ProblemDetails))
)]
struct Document;

/// The document before any route.
pub(crate) fn begin() -> OpenApi {
    Document::openapi()
}

/// Adds to every route what holds for all of them.
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
        let guarded = !matches!(path.as_str(), "/healthz" | "/readyz" | "/api/v1/openapi.json");
        for operation in operations(item) {
            name(operation);
            if guarded {
                guard(operation, with_auth);
            }
            if operation.request_body.is_some() {
                add(operation, "408", "The body was not there in time");
                add(operation, "413", "The body is too long");
                add(operation, "415", "The body is not JSON");
            }
            add(operation, "500", "A mistake of the server; its log says which");
            operation.responses.responses.iter_mut().for_each(finish);
        }
    }
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

/// Functions of several files have the same name; generated clients want one for each.
fn name(operation: &mut Operation) {
    let topic = operation.tags.iter().flatten().next().map(|tag| tag.replace(' ', "_"));
    let name = operation.operation_id.take().unwrap_or_default();
    operation.operation_id = Some(format!("{}_{name}", topic.unwrap_or_default()));
}

fn guard(operation: &mut Operation, with_auth: bool) {
    if with_auth {
        operation.security = Some(vec![SecurityRequirement::new("bearer", [""; 0])]);
        add(operation, "401", "No token, or none that is good");
    }
    add(operation, "403", "The caller may not do that");
    add(operation, "429", "Too many requests; `retry-after` says when to come again");
    add(operation, "503", "The store or a database is away");
}

fn add(operation: &mut Operation, status: &str, description: &str) {
    let response = ResponseBuilder::new().description(description).build();
    operation.responses.responses.entry(status.to_owned()).or_insert(RefOr::T(response));
}

/// Every answer has its request's id; every error is a problem.
fn finish((status, response): (&String, &mut RefOr<Response>)) {
    let RefOr::T(response) = response else { return };
    let id = HeaderBuilder::new().description(Some("The request's name in the log")).build();
    response.headers.insert(X_REQUEST_ID.to_string(), id);
    if status.starts_with(['4', '5']) {
        let problem = Ref::from_schema_name("Problem");
        let content = ContentBuilder::new().schema(Some(problem)).build();
        response.content.insert(PROBLEM_JSON.to_owned(), content);
    }
}

#[cfg(test)]
mod tests;
