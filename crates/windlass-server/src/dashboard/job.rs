//! One job: how it stands, what it did when, what failed, who asked for what, and the buttons.

use super::chart::{Node, graph};
use super::dead_letters::{groups, search};
use super::format::{class, end, full_time, mark, number, phase, rate, rate_text, short, word};
use super::job_chunks::{self, Asked};
use super::jobs::took;
use super::layout::{Frame, Here, Live, facts, figure, job_type_page, nothing};
use super::overview::{bar, left, progress, promise};
use crate::App;
use crate::auth::Viewer;
use crate::extract::{Id, Query};
use crate::problem::Answer;
use axum::extract::State;
use axum::response::Html;
use chrono::{DateTime, Utc};
use futures::try_join;
use maud::{Markup, html};
use std::sync::Arc;
use windlass_core::config::Permission;
use windlass_core::{Job, JobStatus, StepKind};
use windlass_engine::{Audit, Verdict};
use windlass_html::throughput::{stretch, throughput};
use windlass_store::{AS_DEFINED, Control, DeadLetterFilter, JobSnapshot, LinkedJob, UNLIMITED};

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Id(id): Id,
    Query(asked): Query<Asked>,
) -> Answer<Html<String>> {
    let job = app.listed(&caller, id).await?;
    let store = app.engine.store();
    let filter = DeadLetterFilter { job: Some(id), limit: 100, ..DeadLetterFilter::default() };
    let stretch = stretch(&job, Utc::now());
    let (snapshot, deadline, mut linked, errors, paces, chunks) = try_join!(
        async { Ok(store.snapshot(id).await?) },
        async { Ok(app.engine.deadline(id).await?) },
        async { Ok(app.engine.graph(id).await?) },
        app.letter_groups(&caller, filter),
        async { Ok(store.throughput_buckets(id, stretch).await?) },
        job_chunks::look(&app, &job, &asked),
    )?;
    linked.retain(|linked| caller.sees(&linked.job_type, &linked.submitted_by));
    let frame = Frame::of(&app, caller).await?;
    let key = snapshot.as_ref().map(|snapshot| snapshot.definition.source.key.as_slice());
    let chunks = job_chunks::section(&job, &asked, &chunks, key.unwrap_or_default());
    let now = frame.now;
    let title = format!("{} {}", job.job_type, short(job.id));
    let content = html! {
        h1 { (job.job_type) " " span.faint { (short(job.id)) } }
        section.state {
            p.line { (mark(job.status)) @if let Some(now_at) = job.phase { " " (phase(now_at)) } }
            (bar(&job))
            p.line {
                span.big { (progress(&job)) }
                @if let Some(ends) = end(&job, now) { " · about " (left(ends, now)) }
                @if let Some(deadline) = deadline.filter(|_| !job.status.is_final()) {
                    " · " (promise(deadline, end(&job, now), now))
                }
            }
            @if let Some(error) = &job.error { p.problem { (error) } }
            (buttons(&frame, &job, snapshot.as_ref().is_some_and(|snapshot| snapshot.root != snapshot.id)))
        }
        (figures(&job, now))
        section aria-labelledby="errors" {
            h2 #errors { "Errors" }
            @if errors.is_empty() && job.items.dead > 0 {
                (nothing("Some items have died in chunks still at work; they are listed when those end."))
            } @else if errors.is_empty() { (nothing("No item has died.")) }
            @else {
                (groups(&errors, now, Some(id), ""))
                p {
                    a href=(search(&[("job", &id.to_string()), ("status", "")])) {
                        "The dead letters of this job"
                    }
                }
            }
        }
        section aria-labelledby="pace" {
            h2 #pace { "Throughput" }
            (throughput(&paces, stretch))
        }
        (chunks)
        @if linked.len() > 1 { (dependencies(&linked)) }
        (about(&job, snapshot.as_ref(), now))
        (output(&job, snapshot.as_ref()))
    };
    Ok(frame.page(Here::Jobs, &title, Live::Job(id), content))
}

/// What can be done to the job as it stands, for those who may.
fn buttons(frame: &Frame, job: &Job, is_redrive: bool) -> Markup {
    let may = frame.may_on(Permission::Operate, &job.job_type);
    let goes = |to: JobStatus| may && job.status.check_edge(to).is_ok();
    // Of the jobs that failed, only a redrive is cancelled: that releases its letters.
    let may_cancel = goes(JobStatus::Cancelled) && (job.status != JobStatus::Failed || is_redrive);
    let to = |verb: &str| format!("/jobs/{}/{verb}", job.id);
    html! {
        div.actions {
            @if goes(JobStatus::Paused) { form method="post" action=(to("pause")) { button { "Pause" } } }
            @if may && job.status == JobStatus::Paused {
                form method="post" action=(to("resume")) { button.primary { "Resume" } }
            }
            @if may && job.status == JobStatus::Failed {
                form method="post" action=(to("retry")) { button.primary { "Retry what failed" } }
            }
            @if may_cancel {
                details.confirm {
                    summary { "Cancel…" }
                    form method="post" action=(to("cancel")) {
                        p {
                            "What is committed stays. What waits is never begun, and this cannot be taken back."
                        }
                        button.danger { "Cancel this job" }
                    }
                }
            }
            @if may && !job.status.is_final() {
                (limits(&to("throughput"), frame.control(&job.id.to_string()), "this job"))
            }
            @if job.status.is_final() { a.button href=(to("audit")) { "Prove that nothing was missed" } }
            @if job.has_ended() {
                a.button href=(format!("/api/v1{}", to("report"))) download=(format!("{}.html", job.id)) {
                    "Download the report"
                }
            }
        }
    }
}

/// The form that limits a job or a job type while it runs.
pub(super) fn limits(action: &str, control: Option<&Control>, what: &str) -> Markup {
    let said = |limit: Option<i64>| match limit {
        None | Some(AS_DEFINED) => "as defined".to_owned(),
        Some(UNLIMITED) => "unlimited".to_owned(),
        Some(limit) => number(limit),
    };
    let (concurrency, rate) = (control.and_then(|c| c.concurrency), control.and_then(|c| c.rate));
    html! {
        details.confirm {
            summary { "Throughput…" }
            form.stack method="post" action=(action) {
                input type="hidden" name="back" value=(action.trim_end_matches("/throughput"));
                p {
                    "Over all machines, for " (what) ": a number, " code { "unlimited" }
                    ", or " code { "default" } " for what is defined. Empty leaves it."
                }
                label {
                    "Chunks at once (now " (said(concurrency)) ") "
                    input name="concurrency" inputmode="numeric" autocomplete="off";
                }
                label {
                    "Items a second (now " (said(rate)) ") "
                    input name="rate" inputmode="numeric" autocomplete="off";
                }
                button.primary { "Set" }
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
            (figure("dead letters", &number(items.dead), if items.dead > 0 { "failed" } else { "" }, Some(&letters)))
            (figure("write conflicts", &number(items.conflicts), "", None))
            (figure("items a second", &rate_text(rate(job, now)), "", None))
            (figure("at work for", &took(job, now), "", None))
        }
    }
}

fn dependencies(linked: &[LinkedJob]) -> Markup {
    let place = |id| linked.iter().position(|other| other.id == id);
    let node = |job: &LinkedJob| Node {
        name: job.job_type.clone(),
        detail: format!("{} {}", word(job.status), short(job.id)),
        colour: class(job.status.as_str()),
        to: format!("/jobs/{}", job.id),
        after: job.after.iter().filter_map(|parent| place(*parent)).collect(),
    };
    let nodes: Vec<Node> = linked.iter().map(node).collect();
    html! {
        section aria-labelledby="dependencies" {
            h2 #dependencies { "Comes after, comes before" }
            (graph(&nodes, "The jobs that this one comes after, and those that come after it"))
        }
    }
}

fn about(job: &Job, snapshot: Option<&JobSnapshot>, now: DateTime<Utc>) -> Markup {
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
        ("Job type", html! { a href=(job_type_page(&job.job_type)) { (job.job_type) } }),
        ("Submitted by", html! { (job.submitted_by) }),
        ("Submitted", when(Some(job.created_at))),
        ("Began", when(job.started_at)),
        ("Ended", when(job.finished_at)),
        ("Priority", html! { (job.priority) }),
    ];
    if let Some(claims) = claims {
        known.insert(3, ("Claims, which filter its records", html! { code { (claims) } }));
    }
    if let Some(root) = root {
        known.push((
            "Redrives letters of",
            html! { a href=(format!("/jobs/{root}")) { (short(root)) } },
        ));
    }
    html! {
        section aria-labelledby="about" {
            h2 #about { "Who asked for what" }
            (facts(&known))
            details {
                summary { "The request" }
                pre { (request) }
                @if !job.omitted.is_empty() {
                    p { "Left out:" @for (name, size) in &job.omitted { " " code { (name) } " (" (size) ")" } }
                }
            }
        }
    }
}

/// Where the rows that the job made can be fetched.
fn output(job: &Job, snapshot: Option<&JobSnapshot>) -> Markup {
    let Some(definition) = snapshot.map(|snapshot| &snapshot.definition) else { return html! {} };
    let rows = definition.reduces()
        || matches!(
            definition.step.kind,
            StepKind::Handler(_) | StepKind::Command(_) | StepKind::Http(_)
        );
    let mut places = Vec::new();
    if let StepKind::Export(export) = &definition.step.kind {
        places.push(("Parts", html! { code { (export.to) } }));
    }
    if let Some(report) = &definition.report {
        places.push(("Report", html! { code { (report.to) } }));
    }
    if let Some(load) = &definition.load {
        places.push(("Loads", html! { code { (load.table) } " on " code { (load.connection) } }));
    }
    if rows {
        let to = format!("/api/v1/jobs/{}/output", job.id);
        places.push(("Rows", html! { a href=(to) download=(format!("{}.jsonl", job.id)) { "Download as JSON lines" } }));
    }
    html! {
        @if !places.is_empty() {
            section aria-labelledby="output" { h2 #output { "Output" } (facts(&places)) }
        }
    }
}

/// The proof of a job, made when somebody asks for it, since it reads every chunk.
pub(super) async fn audit(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Id(id): Id,
) -> Answer<Html<String>> {
    let job = app.listed(&caller, id).await?;
    let Audit { verdict, segments, chunks, planned, counts, drift, findings, not_judged, .. } =
        app.engine.audit(id).await?;
    let drift = drift.map_or_else(
        || "not known".to_owned(),
        |drift| {
            format!(
                "{} appeared, {} disappeared",
                number(drift.appeared),
                number(drift.disappeared)
            )
        },
    );
    let frame = Frame::of(&app, caller).await?;
    let content = html! {
        h1 { "Audit of " a href=(format!("/jobs/{id}")) { (job.job_type) " " (short(id)) } }
        @match verdict {
            Verdict::Proven => p.proven { span.mark.completed { "Proven" } " Nothing was missed, and nothing was done twice." }
            Verdict::NotProven => p.proven { span.mark.failed { "Not proven" } " Something contradicts it:" }
            Verdict::CannotBeJudged => p.proven { span.mark.paused { "Cannot be judged" } " Not everything could be checked:" }
        }
        @if verdict != Verdict::Proven {
            ul { @for reason in findings.iter().chain(&not_judged) { li { (reason) } } }
        }
        section { (facts(&[
            ("Segments", html! { (number(segments as i64)) }),
            ("Chunks, one after another without gap or overlap", html! { (number(chunks)) }),
            ("Items planned", html! { (number(planned)) }),
            ("Rows read by the committing transactions", html! { (number(counts.read)) }),
            ("Processed, skipped, dead", html! { (number(counts.processed)) ", " (number(counts.skipped)) ", " (number(counts.dead)) }),
            ("Rows of the source since planning", html! { (drift) }),
        ])) }
    };
    Ok(frame.page(Here::Jobs, "Audit", Live::Still, content))
}
