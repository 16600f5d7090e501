//! Job types: what each does and promises, how long its jobs took, and a form to run it now.

use super::chart::{Bar, bars};
use super::format::{absolute, number, time, word};
use super::job::limits;
use super::jobs::{table, took};
use super::layout::{Frame, Here, Live, facts, heads, job_type_page, nothing};
use super::run::form;
use super::schedules::times;
use crate::App;
use crate::auth::Viewer;
use crate::extract::Name;
use crate::problem::Answer;
use crate::routes::schedules::schedules;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};
use std::sync::Arc;
use windlass_core::config::Permission;
use windlass_core::{Job, JobType, StepKind};
use windlass_store::JobFilter;

/// Jobs of the history.
const HISTORY: u32 = 30;

pub(super) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> Answer<Html<String>> {
    let frame = Frame::of(&app, caller).await?;
    let mut rows = Vec::new();
    let all = app.engine.config().jobs.values();
    for job_type in all.filter(|job_type| frame.caller.covers(&job_type.name)) {
        let name = job_type.name.clone();
        let last = JobFilter { job_type: Some(name), limit: 1, ..JobFilter::default() };
        rows.push((job_type, app.jobs(&frame.caller, last).await?.pop()));
    }
    let content = html! {
        h1 { "Job types" }
        @if rows.is_empty() { (nothing("windlass.toml defines no job type.")) }
        div.scroll {
            table {
                (heads(&["Job type", "Does", "Schedule", "Last job"]))
                tbody {
                    @for (job_type, last) in &rows {
                        tr {
                            td {
                                a href=(job_type_page(&job_type.name)) { (job_type.name) }
                                @if frame.is_stopped(&job_type.name) { " " span.mark.failed { "Stopped" } }
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
                                    a href=(format!("/jobs/{}", job.id)) { (word(job.status)) }
                                    " "
                                    span.faint { (time(job.created_at, frame.now)) }
                                } @else { "never run" }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(frame.page(Here::JobTypes, "Job types", Live::All, content))
}

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Name(name): Name,
) -> Answer<Html<String>> {
    app.known(&caller, &name)?;
    let job_type = app.engine.config().job_type(&name)?;
    let filter = JobFilter { job_type: Some(name.clone()), limit: HISTORY, ..JobFilter::default() };
    let jobs = app.jobs(&caller, filter).await?;
    let mut scheduled = schedules(&app, &caller).await?;
    scheduled.retain(|schedule| schedule.row.job_type == name);
    let frame = Frame::of(&app, caller).await?;
    let mut known = definition(job_type);
    if let Some(scheduled) = scheduled.first() {
        known.push((
            "Schedule",
            html! { code { (scheduled.schedule.cron) } " " (scheduled.schedule.timezone.name()) },
        ));
        known.push(("Next times", times(&scheduled.next_times, &scheduled.schedule, frame.now)));
    }
    known.push(("Promises", html! { (job_type.guarantee()) }));
    let content = html! {
        h1 { (name) }
        @if !job_type.description.is_empty() { p { (job_type.description) } }
        (switch(&frame, &name))
        @if frame.may_on(Permission::Submit, &name) {
            section aria-labelledby="run" { h2 #run { "Run it now" } (form(job_type)) }
        }
        section aria-labelledby="definition" { h2 #definition { "What it does" } (facts(&known)) }
        section aria-labelledby="history" {
            h2 #history { "How long its jobs took" }
            @if jobs.is_empty() { (nothing("It has never run.")) } @else {
                (history(&jobs, &frame))
                (table(&jobs[..jobs.len().min(10)], frame.now))
            }
        }
    };
    Ok(frame.page(Here::JobTypes, &name, Live::All, content))
}

/// Stopping and limiting the job type alone.
fn switch(frame: &Frame, name: &str) -> Markup {
    let stopped = frame.is_stopped(name);
    let held = frame.control(name).and_then(|control| control.suspended.as_deref());
    let fields = html! {
        input type="hidden" name="jobType" value=(name);
        input type="hidden" name="back" value=(job_type_page(name));
    };
    html! {
        @if stopped { p.problem { "This job type is stopped: nothing new of it is loaded or claimed." } }
        @if let Some(held) = held { p.problem { "Held for a while: " (held) } }
        @if frame.may_on(Permission::Administer, name) {
            div.actions {
                @if stopped {
                    form method="post" action="/start" { (fields) button.primary { "Start it again" } }
                }
                @else {
                    details.confirm {
                        summary { "Stop this job type…" }
                        form method="post" action="/stop" {
                            (fields)
                            p { "Nothing new of it will be loaded or claimed, on any machine." }
                            button.danger { "Stop it" }
                        }
                    }
                }
                (limits(&(job_type_page(name) + "/throughput"), frame.control(name), "this job type"))
            }
        }
    }
}

fn definition(job_type: &JobType) -> Vec<(&'static str, Markup)> {
    let source = &job_type.source;
    let reads = match (&source.table, source.items) {
        (_, true) => html! { "the items of each request" },
        (Some(table), _) => html! { "table " code { (table) } " on " code { (source.connection) } },
        (None, _) => html! { "a query on " code { (source.connection) } },
    };
    let each = |n: u32| number(i64::from(n));
    let mut known = vec![
        ("Reads", reads),
        ("Does", html! { code { (step(job_type)) } }),
        (
            "In chunks of",
            html! { (each(job_type.chunk_items())) ", a commit every " (each(job_type.commit_items())) },
        ),
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
        known.push(("Then", html! { code { (reduce) } }));
    }
    if let Some(report) = &job_type.report {
        known.push(("Reports", html! { code { (report.to) } }));
    }
    if let Some(load) = &job_type.load {
        known.push(("Loads", html! { code { (load.table) } " on " code { (load.connection) } }));
    }
    known
}

/// A step in a line. Of an address only where it leads, and of a command only its program: the rest
/// may hold a secret.
fn step(job_type: &JobType) -> String {
    match &job_type.step.kind {
        StepKind::Refresh => "refresh: each record written back as it is".to_owned(),
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

fn history(jobs: &[Job], frame: &Frame) -> Markup {
    let column = |job: &Job| {
        let seconds = job
            .started_at
            .map_or(0.0, |at| (job.finished_at.unwrap_or(frame.now) - at).as_seconds_f64());
        let title = format!(
            "{}: {}, {}",
            absolute(job.created_at),
            word(job.status).to_lowercase(),
            took(job, frame.now)
        );
        let colour = match job.status {
            windlass_core::JobStatus::Failed => "failed",
            windlass_core::JobStatus::Cancelled => "cancelled",
            windlass_core::JobStatus::Completed => "completed",
            _ => "processing",
        };
        Bar {
            title,
            label: job.created_at.format("%d %b").to_string(),
            parts: vec![(colour, seconds)],
        }
    };
    let columns: Vec<Bar> = jobs.iter().rev().map(column).collect();
    bars(&columns, "s", "Seconds that each of the last jobs took, the newest to the right")
}
