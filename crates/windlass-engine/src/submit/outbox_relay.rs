//! The outbox relay: submits the requests that applications insert into the outbox table of their
//! database.
//!
//! A row holds the id of its future job. The relay submits the job, then deletes the row. If it
//! crashes in between, the row is submitted again under the same id, which is the same job. A row
//! whose request is rejected stays with its error and is retried; it does not block other rows.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::shutdown::Shutdown;
use async_trait::async_trait;
use futures::future::join_all;
use serde_json::{Map, Value as Json};
use std::time::Duration;
use windlass_connectors::{OutboxRow, OutboxType, Relayed, SubmitResult, Submitter, Waiting};
use windlass_core::claims::UNRESTRICTED;
use windlass_core::problem::Code;
use windlass_core::{Claims, Identity, JobType, Problem, Request, Value};
use windlass_drivers::ErrorClass;
use windlass_store::StoreError;

/// How often an outbox is read when no change notification arrives.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The submitter's name if the application gives none.
const DEFAULT_SUBMITTER: &str = "outbox";

/// Relays all outboxes until shutdown.
pub(crate) async fn run(engine: Engine, shutdown: Shutdown) {
    tokio::select! {
        () = engine.run_outbox_relay() => {}
        // Safe to cancel: a row that was submitted but not deleted is submitted again as the same job.
        () = shutdown.wait() => {}
    }
}

impl Engine {
    /// Relays all outboxes in the configuration. Runs until the future is dropped.
    pub async fn run_outbox_relay(&self) {
        join_all(self.outboxes().map(|name| self.relay_outbox(name))).await;
    }

    /// The connections that have an outbox.
    pub fn outboxes(&self) -> impl Iterator<Item = &str> {
        let connections = self.config().connections.iter();
        connections.filter(|(_, connection)| connection.outbox).map(|(name, _)| name.as_str())
    }

    /// Creates the outbox of a connection, where it is missing, and records what it checks of the requests of
    /// each job type before the application commits.
    ///
    /// # Errors
    /// The connection is unknown, or its database fails or refuses.
    pub async fn prepare_outbox(&self, connection: &str) -> Result<()> {
        let types: Vec<OutboxType> = self.config().jobs.values().map(OutboxType::of).collect();
        Ok(self.connection(connection)?.outbox().prepare(&types).await?)
    }

    /// Submits one batch of due rows of an outbox.
    ///
    /// # Errors
    /// The connection is unknown, or its database fails. A refused request is not an error.
    pub async fn relay(&self, connection: &str) -> Result<Relayed> {
        Ok(self.connection(connection)?.outbox().relay(self).await?)
    }

    /// The waiting rows of an outbox, oldest first; `None` if the table does not exist yet.
    ///
    /// # Errors
    /// The connection is unknown, or its database fails.
    pub async fn waiting(&self, connection: &str, limit: u32) -> Result<Option<Vec<Waiting>>> {
        Ok(self.connection(connection)?.outbox().waiting(limit).await?)
    }

    async fn relay_outbox(&self, name: &str) {
        let mut prepared = false;
        let mut logged = None;
        loop {
            let round = async {
                if !prepared {
                    self.prepare_outbox(name).await?;
                    prepared = true;
                }
                self.relay(name).await
            };
            let (more, blocked) = match round.await {
                Ok(relayed) => {
                    if let Ok(availability) = self.availability(name) {
                        availability.succeeded();
                    }
                    (relayed.more, relayed.unavailable)
                }
                Err(error) if self.connection_failed(name, &error) => {
                    self.connection_leasable(name).await;
                    continue;
                }
                Err(error) => (false, Some(error.to_string())),
            };
            if blocked.is_some() && blocked != logged {
                let error = blocked.as_deref().unwrap_or_default();
                tracing::warn!(connection = name, error, "cannot relay the outbox; retrying");
            }
            let is_blocked = blocked.is_some();
            logged = blocked;
            match self.connection(name) {
                _ if more => {}
                // New rows do not wake it: they could not be submitted either.
                _ if is_blocked => tokio::time::sleep(POLL_INTERVAL).await,
                Ok(connection) => connection.outbox().changed(POLL_INTERVAL).await,
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }
}

#[async_trait]
impl Submitter for Engine {
    async fn submit(&self, row: OutboxRow) -> SubmitResult {
        let (id, last_error) = (row.id, row.error.clone());
        let job_type = self.config().jobs.get(&row.job_type);
        let submitted = match parse_row(row, job_type) {
            Ok((request, identity)) if has_no_items(&request, job_type) => {
                let (job_type, submitted_by) = (&request.job_type, &identity.name);
                let params = serde_json::to_string(&request.params).unwrap_or_default();
                tracing::warn!(%id, job_type, submitted_by, params,
                    "outbox request has no items; it is deleted and there is no job");
                return SubmitResult::Submitted;
            }
            Ok((request, identity)) => self.submit_as(id, request, identity).await,
            Err(problem) => Err(problem.into()),
        };
        match submitted {
            Ok(submitted) => {
                if submitted.id() != id {
                    let job = submitted.id();
                    tracing::info!(%id, %job, "outbox row has the idempotency key of an existing job");
                }
                SubmitResult::Submitted
            }
            Err(error) if is_store_unavailable(&error) => {
                SubmitResult::Unavailable(error.to_string())
            }
            Err(error) => {
                let error = error.to_string();
                if last_error.as_ref() != Some(&error) {
                    tracing::warn!(%id, error,
                        "outbox request rejected; it stays in the outbox and is retried");
                }
                SubmitResult::Refused(error)
            }
        }
    }
}

/// Whether the store failed for a reason other than the content of the request.
fn is_store_unavailable(error: &EngineError) -> bool {
    match error {
        EngineError::Store(StoreError::Database(error)) => error.class != ErrorClass::Data,
        _ => false,
    }
}

/// Whether there is nothing to do. Without items, a job type that reads a table would process all of it.
fn has_no_items(request: &Request, job_type: Option<&JobType>) -> bool {
    match &request.items {
        Some(items) => items.is_empty(),
        None => job_type.is_some_and(|job_type| job_type.source.items),
    }
}

/// The request of a row and its submitter.
fn parse_row(
    row: OutboxRow,
    job_type: Option<&JobType>,
) -> std::result::Result<(Request, Identity), Problem> {
    let wrong = |field: &str, detail: String| Problem::field(Code::Request, field, detail);
    let mut fields: Map<String, Json> = serde_json::from_str(&row.request)
        .map_err(|error| wrong("request", format!("must be a JSON object: {error}")))?;
    let claims = claims(fields.remove("claims").unwrap_or_default())?;
    let name = match fields.remove("submittedBy") {
        None | Some(Json::Null) => DEFAULT_SUBMITTER.to_owned(),
        Some(Json::String(name)) if !name.is_empty() => name,
        Some(other) => {
            return Err(wrong("submittedBy", format!("must be a non-empty text, got {other}")));
        }
    };
    if fields.insert("jobType".to_owned(), Json::from(row.job_type)).is_some() {
        return Err(wrong(
            "jobType",
            "must not be in the request; it has its own column".to_owned(),
        ));
    }
    let request = Request::from_payload(fields, job_type)?;
    Ok((request, Identity { name, claims, ..Identity::default() }))
}

/// Claims as applications write them: one value or a list of values per claim.
fn claims(json: Json) -> std::result::Result<Claims, Problem> {
    let fields = match json {
        Json::Null => return Ok(Claims::default()),
        Json::Object(fields) => fields,
        other => {
            let detail = format!("must be a JSON object, got {other}");
            return Err(Problem::field(Code::Request, "claims", detail));
        }
    };
    let values = |json| match json {
        Json::Array(values) => values.into_iter().map(Value::from_json).collect(),
        single => vec![Value::from_json(single)],
    };
    let claims: Claims = fields.into_iter().map(|(claim, json)| (claim, values(json))).collect();
    if claims.values().flatten().any(|value| *value == Value::from(UNRESTRICTED)) {
        let detail = "must not contain `*`; only the configuration and operators may use it";
        return Err(Problem::field(Code::Request, "claims", detail));
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::JobId;

    fn parse(request: &str) -> std::result::Result<(Request, Identity), String> {
        let (id, job_type) = (JobId::nil(), "J".to_owned());
        let row = OutboxRow { id, job_type, request: request.to_owned(), error: None };
        parse_row(row, None).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_request_may_name_its_submitter_and_claims() {
        let text = r#"{"priority": 7, "claims": {"county": "Kent", "year": [1, 2]}, "submittedBy": "app"}"#;
        let (request, identity) = parse(text).unwrap();
        assert_eq!((request.job_type.as_str(), request.priority), ("J", Some(7)));
        assert_eq!(identity.name, "app");
        assert_eq!(identity.claims["county"], [Value::from("Kent")]);
        assert_eq!(identity.claims["year"], [Value::from(1), Value::from(2)]);
        let (_, identity) = parse("{}").unwrap();
        assert_eq!((identity.name.as_str(), identity.claims.len()), ("outbox", 0));
    }

    #[test]
    fn an_invalid_request_is_rejected_with_the_name_of_the_field() {
        for (request, expected) in [
            ("[]", "request: must be a JSON object"),
            (r#"{"colour": 1}"#, "colour"),
            (r#"{"claims": [1]}"#, "claims: must be a JSON object, got [1]"),
            (r#"{"claims": {"county": ["Kent", "*"]}}"#, "claims: must not contain `*`"),
            (r#"{"submittedBy": 1}"#, "submittedBy: must be a non-empty text, got 1"),
            (r#"{"jobType": "K"}"#, "jobType: must not be in the request"),
        ] {
            let message = parse(request).unwrap_err();
            assert!(message.contains(expected), "{request}: {message}");
        }
    }
}
