//! All jobs, newest first, a page at a time.

pub(super) use super::format::took;
use super::format::{mark, number, percent, rate, rate_text, short, time, word};
use super::layout::{Frame, Here, Live, heads, nothing};
use super::overview::bar;
use crate::App;
use crate::auth::Viewer;
use crate::extract::Query;
use crate::problem::Answer;
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

const PAGE: u32 = 50;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked {
    #[serde(default, deserialize_with = "filled")]
    job_type: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    status: Option<JobStatus>,
    before: Option<Uuid>,
}

/// A field of a search form: what is left empty was not asked for.
pub(super) fn filled<'de, D: Deserializer<'de>, T: FromStr<Err: std::fmt::Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let text = Some(text.trim()).filter(|text| !text.is_empty());
    text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
}

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Query(Asked { job_type, status, before }): Query<Asked>,
) -> Answer<Html<String>> {
    let filter = JobFilter {
        job_type: job_type.clone(),
        status,
        before,
        limit: PAGE,
        ..JobFilter::default()
    };
    let jobs = app.jobs(&caller, filter).await?;
    let frame = Frame::of(&app, caller).await?;
    let more = jobs.last().filter(|_| jobs.len() == PAGE as usize).map(|last| {
        let before = last.id.to_string();
        let status = status.map_or("", |status| status.as_str());
        let pairs = [
            ("jobType", job_type.as_deref().unwrap_or("")),
            ("status", status),
            ("before", &before),
        ];
        super::dead_letters::query("/jobs", &pairs)
    });
    let content = html! {
        h1 { "Jobs" }
        form.search method="get" action="/jobs" {
            label { "Job type " (job_type_select(&app, &frame, job_type.as_deref())) }
            label {
                "Status "
                select name="status" {
                    option value="" { "any" }
                    @for known in JobStatus::ALL {
                        option value=(known) selected[status == Some(*known)] { (word(*known)) }
                    }
                }
            }
            button { "Show" }
        }
        @if jobs.is_empty() { (nothing("No such job.")) } @else { (table(&jobs, frame.now)) }
        @if let Some(more) = more { p { a href=(more) rel="next" { "Older jobs" } } }
    };
    Ok(frame.page(Here::Jobs, "Jobs", Live::All, content))
}

/// The job types to choose from.
pub(super) fn job_type_select(app: &App, frame: &Frame, chosen: Option<&str>) -> Markup {
    html! {
        select name="jobType" {
            option value="" { "any" }
            @for name in app.engine.config().jobs.keys().filter(|name| frame.caller.covers(name)) {
                option value=(name) selected[chosen == Some(name.as_str())] { (name) }
            }
        }
    }
}

/// Jobs as rows.
pub(super) fn table(jobs: &[Job], now: DateTime<Utc>) -> Markup {
    html! {
        div.scroll {
            table {
                (heads(&["Job", "Status", "Progress", "#Items", "#Dead", "#Items/s", "Submitted", "DurationBucket", "By"]))
                tbody {
                    @for job in jobs {
                        tr #(format!("row-{}", job.id)) {
                            td {
                                a href=(format!("/jobs/{}", job.id)) { (job.job_type) }
                                " " span.faint { (short(job.id)) }
                            }
                            td { (mark(job.status)) }
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
                            td { (took(job, now)) }
                            td { (job.submitted_by) }
                        }
                    }
                }
            }
        }
    }
}
