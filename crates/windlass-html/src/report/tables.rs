//! The tables of a report.

use super::{MAX_CELL_CHARS, Rows};
use crate::components::{empty_state, table_head};
use crate::format::{absolute, count, millis, number};
use maud::{Markup, html};
use windlass_store::{ChunkRow, DeadLetterGroup};

/// Dead letters by error, with their share of all dead letters.
pub(super) fn error_table(groups: &[DeadLetterGroup], dead: i64) -> Markup {
    scroll(
        "Dead letters by error",
        html! {
            (table_head(&["Error", "#Dead letters", "#Share"]))
            tbody {
                @for group in groups {
                    tr {
                        td.text { (group.error) div.faint { "last at " (absolute(group.last_at)) } }
                        td.number { (number(group.letters)) }
                        td.number { (share(group.letters, dead)) }
                    }
                }
            }
        },
    )
}

/// A table of chunks.
pub(super) fn chunk_table(label: &str, rows: &[ChunkRow]) -> Markup {
    let duration = |row: &ChunkRow| match row.started_at.zip(row.finished_at) {
        Some((from, to)) => millis((to - from).num_milliseconds()),
        None => "–".to_owned(),
    };
    scroll(
        label,
        html! {
            (table_head(&["#Chunk", "#Items", "#Dead letters", "#Leases", "#Duration", "Worker"]))
            tbody {
                @for row in rows {
                    tr {
                        td.number { (row.chunk) }
                        td.number { (number(row.items)) }
                        td.number { (number(row.counts.dead)) }
                        td.number { (row.epoch) }
                        td.number { (duration(row)) }
                        td { (row.worker.as_deref().unwrap_or("–")) }
                    }
                    @if let Some(error) = &row.error {
                        tr.error { td {} td.text colspan="5" { (error) } }
                    }
                }
            }
        },
    )
}

/// The first rows of a result. Columns with only numbers are aligned to the right.
pub(super) fn first_rows(rows: &Rows) -> Markup {
    let shown = |text: &str| match text.char_indices().nth(MAX_CELL_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let is_numeric =
        |cell: &Option<String>| cell.as_ref().is_none_or(|text| text.parse::<f64>().is_ok());
    let numeric: Vec<bool> = (0..rows.columns.len())
        .map(|index| rows.first.iter().all(|row| row.get(index).is_none_or(is_numeric)))
        .collect();
    let is_number = |index: usize| numeric.get(index).copied().unwrap_or(false).then_some("number");
    html! {
        @if rows.first.is_empty() { (empty_state("The result has no rows.")) } @else {
            (scroll("First rows of the result", html! {
                thead { tr { @for (index, name) in rows.columns.iter().enumerate() { th class=[is_number(index)] { (name) } } } }
                tbody {
                    @for row in &rows.first {
                        tr {
                            @for (index, cell) in row.iter().enumerate() {
                                td class=[is_number(index)] {
                                    @match cell { Some(text) => (shown(text)), None => span.faint { "null" } }
                                }
                            }
                        }
                    }
                }
            }))
            @if rows.total > rows.first.len() as i64 {
                p.faint { (number(rows.first.len() as i64)) " of " (count(rows.total, "row", "rows")) "." }
            }
        }
    }
}

/// A table that scrolls horizontally, also with the keyboard, if it is too wide.
fn scroll(label: &str, table: Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { table { (table) } } }
}

fn share(of: i64, all: i64) -> String {
    if all <= 0 { "–".to_owned() } else { format!("{:.1} %", of as f64 * 100.0 / all as f64) }
}
