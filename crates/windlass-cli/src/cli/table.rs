//! Tables for people: one line per row, aligned, and no wider than the terminal.

use super::{escape, print};
use comfy_table::{ColumnConstraint, ContentArrangement, Row, presets};
use std::io::IsTerminal;
use windlass::JobStatus;

/// Columns with texts, which are cut where the terminal is too narrow. Others keep their width.
const TEXTS: [&str; 9] =
    ["TYPE", "KEY", "BY", "WORKER", "NAME", "AFTER", "MESSAGE", "WHY", "ERROR"];
/// Columns that a narrow terminal leaves out.
const DETAILS: [&str; 6] = ["CHUNKS", "BY", "LOST", "STARTED", "WORKER", "ATTEMPTS"];
/// Terminals with fewer columns are narrow.
const WIDE: u16 = 120;

/// A table without borders, as `ls` and `ps` print them. Its cells are escaped, so that each row stays on
/// one line.
pub(super) struct Table {
    table: comfy_table::Table,
    header: Vec<String>,
    /// The status in each row, which is coloured after the columns are aligned.
    statuses: Vec<Option<JobStatus>>,
}

impl Table {
    pub(super) fn new(header: &[&str]) -> Table {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_header(header).set_truncation_indicator("…");
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        Table { table, header, statuses: Vec::new() }
    }

    pub(super) fn add_row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut status = None;
        let cells: Vec<String> = cells
            .into_iter()
            .map(|cell| match JobStatus::ALL.iter().find(|each| cell == print::status(**each)) {
                Some(found) => {
                    status = Some(*found);
                    found.as_str().to_owned()
                }
                None => escape::one_line(&cell),
            })
            .collect();
        let mut row = Row::from(cells);
        row.max_height(1);
        self.table.add_row(row);
        self.statuses.push(status);
    }

    /// The table, fitted to the terminal if there is one.
    fn fitted(&self) -> comfy_table::Table {
        let mut table = self.table.clone();
        let Some(width) = table.width().filter(|_| std::io::stdout().is_terminal()) else {
            return table;
        };
        table.set_content_arrangement(ContentArrangement::Dynamic);
        for (name, column) in self.header.iter().zip(table.column_iter_mut()) {
            let name = name.trim();
            if width < WIDE && DETAILS.contains(&name) {
                column.set_constraint(ColumnConstraint::Hidden);
            } else if !TEXTS.contains(&name) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        table
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.fitted().to_string();
        // The first line is the header.
        let statuses = [None].into_iter().chain(self.statuses.iter().copied());
        let lines = text.lines().zip(statuses.chain(std::iter::repeat(None)));
        let lines = lines.map(|(line, status)| match status {
            Some(status) => {
                let coloured = format!(" {}", print::status(status));
                line.trim_end().replacen(&format!(" {status}"), &coloured, 1)
            }
            None => line.trim_end().to_owned(),
        });
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}
