//! The figures as a table for the terminal, and as a table and a chart in docs/performance.md.

use super::{Figures, Line, chart};
use anyhow::{Context, Result};
use std::path::Path;

/// Where the table goes, between two comments of this text.
const PAGE: &str = "docs/performance.md";
const CHART: &str = "docs/images/headline.svg";
const BEGIN: &str = "<!-- headline: written by cargo xtask bench --headline --write -->\n";
const END: &str = "<!-- end of headline -->\n";

const HEAD: [&str; 6] = [
    "program",
    "rows/s",
    "rows measured",
    "p99 of the application, ms",
    "dead tuples per row",
    "rows wrong after kills",
];

/// A line for the terminal, as soon as it is measured.
pub(super) fn row(line: &Line) -> String {
    format!("headline: {}", cells(line).join(", "))
}

/// The table in Markdown, aligned so that it is also readable in a terminal.
pub(super) fn table(figures: &Figures) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    let alone = ["none", "", "", &millis(figures.alone), "", ""].map(str::to_owned);
    rows.push(alone);
    rows.extend(figures.lines.iter().map(cells));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..HEAD.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        // Names to the left, figures to the right.
        let cell = |(at, cell): (usize, &String)| match at {
            0 => format!(" {cell:<width$} ", width = widths[at]),
            _ => format!(" {cell:>width$} ", width = widths[at]),
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        text += &format!("|{}|\n", cells.join("|"));
        if number == 0 {
            let rule = |(at, width): (usize, &usize)| match at {
                0 => "-".repeat(width + 2),
                _ => "-".repeat(width + 1) + ":",
            };
            let rules: Vec<String> = widths.iter().enumerate().map(rule).collect();
            text += &format!("|{}|\n", rules.join("|"));
        }
    }
    text
}

fn cells(line: &Line) -> [String; 6] {
    [
        line.contender.name().to_owned(),
        thousands(line.rate() as u64),
        thousands(line.rows),
        millis(line.p99),
        format!("{:.2}", (line.dead.max(0) as f64) / line.rows as f64),
        wrong(line),
    ]
}

/// The rows that kills made wrong, and of how many kills and rows.
pub(super) fn wrong(line: &Line) -> String {
    let Some(killed) = &line.killed else { return "–".to_owned() };
    let counts = match (killed.lost, killed.doubled) {
        (0, 0) => "0".to_owned(),
        (0, doubled) => format!("{doubled} twice"),
        (lost, 0) => format!("{lost} lost"),
        (lost, doubled) => format!("{lost} lost, {doubled} twice"),
    };
    format!("{counts} ({} kills, {} rows)", killed.kills, thousands(killed.rows))
}

/// A latency with a sensible number of digits.
pub(super) fn millis(millis: f64) -> String {
    if millis < 10.0 { format!("{millis:.1}") } else { thousands(millis.round() as u64) }
}

/// A number with separators.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes the chart, and the table into its place on the page. Paths are relative to the project's folder.
pub(super) fn write(figures: &Figures) -> Result<()> {
    let page = std::fs::read_to_string(PAGE).context(PAGE)?;
    let image = Path::new(CHART).strip_prefix("docs")?.display();
    let section = format!(
        "{BEGIN}\n![Rows per second, latency of the application, and rows wrong after kills]({image})\n\n{}\n{}\n{END}",
        table(figures),
        figures.conditions
    );
    std::fs::write(PAGE, replaced(&page, &section)?)?;
    std::fs::write(CHART, chart::draw(figures)?)?;
    eprintln!("headline: wrote {PAGE} and {CHART}");
    Ok(())
}

/// The page with a new section instead of the old one.
fn replaced(page: &str, section: &str) -> Result<String> {
    let places = page.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = places.with_context(|| {
        format!("{PAGE} has no place for the table: it needs the lines {BEGIN:?} and {END:?}")
    })?;
    Ok(format!("{before}{section}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_replaces_the_one_before_it() {
        let page = format!("above\n{BEGIN}old\n{END}below\n");
        let new = format!("{BEGIN}new\n{END}");
        assert_eq!(replaced(&page, &new).unwrap(), format!("above\n{BEGIN}new\n{END}below\n"));
    }

    #[test]
    fn a_page_without_a_place_is_an_error() {
        let error = replaced("nothing\n", "new").unwrap_err().to_string();
        assert!(error.contains("docs/performance.md has no place for the table"), "{error}");
    }

    #[test]
    fn numbers_have_separators() {
        assert_eq!(
            [7, 999, 1000, 1_234_567].map(thousands),
            ["7", "999", "1,000", "1,234,567"].map(str::to_owned)
        );
    }
}
