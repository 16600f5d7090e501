//! The report of a job for people: one page that needs nothing but itself.
//!
//! It is opened from mails and shared folders, years later perhaps: so it has its style inside, no
//! script, and a policy that would stop one. Everything in it that came from outside is escaped by
//! the templates.

mod tables;
#[cfg(test)]
mod tests;

use self::tables::{chunks, errors, first};
use crate::STYLE;
use crate::components::{facts, figure, nothing};
use crate::durations::durations;
use crate::format::{absolute, absolute_in, bytes, count, mark, millis, number, rate, rate_text};
use crate::throughput::throughput;
use chrono::{DateTime, Utc};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::time::Duration;
use windlass_core::{Job, JobStatus};
use windlass_store::{ChunkRow, DeadLetterGroup, DurationBucket, JobSnapshot, ThroughputBucket};

/// Nothing is fetched and nothing is run, whatever a record's value would like.
pub const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Letters of a cell that are shown.
const MOST_LETTERS: usize = 200;

/// Everything that the report of a job tells.
pub struct JobReport {
    /// The job, which has ended.
    pub job: Job,
    /// What it was submitted with.
    pub snapshot: JobSnapshot,
    /// When it should have ended.
    pub deadline: Option<DateTime<Utc>>,
    /// What was done when.
    pub paces: Vec<ThroughputBucket>,
    /// In stretches of this length.
    pub stretch: Duration,
    /// How long its chunks took.
    pub durations: Vec<DurationBucket>,
    /// Those that took longest.
    pub slowest: Vec<ChunkRow>,
    /// The first of those that failed.
    pub failed: Vec<ChunkRow>,
    /// What items died of, at most [`MOST_ERRORS`].
    pub errors: Vec<DeadLetterGroup>,
    /// What it put out, and where.
    pub outputs: Vec<Output>,
    /// The first rows of its result.
    pub rows: Option<Rows>,
    /// Whether its chunks are not known any more.
    pub is_pruned: bool,
    /// When all this was looked up.
    pub made_at: DateTime<Utc>,
}

/// Errors that are shown.
pub const MOST_ERRORS: u32 = 50;

/// Something that a job put out.
pub struct Output {
    /// What it is.
    pub name: &'static str,
    /// Its file, folder, object or table.
    pub place: String,
    /// How many rows it has, where that is known.
    pub rows: Option<i64>,
    /// How many bytes, where that is known.
    pub bytes: Option<i64>,
}

/// The first rows of a result.
pub struct Rows {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Their values, as texts; none for null.
    pub first: Vec<Vec<Option<String>>>,
    /// How many rows there are in all.
    pub total: i64,
}

impl JobReport {
    /// The page.
    pub fn html(&self) -> String {
        let title = format!("{} {}", self.job.job_type, self.job.id);
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content=(concat!("Windlass ", env!("CARGO_PKG_VERSION")));
                    title { (title) }
                    style { (PreEscaped(STYLE)) (PreEscaped(include_str!("report.css"))) }
                }
                body {
                    main {
                        (self.head())
                        (self.figures())
                        @if self.job.items.dead > 0 || self.job.chunks.failed > 0 { (self.failures()) }
                        (self.course())
                        (self.output())
                        (self.asked())
                        (self.proof())
                    }
                    footer {
                        "Made by Windlass " (env!("CARGO_PKG_VERSION")) " at " (absolute(self.made_at))
                        ". Times are UTC" @if let Some(zone) = self.zone() { ", and in brackets " (zone.name()) } "."
                    }
                }
            }
        };
        page.into_string()
    }

    /// What ran, and how it ended.
    fn head(&self) -> Markup {
        let Job { job_type, status, error, .. } = &self.job;
        let description = &self.snapshot.definition.description;
        html! {
            header.title {
                p.brand { "Windlass · report of a job" }
                h1 { (job_type) }
                @if !description.is_empty() { p { (description) } }
                p.line { (mark(*status)) " " strong { (verdict(&self.job)) } }
                @if let Some(error) = error { p.problem { (error) } }
                @if let Some(deadline) = self.deadline { p.line { (self.punctuality(deadline)) } }
            }
        }
    }

    fn took(&self) -> String {
        let ended = self.job.finished_at.unwrap_or(self.made_at);
        let took = self.job.started_at.map(|began| (ended - began).num_milliseconds());
        took.map_or_else(|| "–".to_owned(), millis)
    }

    fn punctuality(&self, deadline: DateTime<Utc>) -> Markup {
        let ended = self.job.finished_at.unwrap_or(self.made_at);
        let late = millis((ended - deadline).num_milliseconds());
        html! {
            @if self.job.status != JobStatus::Completed { "It was due " (self.time(deadline)) "." }
            @else if ended > deadline { span.bad { "Late by " (late) ": it was due " (self.time(deadline)) "." } }
            @else { span.good { "On time: it was due " (self.time(deadline)) "." } }
        }
    }

    fn figures(&self) -> Markup {
        let (items, chunks) = (&self.job.items, &self.job.chunks);
        let bad = |n: i64| if n > 0 { "failed" } else { "" };
        html! {
            div.figures {
                (figure("items planned", &number(items.total), "", None))
                (figure("processed", &number(items.processed), "", None))
                (figure("skipped", &number(items.skipped), "", None))
                (figure("dead letters", &number(items.dead), bad(items.dead), None))
                (figure("write conflicts", &number(items.conflicts), "", None))
                (figure("items a second", &rate_text(rate(&self.job, self.made_at)), "", None))
                (figure("at work for", &self.took(), "", None))
                (figure("chunks", &number(chunks.total), "", None))
                @if chunks.failed > 0 { (figure("chunks failed", &number(chunks.failed), "failed", None)) }
                @if chunks.cancelled > 0 { (figure("chunks cancelled", &number(chunks.cancelled), "", None)) }
            }
        }
    }

    /// How it went: charts, and the chunks that took longest.
    fn course(&self) -> Markup {
        let none = self.paces.is_empty() && self.durations.is_empty();
        if self.is_pruned || none {
            let why = if self.is_pruned { PRUNED } else { "No chunk of it was worked." };
            return html! { section { h2 { "How it went" } (nothing(why)) } };
        }
        html! {
            section { h2 { "Throughput" } (throughput(&self.paces, self.stretch)) }
            section {
                h2 { "How long chunks took" }
                (durations(&self.durations))
                @if self.slowest.len() > 1 {
                    h3 { "The slowest" }
                    (chunks("The slowest chunks", &self.slowest))
                }
            }
        }
    }

    fn failures(&self) -> Markup {
        let dead = self.job.items.dead;
        let chunks_failed = self.job.chunks.failed;
        html! {
            section {
                h2 { "What failed" }
                @if self.errors.is_empty() && dead > 0 {
                    (nothing("Items have died, and their letters are kept no more."))
                } @else if dead > 0 {
                    (errors(&self.errors, dead))
                    @if self.errors.len() == MOST_ERRORS as usize { p.faint { "The most frequent errors; there may be more." } }
                    p {
                        "Look at them: " code { "windlass dead list --job " (self.job.id) } " · Work them again: "
                        code { "windlass dead redrive --job " (self.job.id) }
                    }
                }
                @if !self.failed.is_empty() {
                    h3 { "Chunks that failed" }
                    (chunks("Chunks that failed", &self.failed))
                    @if chunks_failed > self.failed.len() as i64 {
                        p.faint { "The first of " (number(chunks_failed)) "." }
                    }
                    p { "Run only these again: " code { "windlass retry " (self.job.id) } }
                }
            }
        }
    }

    fn output(&self) -> Markup {
        let size = |output: &Output| {
            let rows = output.rows.map(|rows| count(rows, "row", "rows"));
            let size: Vec<String> = rows.into_iter().chain(output.bytes.map(bytes)).collect();
            size.join(", ")
        };
        let known: Vec<(&str, Markup)> = self
            .outputs
            .iter()
            .map(|output| {
                (output.name, html! { code { (output.place) } " " span.faint { (size(output)) } })
            })
            .collect();
        html! {
            @if !known.is_empty() {
                section {
                    h2 { "Output" }
                    @if self.job.status != JobStatus::Completed {
                        p.problem { "The job did not complete: do not rely on what may be there." }
                    }
                    (facts(&known))
                }
            }
            @if let Some(rows) = &self.rows {
                section { h2 { "The first rows" } (first(rows)) }
            }
        }
    }

    /// Who asked for what, and when.
    fn asked(&self) -> Markup {
        let job = &self.job;
        let when = |at: Option<DateTime<Utc>>| {
            html! {
                @match at { Some(at) => (self.time(at)), None => "–" }
            }
        };
        let json = |value: serde_json::Result<String>| value.unwrap_or_default();
        let claims = &self.snapshot.identity.claims;
        let mut known = vec![
            ("Id", html! { code { (job.id) } }),
            ("Submitted by", html! { (job.submitted_by) }),
        ];
        if !claims.is_empty() {
            known.push((
                "Claims, which filter its records",
                html! { code { (json(serde_json::to_string(claims))) } },
            ));
        }
        known.push(("Submitted", when(Some(job.created_at))));
        known.push(("Began", when(job.started_at)));
        known.push(("Ended", when(job.finished_at)));
        known.push(("Priority", html! { (job.priority) }));
        if self.snapshot.root != job.id {
            let said = html! { code { (self.snapshot.root) } ", whose result has the rows of its redrives too" };
            known.push(("Redrives dead letters of", said));
        }
        html! {
            section {
                h2 { "Who asked for what" }
                (facts(&known))
                h3 { "The request" }
                pre tabindex="0" { (json(serde_json::to_string_pretty(&job.request))) }
            }
        }
    }

    fn proof(&self) -> Markup {
        html! {
            section {
                h2 { "What holds" }
                p { "The job type promises: " (self.snapshot.definition.guarantee()) "." }
                @if self.is_pruned { p { (PRUNED) " It cannot be proven any more." } }
                @else {
                    p {
                        "Prove that nothing was missed and nothing was done twice: "
                        code { "windlass audit " (self.job.id) }
                    }
                }
            }
        }
    }

    /// The zone that people who schedule the job think in.
    fn zone(&self) -> Option<chrono_tz::Tz> {
        let zone = self.snapshot.definition.schedule.as_ref().map(|schedule| schedule.timezone);
        zone.filter(|zone| *zone != chrono_tz::Tz::UTC)
    }

    fn time(&self, at: DateTime<Utc>) -> String {
        absolute_in(at, self.zone())
    }
}

const PRUNED: &str =
    "Its chunks have been pruned: they ended longer ago than retention.chunks keeps them.";

/// How it ended, in a sentence.
fn verdict(job: &Job) -> String {
    let (done, total) = (number(job.items.done()), count(job.items.total, "item", "items"));
    match job.status {
        JobStatus::Completed if job.items.total == 0 => "There was no item to work.".to_owned(),
        _ if job.items.total == 0 => "It ended before any item was planned.".to_owned(),
        JobStatus::Completed if job.items.dead == 0 => {
            format!("{total}: every one was processed or skipped.")
        }
        JobStatus::Completed => {
            let dead = count(job.items.dead, "is a dead letter", "are dead letters");
            format!("{total}: {dead}, every other one was processed or skipped.")
        }
        JobStatus::Cancelled => {
            format!("{done} of {total} had been done. What was committed stays.")
        }
        _ => format!("{done} of {total} were done. What was committed stays."),
    }
}
