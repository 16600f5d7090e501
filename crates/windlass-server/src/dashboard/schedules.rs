//! Schedules: their state, next times and last job.

use super::format::{absolute, full_time, short_id, std_duration, time};
use super::layout::{LiveUpdates, PageContext, Section, empty_state, job_type_path, path_segment};
use crate::App;
use crate::auth::Viewer;
use crate::problem::ApiResult;
use crate::routes::schedules::visible_schedules;
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
) -> ApiResult<Html<String>> {
    let all = visible_schedules(&app, &caller).await?;
    let page = PageContext::load(&app, caller).await?;
    let content = html! {
        h1 { "Schedules" }
        @if all.is_empty() {
            (empty_state("No schedules. Add `schedule = { cron = … }` to a job type in windlass.toml."))
        }
        @else { (table(&page, &all)) }
    };
    Ok(page.render(Section::Schedules, "Schedules", LiveUpdates::AllJobs, content))
}

fn table(page: &PageContext, all: &[Scheduled]) -> Markup {
    let may = page.may(Permission::Administer);
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th { "Job type" } th { "State" }
                        @if may { th { span.visually-hidden { "Action" } } }
                        th { "Next" } th { "Cron" } th { "Last" } th { "Deadline" }
                    }
                }
                tbody {
                    @for Scheduled { row, schedule, next_times } in all {
                        tr #(format!("schedule-{}", row.job_type)) {
                            td { a href=(job_type_path(&row.job_type)) { (row.job_type) } }
                            td {
                                @if row.paused {
                                    span.badge.paused { "Paused" }
                                } @else { span.badge.completed { "Active" } }
                                @if let Some(error) = &row.error { div.bad { (error) } }
                            }
                            @if may {
                                td { @if page.may_on(Permission::Administer, &row.job_type) {
                                    @let (verb, label) = if row.paused { ("resume", "Resume") } else { ("pause", "Pause") };
                                    form method="post" action=(format!("/schedules/{}/{verb}", path_segment(&row.job_type))) {
                                        button { (label) }
                                    }
                                } }
                            }
                            td { @if row.paused { "–" } @else { (times(next_times, schedule, page.now)) } }
                            td { code { (schedule.cron) } div.faint { (schedule.timezone.name()) } }
                            td {
                                @match (row.last_at, row.last_job) {
                                    (Some(at), Some(job)) => { (time(at, page.now)) " " a href=(format!("/jobs/{job}")) { (short_id(job)) } },
                                    (Some(at), None) => (time(at, page.now)),
                                    _ => "never",
                                }
                            }
                            td { (schedule.deadline.map_or_else(|| "–".to_owned(), std_duration)) }
                        }
                    }
                }
            }
        }
    }
}

/// The next times in the time zone of the schedule, with UTC in the tooltip.
pub(super) fn times(times: &[DateTime<Utc>], schedule: &Schedule, now: DateTime<Utc>) -> Markup {
    html! {
        @for at in times {
            div.when title=(absolute(*at)) {
                (at.with_timezone(&schedule.timezone).format("%a %d %b %H:%M %Z")) " " span.faint { (time(*at, now)) }
            }
        }
        @if times.is_empty() { "never" }
        @else { span.visually-hidden { "Next: " (full_time(times[0], now)) } }
    }
}
