//! The chunks of a job: a grid of cells, the details of one chunk, and a paginated list.

use super::dead_letters::url_with_query;
use super::format::{chunk_status_label, class, count, duration, full_time, number};
use super::jobs::optional_field;
use super::key_set_text::describe;
use super::layout::{empty_state, facts, table_head};
use crate::App;
use crate::problem::ApiResult;
use chrono::Utc;
use futures::try_join;
use maud::{Markup, html};
use serde::Deserialize;
use std::collections::BTreeMap;
use windlass_core::{ChunkCounts, ChunkStatus, Job};
use windlass_store::{ChunkBucket, ChunkRow};

/// The maximum number of cells. A job with more chunks has several chunks per cell.
const MAX_CELLS: i64 = 1000;
/// Chunks per page of the list.
const PAGE_CHUNKS: u32 = 25;

/// The chunks to show.
#[derive(Default, Deserialize)]
pub(super) struct ChunksQuery {
    /// The chunk whose details are shown.
    #[serde(default, deserialize_with = "optional_field")]
    chunk: Option<i64>,
    /// The list starts after this chunk.
    #[serde(default, deserialize_with = "optional_field")]
    after: Option<i64>,
    /// The list ends with this chunk.
    #[serde(default, deserialize_with = "optional_field")]
    upto: Option<i64>,
    /// The list has chunks of this status.
    #[serde(default, deserialize_with = "optional_field")]
    status: Option<ChunkStatus>,
}

/// The data of the section.
pub(super) struct ChunksView {
    /// Chunks per cell.
    width: i64,
    cells: Vec<ChunkBucket>,
    selected: Option<ChunkRow>,
    listed: Vec<ChunkRow>,
}

/// Loads the chunks of a job.
pub(super) async fn load(app: &App, job: &Job, query: &ChunksQuery) -> ApiResult<ChunksView> {
    let store = app.engine.store();
    let width = (job.chunks.total + MAX_CELLS - 1) / MAX_CELLS;
    let width = width.max(1);
    let selected = async {
        match query.chunk {
            Some(chunk) => store.chunks(job.id, None, chunk.checked_sub(1), 1).await,
            None => Ok(Vec::new()),
        }
    };
    let (cells, mut selected, mut listed) = try_join!(
        store.chunk_buckets(job.id, width),
        selected,
        store.chunks(job.id, query.status, query.after, PAGE_CHUNKS),
    )?;
    selected.retain(|row| Some(row.chunk) == query.chunk);
    listed.retain(|row| query.upto.is_none_or(|upto| row.chunk <= upto));
    Ok(ChunksView { width, cells, selected: selected.pop(), listed })
}

/// Renders the section. `key` has the columns of the source's key.
pub(super) fn section(job: &Job, query: &ChunksQuery, view: &ChunksView, key: &[String]) -> Markup {
    let ChunksView { width, cells, selected, listed } = view;
    let (width, is_filtered) = (*width, query.after.is_some() || query.status.is_some());
    html! {
        section aria-labelledby="chunks" {
            h2 #chunks { "Chunks" }
            (legend(job))
            @if cells.is_empty() {
                @if job.status.is_final() { (empty_state("No chunks: there were none, or they have been pruned.")) }
                @else { (empty_state("No chunks planned yet.")) }
            } @else {
                @if width > 1 {
                    p.faint { "Each cell represents " (number(width)) " consecutive chunks." }
                }
                (grid(job, cells, width))
            }
            @if let Some(chunk) = selected { (detail(chunk, key)) }
            @else if let Some(chunk) = query.chunk { (empty_state(&format!("There is no chunk {chunk}."))) }
            @if !cells.is_empty() {
                details #list open[is_filtered] { summary { "Chunk list" } (list(job, query, listed)) }
            }
        }
    }
}

/// The number of chunks of each status, with links to their list.
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
                    a href=(url_with_query(&format!("/jobs/{}", job.id), &[("status", status.as_str())]) + "#list") {
                        span class=(format!("cell {}", class(status.as_str()))) aria-hidden="true" {}
                        (number(chunks)) " " (chunk_status_label(status))
                    }
                }
            }
        }
    }
}

/// The cells. Hidden from keyboard and screen reader users, who have the legend and the list.
fn grid(job: &Job, cells: &[ChunkBucket], width: i64) -> Markup {
    let mut by_cell: BTreeMap<i64, Vec<&ChunkBucket>> = BTreeMap::new();
    for cell in cells {
        by_cell.entry(cell.bucket).or_default().push(cell);
    }
    html! {
        div.cells aria-hidden="true" {
            @for (cell, parts) in &by_cell {
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

/// The colour of a cell: that of failed chunks first, then of running ones.
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
        true => chunk_status_label(part.status).to_owned(),
        false => format!("{} {}", number(part.chunks), chunk_status_label(part.status)),
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

/// The details of one chunk.
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
                span class=(format!("badge {}", class(row.status.as_str()))) { (chunk_status_label(row.status)) }
            }
            (facts(&[
                ("Items", html! {
                    (number(row.items)) ": " (number(counts.processed)) " processed, "
                    (number(counts.skipped)) " skipped, " (count(counts.dead, "dead letter", "dead letters"))
                }),
                ("Keys", html! { (describe(&row.key_set, key)) }),
                ("Worker", html! { (row.worker.as_deref().unwrap_or("–")) }),
                ("Started", when(row.started_at)),
                ("Finished", when(row.finished_at)),
                ("Leases", html! { (leases(row)) }),
            ]))
            @if let Some(error) = &row.error { p.problem { (error) } }
        }
    }
}

/// How often a chunk was leased, failed, and lost its lease.
fn leases(row: &ChunkRow) -> String {
    let mut text = row.epoch.to_string();
    for (times, outcome) in [(row.attempts, "failed"), (row.losses, "expired or taken over")] {
        if times > 0 {
            text += &format!(", {times} {outcome}");
        }
    }
    text
}

fn list(job: &Job, query: &ChunksQuery, rows: &[ChunkRow]) -> Markup {
    let path = format!("/jobs/{}", job.id);
    let status = query.status.map_or("", |status| status.as_str());
    let more = rows
        .last()
        .filter(|last| rows.len() == PAGE_CHUNKS as usize && query.upto != Some(last.chunk));
    let upto = query.upto.map(|upto| upto.to_string()).unwrap_or_default();
    html! {
        @if let Some(upto) = query.upto {
            p {
                "Chunks " (query.after.unwrap_or(-1) + 1) " to " (upto) " (" a href=(path.clone() + "?after=-1#list") { "all" } ")"
            }
        }
        form.search method="get" action=(path) {
            label {
                "Status "
                select name="status" {
                    option value="" { "any" }
                    @for known in ChunkStatus::ALL {
                        option value=(known) selected[query.status == Some(*known)] { (chunk_status_label(*known)) }
                    }
                }
            }
            label { "After chunk " input name="after" type="number" min="-1" step="1" value=[query.after]; }
            button { "Filter" }
        }
        @if rows.is_empty() { (empty_state("No matching chunks.")) } @else {
            div.scroll {
                table {
                    (table_head(&["#Chunk", "Status", "#Items", "#Dead letters", "#Leases", "Duration", "Worker", "Error"]))
                    tbody {
                        @for row in rows {
                            tr {
                                td.number {
                                    a href=(url_with_query(&path, &[("chunk", &row.chunk.to_string())])) {
                                        (row.chunk)
                                    }
                                }
                                td {
                                    span class=(format!("badge {}", class(row.status.as_str()))) {
                                        (chunk_status_label(row.status))
                                    }
                                }
                                td.number { (number(row.items)) }
                                td.number { (number(row.counts.dead)) }
                                td.number { (row.epoch) }
                                td.nowrap {
                                    (row.started_at.zip(row.finished_at).map_or_else(|| "–".to_owned(), |(from, to)| duration(to - from)))
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
                    a href=(url_with_query(&path, &[("status", status), ("after", &last.chunk.to_string()), ("upto", &upto)]) + "#list") rel="next" {
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
    fn a_cell_has_the_colour_of_its_most_important_status() {
        let done = cell(ChunkStatus::Completed, 8);
        assert_eq!(colour(&[&done]), "completed");
        assert_eq!(colour(&[&done, &cell(ChunkStatus::Pending, 2)]), "partly");
        assert_eq!(colour(&[&done, &cell(ChunkStatus::Processing, 1)]), "processing");
        let all = [done, cell(ChunkStatus::Processing, 1), cell(ChunkStatus::Failed, 1)];
        assert_eq!(colour(&all.iter().collect::<Vec<_>>()), "failed");
        let text = title(0, 9, &[&all[0], &all[2]]);
        assert_eq!(text, "Chunks 0 to 9: 8 completed, 1 failed");
    }
}
