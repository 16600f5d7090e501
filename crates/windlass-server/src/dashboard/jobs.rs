//! All jobs, newest first, paginated.

use super::dead_letters::url_with_query;
use super::format::{
    elapsed, number, percent, rate, rate_text, short_id, status_badge, status_label, time,
};
use super::layout::{LiveUpdates, PageContext, Section, empty_state, table_head};
use super::overview::bar;
use crate::App;
use crate::auth::Viewer;
use crate::extract::Query;
use crate::problem::ApiResult;
use axum::extract::State;
use axum::response::Html;
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde::{Deserialize, Deserializer};
use std::str::FromStr;
use std::sync::Arc;
use uuid::Uuid;
use windlass_core::{Job, JobStatus};
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
    Query(JobsQuery { job_type, status, before }): Query<JobsQuery>,
) -> ApiResult<Html<String>> {
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
    Ok(page.render(Section::Jobs, "Jobs", LiveUpdates::AllJobs, content))
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
