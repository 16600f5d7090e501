//! Schedules: what is submitted by itself, when it was and when it will be.

use super::format::{absolute, full_time, length, short, time};
use super::layout::{Frame, Here, Live, job_type_page, nothing, segment};
use crate::App;
use crate::auth::Viewer;
use crate::problem::Answer;
use crate::routes::schedules::schedules;
use axum::extract::State;
use axum::response::Html;
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use std::sync::Arc;
use windlass_core::Schedule;
use windlass_core::config::Permission;
use windlass_engine::Scheduled;

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> Answer<Html<String>> {
    let all = schedules(&app, &caller).await?;
    let frame = Frame::of(&app, caller).await?;
    let content = html! {
        h1 { "Schedules" }
        @if all.is_empty() {
            (nothing("No job type has a schedule: `schedule = { cron = … }` in windlass.toml gives one."))
        }
        @else { (table(&frame, &all)) }
    };
    Ok(frame.page(Here::Schedules, "Schedules", Live::All, content))
}

fn table(frame: &Frame, all: &[Scheduled]) -> Markup {
    let may = frame.may(Permission::Administer);
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th { "Job type" } th { "State" }
                        @if may { th { span.unseen { "Action" } } }
                        th { "Next" } th { "When" } th { "Last" } th { "Deadline" }
                    }
                }
                tbody {
                    @for Scheduled { row, schedule, next_times } in all {
                        tr #(format!("schedule-{}", row.job_type)) {
                            td { a href=(job_type_page(&row.job_type)) { (row.job_type) } }
                            td {
                                @if row.paused {
                                    span.mark.paused { "Paused" }
                                } @else { span.mark.completed { "On" } }
                                @if let Some(error) = &row.error { div.bad { (error) } }
                            }
                            @if may {
                                td { @if frame.may_on(Permission::Administer, &row.job_type) {
                                    @let (verb, word) = if row.paused { ("resume", "Resume") } else { ("pause", "Pause") };
                                    form method="post" action=(format!("/schedules/{}/{verb}", segment(&row.job_type))) {
                                        button { (word) }
                                    }
                                } }
                            }
                            td { @if row.paused { "–" } @else { (times(next_times, schedule, frame.now)) } }
                            td { code { (schedule.cron) } div.faint { (schedule.timezone.name()) } }
                            td {
                                @match (row.last_at, row.last_job) {
                                    (Some(at), Some(job)) => { (time(at, frame.now)) " " a href=(format!("/jobs/{job}")) { (short(job)) } },
                                    (Some(at), None) => (time(at, frame.now)),
                                    _ => "never",
                                }
                            }
                            td { (schedule.deadline.map_or_else(|| "–".to_owned(), length)) }
                        }
                    }
                }
            }
        }
    }
}

/// The next times, in the zone of the schedule; the others on a closer look.
pub(super) fn times(times: &[DateTime<Utc>], schedule: &Schedule, now: DateTime<Utc>) -> Markup {
    html! {
        @for at in times {
            div.when title=(absolute(*at)) {
                (at.with_timezone(&schedule.timezone).format("%a %d %b %H:%M %Z")) " " span.faint { (time(*at, now)) }
            }
        }
        @if times.is_empty() { "never" }
        @else { span.unseen { "The first is " (full_time(times[0], now)) } }
    }
}
