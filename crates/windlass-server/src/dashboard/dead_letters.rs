//! Dead letters: found, grouped by what they died of, chosen, redriven, ignored, taken away as a file.

use super::format::{count, letter_mark, number, scalar, short, time};
use super::jobs::{filled, job_type_select};
use super::layout::{Frame, Here, Live, heads, nothing};
use crate::App;
use crate::auth::{Caller, Viewer};
use crate::extract::Query;
use crate::problem::Answer;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{Html, IntoResponse, Response};
use chrono::{DateTime, Utc};
use futures::stream;
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;
use uuid::Uuid;
use windlass_core::config::Permission;
use windlass_core::{DeadLetterStatus, JobId};
use windlass_store::{DeadLetter, DeadLetterFilter, DeadLetterGroup};

const PAGE: u32 = 50;
/// Letters in memory at once while a file is written.
const FILE_PAGE: u32 = 500;
/// Groups shown.
const MOST_GROUPS: u32 = 20;

/// What letters are asked for; those that wait for somebody, where nothing is said of a status.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked {
    #[serde(default, deserialize_with = "filled")]
    job: Option<Uuid>,
    #[serde(default, deserialize_with = "filled")]
    job_type: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    error: Option<String>,
    /// Of one group alone.
    #[serde(default, deserialize_with = "filled")]
    fingerprint: Option<String>,
    status: Option<String>,
    before: Option<Uuid>,
}

impl Asked {
    fn status(&self) -> Option<DeadLetterStatus> {
        match &self.status {
            None => Some(DeadLetterStatus::New),
            Some(status) => status.parse().ok(),
        }
    }

    fn filter(&self, limit: u32) -> DeadLetterFilter {
        DeadLetterFilter {
            job: self.job,
            job_type: self.job_type.clone(),
            error: self.error.clone(),
            fingerprint: self.fingerprint.clone(),
            status: self.status(),
            before: self.before,
            limit,
            ..DeadLetterFilter::default()
        }
    }

    /// Whether nothing is said that some letters would not meet.
    fn is_everything(&self) -> bool {
        let said = [&self.job_type, &self.error, &self.fingerprint];
        self.job.is_none() && said.iter().all(|said| said.is_none())
    }

    /// The same search, whatever the fingerprint.
    fn elsewhere(&self) -> String {
        Asked { fingerprint: None, ..self.clone() }.address("/dead-letters", None)
    }

    /// The same search, elsewhere or further on.
    fn address(&self, path: &str, before: Option<Uuid>) -> String {
        let text = |id: Option<Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
        let (job, before) = (text(self.job), text(before));
        let given = |text: &Option<String>| text.clone().unwrap_or_default();
        let (job_type, error) = (given(&self.job_type), given(&self.error));
        let fingerprint = given(&self.fingerprint);
        let mut pairs = vec![("job", job.as_str()), ("jobType", &job_type), ("error", &error)];
        pairs.extend([("fingerprint", fingerprint.as_str()), ("before", &before)]);
        pairs.retain(|(_, value)| !value.is_empty());
        if let Some(status) = &self.status {
            pairs.push(("status", status));
        }
        query(path, &pairs)
    }
}

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Query(asked): Query<Asked>,
) -> Answer<Html<String>> {
    let letters = app.letters(&caller, asked.filter(PAGE)).await?;
    let grouped = DeadLetterFilter { before: None, ..asked.filter(MOST_GROUPS) };
    let found = app.letter_groups(&caller, grouped).await?;
    let frame = Frame::of(&app, caller).await?;
    let more = letters.last().filter(|_| letters.len() == PAGE as usize);
    let content = html! {
        h1 { "Dead letters" }
        p {
            "Items that failed for good, with their record and their error. Everything else of their jobs is done."
        }
        (form(&app, &frame, &asked))
        @if letters.is_empty() {
            @match asked.status() {
                Some(DeadLetterStatus::New) => (nothing("No dead letter waits for you here.")),
                _ => (nothing("No such letter.")),
            }
        } @else {
            section aria-labelledby="groups" {
                h2 #groups { "By error" } (groups(&found, frame.now, asked.job, asked.status().map_or("", |status| status.as_str())))
            }
            section aria-labelledby="letters" {
                h2 #letters { "One by one" }
                (list(&frame, &asked, &letters))
                @if let Some(last) = more {
                    p {
                        a href=(asked.address("/dead-letters", Some(last.id))) rel="next" { "Older letters" }
                    }
                }
                p {
                    a href=(asked.address("/dead-letters/export", None)) download="dead-letters.jsonl" {
                        "Export all that this search finds, as JSON lines"
                    }
                }
            }
            @if frame.may(Permission::Operate) { (act_on_all(&asked, &found)) }
        }
    };
    Ok(frame.page(Here::Letters, "Dead letters", Live::All, content))
}

fn form(app: &App, frame: &Frame, asked: &Asked) -> Markup {
    html! {
        form.search method="get" action="/dead-letters" {
            @if let Some(job) = asked.job {
                input type="hidden" name="job" value=(job);
                span {
                    "Of job " a href=(format!("/jobs/{job}")) { (short(job)) } " ("
                    a href="/dead-letters" { "of all" } ")"
                }
            }
            @if let Some(fingerprint) = &asked.fingerprint {
                input type="hidden" name="fingerprint" value=(fingerprint);
                span {
                    "With errors like " q { (fingerprint) } " ("
                    a href=(asked.elsewhere()) { "of all" } ")"
                }
            }
            label { "Job type " (job_type_select(app, frame, asked.job_type.as_deref())) }
            label { "Error contains " input type="search" name="error" value=[asked.error.as_deref()]; }
            label {
                "Status "
                select name="status" {
                    option value="" { "any" }
                    @for known in DeadLetterStatus::ALL {
                        option value=(known) selected[asked.status() == Some(*known)] { (known) }
                    }
                }
            }
            button { "Find" }
        }
    }
}

/// Letters by what they died of; a link finds those of a group in a status.
pub(super) fn groups(
    groups: &[DeadLetterGroup],
    now: DateTime<Utc>,
    job: Option<JobId>,
    status: &str,
) -> Markup {
    let job = job.map(|job| job.to_string()).unwrap_or_default();
    html! {
        div.scroll {
            table {
                (heads(&["Error", "#Letters", "Last"]))
                tbody {
                    @for group in groups {
                        tr {
                            td.text {
                                a href=(search(&[("job", &job), ("jobType", &group.job_type), ("fingerprint", &group.fingerprint), ("status", status)])) {
                                    (group.error)
                                }
                                div.faint { (group.job_type) }
                            }
                            td.number { (number(group.letters)) }
                            td { (time(group.last_at, now)) }
                        }
                    }
                }
            }
        }
    }
}

fn list(frame: &Frame, asked: &Asked, letters: &[DeadLetter]) -> Markup {
    let may = frame.may(Permission::Operate);
    html! {
        form method="post" action="/dead-letters/redrive" {
            input type="hidden" name="back" value=(asked.address("/dead-letters", asked.before));
            div.scroll {
                table {
                    thead {
                        tr {
                            @if may { th { span.unseen { "Choose" } } }
                            th { "Key" } th { "Error" } th { "Job type" }
                            th.number { "Tries" } th { "Died" } th { "Status" }
                        }
                    }
                    tbody {
                        @for letter in letters {
                            tr #(format!("letter-{}", letter.id)) {
                                @if may { td { (choice(letter)) } }
                                td {
                                    a href=(format!("/dead-letters/{}", letter.id)) { (scalar(&letter.key)) }
                                }
                                td.text { (letter.error) }
                                td { (letter.job_type) }
                                td.number { (letter.attempts) }
                                td { (time(letter.created_at, frame.now)) }
                                td { (standing(letter)) }
                            }
                        }
                    }
                }
            }
            @if may {
                div.actions {
                    button.primary { "Redrive the chosen" }
                    button formaction="/dead-letters/ignore" { "Ignore the chosen" }
                }
            }
        }
    }
}

fn choice(letter: &DeadLetter) -> Markup {
    let said = format!("Choose letter {}", scalar(&letter.key));
    html! {
        @if letter.status == DeadLetterStatus::New {
            input type="checkbox" name="ids" value=(letter.id) aria-label=(said);
        }
    }
}

/// What became of a letter so far.
pub(super) fn standing(letter: &DeadLetter) -> Markup {
    html! {
        (letter_mark(letter.status, letter.redrive_job.is_some()))
        @if let Some(job) = letter.redrive_job { " by " a href=(format!("/jobs/{job}")) { (short(job)) } }
    }
}

/// What can be done to everything that the search finds.
fn act_on_all(asked: &Asked, found: &[DeadLetterGroup]) -> Markup {
    let letters: i64 = found.iter().map(|group| group.letters).sum();
    let fields = html! {
        input type="hidden" name="back" value="/dead-letters";
        input type="hidden" name="job" value=[asked.job];
        input type="hidden" name="jobType" value=[asked.job_type.as_deref()];
        input type="hidden" name="error" value=[asked.error.as_deref()];
        input type="hidden" name="fingerprint" value=[asked.fingerprint.as_deref()];
        @if asked.is_everything() {
            input type="hidden" name="all" value="yes";
        }
    };
    html! {
        @if asked.status() == Some(DeadLetterStatus::New) {
            div.actions {
                @for (verb, address, said) in [
                    ("Redrive", "/dead-letters/redrive", "Their items are worked again, by new jobs under the identity of the first."),
                    ("Ignore", "/dead-letters/ignore", "They need nothing: nobody will be asked about them again."),
                ] {
                    details.confirm {
                        summary { (verb) " all that this search finds…" }
                        form method="post" action=(address) {
                            (fields)
                            p {
                                (count(letters, "letter", "letters"))
                                @if found.len() == MOST_GROUPS as usize { " and more" }
                                ". " (said)
                            }
                            button.primary { (verb) " them all" }
                        }
                    }
                }
            }
        }
    }
}

/// Everything that a search finds, a line of JSON per letter, a page in memory at a time.
pub(super) async fn export(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Query(asked): Query<Asked>,
) -> Response {
    let first = asked.filter(FILE_PAGE);
    let pages = stream::try_unfold(Some((app, caller, first)), |state| async move {
        let Some((app, caller, filter)) = state else { return Ok(None) };
        lines(app, caller, filter).await.map(Some)
    });
    let headers = [
        (CONTENT_TYPE, "application/x-ndjson"),
        (CONTENT_DISPOSITION, "attachment; filename=\"dead-letters.jsonl\""),
    ];
    (headers, Body::from_stream(pages)).into_response()
}

type Next = Option<(Arc<App>, Caller, DeadLetterFilter)>;

async fn lines(
    app: Arc<App>,
    caller: Caller,
    mut filter: DeadLetterFilter,
) -> std::io::Result<(String, Next)> {
    let page = app.letters(&caller, filter.clone()).await;
    let page = page.map_err(|_| std::io::Error::other("the store is away"))?;
    let line = |letter| serde_json::to_string(letter).map(|line| line + "\n");
    let text = page.iter().map(line).collect::<Result<String, _>>()?;
    let next = page.last().map(|last| {
        filter.before = Some(last.id);
        (app, caller, filter)
    });
    Ok((text, next))
}

/// The address of a search for letters.
pub(super) fn search(pairs: &[(&str, &str)]) -> String {
    query("/dead-letters", pairs)
}

/// An address with these fields.
pub(super) fn query(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs);
    format!("{path}?{}", query.finish())
}
