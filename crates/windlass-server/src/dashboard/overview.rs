//! The overview: active jobs with progress and deadlines, alerts, dead letters, workers.

use super::chart::{Bar, BarLabel, bars};
use super::dead_letters::groups;
use super::format::{
    TimeStyle, class, count, duration, full_time, number, percent, plural, projected_end, rate,
    rate_text, short_id, status_badge, time, time_at, time_zone_note,
};
use super::jobs::table;
use super::layout::{LiveUpdates, PageContext, Section, empty_state, figure};
use super::{alerts, workers};
use crate::App;
use crate::auth::{Caller, Viewer};
use crate::problem::ApiResult;
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

/// The maximum number of jobs shown for each status.
const MAX_JOBS: u32 = 20;
/// The maximum number of alerts shown.
const MAX_ALERTS: u32 = 5;
/// The maximum number of error groups that are counted.
const MAX_GROUPS: u32 = 100;
/// The time range of the chart.
const DAY: Duration = Duration::from_secs(24 * 3600);

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> ApiResult<Html<String>> {
    let new = DeadLetterFilter {
        status: Some(DeadLetterStatus::New),
        limit: MAX_GROUPS,
        ..DeadLetterFilter::default()
    };
    // Concurrently, so that the page takes no longer than its slowest query.
    let (active, finished, alerts, letters, hours, working) = try_join!(
        active_jobs(&app, &caller),
        finished_jobs(&app, &caller),
        app.alerts(
            &caller,
            AlertFilter { open: true, limit: MAX_ALERTS, ..AlertFilter::default() }
        ),
        app.dead_letter_groups(&caller, new),
        app.hourly_jobs(&caller, DAY),
        app.workers(&caller),
    )?;
    let page = PageContext::load(&app, caller).await?;
    let content = html! {
        h1 { "Overview" }
        (figures(&active, &letters, &working))
        @if !alerts.is_empty() { (open_alerts(&page, &alerts)) }
        section aria-labelledby="running" {
            h2 #running { "Active jobs" }
            @if active.is_empty() { (empty_state("No active jobs.")) }
            div.cards {
                @for (job, deadline) in &active { (card(job, *deadline, page.now)) }
            }
        }
        div.columns {
            section aria-labelledby="day" {
                h2 #day { "Last 24 hours" }
                (hourly_chart(&hours, page.now))
            }
            section aria-labelledby="dead" {
                h2 #dead { "Open dead letters" }
                (dead_letters(&letters, page.now))
            }
        }
        section aria-labelledby="ended" {
            h2 #ended { "Recently finished jobs" }
            @if finished.is_empty() { (empty_state("No finished jobs yet.")) } @else { (table(&finished, page.now)) }
        }
        section aria-labelledby="workers" {
            h2 #workers { "Workers" }
            (workers::table(&working, page.now))
        }
    };
    Ok(page.render(Section::Overview, "Overview", LiveUpdates::AllJobs, content))
}

/// An unfinished job with its deadline.
type ActiveJob = (Job, Option<DateTime<Utc>>);

/// The newest jobs of each of these statuses.
async fn newest(app: &App, caller: &Caller, statuses: [JobStatus; 3]) -> ApiResult<Vec<Job>> {
    let filter =
        |status| JobFilter { status: Some(status), limit: MAX_JOBS, ..JobFilter::default() };
    let found = statuses.map(|status| app.jobs(caller, filter(status)));
    Ok(try_join_all(found).await?.concat())
}

/// The unfinished jobs with their deadlines.
async fn active_jobs(app: &App, caller: &Caller) -> ApiResult<Vec<ActiveJob>> {
    let jobs = newest(app, caller, [Processing, Paused, Queued]).await?;
    let with_deadlines = jobs.into_iter().map(async |job| {
        let deadline = match job.submitted_by == SCHEDULER {
            true => app.engine.deadline(job.id).await?,
            false => None,
        };
        ApiResult::Ok((job, deadline))
    });
    try_join_all(with_deadlines).await
}

/// The jobs that finished last.
async fn finished_jobs(app: &App, caller: &Caller) -> ApiResult<Vec<Job>> {
    let mut jobs = newest(app, caller, [Completed, Failed, Cancelled]).await?;
    jobs.sort_by_key(|job| std::cmp::Reverse(job.finished_at));
    jobs.truncate(8);
    Ok(jobs)
}

fn figures(
    active: &[ActiveJob],
    letters: &[DeadLetterGroup],
    working: &[windlass_store::WorkerRow],
) -> Markup {
    let jobs = |status| active.iter().filter(|(job, _)| job.status == status).count() as i64;
    let plus = |n: i64| if n >= i64::from(MAX_JOBS) { format!("{n}+") } else { number(n) };
    let (running, queued) = (jobs(JobStatus::Processing), jobs(JobStatus::Queued));
    let paused = jobs(JobStatus::Paused);
    let dead: i64 = letters.iter().map(|group| group.letters).sum();
    let live = working.iter().filter(|worker| !worker.vanished).count() as i64;
    let tone = |bad: bool, tone| if bad { tone } else { "" };
    html! {
        div.figures {
            (figure("running", &plus(running), tone(running > 0, "processing"), Some("/jobs?status=PROCESSING")))
            (figure("queued", &plus(queued), "", Some("/jobs?status=QUEUED")))
            (figure("paused", &plus(paused), tone(paused > 0, "paused"), Some("/jobs?status=PAUSED")))
            (figure(plural(dead, "dead letter", "dead letters"), &number(dead), tone(dead > 0, "failed"), Some("/dead-letters")))
            (figure(plural(live, "worker", "workers"), &number(live), tone(live == 0, "failed"), Some("/workers")))
        }
    }
}

/// The newest alerts that are neither acknowledged nor over.
fn open_alerts(page: &PageContext, alerts: &[Alert]) -> Markup {
    html! {
        section.alerts aria-labelledby="alerts" {
            h2 #alerts { "Alerts" }
            ul {
                @for alert in alerts {
                    li #(format!("alert-{}", alert.id)) {
                        (alerts::message(alert)) " " span.faint { (time(alert.at, page.now)) } " "
                        (alerts::acknowledge(page, alert, "/"))
                    }
                }
            }
            p { a href="/alerts" { "All open alerts" } }
        }
    }
}

/// An unfinished job: progress, rate, projected end.
fn card(job: &Job, deadline: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Markup {
    let ends = projected_end(job, now);
    html! {
        article.card #(format!("job-{}", job.id)) {
            header {
                a.title href=(format!("/jobs/{}", job.id)) { (job.job_type) }
                (status_badge(job.status))
                span.faint { (short_id(job.id)) }
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
                    (_, Some(ends)) => { "About " (time_left(ends, now)) },
                    (JobStatus::Queued, _) => { "Queued; submitted " (time(job.created_at, now)) },
                    (JobStatus::Paused, _) => { "Paused; submitted " (time(job.created_at, now)) },
                    _ => { "Remaining time unknown" },
                }
                @if let Some(deadline) = deadline { " · " (deadline_status(deadline, ends, now)) }
            }
            @if let Some(error) = &job.error { p.line.bad { (error) } }
            @else if let Some(waiting) = job.waiting() { p.line { (waiting) } }
        }
    }
}

/// The remaining time of a job, and its projected end.
pub(super) fn time_left(ends: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    let style =
        if ends - now < TimeDelta::hours(20) { TimeStyle::Minute } else { TimeStyle::DayMinute };
    html! { strong { (duration(ends - now)) } " remaining, until " (time_at(ends, style)) }
}

/// Whether a job will end before its deadline.
pub(super) fn deadline_status(
    deadline: DateTime<Utc>,
    ends: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Markup {
    html! {
        @if deadline < now {
            strong.bad { "Overdue: was due " (full_time(deadline, now)) }
        } @else if ends.is_some_and(|ends| deadline < ends) {
            strong.bad { "At risk: due " (full_time(deadline, now)) }
        } @else {
            span.good { "On time: due " (full_time(deadline, now)) }
        }
    }
}

/// The progress of a job. While segments are planned, the total is not known yet.
pub(super) fn progress(job: &Job) -> Markup {
    let total = count(job.items.total, "item", "items");
    html! {
        @match job.phase {
            _ if job.items.total == 0 && job.status != Completed => "No items planned yet",
            Some(Phase::Planning) => { (number(job.items.done())) " finished; " (total) " planned so far" },
            _ => { strong { (percent(job)) " %" } " · " (number(job.items.done())) " of " (total) },
        }
    }
}

/// A progress bar.
pub(super) fn bar(job: &Job) -> Markup {
    let label = format!("Progress of {}", job.job_type);
    let class = class(job.status.as_str());
    html! {
        progress class=(class) max="100" value=(percent(job)) aria-label=(label) { (percent(job)) " %" }
    }
}

/// Jobs by the hour in which they were submitted.
fn hourly_chart(hours: &[HourlyJobs], now: DateTime<Utc>) -> Markup {
    const HOUR: TimeDelta = TimeDelta::hours(1);
    let current = now.duration_trunc(HOUR).unwrap_or(now);
    let of = |at: DateTime<Utc>, statuses: &[JobStatus]| {
        let found = hours.iter().filter(|hour| hour.at == at && statuses.contains(&hour.status));
        found.map(|hour| hour.jobs).sum::<i64>()
    };
    let column = |back: i32| {
        let at = current - HOUR * back;
        let (completed, failed) = (of(at, &[Completed]), of(at, &[Failed]));
        let (cancelled, unfinished) = (of(at, &[Cancelled]), of(at, &[Queued, Processing, Paused]));
        let title = format!(
            "{completed} completed, {failed} failed, {cancelled} cancelled, {unfinished} unfinished"
        );
        let parts = vec![
            ("completed", completed as f64),
            ("failed", failed as f64),
            ("cancelled", cancelled as f64),
            ("processing", unfinished as f64),
        ];
        Bar { title, label: BarLabel::Time(at, TimeStyle::Minute), parts }
    };
    let columns: Vec<Bar> = (0..24).rev().map(column).collect();
    let all = |statuses: &[JobStatus]| -> i64 {
        hours.iter().filter(|hour| statuses.contains(&hour.status)).map(|hour| hour.jobs).sum()
    };
    if hours.is_empty() {
        return empty_state("No jobs submitted.");
    }
    let kinds = [
        ("completed", all(&[Completed])),
        ("failed", all(&[Failed])),
        ("cancelled", all(&[Cancelled])),
        ("processing", all(&[Queued, Processing, Paused])),
    ];
    let name = |kind| if kind == "processing" { "unfinished" } else { kind };
    let each = kinds.map(|(kind, jobs)| format!("{} {}", number(jobs), name(kind)));
    let submitted = count(all(JobStatus::ALL), "job", "jobs") + " submitted: ";
    html! {
        (bars(&columns, "jobs per hour", &(submitted.clone() + &each.join(", "))))
        p.faint {
            (submitted)
            @for (index, (kind, _)) in kinds.iter().enumerate() {
                @if index > 0 { ", " }
                span class=(format!("cell {kind}")) aria-hidden="true" {} (each[index])
            }
            ". " (time_zone_note())
        }
    }
}

fn dead_letters(letters: &[DeadLetterGroup], now: DateTime<Utc>) -> Markup {
    html! {
        @if letters.is_empty() { (empty_state("No open dead letters.")) }
        @else {
            (groups(&letters[..letters.len().min(5)], now, None, "new"))
            p { a href="/dead-letters" { "All dead letters" } }
        }
    }
}
