//! One dead letter: the record, the field that failed, and what happened to it after.

use super::dead_letters::{search, standing};
use super::format::{full_time, scalar, short};
use super::layout::{Frame, Here, Live, facts, heads};
use crate::App;
use crate::auth::Viewer;
use crate::extract::Id;
use crate::problem::Answer;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};
use serde_json::Value as Json;
use std::sync::Arc;
use windlass_core::DeadLetterStatus;
use windlass_core::config::Permission;
use windlass_store::DeadLetter;

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Id(id): Id,
) -> Answer<Html<String>> {
    let letter = app.letter(&caller, id).await?;
    let frame = Frame::of(&app, caller).await?;
    let now = frame.now;
    let key = scalar(&letter.key);
    let alike = search(&[("jobType", &letter.job_type), ("fingerprint", &letter.fingerprint)]);
    // The rows of a key that is not unique died together.
    let alone = std::slice::from_ref(&letter.record);
    let records = letter.record.as_array().map_or(alone, Vec::as_slice);
    let content = html! {
        h1 { "Dead letter " (key) }
        p.problem { (letter.error) }
        @if frame.may_on(Permission::Operate, &letter.job_type) && letter.status == DeadLetterStatus::New { (buttons(&letter)) }
        section aria-labelledby="record" {
            h2 #record { "The record, as it was read" }
            @for record in records { (table(record, &letter)) }
        }
        section aria-labelledby="after" {
            h2 #after { "What happened" }
            (facts(&[
                ("Status", standing(&letter)),
                ("Died", full_time(letter.created_at, now)),
                ("Last touched", full_time(letter.updated_at, now)),
                ("Tries, over all redrives", html! { (letter.attempts) }),
                ("Job", html! {
                    a href=(format!("/jobs/{}", letter.job_id)) { (letter.job_type) " " (short(letter.job_id)) }
                    ", chunk " (letter.chunk)
                }),
                ("Others like it", html! { a href=(alike) { "with the same error" } }),
            ]))
            @if !letter.context.is_null() {
                details {
                    summary { "Context" }
                    pre { (serde_json::to_string_pretty(&letter.context).unwrap_or_default()) }
                }
            }
        }
    };
    Ok(frame.page(Here::Letters, &format!("Dead letter {key}"), Live::All, content))
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

/// A record, with the fields that the error speaks of marked.
fn table(record: &Json, letter: &DeadLetter) -> Markup {
    let fields = record.as_object().into_iter().flatten();
    html! {
        div.scroll {
            table.record {
                (heads(&["Field", "Value"]))
                tbody {
                    @for (name, value) in fields {
                        @let failing = speaks_of(letter, name);
                        tr.failing[failing] {
                            th scope="row" {
                                (name)
                                @if failing { " " span.mark.failed { "named by the error" } }
                            }
                            td.text { (scalar(value)) }
                        }
                    }
                }
            }
        }
    }
}

/// Whether the error or its context names a field, as a whole word.
fn speaks_of(letter: &DeadLetter, field: &str) -> bool {
    let part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let named = |text: &str| {
        text.split(|letter| !part(letter)).any(|word| word.eq_ignore_ascii_case(field))
    };
    named(&letter.error) || letter.context.get("field").and_then(Json::as_str) == Some(field)
}
