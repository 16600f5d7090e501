//! The overview: what runs, how far it is, whether it will make it, what failed, what to press.

use super::chart::{Bar, bars};
use super::dead_letters::groups;
use super::format::{
    count, end, full_time, mark, number, percent, rate, rate_text, short, span, time, word,
};
use super::jobs::table;
use super::layout::{Frame, Here, Live, figure, nothing};
use super::workers;
use crate::App;
use crate::auth::{Caller, Viewer};
use crate::problem::Answer;
use axum::extract::State;
use axum::response::Html;
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use futures::future::try_join_all;
use futures::try_join;
use maud::{Markup, html};
use std::sync::Arc;
use std::time::Duration;
use windlass_core::JobStatus::{Cancelled, Completed, Failed, Paused, Processing, Queued};
use windlass_core::{DeadLetterStatus, Job, JobStatus, Phase};
use windlass_engine::SCHEDULER;
use windlass_store::{
    Alert, AlertFilter, DeadLetterFilter, DeadLetterGroup, HourlyJobs, JobFilter,
};

/// Jobs of a status that are shown.
const MOST: u32 = 20;
/// Groups of letters that are counted.
const MOST_GROUPS: u32 = 100;
/// How far back the chart goes.
const DAY: Duration = Duration::from_secs(24 * 3600);

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> Answer<Html<String>> {
    let new = DeadLetterFilter {
        status: Some(DeadLetterStatus::New),
        limit: MOST_GROUPS,
        ..DeadLetterFilter::default()
    };
    // All at once, so that a page takes no longer than the slowest of its parts.
    let (open, ended, alerts, letters, hours, working) = try_join!(
        open(&app, &caller),
        ended(&app, &caller),
        app.alerts(&caller, AlertFilter { limit: 5, ..AlertFilter::default() }),
        app.letter_groups(&caller, new),
        app.hours(&caller, DAY),
        app.workers(&caller),
    )?;
    let frame = Frame::of(&app, caller).await?;
    let content = html! {
        h1 { "Overview" }
        (figures(&open, &letters, &working))
        @if let Some(raised) = troubles(&alerts, frame.now) { (raised) }
        section aria-labelledby="running" {
            h2 #running { "Running and waiting" }
            @if open.is_empty() { (nothing("Nothing runs and nothing waits.")) }
            div.cards {
                @for (job, deadline) in &open { (card(job, *deadline, frame.now)) }
            }
        }
        div.columns {
            section aria-labelledby="day" {
                h2 #day { "The last 24 hours" }
                (day(&hours, frame.now))
            }
            section aria-labelledby="dead" {
                h2 #dead { "Dead letters that wait for you" }
                (dead(&letters, frame.now))
            }
        }
        section aria-labelledby="ended" {
            h2 #ended { "Ended last" }
            @if ended.is_empty() { (nothing("No job has ended yet.")) } @else { (table(&ended, frame.now)) }
        }
        section aria-labelledby="workers" {
            h2 #workers { "Workers" }
            (workers::table(&working, frame.now))
        }
    };
    Ok(frame.page(Here::Overview, "Overview", Live::All, content))
}

type Open = (Job, Option<DateTime<Utc>>);

/// The newest jobs of each of these statuses.
async fn of(app: &App, caller: &Caller, statuses: [JobStatus; 3]) -> Answer<Vec<Job>> {
    let of = |status| JobFilter { status: Some(status), limit: MOST, ..JobFilter::default() };
    let found = statuses.map(|status| app.jobs(caller, of(status)));
    Ok(try_join_all(found).await?.concat())
}

/// The jobs that have not ended, each with its deadline where it has one.
async fn open(app: &App, caller: &Caller) -> Answer<Vec<Open>> {
    let jobs = of(app, caller, [Processing, Paused, Queued]).await?;
    let due = jobs.into_iter().map(async |job| {
        let deadline = match job.submitted_by == SCHEDULER {
            true => app.engine.deadline(job.id).await?,
            false => None,
        };
        Answer::Ok((job, deadline))
    });
    try_join_all(due).await
}

/// The jobs that ended last.
async fn ended(app: &App, caller: &Caller) -> Answer<Vec<Job>> {
    let mut jobs = of(app, caller, [Completed, Failed, Cancelled]).await?;
    jobs.sort_by_key(|job| std::cmp::Reverse(job.finished_at));
    jobs.truncate(8);
    Ok(jobs)
}

fn figures(
    open: &[Open],
    letters: &[DeadLetterGroup],
    working: &[windlass_store::WorkerRow],
) -> Markup {
    let jobs = |status| open.iter().filter(|(job, _)| job.status == status).count() as i64;
    let plus = |n: i64| if n >= i64::from(MOST) { format!("{n}+") } else { number(n) };
    let (running, queued) = (jobs(JobStatus::Processing), jobs(JobStatus::Queued));
    let paused = jobs(JobStatus::Paused);
    let dead: i64 = letters.iter().map(|group| group.letters).sum();
    let there = working.iter().filter(|worker| !worker.vanished).count() as i64;
    let tone = |bad: bool, tone| if bad { tone } else { "" };
    html! {
        div.figures {
            (figure("running", &plus(running), tone(running > 0, "processing"), Some("/jobs?status=PROCESSING")))
            (figure("queued", &plus(queued), "", Some("/jobs?status=QUEUED")))
            (figure("paused", &plus(paused), tone(paused > 0, "paused"), Some("/jobs?status=PAUSED")))
            @let name = if dead == 1 { "dead letter" } else { "dead letters" };
            (figure(name, &number(dead), tone(dead > 0, "failed"), Some("/dead-letters")))
            @let name = if there == 1 { "worker" } else { "workers" };
            (figure(name, &number(there), tone(there == 0, "failed"), Some("/workers")))
        }
    }
}

/// What has been raised within a day and is not over.
fn troubles(alerts: &[Alert], now: DateTime<Utc>) -> Option<Markup> {
    let fresh = |alert: &&Alert| alert.cleared_at.is_none() && now - alert.at < TimeDelta::days(1);
    let fresh: Vec<&Alert> = alerts.iter().filter(fresh).collect();
    (!fresh.is_empty()).then(|| {
        html! {
            section.alerts aria-labelledby="alerts" {
                h2 #alerts { "What went wrong" }
                ul {
                    @for alert in fresh {
                        li {
                            @match alert.job_id {
                                Some(id) => a href=(format!("/jobs/{id}")) { (alert.message) },
                                None => (alert.message),
                            }
                            " " span.faint { (time(alert.at, now)) }
                        }
                    }
                }
            }
        }
    })
}

/// A job that has not ended: how far, how fast, until when.
fn card(job: &Job, deadline: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Markup {
    let ends = end(job, now);
    html! {
        article.card #(format!("job-{}", job.id)) {
            header {
                a.title href=(format!("/jobs/{}", job.id)) { (job.job_type) }
                (mark(job.status))
                span.faint { (short(job.id)) }
            }
            (bar(job))
            p.line {
                (progress(job))
                @if let Some(rate) = rate(job, now).filter(|_| job.status == JobStatus::Processing) {
                    " · " (rate_text(Some(rate))) " items/s"
                }
                @if job.items.dead > 0 {
                    " · " a.bad href=(format!("/dead-letters?job={}", job.id)) { (count(job.items.dead, "dead letter", "dead letters")) }
                }
                @if job.chunks.failed > 0 {
                    " · "
                    span.bad { (count(job.chunks.failed, "chunk", "chunks")) " failed" }
                }
            }
            p.line {
                @match (job.status, ends) {
                    (_, Some(ends)) => { "About " (left(ends, now)) },
                    (JobStatus::Queued, _) => { "Waits; submitted " (time(job.created_at, now)) },
                    (JobStatus::Paused, _) => { "Paused: nothing new of it is begun" },
                    _ => { "Time left is not known yet" },
                }
                @if let Some(deadline) = deadline { " · " (promise(deadline, ends, now)) }
            }
            @if let Some(error) = &job.error { p.line.bad { (error) } }
        }
    }
}

/// How long a job will still take, and until when.
pub(super) fn left(ends: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    let format = if ends - now < TimeDelta::hours(20) { "%H:%M UTC" } else { "%a %d %b %H:%M UTC" };
    html! { strong { (span(ends - now)) } " left, until " (ends.format(format)) }
}

/// Whether a job will make it by its deadline.
pub(super) fn promise(
    deadline: DateTime<Utc>,
    ends: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Markup {
    html! {
        @if deadline < now {
            strong.bad { "Late: was due " (full_time(deadline, now)) }
        } @else if ends.is_some_and(|ends| deadline < ends) {
            strong.bad { "At risk: due " (full_time(deadline, now)) }
        } @else {
            span.good { "On time: due " (full_time(deadline, now)) }
        }
    }
}

/// How far a job is; while its items are still being found, of how many is not known.
pub(super) fn progress(job: &Job) -> Markup {
    let known = count(job.items.total, "item", "items");
    html! {
        @match job.phase {
            _ if job.items.total == 0 && job.status != Completed => "No item is loaded yet",
            Some(Phase::Planning) => { (number(job.items.done())) " of " (known) " found so far" },
            _ => { strong { (percent(job)) " %" } " · " (number(job.items.done())) " of " (known) },
        }
    }
}

/// How far a job is, as a bar.
pub(super) fn bar(job: &Job) -> Markup {
    let said = format!("{} of {}", word(job.status), job.job_type);
    let class = super::format::class(job.status.as_str());
    html! {
        progress class=(class) max="100" value=(percent(job)) aria-label=(said) { (percent(job)) " %" }
    }
}

/// Jobs by the hour they were submitted in.
fn day(hours: &[HourlyJobs], now: DateTime<Utc>) -> Markup {
    const HOUR: TimeDelta = TimeDelta::hours(1);
    let this = now.duration_trunc(HOUR).unwrap_or(now);
    let of = |at: DateTime<Utc>, statuses: &[JobStatus]| {
        let found = hours.iter().filter(|hour| hour.at == at && statuses.contains(&hour.status));
        found.map(|hour| hour.jobs).sum::<i64>()
    };
    let column = |back: i32| {
        let at = this - HOUR * back;
        let (completed, failed) = (of(at, &[Completed]), of(at, &[Failed]));
        let (cancelled, open) = (of(at, &[Cancelled]), of(at, &[Queued, Processing, Paused]));
        let title = format!(
            "{} UTC: {completed} completed, {failed} failed, {cancelled} cancelled, {open} open",
            at.format("%H:00")
        );
        let parts = vec![
            ("completed", completed as f64),
            ("failed", failed as f64),
            ("cancelled", cancelled as f64),
            ("processing", open as f64),
        ];
        Bar { title, label: at.format("%H:00").to_string(), parts }
    };
    let columns: Vec<Bar> = (0..24).rev().map(column).collect();
    let all = |statuses: &[JobStatus]| -> i64 {
        hours.iter().filter(|hour| statuses.contains(&hour.status)).map(|hour| hour.jobs).sum()
    };
    if hours.is_empty() {
        return nothing("No job was submitted.");
    }
    let kinds = [
        ("completed", all(&[Completed])),
        ("failed", all(&[Failed])),
        ("cancelled", all(&[Cancelled])),
        ("processing", all(&[Queued, Processing, Paused])),
    ];
    let name = |kind| if kind == "processing" { "not ended" } else { kind };
    let each = kinds.map(|(kind, jobs)| format!("{} {}", number(jobs), name(kind)));
    let submitted = count(all(JobStatus::ALL), "job", "jobs") + " submitted: ";
    html! {
        (bars(&columns, "submitted an hour", &(submitted.clone() + &each.join(", "))))
        p.faint {
            (submitted)
            @for (place, (kind, _)) in kinds.iter().enumerate() {
                @if place > 0 { ", " }
                span class=(format!("cell {kind}")) aria-hidden="true" {} (each[place])
            }
            ". Hours are UTC."
        }
    }
}

fn dead(letters: &[DeadLetterGroup], now: DateTime<Utc>) -> Markup {
    html! {
        @if letters.is_empty() { (nothing("None. Every item was processed or skipped.")) }
        @else {
            (groups(&letters[..letters.len().min(5)], now, None, "new"))
            p { a href="/dead-letters" { "All dead letters" } }
        }
    }
}
