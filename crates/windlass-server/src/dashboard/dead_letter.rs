//! One dead letter: the record with the failed field, the error, and the history.

use super::dead_letters::{search, status_cell};
use super::form::FormInput;
use super::format::{full_time, scalar, short_id};
use super::layout::{LiveUpdates, PageContext, Section, facts, table_head};
use crate::App;
use crate::auth::{Caller, Viewer};
use crate::extract::PathId;
use crate::problem::ApiResult;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::Value as Json;
use std::sync::Arc;
use uuid::Uuid;
use windlass_core::DeadLetterStatus;
use windlass_core::config::Permission;
use windlass_store::DeadLetter;

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> ApiResult<Response> {
    page(&app, caller, id, &FormInput::default()).await
}

/// The page of a dead letter, with the reason if its form was refused.
pub(super) async fn page(
    app: &App,
    caller: Caller,
    id: Uuid,
    input: &FormInput,
) -> ApiResult<Response> {
    let letter = app.dead_letter(&caller, id).await?;
    let page = PageContext::load(app, caller).await?;
    let now = page.now;
    let key = scalar(&letter.key);
    let similar = search(&[("jobType", &letter.job_type), ("fingerprint", &letter.fingerprint)]);
    // If the key is not unique, the dead letter has all its rows as an array.
    let single = std::slice::from_ref(&letter.record);
    let records = letter.record.as_array().map_or(single, Vec::as_slice);
    let content = html! {
        h1 { "Dead letter " (key) }
        p.problem { (letter.error) }
        @if page.may_on(Permission::Operate, &letter.job_type) && letter.status == DeadLetterStatus::New { (buttons(&letter)) }
        (input.reason_of_all())
        section aria-labelledby="record" {
            h2 #record { "Record at the time of the failure" }
            @for record in records { (table(record, &letter)) }
        }
        section aria-labelledby="history" {
            h2 #history { "History" }
            (facts(&[
                ("Status", status_cell(&letter)),
                ("Failed", full_time(letter.created_at, now)),
                ("Last updated", full_time(letter.updated_at, now)),
                ("Attempts (with redrives)", html! { (letter.attempts) }),
                ("Job", html! {
                    a href=(format!("/jobs/{}", letter.job_id)) { (letter.job_type) " " (short_id(letter.job_id)) }
                    ", chunk " (letter.chunk)
                }),
                ("Similar", html! { a href=(similar) { "Dead letters with the same error" } }),
            ]))
            @if !letter.context.is_null() {
                details {
                    summary { "Context" }
                    pre { (serde_json::to_string_pretty(&letter.context).unwrap_or_default()) }
                }
            }
        }
    };
    let live = if input.is_refused() { LiveUpdates::Off } else { LiveUpdates::AllJobs };
    let page = page.render(Section::DeadLetters, &format!("Dead letter {key}"), live, content);
    Ok((input.status(), page).into_response())
}

fn buttons(letter: &DeadLetter) -> Markup {
    let back = format!("/dead-letters/{}", letter.id);
    html! {
        form.actions method="post" action="/dead-letters/redrive" {
            input type="hidden" name="ids" value=(letter.id);
            input type="hidden" name="back" value=(back);
            button.primary { "Redrive" }
            button formaction="/dead-letters/ignore" { "Ignore" }
        }
    }
}

/// A record. The fields that the error mentions are highlighted.
fn table(record: &Json, letter: &DeadLetter) -> Markup {
    let fields = record.as_object().into_iter().flatten();
    html! {
        div.scroll {
            table.record {
                (table_head(&["Field", "Value"]))
                tbody {
                    @for (name, value) in fields {
                        @let failing = error_mentions(letter, name);
                        tr.failing[failing] {
                            th scope="row" {
                                (name)
                                @if failing { " " span.badge.failed { "mentioned in the error" } }
                            }
                            td.text { (scalar(value)) }
                        }
                    }
                }
            }
        }
    }
}

/// Whether the error or its context mentions a field as a whole word.
fn error_mentions(letter: &DeadLetter, field: &str) -> bool {
    let part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mentions = |text: &str| {
        text.split(|letter| !part(letter)).any(|word| word.eq_ignore_ascii_case(field))
    };
    mentions(&letter.error) || letter.context.get("field").and_then(Json::as_str) == Some(field)
}
