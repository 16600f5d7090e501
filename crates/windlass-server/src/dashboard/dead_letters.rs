//! Dead letters: filtered, grouped by error, redriven, ignored, exported.

use super::actions::field;
use super::form::FormInput;
use super::format::{count, dead_letter_badge, number, scalar, short_id, time};
use super::jobs::{job_type_select, optional_field};
use super::layout::{LiveUpdates, PageContext, Section, empty_state, table_head};
use crate::App;
use crate::auth::{Caller, Viewer};
use crate::extract::Query;
use crate::problem::ApiResult;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use futures::stream;
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;
use uuid::Uuid;
use windlass_core::config::Permission;
use windlass_core::{DeadLetterStatus, JobId};
use windlass_store::{DeadLetter, DeadLetterFilter, DeadLetterGroup};

/// Dead letters per page.
const PAGE_LETTERS: u32 = 50;
/// Dead letters in memory at once during an export.
const EXPORT_PAGE_LETTERS: u32 = 500;
/// The forms of the page: of the selected dead letters, and of all that match.
pub(super) const SELECTED: &str = "selected";
pub(super) const REDRIVE_ALL: &str = "redrive-all";
pub(super) const IGNORE_ALL: &str = "ignore-all";
/// The maximum number of groups shown.
const MAX_GROUPS: u32 = 20;

/// The filter of the page. Without a status, it selects open dead letters (`new`).
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeadLettersQuery {
    #[serde(default, deserialize_with = "optional_field")]
    job: Option<Uuid>,
    #[serde(default, deserialize_with = "optional_field")]
    job_type: Option<String>,
    #[serde(default, deserialize_with = "optional_field")]
    error: Option<String>,
    /// The fingerprint of one group.
    #[serde(default, deserialize_with = "optional_field")]
    fingerprint: Option<String>,
    status: Option<String>,
    before: Option<Uuid>,
}

impl DeadLettersQuery {
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

    /// The filter of the page whose form was sent: of its own fields, or of the page to return to.
    pub(super) fn of_form(fields: &[(String, String)]) -> DeadLettersQuery {
        let back = field(fields, "back").unwrap_or_default();
        let query = back.split_once('?').map_or("", |(_, query)| query);
        let known: Vec<(String, String)> = match field(fields, "bulk") {
            Some(_) => fields.to_vec(),
            None => url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        };
        let text = |name| field(&known, name).map(str::to_owned);
        let id = |name| field(&known, name).and_then(|id| id.parse().ok());
        DeadLettersQuery {
            job: id("job"),
            job_type: text("jobType"),
            error: text("error"),
            fingerprint: text("fingerprint"),
            status: known
                .iter()
                .find(|(name, _)| name == "status")
                .map(|(_, status)| status.clone()),
            before: id("before"),
        }
    }

    /// Whether the filter has no condition except the status.
    fn is_unfiltered(&self) -> bool {
        let conditions = [&self.job_type, &self.error, &self.fingerprint];
        self.job.is_none() && conditions.iter().all(|condition| condition.is_none())
    }

    /// The URL of the same filter without the fingerprint.
    fn url_of_all_errors(&self) -> String {
        DeadLettersQuery { fingerprint: None, ..self.clone() }.url("/dead-letters", None)
    }

    /// The URL of the same filter for another path or page.
    fn url(&self, path: &str, before: Option<Uuid>) -> String {
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
        url_with_query(path, &pairs)
    }
}

pub(super) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Query(filter): Query<DeadLettersQuery>,
) -> ApiResult<Response> {
    page(&app, caller, &filter, &FormInput::default()).await
}

/// The page with a filter, and the input of a form that was refused.
pub(super) async fn page(
    app: &App,
    caller: Caller,
    filter: &DeadLettersQuery,
    input: &FormInput,
) -> ApiResult<Response> {
    let letters = app.dead_letters(&caller, filter.filter(PAGE_LETTERS)).await?;
    let grouped = DeadLetterFilter { before: None, ..filter.filter(MAX_GROUPS) };
    let found = app.dead_letter_groups(&caller, grouped).await?;
    let page = PageContext::load(app, caller).await?;
    let more = letters.last().filter(|_| letters.len() == PAGE_LETTERS as usize);
    let content = html! {
        h1 { "Dead letters" }
        p {
            "Items that failed permanently. Their jobs continued without them."
        }
        (form(app, &page, filter))
        @if letters.is_empty() {
            (input.reason_of_all())
            @if filter.status() == Some(DeadLetterStatus::New) && filter.is_unfiltered() {
                (empty_state("No open dead letters."))
            } @else { (empty_state("No matching dead letters.")) }
        } @else {
            section aria-labelledby="groups" {
                h2 #groups { "By error" } (groups(&found, page.now, filter.job, filter.status().map_or("", |status| status.as_str())))
            }
            section aria-labelledby="letters" {
                h2 #letters { "List" }
                (list(&page, filter, &letters, input.of(SELECTED)))
                @if let Some(last) = more {
                    p {
                        a href=(filter.url("/dead-letters", Some(last.id))) rel="next" { "Older dead letters" }
                    }
                }
                p {
                    a href=(filter.url("/dead-letters/export", None)) download="dead-letters.jsonl" {
                        "Export all matching dead letters as JSON lines"
                    }
                }
            }
            @if page.may(Permission::Operate) { (bulk_actions(filter, &found, input)) }
        }
    };
    let live = if input.is_refused() { LiveUpdates::Off } else { LiveUpdates::AllJobs };
    let page = page.render(Section::DeadLetters, "Dead letters", live, content);
    Ok((input.status(), page).into_response())
}

fn form(app: &App, page: &PageContext, filter: &DeadLettersQuery) -> Markup {
    html! {
        form.search method="get" action="/dead-letters" {
            @if let Some(job) = filter.job {
                input type="hidden" name="job" value=(job);
                span {
                    "Job " a href=(format!("/jobs/{job}")) { (short_id(job)) } " ("
                    a href="/dead-letters" { "show all jobs" } ")"
                }
            }
            @if let Some(fingerprint) = &filter.fingerprint {
                input type="hidden" name="fingerprint" value=(fingerprint);
                span {
                    "Errors like " q { (fingerprint) } " ("
                    a href=(filter.url_of_all_errors()) { "show all errors" } ")"
                }
            }
            label { "Job type " (job_type_select(app, page, filter.job_type.as_deref())) }
            label { "Error contains " input type="search" name="error" value=[filter.error.as_deref()]; }
            label {
                "Status "
                select name="status" {
                    option value="" { "any" }
                    @for known in DeadLetterStatus::ALL {
                        option value=(known) selected[filter.status() == Some(*known)] { (known) }
                    }
                }
            }
            button { "Filter" }
        }
    }
}

/// A table of error groups, with links to the dead letters of each group in a status.
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
                (table_head(&["Error", "#Dead letters", "Last"]))
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

fn list(
    page: &PageContext,
    filter: &DeadLettersQuery,
    letters: &[DeadLetter],
    input: &FormInput,
) -> Markup {
    let may = page.may(Permission::Operate);
    html! {
        form method="post" action="/dead-letters/redrive" {
            input type="hidden" name="back" value=(filter.url("/dead-letters", filter.before));
            div.scroll {
                table {
                    thead {
                        tr {
                            @if may { th { span.visually-hidden { "Select" } } }
                            th { "Key" } th { "Error" } th { "Job type" }
                            th.number { "Attempts" } th { "Failed" } th { "Status" }
                        }
                    }
                    tbody {
                        @for letter in letters {
                            tr #(format!("letter-{}", letter.id)) {
                                @if may { td { (checkbox(letter, input)) } }
                                td {
                                    a href=(format!("/dead-letters/{}", letter.id)) { (scalar(&letter.key)) }
                                }
                                td.text { (letter.error) }
                                td { (letter.job_type) }
                                td.number { (letter.attempts) }
                                td { (time(letter.created_at, page.now)) }
                                td { (status_cell(letter)) }
                            }
                        }
                    }
                }
            }
            @if may {
                (input.reason_of_all())
                div.actions {
                    button.primary { "Redrive selected" }
                    button formaction="/dead-letters/ignore" { "Ignore selected" }
                }
            }
        }
    }
}

fn checkbox(letter: &DeadLetter, input: &FormInput) -> Markup {
    let label = format!("Select dead letter {}", scalar(&letter.key));
    let was_chosen = input.has("ids", &letter.id.to_string());
    html! {
        @if letter.status == DeadLetterStatus::New {
            input type="checkbox" name="ids" value=(letter.id) aria-label=(label) checked[was_chosen];
        }
    }
}

/// The status of a dead letter, and the job that redrove it.
pub(super) fn status_cell(letter: &DeadLetter) -> Markup {
    html! {
        (dead_letter_badge(letter.status, letter.redrive_job.is_some()))
        @if let Some(job) = letter.redrive_job { " by " a href=(format!("/jobs/{job}")) { (short_id(job)) } }
    }
}

/// The actions on all dead letters that match the filter.
fn bulk_actions(filter: &DeadLettersQuery, found: &[DeadLetterGroup], input: &FormInput) -> Markup {
    let letters: i64 = found.iter().map(|group| group.letters).sum();
    let fields = html! {
        input type="hidden" name="back" value="/dead-letters";
        input type="hidden" name="bulk" value="yes";
        input type="hidden" name="job" value=[filter.job];
        input type="hidden" name="jobType" value=[filter.job_type.as_deref()];
        input type="hidden" name="error" value=[filter.error.as_deref()];
        input type="hidden" name="fingerprint" value=[filter.fingerprint.as_deref()];
        @if filter.is_unfiltered() {
            input type="hidden" name="all" value="yes";
        }
    };
    html! {
        @if filter.status() == Some(DeadLetterStatus::New) {
            div.actions {
                @for (verb, action, input, explanation) in [
                    ("Redrive", "/dead-letters/redrive", input.of(REDRIVE_ALL), "New jobs process these items again, under the identity of the original jobs."),
                    ("Ignore", "/dead-letters/ignore", input.of(IGNORE_ALL), "They are no longer listed as open."),
                ] {
                    details.confirm open[input.is_refused()] {
                        summary { (verb) " all matching…" }
                        form method="post" action=(action) {
                            (fields)
                            p {
                                (count(letters, "dead letter", "dead letters"))
                                @if found.len() == MAX_GROUPS as usize { " or more" }
                                ". " (explanation)
                            }
                            (input.reason_of_all())
                            button.primary { (verb) " all" }
                        }
                    }
                }
            }
        }
    }
}

/// Exports all dead letters that match the filter as JSON lines, streamed page by page.
pub(super) async fn export(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Query(filter): Query<DeadLettersQuery>,
) -> Response {
    let first = filter.filter(EXPORT_PAGE_LETTERS);
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

type NextPage = Option<(Arc<App>, Caller, DeadLetterFilter)>;

async fn lines(
    app: Arc<App>,
    caller: Caller,
    mut filter: DeadLetterFilter,
) -> std::io::Result<(String, NextPage)> {
    let page = app.dead_letters(&caller, filter.clone()).await;
    let page = page.map_err(|_| std::io::Error::other("failed to read dead letters"))?;
    let line = |letter| serde_json::to_string(letter).map(|line| line + "\n");
    let text = page.iter().map(line).collect::<Result<String, _>>()?;
    let next = page.last().map(|last| {
        filter.before = Some(last.id);
        (app, caller, filter)
    });
    Ok((text, next))
}

/// The URL of the dead letters page with this filter.
pub(super) fn search(pairs: &[(&str, &str)]) -> String {
    url_with_query("/dead-letters", pairs)
}

/// A path with these query parameters.
pub(super) fn url_with_query(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs);
    format!("{path}?{}", query.finish())
}
