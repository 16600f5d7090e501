//! One job: status, actions, errors, throughput, chunks, dependencies, request and output.

use super::chart::{Node, graph};
use super::dead_letters::{groups, search};
use super::form::{Field, FieldKind, FormInput};
use super::format::{
    class, elapsed, full_time, number, phase_label, plural, projected_end, rate, rate_text,
    short_id, status_badge, status_label,
};
use super::job_chunks::{self, ChunksQuery};
use super::layout::{LiveUpdates, PageContext, Section, empty_state, facts, figure, job_type_path};
use super::overview::{bar, deadline_status, progress, time_left};
use crate::App;
use crate::auth::{Caller, Viewer};
use crate::extract::{PathId, Query};
use crate::problem::ApiResult;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use chrono::{DateTime, Utc};
use futures::try_join;
use maud::{Markup, html};
use std::sync::Arc;
use windlass_core::config::Permission;
use windlass_core::{Job, JobId, JobStatus, StepKind};
use windlass_engine::{Audit, Verdict};
use windlass_html::throughput::{bucket_interval, throughput_chart};
use windlass_store::{AS_DEFINED, Control, DeadLetterFilter, JobSnapshot, LinkedJob, UNLIMITED};

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    Query(query): Query<ChunksQuery>,
) -> ApiResult<Response> {
    page(&app, caller, id, &query, &FormInput::default()).await
}

/// The page of a job, with the input of a form that was refused.
pub(super) async fn page(
    app: &App,
    caller: Caller,
    id: JobId,
    query: &ChunksQuery,
    input: &FormInput,
) -> ApiResult<Response> {
    let job = app.job_summary(&caller, id).await?;
    let store = app.engine.store();
    let filter = DeadLetterFilter { job: Some(id), limit: 100, ..DeadLetterFilter::default() };
    let interval = bucket_interval(&job, Utc::now());
    let (snapshot, deadline, mut linked, errors, throughput, chunks) = try_join!(
        async { Ok(store.snapshot(id).await?) },
        async { Ok(app.engine.deadline(id).await?) },
        async { Ok(app.engine.graph(id).await?) },
        app.dead_letter_groups(&caller, filter),
        async { Ok(store.throughput_buckets(id, interval).await?) },
        job_chunks::load(app, &job, query),
    )?;
    linked.retain(|linked| caller.sees(&linked.job_type, &linked.submitted_by));
    let page = PageContext::load(app, caller).await?;
    let key = snapshot.as_ref().map(|snapshot| snapshot.definition.source.key.as_slice());
    let chunks = job_chunks::section(&job, query, &chunks, key.unwrap_or_default());
    let now = page.now;
    let title = format!("{} {}", job.job_type, short_id(job.id));
    let content = html! {
        h1 { (job.job_type) " " span.faint { (short_id(job.id)) } }
        section.state {
            p.line { (status_badge(job.status)) @if let Some(phase) = job.phase { " " (phase_label(phase)) } }
            (bar(&job))
            p.line {
                span.big { (progress(&job)) }
                @if let Some(ends) = projected_end(&job, now) { " · about " (time_left(ends, now)) }
                @if let Some(deadline) = deadline.filter(|_| !job.status.is_final()) {
                    " · " (deadline_status(deadline, projected_end(&job, now), now))
                }
            }
            @if let Some(error) = &job.error { p.problem { (error) } }
            @else if let Some(waiting) = job.waiting() { p.line { (waiting) } }
            (buttons(&page, &job, snapshot.as_ref().is_some_and(|snapshot| snapshot.root != snapshot.id), input))
        }
        (figures(&job, now))
        section aria-labelledby="errors" {
            h2 #errors { "Errors" }
            @if errors.is_empty() && job.items.dead > 0 {
                (empty_state("The dead letters of running chunks are listed when these chunks end."))
            } @else if errors.is_empty() { (empty_state("No failed items.")) }
            @else {
                (groups(&errors, now, Some(id), ""))
                p {
                    a href=(search(&[("job", &id.to_string()), ("status", "")])) {
                        "All dead letters of this job"
                    }
                }
            }
        }
        section aria-labelledby="pace" {
            h2 #pace { "Throughput" }
            (throughput_chart(&throughput, interval))
        }
        (chunks)
        @if linked.len() > 1 { (dependencies(&linked)) }
        (details(&job, snapshot.as_ref(), now))
        (output(&job, snapshot.as_ref()))
    };
    let live = if input.is_refused() { LiveUpdates::Off } else { LiveUpdates::Job(id) };
    Ok((input.status(), page.render(Section::Jobs, &title, live, content)).into_response())
}

/// The actions that the status of the job and the roles of the caller allow.
fn buttons(page: &PageContext, job: &Job, is_redrive: bool, input: &FormInput) -> Markup {
    let may = page.may_on(Permission::Operate, &job.job_type);
    let can_become = |to: JobStatus| may && job.status.check_edge(to).is_ok();
    // A failed job can be cancelled only if it is a redrive: that releases its dead letters.
    let may_cancel =
        can_become(JobStatus::Cancelled) && (job.status != JobStatus::Failed || is_redrive);
    let to = |verb: &str| format!("/jobs/{}/{verb}", job.id);
    html! {
        div.actions {
            @if can_become(JobStatus::Paused) { form method="post" action=(to("pause")) { button { "Pause" } } }
            @if may && job.status == JobStatus::Paused {
                form method="post" action=(to("resume")) { button.primary { "Resume" } }
            }
            @if may && job.status == JobStatus::Failed {
                form method="post" action=(to("retry")) { button.primary { "Retry failed chunks" } }
            }
            @if may_cancel {
                details.confirm {
                    summary { "Cancel…" }
                    form method="post" action=(to("cancel")) {
                        p {
                            "Committed changes stay. Pending chunks will not run. This cannot be undone."
                        }
                        button.danger { "Cancel job" }
                    }
                }
            }
            @if may && !job.status.is_final() {
                (limits(&to("throughput"), page.control(&job.id.to_string()), "this job", input))
            }
            @if job.status.is_final() { a.button href=(to("audit")) { "Audit" } }
            @if job.has_ended() {
                a.button href=(format!("/api/v1{}", to("report"))) download=(format!("{}.html", job.id)) {
                    "Download report"
                }
            }
        }
    }
}

/// The name of the form for throughput limits.
pub(super) const LIMITS: &str = "throughput";

/// The form for the throughput limits of a job or a job type.
pub(super) fn limits(
    action: &str,
    control: Option<&Control>,
    what: &str,
    input: &FormInput,
) -> Markup {
    let input = input.of(LIMITS);
    let shown = |limit: Option<i64>| match limit {
        None | Some(AS_DEFINED) => "default".to_owned(),
        Some(UNLIMITED) => "unlimited".to_owned(),
        Some(limit) => number(limit),
    };
    let (concurrency, rate) = (control.and_then(|c| c.concurrency), control.and_then(|c| c.rate));
    let now = |limit| html! { "now " (shown(limit)) };
    let fields = [
        Field::new("concurrency", "Concurrent chunks", now(concurrency), FieldKind::Text),
        Field::new("rate", "Items per second", now(rate), FieldKind::Text),
    ];
    html! {
        details.confirm open[input.is_refused()] {
            summary { "Throughput…" }
            form.stack method="post" action=(action) {
                input type="hidden" name="back" value=(action.trim_end_matches("/throughput"));
                p {
                    "Cluster-wide limits for " (what) ": a number, " code { "unlimited" }
                    ", or " code { "default" } " for the limit of the definition. Empty fields do not change."
                }
                (input.other_reason(&fields))
                @for field in &fields { (input.field(field)) }
                button.primary { "Apply" }
            }
        }
    }
}

fn figures(job: &Job, now: DateTime<Utc>) -> Markup {
    let items = &job.items;
    let letters = search(&[("job", &job.id.to_string()), ("status", "")]);
    html! {
        div.figures {
            (figure("processed", &number(items.processed), "", None))
            (figure("skipped", &number(items.skipped), "", None))
            (figure(plural(items.dead, "dead letter", "dead letters"), &number(items.dead), if items.dead > 0 { "failed" } else { "" }, Some(&letters)))
            (figure(plural(items.conflicts, "write conflict", "write conflicts"), &number(items.conflicts), "", None))
            (figure("items/s", &rate_text(rate(job, now)), "", None))
            (figure("duration", &elapsed(job, now), "", None))
        }
    }
}

fn dependencies(linked: &[LinkedJob]) -> Markup {
    let index = |id| linked.iter().position(|other| other.id == id);
    let node = |job: &LinkedJob| Node {
        name: job.job_type.clone(),
        detail: format!("{} {}", status_label(job.status), short_id(job.id)),
        colour: class(job.status.as_str()),
        link: format!("/jobs/{}", job.id),
        after: job.after.iter().filter_map(|parent| index(*parent)).collect(),
    };
    let nodes: Vec<Node> = linked.iter().map(node).collect();
    html! {
        section aria-labelledby="dependencies" {
            h2 #dependencies { "Dependencies" }
            (graph(&nodes, "The jobs that this job depends on, and the jobs that depend on it"))
        }
    }
}

fn details(job: &Job, snapshot: Option<&JobSnapshot>, now: DateTime<Utc>) -> Markup {
    let request = serde_json::to_string_pretty(&job.request).unwrap_or_default();
    let when = |at: Option<DateTime<Utc>>| match at {
        Some(at) => full_time(at, now),
        None => html! { "–" },
    };
    let claims =
        snapshot.map(|snapshot| &snapshot.identity.claims).filter(|claims| !claims.is_empty());
    let claims = claims.map(|claims| serde_json::to_string(claims).unwrap_or_default());
    let root = snapshot.map(|snapshot| snapshot.root).filter(|root| *root != job.id);
    let mut known = vec![
        ("Id", html! { code { (job.id) } }),
        ("Job type", html! { a href=(job_type_path(&job.job_type)) { (job.job_type) } }),
        ("Submitted by", html! { (job.submitted_by) }),
        ("Submitted", when(Some(job.created_at))),
        ("Started", when(job.started_at)),
        ("Finished", when(job.finished_at)),
        ("Priority", html! { (job.priority) }),
    ];
    if let Some(claims) = claims {
        known.insert(3, ("Claims (filter the records)", html! { code { (claims) } }));
    }
    if let Some(root) = root {
        known.push((
            "Redrives dead letters of",
            html! { a href=(format!("/jobs/{root}")) { (short_id(root)) } },
        ));
    }
    html! {
        section aria-labelledby="about" {
            h2 #about { "Details" }
            (facts(&known))
            details {
                summary { "Request" }
                pre { (request) }
                @if !job.omitted.is_empty() {
                    p { "Omitted:" @for (name, size) in &job.omitted { " " code { (name) } " (" (size) ")" } }
                }
            }
        }
    }
}

/// The destinations of the job's output.
fn output(job: &Job, snapshot: Option<&JobSnapshot>) -> Markup {
    let Some(definition) = snapshot.map(|snapshot| &snapshot.definition) else { return html! {} };
    let rows = definition.reduces()
        || matches!(
            definition.step.kind,
            StepKind::Handler(_) | StepKind::Command(_) | StepKind::Http(_)
        );
    let mut outputs = Vec::new();
    if let StepKind::Export(export) = &definition.step.kind {
        outputs.push(("Parts", html! { code { (export.to) } }));
    }
    if let Some(report) = &definition.report {
        outputs.push(("Report", html! { code { (report.to) } }));
    }
    if let Some(load) = &definition.load {
        outputs.push(("Table", html! { code { (load.table) } " on " code { (load.connection) } }));
    }
    if rows {
        let to = format!("/api/v1/jobs/{}/output", job.id);
        outputs.push(("Rows", html! { a href=(to) download=(format!("{}.jsonl", job.id)) { "Download as JSON lines" } }));
    }
    html! {
        @if !outputs.is_empty() {
            section aria-labelledby="output" { h2 #output { "Output" } (facts(&outputs)) }
        }
    }
}

/// The audit of a job. It is a page of its own because it reads every chunk.
pub(super) async fn audit(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> ApiResult<Html<String>> {
    let job = app.job_summary(&caller, id).await?;
    let Audit { verdict, segments, chunks, planned, counts, drift, findings, not_judged, .. } =
        app.engine.audit(id).await?;
    let drift = drift.map_or_else(
        || "unknown".to_owned(),
        |drift| format!("{} added, {} removed", number(drift.appeared), number(drift.disappeared)),
    );
    let page = PageContext::load(&app, caller).await?;
    let content = html! {
        h1 { "Audit of " a href=(format!("/jobs/{id}")) { (job.job_type) " " (short_id(id)) } }
        @match verdict {
            Verdict::Proven => p.proven { span.badge.completed { "Proven" } " No record was missed or processed twice." }
            Verdict::NotProven => p.proven { span.badge.failed { "Not proven" } " These findings contradict it:" }
            _ => p.proven { span.badge.paused { "Cannot be judged" } " These checks were not possible:" }
        }
        @if verdict != Verdict::Proven {
            ul { @for reason in findings.iter().chain(&not_judged) { li { (reason) } } }
        }
        section { (facts(&[
            ("Segments", html! { (number(segments as i64)) }),
            ("Chunks", html! { (number(chunks)) }),
            ("Items planned", html! { (number(planned)) }),
            ("Rows read by committed transactions", html! { (number(counts.read)) }),
            ("Processed, skipped, dead letters", html! { (number(counts.processed)) ", " (number(counts.skipped)) ", " (number(counts.dead)) }),
            ("Rows of the source since planning", html! { (drift) }),
        ])) }
    };
    Ok(page.render(Section::Jobs, "Audit", LiveUpdates::Off, content))
}
