//! Charts as SVG, drawn by `plotters`. Text is placed outside of the drawing, so that it keeps its size
//! while the drawing is stretched to the page. The stylesheet replaces each colour by the one of its
//! scheme, light or dark; without a stylesheet they are the light ones.

use crate::format::{TimeStyle, absolute, machine_time, number};
use chrono::{DateTime, Utc};
use maud::{Markup, PreEscaped, html};
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// A bar of stacked parts, each with the name of its colour.
pub struct Bar {
    /// The tooltip, after the label.
    pub title: String,
    /// The label below the bar, shown if there is space.
    pub label: BarLabel,
    /// From bottom to top.
    pub parts: Vec<(&'static str, f64)>,
}

/// The label of a bar.
pub enum BarLabel {
    /// A text, which is not repeated in the tooltip.
    Text(String),
    /// A time. The dashboard shows it in the time zone of the viewer.
    Time(DateTime<Utc>, TimeStyle),
}

impl BarLabel {
    /// The label below the bar.
    fn text(&self) -> String {
        match self {
            BarLabel::Text(text) => text.clone(),
            BarLabel::Time(at, style) => style.utc(*at),
        }
    }

    /// The time and style for the script of the dashboard.
    fn time(&self) -> Option<(String, &'static str)> {
        match self {
            BarLabel::Text(_) => None,
            BarLabel::Time(at, style) => Some((machine_time(*at), style.as_str())),
        }
    }
}

/// The tooltip of a bar.
fn tooltip(bar: &Bar) -> Markup {
    match &bar.label {
        BarLabel::Text(_) => html! { title { (bar.title) } },
        BarLabel::Time(at, _) => {
            let rest = format!(": {}", bar.title);
            html! { title data-at=(machine_time(*at)) data-style="full" data-rest=(rest) { (absolute(*at)) (rest) } }
        }
    }
}

/// The size of the drawing in its own units.
const WIDTH: u32 = 10_000;
const HEIGHT: u32 = 1000;
/// The minimum number of columns, so that a few bars are not too wide.
const MIN_COLUMNS: usize = 12;
/// The number of labels.
const LABELS: usize = 4;
/// The maximum number of grid lines.
const LINES: usize = 4;
/// The minimum height of a part that is not zero, as a fraction of the chart.
const MIN_HEIGHT: f64 = 0.015;

const LINE: RGBColor = RGBColor(0xd9, 0xde, 0xe5);
const COLOURS: [(&str, RGBColor); 4] = [
    ("completed", RGBColor(0x1b, 0x7a, 0x43)),
    ("failed", RGBColor(0xb3, 0x26, 0x1e)),
    ("cancelled", RGBColor(0x6b, 0x5f, 0x7a)),
    ("processing", RGBColor(0x0b, 0x62, 0xb8)),
];

/// A bar chart. `description` is its text for screen readers.
pub fn bars(bars: &[Bar], unit: &str, description: &str) -> Markup {
    let height = |bar: &Bar| bar.parts.iter().map(|(_, value)| value).sum::<f64>();
    let lines = grid_lines(bars.iter().map(height).fold(0.0, f64::max));
    let top = lines.last().copied().unwrap_or(1.0);
    let columns = bars.len().max(MIN_COLUMNS);
    let percent = |of: f64| format!("{:.2}%", of * 100.0);
    let step = f64::from(WIDTH) / columns as f64;
    html! {
        div.chart {
            div.unit { (unit) }
            svg.lines aria-hidden="true" {
                @for line in &lines {
                    text x="100%" y=(percent(1.0 - line / top)) dy="0.35em" text-anchor="end" { (tick(*line)) }
                }
            }
            svg.plot viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(description) {
                (PreEscaped(draw(bars, &lines, top, columns).unwrap_or_default()))
                @for (index, bar) in bars.iter().enumerate() {
                    g {
                        (tooltip(bar))
                        rect.hit x=(format!("{:.0}", index as f64 * step)) y="0"
                            width=(format!("{step:.0}")) height=(HEIGHT) {}
                    }
                }
            }
            svg.labels aria-hidden="true" {
                @for index in (0..LABELS).map(|part| part * columns / LABELS) {
                    @if let Some(bar) = bars.get(index) {
                        @let (at, style) = bar.label.time().unzip();
                        text x=(percent(index as f64 / columns as f64)) y="1em" data-at=[at] data-style=[style] { (bar.label.text()) }
                    }
                }
            }
        }
    }
}

/// Round values for the grid lines, from zero to at least the highest bar.
fn grid_lines(highest: f64) -> Vec<f64> {
    let highest = if highest > 0.0 && highest.is_finite() { highest } else { 1.0 };
    let axis: RangedCoordf64 = (0.0..highest).into();
    let mut lines = axis.key_points(LINES);
    if let [.., before, last] = lines[..]
        && last < highest
    {
        lines.push(last + (last - before));
    }
    lines
}

fn tick(value: f64) -> String {
    if value.fract().abs() > 1e-9 {
        return ((value * 100.0).round() / 100.0).to_string();
    }
    number(value.round() as i64)
}

/// Draws grid lines and bars. Writing to memory does not fail.
fn draw(
    bars: &[Bar],
    lines: &[f64],
    top: f64,
    columns: usize,
) -> Result<String, DrawingAreaErrorKind<std::io::Error>> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        let mut chart =
            ChartBuilder::on(&area).build_cartesian_2d(0.0..columns as f64, 0.0..top)?;
        let line = |y: &f64| PathElement::new(vec![(0.0, *y), (columns as f64, *y)], LINE);
        chart.draw_series(lines.iter().map(line))?;
        for (index, bar) in bars.iter().enumerate() {
            let (left, right) = (index as f64 + 0.1, index as f64 + 0.9);
            let mut bottom = 0.0;
            let part = |(colour, value): &(&str, f64)| {
                let from = bottom;
                bottom += value.max(top * MIN_HEIGHT);
                Rectangle::new([(left, from), (right, bottom.min(top))], rgb(colour).filled())
            };
            let parts = bar.parts.iter().filter(|(_, value)| *value > 0.0);
            chart.draw_series(parts.map(part).collect::<Vec<_>>())?;
        }
        area.present()?;
    }
    Ok(svg)
}

fn rgb(name: &str) -> RGBColor {
    let found = COLOURS.iter().find(|(known, _)| *known == name);
    found.map_or(LINE, |(_, colour)| *colour)
}

/// A node of a graph.
pub struct Node {
    /// The first line.
    pub name: String,
    /// The second line.
    pub detail: String,
    /// The name of the colour.
    pub colour: String,
    /// The URL.
    pub link: String,
    /// The indexes of the nodes that it depends on; they must precede it in the list.
    pub after: Vec<usize>,
}

const BOX: (f64, f64) = (190.0, 44.0);
const GAP: (f64, f64) = (50.0, 14.0);

/// A graph from left to right: each node is to the right of those that it depends on.
pub fn graph(nodes: &[Node], description: &str) -> Markup {
    let mut columns = vec![0; nodes.len()];
    let mut column_sizes: Vec<usize> = Vec::new();
    let mut positions = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let before = node.after.iter().filter(|parent| **parent < at);
        columns[at] = before.map(|parent| columns[*parent] + 1).max().unwrap_or(0);
        column_sizes.resize(column_sizes.len().max(columns[at] + 1), 0);
        let (column, row) = (columns[at] as f64, column_sizes[columns[at]] as f64);
        column_sizes[columns[at]] += 1;
        positions.push((column * (BOX.0 + GAP.0) + 1.0, row * (BOX.1 + GAP.1) + 1.0));
    }
    let width = column_sizes.len() as f64 * (BOX.0 + GAP.0) - GAP.0 + 2.0;
    let height = column_sizes.iter().max().copied().unwrap_or(0) as f64 * (BOX.1 + GAP.1) + 2.0;
    html! {
        div.scroll {
            svg.graph viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height)
                role="group" aria-label=(description) {
                @for (node, (x, y)) in nodes.iter().zip(&positions) {
                    @for parent in node.after.iter().filter_map(|parent| positions.get(*parent)) {
                        path.edge d=(format!("M{} {} C{} {} {} {} {x} {}",
                            parent.0 + BOX.0, parent.1 + BOX.1 / 2.0,
                            parent.0 + BOX.0 + GAP.0 / 2.0, parent.1 + BOX.1 / 2.0,
                            x - GAP.0 / 2.0, y + BOX.1 / 2.0, y + BOX.1 / 2.0)) {}
                    }
                    a href=(node.link) {
                        rect class=(format!("node {}", node.colour)) x=(x) y=(y) width=(BOX.0) height=(BOX.1) rx="6" {}
                        text.name x=(x + 10.0) y=(y + 19.0) { (node.name) }
                        text.detail x=(x + 10.0) y=(y + 35.0) { (node.detail) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(value: f64) -> Bar {
        let parts = vec![("completed", value), ("failed", 0.0)];
        Bar { title: "<b>".to_owned(), label: BarLabel::Text("x".to_owned()), parts }
    }

    #[test]
    fn bar_heights_are_proportional_and_titles_are_escaped() {
        let chart = bars(&[bar(1.0), bar(4.0), bar(0.0)], "jobs", "said").into_string();
        assert!(chart.contains("height=\"999\" opacity"), "{chart}");
        assert!(chart.contains("height=\"249\" opacity"), "{chart}");
        assert_eq!(chart.matches("fill=\"#1B7A43\"").count(), 2, "{chart}");
        assert!(chart.contains("&lt;b&gt;") && !chart.contains("<b>"), "{chart}");
        assert!(!chart.contains("style="), "the content security policy forbids it: {chart}");
    }

    #[test]
    fn grid_lines_are_round_and_reach_the_highest_bar() {
        assert_eq!(grid_lines(5.0), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(grid_lines(0.0).last(), Some(&1.0));
        for highest in [0.003, 0.7, 1.0, 7.3, 99.0, 12_345.0, 3e9] {
            let lines = grid_lines(highest);
            assert!((3..=7).contains(&lines.len()), "{lines:?}");
            assert!(lines[lines.len() - 1] >= highest, "{lines:?}");
        }
        assert_eq!([0.0, 0.25, 1.5, 12_000.0].map(tick), ["0", "0.25", "1.5", "12,000"]);
    }

    #[test]
    fn the_stylesheet_maps_every_colour() {
        let hex = |colour: RGBColor| format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
        for (name, colour) in COLOURS {
            let hex = hex(colour);
            assert!(crate::STYLE.contains(&format!("--{name}: {};", hex.to_lowercase())), "{name}");
            let rule = format!(".plot [fill=\"{hex}\"] {{ fill: var(--{name}); }}");
            assert!(crate::STYLE.contains(&rule), "{rule}");
        }
        let rule = format!(".plot [stroke=\"{}\"] {{ stroke: var(--line); ", hex(LINE));
        assert!(crate::STYLE.contains(&rule), "{rule}");
    }

    #[test]
    fn a_node_is_to_the_right_of_its_dependencies() {
        let node = |after: &[usize]| Node {
            name: String::new(),
            detail: String::new(),
            colour: String::new(),
            link: "/".to_owned(),
            after: after.to_vec(),
        };
        let drawn = graph(&[node(&[]), node(&[]), node(&[0, 1])], "said").into_string();
        assert_eq!(drawn.matches("class=\"edge\"").count(), 2);
        assert!(drawn.contains("x=\"241\""), "{drawn}");
    }
}
