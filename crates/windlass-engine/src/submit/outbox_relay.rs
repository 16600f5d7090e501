//! The relay: submits what applications put into the outbox of their database.
//!
//! A row carries the id that its job will have. So it is submitted, then removed, and wherever a
//! relay dies in between, the row is submitted again as the same job. A row that is refused stays,
//! says why, and is tried again; it never stands in the way of others.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::execute::worker::Shutdown;
use async_trait::async_trait;
use futures::future::join_all;
use serde_json::{Map, Value as Json};
use std::time::Duration;
use windlass_connectors::{OutboxRow, Relayed, SubmitResult, Submitter, Waiting};
use windlass_core::claims::UNRESTRICTED;
use windlass_core::problem::Code;
use windlass_core::{Claims, Identity, Problem, Request, Value};
use windlass_drivers::ErrorClass;
use windlass_store::StoreError;

/// The longest time between two looks, where nobody says that something has come.
const LONGEST: Duration = Duration::from_secs(1);
/// The submitter's name where the application gives none.
const NAME: &str = "outbox";

/// Keeps the outboxes until shutdown.
pub(crate) async fn run(engine: Engine, shutdown: Shutdown) {
    tokio::select! {
        () = engine.keep_outboxes() => {}
        // What was submitted and not removed is submitted again, as the same job.
        () = shutdown.wait() => {}
    }
}

impl Engine {
    /// Submits what comes into the outboxes of the configuration, for as long as it is polled.
    pub async fn keep_outboxes(&self) {
        join_all(self.outboxes().map(|name| self.keep_outbox(name))).await;
    }

    /// The connections that applications put requests into.
    pub fn outboxes(&self) -> impl Iterator<Item = &str> {
        let connections = self.config().connections.iter();
        connections.filter(|(_, connection)| connection.outbox).map(|(name, _)| name.as_str())
    }

    /// Takes what is due in an outbox, a batch of it.
    pub async fn relay(&self, connection: &str) -> Result<Relayed> {
        Ok(self.connection(connection)?.outbox().relay(self).await?)
    }

    /// What waits in an outbox, oldest first; none where there is no table yet.
    pub async fn waiting(&self, connection: &str, limit: u32) -> Result<Option<Vec<Waiting>>> {
        Ok(self.connection(connection)?.outbox().waiting(limit).await?)
    }

    async fn keep_outbox(&self, name: &str) {
        let mut prepared = false;
        let mut said = None;
        loop {
            let round = async {
                if !prepared {
                    self.connection(name)?.outbox().prepare().await?;
                    prepared = true;
                }
                self.relay(name).await
            };
            let (more, away) = match round.await {
                Ok(relayed) => {
                    if let Ok(availability) = self.availability(name) {
                        availability.succeeded();
                    }
                    (relayed.more, relayed.unavailable)
                }
                Err(error) if self.connection_failed(name, &error) => {
                    self.connection_claimable(name).await;
                    continue;
                }
                Err(error) => (false, Some(error.to_string())),
            };
            if away.is_some() && away != said {
                let why = away.as_deref().unwrap_or_default();
                tracing::warn!(connection = name, why, "the outbox waits; trying again");
            }
            let rests = away.is_some();
            said = away;
            match self.connection(name) {
                _ if more => {}
                // Not woken by what comes meanwhile: it could not be submitted either.
                _ if rests => tokio::time::sleep(LONGEST).await,
                Ok(connection) => connection.outbox().changed(LONGEST).await,
                Err(_) => tokio::time::sleep(LONGEST).await,
            }
        }
    }
}

#[async_trait]
impl Submitter for Engine {
    async fn submit(&self, given: OutboxRow) -> SubmitResult {
        let (id, before) = (given.id, given.error.clone());
        let submitted = match read(given) {
            Ok((request, identity)) => self.submit_as(id, request, identity).await,
            Err(problem) => Err(problem.into()),
        };
        match submitted {
            Ok(submitted) => {
                if submitted.id() != id {
                    let job = submitted.id();
                    tracing::info!(%id, %job, "was submitted before under its idempotency key");
                }
                SubmitResult::Submitted
            }
            Err(error) if is_away(&error) => SubmitResult::Unavailable(error.to_string()),
            Err(error) => {
                let error = error.to_string();
                if before.as_ref() != Some(&error) {
                    tracing::warn!(%id, error, "a request in the outbox is refused; it stays there");
                }
                SubmitResult::Refused(error)
            }
        }
    }
}

/// Whether it is the store that did not take the request, and not for what the request is.
fn is_away(error: &EngineError) -> bool {
    match error {
        EngineError::Store(StoreError::Database(error)) => error.class != ErrorClass::Data,
        _ => false,
    }
}

/// The request of a row, and who makes it.
fn read(given: OutboxRow) -> std::result::Result<(Request, Identity), Problem> {
    let wrong = |field: &str, detail: String| Problem::field(Code::Request, field, detail);
    let mut fields: Map<String, Json> = serde_json::from_str(&given.request)
        .map_err(|error| wrong("request", format!("is no JSON object: {error}")))?;
    let claims = claims(fields.remove("claims").unwrap_or_default())?;
    let name = match fields.remove("submittedBy") {
        None | Some(Json::Null) => NAME.to_owned(),
        Some(Json::String(name)) if !name.is_empty() => name,
        Some(other) => return Err(wrong("submittedBy", format!("is {other}, no name"))),
    };
    if fields.insert("jobType".to_owned(), Json::from(given.job_type)).is_some() {
        return Err(wrong("jobType", "stands in the request too; it is a column".to_owned()));
    }
    let request = serde_json::from_value(Json::Object(fields))
        .map_err(|error| wrong("request", error.to_string()))?;
    Ok((request, Identity { name, claims, ..Identity::default() }))
}

/// Claims as applications write them: a value each, or a list.
fn claims(json: Json) -> std::result::Result<Claims, Problem> {
    let fields = match json {
        Json::Null => return Ok(Claims::default()),
        Json::Object(fields) => fields,
        other => {
            let detail = format!("is {other}, no JSON object");
            return Err(Problem::field(Code::Request, "claims", detail));
        }
    };
    let values = |json| match json {
        Json::Array(values) => values.into_iter().map(Value::from_json).collect(),
        single => vec![Value::from_json(single)],
    };
    let claims: Claims = fields.into_iter().map(|(claim, json)| (claim, values(json))).collect();
    if claims.values().flatten().any(|value| *value == Value::from(UNRESTRICTED)) {
        let detail = "has `*`, which only configuration and operators may say";
        return Err(Problem::field(Code::Request, "claims", detail));
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::JobId;

    fn reading(request: &str) -> std::result::Result<(Request, Identity), String> {
        let (id, job_type) = (JobId::nil(), "J".to_owned());
        let given = OutboxRow { id, job_type, request: request.to_owned(), error: None };
        read(given).map_err(|problem| problem.to_string())
    }

    #[test]
    fn the_submitter_comes_with_the_request() {
        let text = r#"{"priority": 7, "claims": {"county": "Kent", "year": [1, 2]}, "submittedBy": "app"}"#;
        let (request, identity) = reading(text).unwrap();
        assert_eq!((request.job_type.as_str(), request.priority), ("J", Some(7)));
        assert_eq!(identity.name, "app");
        assert_eq!(identity.claims["county"], [Value::from("Kent")]);
        assert_eq!(identity.claims["year"], [Value::from(1), Value::from(2)]);
        let (_, identity) = reading("{}").unwrap();
        assert_eq!((identity.name.as_str(), identity.claims.len()), ("outbox", 0));
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_name() {
        for (request, expected) in [
            ("[]", "request: is no JSON object"),
            (r#"{"colour": 1}"#, "colour"),
            (r#"{"claims": [1]}"#, "claims: is [1]"),
            (r#"{"claims": {"county": ["Kent", "*"]}}"#, "claims: has `*`"),
            (r#"{"submittedBy": 1}"#, "submittedBy: is 1"),
            (r#"{"jobType": "K"}"#, "jobType: stands in the request too"),
        ] {
            let message = reading(request).unwrap_err();
            assert!(message.contains(expected), "{request}: {message}");
        }
    }
}
