//! The tables of a report.

use super::{MOST_LETTERS, Rows};
use crate::components::{heads, nothing};
use crate::format::{absolute, count, millis, number};
use maud::{Markup, html};
use windlass_store::{ChunkRow, DeadLetterGroup};

/// What items died of, as parts of all that did.
pub(super) fn errors(groups: &[DeadLetterGroup], dead: i64) -> Markup {
    scroll(
        "Dead letters by error",
        html! {
            (heads(&["Error", "#Letters", "#ScanSegment"]))
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

/// Chunks one by one.
pub(super) fn chunks(said: &str, rows: &[ChunkRow]) -> Markup {
    let took = |row: &ChunkRow| match row.started_at.zip(row.finished_at) {
        Some((from, to)) => millis((to - from).num_milliseconds()),
        None => "–".to_owned(),
    };
    scroll(
        said,
        html! {
            (heads(&["#Chunk", "#Items", "#Dead", "#Claims", "#DurationBucket", "Worker"]))
            tbody {
                @for row in rows {
                    tr {
                        td.number { (row.chunk) }
                        td.number { (number(row.items)) }
                        td.number { (number(row.counts.dead)) }
                        td.number { (row.epoch) }
                        td.number { (took(row)) }
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

/// The first rows of a result; columns of numbers are set as such.
pub(super) fn first(rows: &Rows) -> Markup {
    let shown = |text: &str| match text.char_indices().nth(MOST_LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let is_numeric =
        |cell: &Option<String>| cell.as_ref().is_none_or(|text| text.parse::<f64>().is_ok());
    let numeric: Vec<bool> = (0..rows.columns.len())
        .map(|place| rows.first.iter().all(|row| row.get(place).is_none_or(is_numeric)))
        .collect();
    let is_number = |place: usize| numeric.get(place).copied().unwrap_or(false).then_some("number");
    html! {
        @if rows.first.is_empty() { (nothing("The result has no rows.")) } @else {
            (scroll("The first rows of the result", html! {
                thead { tr { @for (place, name) in rows.columns.iter().enumerate() { th class=[is_number(place)] { (name) } } } }
                tbody {
                    @for row in &rows.first {
                        tr {
                            @for (place, cell) in row.iter().enumerate() {
                                td class=[is_number(place)] {
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

/// A table that can be moved within its frame where it is too wide, by the keyboard too.
fn scroll(said: &str, table: Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(said) { table { (table) } } }
}

fn share(of: i64, all: i64) -> String {
    if all <= 0 { "–".to_owned() } else { format!("{:.1} %", of as f64 * 100.0 / all as f64) }
}
