//! Dead letters: list, show, redrive, ignore.

use super::page::{limit, page};
use crate::App;
use crate::auth::{Operator, Viewer};
use crate::extract::{JsonBody, PathId, Query};
use crate::problem::{ApiError, ApiResult};
use axum::Json;
use axum::extract::{OriginalUri, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;
use windlass_core::problem::Code;
use windlass_core::{DeadLetterStatus, Problem};
use windlass_engine::Redriven;
use windlass_store::{DeadLetter, DeadLetterFilter};

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeadLettersQuery {
    /// Only dead letters of this job.
    job: Option<Uuid>,
    /// Only dead letters of this job type.
    #[param(pattern = "^[^\\x00]*$")]
    job_type: Option<String>,
    /// Only dead letters whose error contains this text.
    #[param(pattern = "^[^\\x00]*$")]
    error: Option<String>,
    /// Only dead letters whose error has this fingerprint: the error without its values, as in `row … is bad`.
    #[param(pattern = "^[^\\x00]*$")]
    fingerprint: Option<String>,
    /// Only entries with this status.
    status: Option<DeadLetterStatus>,
    /// Only dead letters at least this old: `2h`, `7d`.
    #[param(pattern = "^[0-9]{1,6}[smhdw]$")]
    older_than: Option<String>,
    /// Only dead letters older than this one: the pagination cursor.
    before: Option<Uuid>,
    /// The maximum number of entries; 50 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// List dead letters, newest first
#[utoipa::path(get, path = "/dead-letters", tag = "dead letters", params(DeadLettersQuery), responses(
    (status = 200, description = "The visible dead letters", body = [DeadLetter],
        headers(("link" = String, description = "The next page, if there are more entries"))),
    (status = 400, description = "The query is invalid"),
))]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    OriginalUri(uri): OriginalUri,
    Query(query): Query<DeadLettersQuery>,
) -> ApiResult<Response> {
    let limit = limit(query.limit, 50)?;
    let filter = DeadLetterFilter {
        ids: Vec::new(),
        job: query.job,
        job_type: query.job_type,
        error: query.error,
        fingerprint: query.fingerprint,
        status: query.status,
        older_than: query.older_than.map(age).transpose()?,
        before: query.before,
        limit,
        ..DeadLetterFilter::default()
    };
    let letters = app.dead_letters(&caller, filter).await?;
    Ok(page(letters, limit, &uri, "before", |letter| letter.id))
}

/// Show a dead letter
#[utoipa::path(get, path = "/dead-letters/{id}", tag = "dead letters",
    params(("id" = Uuid, Path)), responses(
    (status = 200, description = "The dead letter", body = DeadLetter),
    (status = 400, description = "The id is not a UUID"),
    (status = 404, description = "No such dead letter"),
))]
pub(crate) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> ApiResult<Json<DeadLetter>> {
    Ok(Json(app.dead_letter(&caller, id).await?))
}

/// The dead letters to act on: those that match all given conditions. At least one is required.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeadLetterSelection {
    /// These dead letters.
    #[serde(default)]
    ids: Vec<Uuid>,
    /// Dead letters of this job.
    job: Option<Uuid>,
    /// Dead letters of this job type.
    job_type: Option<String>,
    /// Dead letters whose error contains this text.
    error: Option<String>,
    /// Dead letters whose error has this fingerprint.
    fingerprint: Option<String>,
    /// Dead letters at least this old: `2h`, `7d`.
    #[schema(pattern = "^[0-9]{1,6}[smhdw]$")]
    older_than: Option<String>,
    /// All dead letters.
    #[serde(default)]
    all: bool,
}

impl DeadLetterSelection {
    fn into_filter(self) -> ApiResult<DeadLetterFilter> {
        let filter = DeadLetterFilter {
            ids: self.ids,
            job: self.job,
            job_type: self.job_type,
            error: self.error,
            fingerprint: self.fingerprint,
            older_than: self.older_than.map(age).transpose()?,
            status: Some(DeadLetterStatus::New),
            ..DeadLetterFilter::default()
        };
        let is_empty = filter.ids.is_empty()
            && filter.job.is_none()
            && filter.job_type.is_none()
            && filter.error.is_none()
            && filter.fingerprint.is_none()
            && filter.older_than.is_none();
        if is_empty && !self.all {
            let detail = "select dead letters by ids, job, jobType, error, fingerprint or olderThan, or set \"all\": true";
            return Err(Problem::new(Code::Request, detail).into());
        }
        Ok(filter)
    }
}

/// Redrive dead letters: process their items again
///
/// Submits new jobs for exactly these keys, under the identity of the original job.
#[utoipa::path(post, path = "/dead-letters/redrive", tag = "dead letters", request_body = DeadLetterSelection,
    responses(
    (status = 200, description = "The jobs that redrive them", body = [Redriven]),
    (status = 400, description = "The request is invalid"),
    (status = 403, description = "Your claims do not cover those of an original job"),
))]
pub(crate) async fn redrive(
    Operator(caller): Operator,
    State(app): State<Arc<App>>,
    JsonBody(selection): JsonBody<DeadLetterSelection>,
) -> ApiResult<Json<Vec<Redriven>>> {
    let filter = app.restrict(&caller, selection.into_filter()?);
    Ok(Json(app.engine.redrive_for(&filter, Some(&caller.for_engine(app.engine.config()))).await?))
}

/// The number of dead letters that are ignored from now on.
#[derive(Serialize, ToSchema)]
pub(crate) struct Ignored {
    ignored: u64,
}

/// Ignore dead letters: mark them as needing no action
#[utoipa::path(post, path = "/dead-letters/ignore", tag = "dead letters", request_body = DeadLetterSelection,
    responses(
    (status = 200, description = "The number of ignored dead letters", body = Ignored),
    (status = 400, description = "The request is invalid"),
))]
pub(crate) async fn ignore(
    Operator(caller): Operator,
    State(app): State<Arc<App>>,
    JsonBody(selection): JsonBody<DeadLetterSelection>,
) -> ApiResult<Json<Ignored>> {
    let filter = app.restrict(&caller, selection.into_filter()?);
    let ignored = app.engine.store().mark_dead_letters(&filter, DeadLetterStatus::Ignored).await?;
    Ok(Json(Ignored { ignored }))
}

/// Larger ages are treated as this one, which every database can subtract from the current time.
const MAX_AGE: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// An age: a number of seconds, minutes, hours, days or weeks.
fn age(text: String) -> ApiResult<Duration> {
    let parsed = || {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 24 * 3600,
            "w" => 7 * 24 * 3600,
            _ => return None,
        };
        let digits = (1..=6).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
        let number: u64 = digits.then(|| number.parse().ok())??;
        Some(Duration::from_secs(number * seconds).min(MAX_AGE))
    };
    parsed().ok_or_else(|| {
        let detail = format!("must be an age such as 30s, 15m, 2h, 7d or 4w, got `{text}`");
        ApiError::from(Problem::field(Code::Request, "olderThan", detail))
    })
}
