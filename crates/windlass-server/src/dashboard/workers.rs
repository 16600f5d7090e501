//! The worker processes.

use super::format::{number, time};
use super::layout::{LiveUpdates, PageContext, Section, empty_state, table_head};
use crate::App;
use crate::auth::Viewer;
use crate::problem::ApiResult;
use axum::extract::State;
use axum::response::Html;
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use std::sync::Arc;
use windlass_store::WorkerRow;

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> ApiResult<Html<String>> {
    let workers = app.workers(&caller).await?;
    let page = PageContext::load(&app, caller).await?;
    let content = html! {
        h1 { "Workers" }
        p {
            "Processes that lease and process chunks. A worker that sends no heartbeat for ten seconds is lost, and other workers take over its chunks."
        }
        (table(&workers, page.now))
    };
    Ok(page.render(Section::Workers, "Workers", LiveUpdates::AllJobs, content))
}

pub(super) fn table(workers: &[WorkerRow], now: DateTime<Utc>) -> Markup {
    html! {
        @if workers.is_empty() {
            (empty_state("No workers. Start one with `windlass serve` or `windlass worker`."))
        } @else {
            div.scroll {
                table {
                    (table_head(&["Worker", "State", "#Chunks", "#Slots", "Job types", "Started", "Last heartbeat"]))
                    tbody {
                        @for worker in workers {
                            tr #(format!("worker-{}", worker.name)) {
                                td { code { (worker.name) } }
                                td {
                                    @if worker.vanished { span.badge.failed { "Lost" } }
                                    @else if worker.chunks > 0 { span.badge.processing { "Working" } }
                                    @else { span.badge.completed { "Idle" } }
                                }
                                td.number { (number(worker.chunks)) }
                                td.number { (number(worker.slots)) }
                                td { (worker.job_types.as_deref().unwrap_or("–")) }
                                td { (time(worker.started_at, now)) }
                                td { (time(worker.seen_at, now)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
