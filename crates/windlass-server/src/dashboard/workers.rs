//! The processes that work.

use super::format::{number, time};
use super::layout::{Frame, Here, Live, heads, nothing};
use crate::App;
use crate::auth::Viewer;
use crate::problem::Answer;
use axum::extract::State;
use axum::response::Html;
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use std::sync::Arc;
use windlass_store::WorkerRow;

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> Answer<Html<String>> {
    let workers = app.workers(&caller).await?;
    let frame = Frame::of(&app, caller).await?;
    let content = html! {
        h1 { "Workers" }
        p {
            "The processes that take chunks. One that has been silent for ten seconds has vanished: its chunks go to others."
        }
        (table(&workers, frame.now))
    };
    Ok(frame.page(Here::Workers, "Workers", Live::All, content))
}

pub(super) fn table(workers: &[WorkerRow], now: DateTime<Utc>) -> Markup {
    html! {
        @if workers.is_empty() {
            (nothing("No process works. `windlass serve` or `windlass worker` starts one."))
        } @else {
            div.scroll {
                table {
                    (heads(&["Process", "State", "#Chunks held", "#At once", "Job types", "Began", "Heard of"]))
                    tbody {
                        @for worker in workers {
                            tr #(format!("worker-{}", worker.name)) {
                                td { code { (worker.name) } }
                                td {
                                    @if worker.vanished { span.mark.failed { "Vanished" } }
                                    @else if worker.chunks > 0 { span.mark.processing { "Working" } }
                                    @else { span.mark.completed { "Ready" } }
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
