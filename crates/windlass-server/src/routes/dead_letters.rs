//! Dead letters: list, show, redrive, ignore.

use super::page::{limit, page};
use crate::App;
use crate::auth::{Operator, Viewer};
use crate::extract::{Body, Id, Query};
use crate::problem::{Answer, Failure};
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
pub(crate) struct LettersQuery {
    /// Only of this job.
    job: Option<Uuid>,
    /// Only of this job type.
    #[param(pattern = "^[^\\x00]*$")]
    job_type: Option<String>,
    /// Only those whose error contains this.
    #[param(pattern = "^[^\\x00]*$")]
    error: Option<String>,
    /// Only those whose error has this fingerprint, which leaves its values out: `row … is bad`.
    #[param(pattern = "^[^\\x00]*$")]
    fingerprint: Option<String>,
    /// Only in this status.
    status: Option<DeadLetterStatus>,
    /// Only those at least this old: `2h`, `7d`.
    #[param(pattern = "^[0-9]{1,6}[smhdw]$")]
    older_than: Option<String>,
    /// Only letters older than this one: the cursor.
    before: Option<Uuid>,
    /// At most so many; 50 when absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// List dead letters, newest first
#[utoipa::path(get, path = "/dead-letters", tag = "dead letters", params(LettersQuery), responses(
    (status = 200, description = "The letters that the caller sees", body = [DeadLetter],
        headers(("link" = String, description = "The next page, where there is more"))),
    (status = 400, description = "The query is wrong"),
))]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    OriginalUri(uri): OriginalUri,
    Query(query): Query<LettersQuery>,
) -> Answer<Response> {
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
    let letters = app.letters(&caller, filter).await?;
    Ok(page(letters, limit, &uri, "before", |letter| letter.id))
}

/// Show a dead letter
#[utoipa::path(get, path = "/dead-letters/{id}", tag = "dead letters",
    params(("id" = Uuid, Path)), responses(
    (status = 200, description = "The letter", body = DeadLetter),
    (status = 400, description = "The id is none"),
    (status = 404, description = "There is no such letter"),
))]
pub(crate) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Id(id): Id,
) -> Answer<Json<DeadLetter>> {
    Ok(Json(app.letter(&caller, id).await?))
}

/// Which letters to act on. Everything given must hold, and something must be given.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Which {
    /// Exactly these.
    #[serde(default)]
    ids: Vec<Uuid>,
    /// Of this job.
    job: Option<Uuid>,
    /// Of this job type.
    job_type: Option<String>,
    /// Whose error contains this.
    error: Option<String>,
    /// Whose error has this fingerprint.
    fingerprint: Option<String>,
    /// At least this old: `2h`, `7d`.
    #[schema(pattern = "^[0-9]{1,6}[smhdw]$")]
    older_than: Option<String>,
    /// Every letter there is.
    #[serde(default)]
    all: bool,
}

impl Which {
    fn filter(self) -> Answer<DeadLetterFilter> {
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
        let unsaid = filter.ids.is_empty()
            && filter.job.is_none()
            && filter.job_type.is_none()
            && filter.error.is_none()
            && filter.fingerprint.is_none()
            && filter.older_than.is_none();
        if unsaid && !self.all {
            let detail =
                "say which: ids, job, jobType, error, fingerprint, olderThan, or \"all\": true";
            return Err(Problem::new(Code::Request, detail).into());
        }
        Ok(filter)
    }
}

/// Work the items of dead letters again
///
/// New jobs on exactly those keys, under the identity of the original.
#[utoipa::path(post, path = "/dead-letters/redrive", tag = "dead letters", request_body = Which,
    responses(
    (status = 200, description = "The jobs that redrive them", body = [Redriven]),
    (status = 400, description = "The request is wrong"),
    (status = 403, description = "Your claims do not cover those of a job"),
))]
pub(crate) async fn redrive(
    Operator(caller): Operator,
    State(app): State<Arc<App>>,
    Body(which): Body<Which>,
) -> Answer<Json<Vec<Redriven>>> {
    let filter = app.own(&caller, which.filter()?);
    Ok(Json(app.engine.redrive_for(&filter, Some(&caller.again(app.engine.config()))).await?))
}

/// How many letters are ignored from now on.
#[derive(Serialize, ToSchema)]
pub(crate) struct Ignored {
    ignored: u64,
}

/// Decide that dead letters need nothing
#[utoipa::path(post, path = "/dead-letters/ignore", tag = "dead letters", request_body = Which,
    responses(
    (status = 200, description = "How many", body = Ignored),
    (status = 400, description = "The request is wrong"),
))]
pub(crate) async fn ignore(
    Operator(caller): Operator,
    State(app): State<Arc<App>>,
    Body(which): Body<Which>,
) -> Answer<Json<Ignored>> {
    let filter = app.own(&caller, which.filter()?);
    let ignored = app.engine.store().mark_letters(&filter, DeadLetterStatus::Ignored).await?;
    Ok(Json(Ignored { ignored }))
}

/// No letter is older than this, and a database can still count so far back.
const OLDEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// An age: a number of seconds, minutes, hours, days or weeks.
fn age(text: String) -> Answer<Duration> {
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
        Some(Duration::from_secs(number * seconds).min(OLDEST))
    };
    parsed().ok_or_else(|| {
        let detail = format!("is `{text}`; 30s, 15m, 2h, 7d or 4w would be right");
        Failure::from(Problem::field(Code::Request, "olderThan", detail))
    })
}
