//! The chunks of a job: a grid of cells for the eye, and a list, a page at a time, for the rest.

use super::dead_letters::query;
use super::format::{chunk_word, class, count, full_time, number, span};
use super::jobs::filled;
use super::layout::{facts, heads, nothing};
use super::records::records;
use crate::App;
use crate::problem::Answer;
use chrono::Utc;
use futures::try_join;
use maud::{Markup, html};
use serde::Deserialize;
use std::collections::BTreeMap;
use windlass_core::{ChunkCounts, ChunkStatus, Job};
use windlass_store::{ChunkBucket, ChunkRow};

/// Above so many, a cell stands for several chunks.
const MOST_CELLS: i64 = 1000;
/// Chunks listed at a time.
const PAGE: u32 = 25;

/// Which chunks to show more of.
#[derive(Deserialize)]
pub(super) struct Asked {
    /// This one alone.
    #[serde(default, deserialize_with = "filled")]
    chunk: Option<i64>,
    /// Those after it.
    #[serde(default, deserialize_with = "filled")]
    after: Option<i64>,
    /// Those up to it.
    #[serde(default, deserialize_with = "filled")]
    upto: Option<i64>,
    /// In this status.
    #[serde(default, deserialize_with = "filled")]
    status: Option<ChunkStatus>,
}

/// What there is to show.
pub(super) struct Looked {
    /// Chunks that a cell stands for.
    width: i64,
    cells: Vec<ChunkBucket>,
    chosen: Option<ChunkRow>,
    listed: Vec<ChunkRow>,
}

/// Looks at the chunks of a job.
pub(super) async fn look(app: &App, job: &Job, asked: &Asked) -> Answer<Looked> {
    let store = app.engine.store();
    let width = (job.chunks.total + MOST_CELLS - 1) / MOST_CELLS;
    let width = width.max(1);
    let chosen = async {
        match asked.chunk {
            Some(chunk) => store.chunks(job.id, None, chunk.checked_sub(1), 1).await,
            None => Ok(Vec::new()),
        }
    };
    let (cells, mut chosen, mut listed) = try_join!(
        store.chunk_buckets(job.id, width),
        chosen,
        store.chunks(job.id, asked.status, asked.after, PAGE),
    )?;
    chosen.retain(|row| Some(row.chunk) == asked.chunk);
    listed.retain(|row| asked.upto.is_none_or(|upto| row.chunk <= upto));
    Ok(Looked { width, cells, chosen: chosen.pop(), listed })
}

/// The chunks of a job, whose keys have these columns.
pub(super) fn section(job: &Job, asked: &Asked, looked: &Looked, key: &[String]) -> Markup {
    let Looked { width, cells, chosen, listed } = looked;
    let (width, is_asked) = (*width, asked.after.is_some() || asked.status.is_some());
    html! {
        section aria-labelledby="chunks" {
            h2 #chunks { "Chunks" }
            (legend(job))
            @if cells.is_empty() {
                @if job.status.is_final() { (nothing("Its chunks have been pruned, or there were none.")) }
                @else { (nothing("No chunk has been cut yet.")) }
            } @else {
                @if width > 1 {
                    p.faint { "A cell stands for " (number(width)) " chunks, one after another." }
                }
                (grid(job, cells, width))
            }
            @if let Some(chunk) = chosen { (detail(chunk, key)) }
            @else if let Some(chunk) = asked.chunk { (nothing(&format!("There is no chunk {chunk}."))) }
            @if !cells.is_empty() {
                details #list open[is_asked] { summary { "Chunks one by one" } (list(job, asked, listed)) }
            }
        }
    }
}

/// How many there are of each; a link shows them.
fn legend(job: &Job) -> Markup {
    let ChunkCounts { total, pending, processing, completed, failed, cancelled } = job.chunks;
    let kinds = [
        (ChunkStatus::Completed, completed),
        (ChunkStatus::Processing, processing),
        (ChunkStatus::Pending, pending),
        (ChunkStatus::Failed, failed),
        (ChunkStatus::Cancelled, cancelled),
    ];
    html! {
        p.legend {
            strong { (count(total, "chunk", "chunks")) }
            @for (status, chunks) in kinds {
                @if chunks > 0 {
                    a href=(query(&format!("/jobs/{}", job.id), &[("status", status.as_str())]) + "#list") {
                        span class=(format!("cell {}", class(status.as_str()))) aria-hidden="true" {}
                        (number(chunks)) " " (chunk_word(status))
                    }
                }
            }
        }
    }
}

/// The cells. They are for the pointer; the keyboard and the ear have the counts above, and the list.
fn grid(job: &Job, cells: &[ChunkBucket], width: i64) -> Markup {
    let mut stretches: BTreeMap<i64, Vec<&ChunkBucket>> = BTreeMap::new();
    for cell in cells {
        stretches.entry(cell.bucket).or_default().push(cell);
    }
    html! {
        div.cells aria-hidden="true" {
            @for (cell, parts) in &stretches {
                @let (first, last) = (cell * width, (cell + 1) * width - 1);
                @let last = last.min(job.chunks.total - 1);
                @let to = match width {
                    1 => format!("?chunk={first}#chunk"),
                    _ => format!("?after={}&upto={last}#list", first - 1),
                };
                a class=(format!("cell {}", colour(parts))) tabindex="-1" href=(to)
                    title=(title(first, last, parts)) {}
            }
        }
    }
}

/// The colour of a cell: the worst of it first, and what goes on before what is done.
fn colour(parts: &[&ChunkBucket]) -> String {
    let has = |status| parts.iter().any(|part| part.status == status);
    let first = [ChunkStatus::Failed, ChunkStatus::Processing].into_iter().find(|s| has(*s));
    match (first, parts) {
        (Some(status), _) => class(status.as_str()),
        (None, [only]) => class(only.status.as_str()),
        (None, _) => "partly".to_owned(),
    }
}

fn title(first: i64, last: i64, parts: &[&ChunkBucket]) -> String {
    let dead: i64 = parts.iter().map(|part| part.dead).sum();
    let each = |part: &&ChunkBucket| match first == last {
        true => chunk_word(part.status).to_owned(),
        false => format!("{} {}", number(part.chunks), chunk_word(part.status)),
    };
    let each: Vec<String> = parts.iter().map(each).collect();
    let name =
        if first == last { format!("Chunk {first}") } else { format!("Chunks {first} to {last}") };
    let dead = if dead > 0 {
        format!(", {}", count(dead, "dead letter", "dead letters"))
    } else {
        String::new()
    };
    format!("{name}: {}{dead}", each.join(", "))
}

/// Everything about one chunk.
fn detail(row: &ChunkRow, key: &[String]) -> Markup {
    let now = Utc::now();
    let when = |at| match at {
        Some(at) => full_time(at, now),
        None => html! { "–" },
    };
    let counts = &row.counts;
    html! {
        div.detail #chunk {
            h3 {
                "Chunk " (row.chunk) " "
                span class=(format!("mark {}", class(row.status.as_str()))) { (chunk_word(row.status)) }
            }
            (facts(&[
                ("Items", html! {
                    (number(row.items)) ": " (number(counts.processed)) " processed, "
                    (number(counts.skipped)) " skipped, " (number(counts.dead)) " dead"
                }),
                ("Records", html! { (records(&row.key_set, key)) }),
                ("Worker", html! { (row.worker.as_deref().unwrap_or("–")) }),
                ("Began", when(row.started_at)),
                ("Ended", when(row.finished_at)),
                ("Tries", html! { (tries(row)) }),
            ]))
            @if let Some(error) = &row.error { p.problem { (error) } }
        }
    }
}

/// How often a chunk was begun, and what came of it.
fn tries(row: &ChunkRow) -> String {
    let mut said = count(row.epoch, "claim", "claims");
    for (times, what) in [(row.attempts, "failed"), (row.losses, "lost with their worker")] {
        if times > 0 {
            said += &format!(", {times} {what}");
        }
    }
    said
}

fn list(job: &Job, asked: &Asked, rows: &[ChunkRow]) -> Markup {
    let path = format!("/jobs/{}", job.id);
    let status = asked.status.map_or("", |status| status.as_str());
    let more =
        rows.last().filter(|last| rows.len() == PAGE as usize && asked.upto != Some(last.chunk));
    let upto = asked.upto.map(|upto| upto.to_string()).unwrap_or_default();
    html! {
        @if let Some(upto) = asked.upto {
            p {
                "Chunks " (asked.after.unwrap_or(-1) + 1) " to " (upto) " (" a href=(path.clone() + "?after=-1#list") { "all" } ")"
            }
        }
        form.search method="get" action=(path) {
            label {
                "Status "
                select name="status" {
                    option value="" { "any" }
                    @for known in ChunkStatus::ALL {
                        option value=(known) selected[asked.status == Some(*known)] { (chunk_word(*known)) }
                    }
                }
            }
            label { "After chunk " input name="after" inputmode="numeric" size="8" value=[asked.after]; }
            button { "Show" }
        }
        @if rows.is_empty() { (nothing("No such chunk.")) } @else {
            div.scroll {
                table {
                    (heads(&["#Chunk", "Status", "#Items", "#Dead", "#Claims", "DurationBucket", "Worker", "Error"]))
                    tbody {
                        @for row in rows {
                            tr {
                                td.number {
                                    a href=(query(&path, &[("chunk", &row.chunk.to_string())])) {
                                        (row.chunk)
                                    }
                                }
                                td {
                                    span class=(format!("mark {}", class(row.status.as_str()))) {
                                        (chunk_word(row.status))
                                    }
                                }
                                td.number { (number(row.items)) }
                                td.number { (number(row.counts.dead)) }
                                td.number { (row.epoch) }
                                td {
                                    (row.started_at.zip(row.finished_at).map_or_else(|| "–".to_owned(), |(from, to)| span(to - from)))
                                }
                                td { (row.worker.as_deref().unwrap_or("–")) }
                                td.text { (row.error.as_deref().unwrap_or("")) }
                            }
                        }
                    }
                }
            }
            @if let Some(last) = more {
                p {
                    a href=(query(&path, &[("status", status), ("after", &last.chunk.to_string()), ("upto", &upto)]) + "#list") rel="next" {
                        "More chunks"
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(status: ChunkStatus, chunks: i64) -> ChunkBucket {
        ChunkBucket { bucket: 0, status, chunks, dead: 0 }
    }

    #[test]
    fn a_cell_shows_the_worst_of_its_chunks_first() {
        let done = cell(ChunkStatus::Completed, 8);
        assert_eq!(colour(&[&done]), "completed");
        assert_eq!(colour(&[&done, &cell(ChunkStatus::Pending, 2)]), "partly");
        assert_eq!(colour(&[&done, &cell(ChunkStatus::Processing, 1)]), "processing");
        let all = [done, cell(ChunkStatus::Processing, 1), cell(ChunkStatus::Failed, 1)];
        assert_eq!(colour(&all.iter().collect::<Vec<_>>()), "failed");
        let said = title(0, 9, &[&all[0], &all[2]]);
        assert_eq!(said, "Chunks 0 to 9: 8 completed, 1 failed");
    }
}
