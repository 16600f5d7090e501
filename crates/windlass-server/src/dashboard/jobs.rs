//! All jobs, newest first, paginated.

use super::dead_letters::url_with_query;
use super::form::{Field, FieldKind, FormInput};
use super::format::{
    elapsed, number, percent, rate, rate_text, short_id, status_badge, status_label, time,
};
use super::layout::{LiveUpdates, PageContext, Section, empty_state, table_head};
use super::overview::bar;
use crate::App;
use crate::auth::{Caller, Viewer};
use crate::extract::Query;
use crate::problem::{ApiError, ApiResult};
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde::{Deserialize, Deserializer};
use std::str::FromStr;
use std::sync::Arc;
use uuid::Uuid;
use windlass_core::problem::Code;
use windlass_core::{Job, JobId, JobStatus, Problem};
use windlass_engine::EngineError;
use windlass_store::JobFilter;

/// Jobs per page.
const PAGE_JOBS: u32 = 50;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobsQuery {
    #[serde(default, deserialize_with = "optional_field")]
    job_type: Option<String>,
    #[serde(default, deserialize_with = "optional_field")]
    status: Option<JobStatus>,
    /// A job's id, its beginning, or its last eight characters.
    #[serde(default, deserialize_with = "optional_field")]
    id: Option<String>,
    before: Option<Uuid>,
}

/// Parses a field of a filter form. An empty field is `None`.
pub(super) fn optional_field<'de, D: Deserializer<'de>, T: FromStr<Err: std::fmt::Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let text = Some(text.trim()).filter(|text| !text.is_empty());
    text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
}

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Query(JobsQuery { job_type, status, id, before }): Query<JobsQuery>,
) -> ApiResult<Response> {
    let mut input = FormInput::default();
    if let Some(text) = id {
        match find(&app, &caller, &text).await {
            Ok(id) => return Ok(Redirect::to(&format!("/jobs/{id}")).into_response()),
            Err(error) => {
                input = FormInput::refused(SEARCH, vec![("id".to_owned(), text)], error)?;
            }
        }
    }
    let filter = JobFilter {
        job_type: job_type.clone(),
        status,
        before,
        limit: PAGE_JOBS,
        ..JobFilter::default()
    };
    let jobs = app.jobs(&caller, filter).await?;
    let page = PageContext::load(&app, caller).await?;
    let more = jobs.last().filter(|_| jobs.len() == PAGE_JOBS as usize).map(|last| {
        let before = last.id.to_string();
        let status = status.map_or("", |status| status.as_str());
        let pairs = [
            ("jobType", job_type.as_deref().unwrap_or("")),
            ("status", status),
            ("before", &before),
        ];
        url_with_query("/jobs", &pairs)
    });
    let content = html! {
        h1 { "Jobs" }
        form.search method="get" action="/jobs" {
            (input.of(SEARCH).field(&Field::new("id", "Id", html! { "or its beginning or end" }, FieldKind::Text)))
            button { "Find" }
        }
        form.search method="get" action="/jobs" {
            label { "Job type " (job_type_select(&app, &page, job_type.as_deref())) }
            label {
                "Status "
                select name="status" {
                    option value="" { "any" }
                    @for known in JobStatus::ALL {
                        option value=(known) selected[status == Some(*known)] { (status_label(*known)) }
                    }
                }
            }
            button { "Filter" }
        }
        @if jobs.is_empty() { (empty_state("No matching jobs.")) } @else { (table(&jobs, page.now)) }
        @if let Some(more) = more { p { a href=(more) rel="next" { "Older jobs" } } }
    };
    let live = if input.is_refused() { LiveUpdates::Off } else { LiveUpdates::AllJobs };
    Ok((input.status(), page.render(Section::Jobs, "Jobs", live, content)).into_response())
}

/// The name of the form that finds a job.
const SEARCH: &str = "search";

/// The visible job with this id. Jobs of others are not found, and their ids are not listed.
async fn find(app: &App, caller: &Caller, text: &str) -> ApiResult<JobId> {
    let unknown = || {
        let detail = format!("no job has an id that begins or ends with `{text}`");
        ApiError::from(Problem::field(Code::NotFound, "id", detail))
    };
    let id = match app.engine.find_job(text).await {
        Ok(id) => id,
        Err(EngineError::Problem(problem)) if caller.sees_all() => {
            return Err(Problem { field: Some("id".to_owned()), ..problem }.into());
        }
        Err(EngineError::Problem(_)) => return Err(unknown()),
        Err(error) => return Err(error.into()),
    };
    app.job_summary(caller, id).await.map_err(|_| unknown())?;
    Ok(id)
}

/// A select element with the visible job types.
pub(super) fn job_type_select(app: &App, page: &PageContext, selected: Option<&str>) -> Markup {
    html! {
        select name="jobType" {
            option value="" { "any" }
            @for name in app.engine.config().jobs.keys().filter(|name| page.caller.covers(name)) {
                option value=(name) selected[selected == Some(name.as_str())] { (name) }
            }
        }
    }
}

/// A table of jobs.
pub(super) fn table(jobs: &[Job], now: DateTime<Utc>) -> Markup {
    html! {
        div.scroll {
            table {
                (table_head(&["Job", "Status", "Progress", "#Items", "#Dead letters", "#Items/s", "Submitted", "Duration", "Submitted by"]))
                tbody {
                    @for job in jobs {
                        tr #(format!("row-{}", job.id)) {
                            td {
                                a href=(format!("/jobs/{}", job.id)) { (job.job_type) }
                                " " span.faint { (short_id(job.id)) }
                            }
                            td { (status_badge(job.status)) }
                            td.progress { (bar(job)) " " (percent(job)) " %" }
                            td.number { (number(job.items.done())) }
                            td.number {
                                @if job.items.dead > 0 {
                                    a.bad href=(format!("/dead-letters?status=&job={}", job.id)) {
                                        (number(job.items.dead))
                                    }
                                }
                                @else { "0" }
                            }
                            td.number { (rate_text(rate(job, now))) }
                            td { (time(job.created_at, now)) }
                            td.nowrap { (elapsed(job, now)) }
                            td { (job.submitted_by) }
                        }
                    }
                }
            }
        }
    }
}
