//! Alerts: what needs a person, what is over, and who handles it.

use super::dead_letters::url_with_query;
use super::format::time;
use super::jobs::optional_field;
use super::layout::{LiveUpdates, PageContext, Section, empty_state, job_type_path, table_head};
use crate::App;
use crate::auth::Viewer;
use crate::extract::Query;
use crate::problem::ApiResult;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;
use uuid::Uuid;
use windlass_core::Delivery;
use windlass_core::config::Permission;
use windlass_store::{Alert, AlertFilter};

/// Alerts per page.
const PAGE_ALERTS: u32 = 50;

#[derive(Deserialize)]
pub(super) struct AlertsQuery {
    /// `all`, or else the open ones.
    #[serde(default, deserialize_with = "optional_field")]
    show: Option<String>,
    before: Option<Uuid>,
}

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Query(query): Query<AlertsQuery>,
) -> ApiResult<Html<String>> {
    let open = query.show.as_deref() != Some("all");
    let filter =
        AlertFilter { open, before: query.before, limit: PAGE_ALERTS, ..AlertFilter::default() };
    let alerts = app.alerts(&caller, filter).await?;
    let page = PageContext::load(&app, caller).await?;
    let more = alerts.last().filter(|_| alerts.len() == PAGE_ALERTS as usize).map(|last| {
        let before = last.id.to_string();
        url_with_query("/alerts", &[("show", if open { "" } else { "all" }), ("before", &before)])
    });
    let content = html! {
        h1 { "Alerts" }
        p {
            @if open { "Neither acknowledged nor over. " a href="/alerts?show=all" { "Show all alerts" } }
            @else { "All alerts of the last thirty days. " a href="/alerts" { "Show only open alerts" } }
        }
        @if alerts.is_empty() { (empty_state(if open { "No open alerts." } else { "No alerts." })) }
        @else { (table(&page, &alerts)) }
        @if let Some(more) = more { p { a href=(more) rel="next" { "Older alerts" } } }
    };
    Ok(page.render(Section::Alerts, "Alerts", LiveUpdates::AllJobs, content))
}

fn table(page: &PageContext, alerts: &[Alert]) -> Markup {
    html! {
        div.scroll {
            table {
                (table_head(&["Alert", "Job type", "Raised", "State", "Delivery"]))
                tbody {
                    @for alert in alerts {
                        tr #(format!("alert-{}", alert.id)) {
                            td.text { (message(alert)) div.faint { (alert.kind) } }
                            td { a href=(job_type_path(&alert.job_type)) { (alert.job_type) } }
                            td { (time(alert.at, page.now)) }
                            td { (state(page, alert)) }
                            td {
                                (alert.delivery)
                                @if let Some(error) = alert.error.as_ref().filter(|_| alert.delivery != Delivery::Delivered) {
                                    div.bad { (error) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What happened, with a link to the job.
pub(super) fn message(alert: &Alert) -> Markup {
    html! {
        @match alert.job_id {
            Some(id) => a href=(format!("/jobs/{id}")) { (alert.message) },
            None => (alert.message),
        }
    }
}

/// Whether the alert is over or acknowledged, or else a button to acknowledge it.
fn state(page: &PageContext, alert: &Alert) -> Markup {
    html! {
        @if let Some(at) = alert.cleared_at {
            span.badge.completed { "Over" } " " (time(at, page.now))
            @if let Some(reason) = &alert.cleared_reason { div.faint { (reason) } }
        }
        @if let (Some(at), Some(by)) = (alert.acknowledged_at, &alert.acknowledged_by) {
            div { "Acknowledged by " (by) " " span.faint { (time(at, page.now)) } }
        } @else if alert.cleared_at.is_none() {
            (acknowledge(page, alert, "/alerts"))
        }
    }
}

/// The button, for those who may operate the job type.
pub(super) fn acknowledge(page: &PageContext, alert: &Alert, back: &str) -> Markup {
    html! {
        @if page.may_on(Permission::Operate, &alert.job_type) {
            form.inline method="post" action=(format!("/alerts/{}/acknowledge", alert.id)) {
                input type="hidden" name="back" value=(back);
                button.small { "Acknowledge" }
            }
        }
    }
}
