//! Job types: definition, guarantee, controls, history, and a form to run them.

use super::chart::{Bar, BarLabel, bars};
use super::form::FormInput;
use super::format::{TimeStyle, count, elapsed, status_label, time};
use super::job::limits;
use super::jobs::table;
use super::layout::{
    LiveUpdates, PageContext, Section, empty_state, facts, job_type_path, table_head,
};
use super::request_form::form;
use super::schedules::times;
use crate::App;
use crate::auth::{Caller, Viewer};
use crate::extract::PathName;
use crate::problem::ApiResult;
use crate::routes::schedules::visible_schedules;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use std::sync::Arc;
use windlass_core::config::Permission;
use windlass_core::{Job, JobType, StepKind};
use windlass_store::JobFilter;

/// Jobs in the history.
const HISTORY_JOBS: u32 = 30;

pub(super) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> ApiResult<Html<String>> {
    let page = PageContext::load(&app, caller).await?;
    let mut rows = Vec::new();
    let all = app.engine.config().jobs.values();
    for job_type in all.filter(|job_type| page.caller.covers(&job_type.name)) {
        let name = job_type.name.clone();
        let last = JobFilter { job_type: Some(name), limit: 1, ..JobFilter::default() };
        rows.push((job_type, app.jobs(&page.caller, last).await?.pop()));
    }
    let content = html! {
        h1 { "Job types" }
        @if rows.is_empty() { (empty_state("No job types in windlass.toml.")) }
        div.scroll {
            table {
                (table_head(&["Job type", "Description", "Schedule", "Last job"]))
                tbody {
                    @for (job_type, last) in &rows {
                        tr {
                            td {
                                a href=(job_type_path(&job_type.name)) { (job_type.name) }
                                @if page.is_stopped(&job_type.name) { " " span.badge.failed { "Stopped" } }
                            }
                            td.text {
                                (job_type.description)
                                @if job_type.description.is_empty() { (step(job_type)) }
                            }
                            td {
                                @if let Some(schedule) = &job_type.schedule {
                                    code { (schedule.cron) }
                                } @else { "–" }
                            }
                            td {
                                @if let Some(job) = last {
                                    a href=(format!("/jobs/{}", job.id)) { (status_label(job.status)) }
                                    " "
                                    span.faint { (time(job.created_at, page.now)) }
                                } @else { "never run" }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(page.render(Section::JobTypes, "Job types", LiveUpdates::AllJobs, content))
}

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    PathName(name): PathName,
) -> ApiResult<Response> {
    page(&app, caller, &name, &FormInput::default()).await
}

/// The page of a job type, with the input of a form that was refused.
pub(super) async fn page(
    app: &App,
    caller: Caller,
    name: &str,
    input: &FormInput,
) -> ApiResult<Response> {
    app.check_job_type(&caller, name)?;
    let job_type = app.engine.config().job_type(name)?;
    let filter =
        JobFilter { job_type: Some(name.to_owned()), limit: HISTORY_JOBS, ..JobFilter::default() };
    let jobs = app.jobs(&caller, filter).await?;
    let mut scheduled = visible_schedules(app, &caller).await?;
    scheduled.retain(|schedule| schedule.row.job_type == name);
    let page = PageContext::load(app, caller).await?;
    let mut known = definition(job_type);
    if let Some(scheduled) = scheduled.first() {
        known.push((
            "Schedule",
            html! { code { (scheduled.schedule.cron) } " " (scheduled.schedule.timezone.name()) },
        ));
        known.push(("Next times", times(&scheduled.next_times, &scheduled.schedule, page.now)));
    }
    known.push(("Guarantee", html! { (job_type.guarantee()) }));
    let content = html! {
        h1 { (name) }
        @if !job_type.description.is_empty() { p { (job_type.description) } }
        (controls(&page, name, input))
        @if page.may_on(Permission::Submit, name) {
            section aria-labelledby="run" { h2 #run { "Run" } (form(job_type, input)) }
        }
        section aria-labelledby="definition" { h2 #definition { "Definition" } (facts(&known)) }
        section aria-labelledby="history" {
            h2 #history { "History" }
            @if jobs.is_empty() { (empty_state("No jobs yet.")) } @else {
                (history(&jobs, &page))
                (table(&jobs[..jobs.len().min(10)], page.now))
            }
        }
    };
    let live = if input.is_refused() { LiveUpdates::Off } else { LiveUpdates::AllJobs };
    let page = page.render(Section::JobTypes, name, live, content);
    Ok((input.status(), page).into_response())
}

/// The controls of the job type: stop, start, throughput limits.
fn controls(page: &PageContext, name: &str, input: &FormInput) -> Markup {
    let stopped = page.is_stopped(name);
    let suspended = page.control(name).and_then(|control| control.suspended.as_deref());
    let fields = html! {
        input type="hidden" name="jobType" value=(name);
        input type="hidden" name="back" value=(job_type_path(name));
    };
    html! {
        @if stopped { p.problem { "This job type is stopped: none of its work is planned or started." } }
        @if let Some(reason) = suspended { p.problem { "Suspended: " (reason) } }
        @if page.may_on(Permission::Administer, name) {
            div.actions {
                @if stopped {
                    form method="post" action="/start" { (fields) button.primary { "Start job type" } }
                }
                @else {
                    details.confirm {
                        summary { "Stop this job type…" }
                        form method="post" action="/stop" {
                            (fields)
                            p { "None of its work will be planned or started, on any machine. Running chunks stop after their current commit." }
                            button.danger { "Stop job type" }
                        }
                    }
                }
                (limits(&(job_type_path(name) + "/throughput"), page.control(name), "this job type", input))
            }
        }
    }
}

fn definition(job_type: &JobType) -> Vec<(&'static str, Markup)> {
    let source = &job_type.source;
    let reads_from = match (&source.table, source.items) {
        (_, true) => html! { "the items of each request" },
        (Some(table), _) => html! { "table " code { (table) } " on " code { (source.connection) } },
        (None, _) => html! { "a query on " code { (source.connection) } },
    };
    let items = |n: u32| count(i64::from(n), "item", "items");
    let most = items(job_type.commit_items());
    let commits = match job_type.commit_time() {
        Some(time) => format!("committed about every {time:?}"),
        None => format!("committed every {most}"),
    };
    let mut known = vec![
        ("Source", reads_from),
        ("Step", html! { code { (step(job_type)) } }),
        ("Chunk size", html! { (items(job_type.chunk_items())) ", " (commits) }),
    ];
    for (name, of) in [("Filters", &source.filters), ("Claims", &source.claims)] {
        if !of.is_empty() {
            known.push((
                name,
                html! { @for (name, column) in of { code { (name) } " → " code { (column) } " " } },
            ));
        }
    }
    if let Some(reduce) = &job_type.reduce {
        known.push(("Reduce", html! { code { (reduce) } }));
    }
    if let Some(report) = &job_type.report {
        known.push(("Report", html! { code { (report.to) } }));
    }
    if let Some(load) = &job_type.load {
        known.push(("Load", html! { code { (load.table) } " on " code { (load.connection) } }));
    }
    known
}

/// The step in one line. URLs are cut to their origin and commands to their program, because the rest may
/// contain secrets.
fn step(job_type: &JobType) -> String {
    match &job_type.step.kind {
        StepKind::Refresh => "refresh: writes each record back unchanged".to_owned(),
        StepKind::Sql(sql) | StepKind::Map(sql) => {
            sql.split_whitespace().collect::<Vec<_>>().join(" ")
        }
        StepKind::Handler(name) => format!("handler {name}"),
        StepKind::Command(words) => match words.as_slice() {
            [program] => format!("command {program}"),
            [program, ..] => format!("command {program} …"),
            [] => "command".to_owned(),
        },
        StepKind::Http(endpoint) => format!("POST {}", endpoint.origin()),
        StepKind::Export(export) => format!("export as {} to {}", export.format, export.to),
    }
}

fn history(jobs: &[Job], page: &PageContext) -> Markup {
    let column = |job: &Job| {
        let seconds = job
            .started_at
            .map_or(0.0, |at| (job.finished_at.unwrap_or(page.now) - at).as_seconds_f64());
        let status = status_label(job.status).to_lowercase();
        let title = format!("{status}, {}", elapsed(job, page.now));
        let colour = match job.status {
            windlass_core::JobStatus::Failed => "failed",
            windlass_core::JobStatus::Cancelled => "cancelled",
            windlass_core::JobStatus::Completed => "completed",
            _ => "processing",
        };
        Bar {
            title,
            label: BarLabel::Time(job.created_at, TimeStyle::Day),
            parts: vec![(colour, seconds)],
        }
    };
    let columns: Vec<Bar> = jobs.iter().rev().map(column).collect();
    bars(&columns, "seconds", "Duration of the last jobs in seconds, newest on the right")
}
