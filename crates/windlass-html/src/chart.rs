//! Charts as SVG, drawn by `plotters`. Words are set beside the drawing, so that they keep their size
//! while it is stretched to the page. Its colours are names to the stylesheet, which has them in a
//! light and a dark set; without a stylesheet they are the light ones.

use crate::format::number;
use maud::{Markup, PreEscaped, html};
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// A bar, its parts one above the other, each with the name of its colour.
pub struct Bar {
    /// What a closer look at it says.
    pub title: String,
    /// The word below it, where there is room.
    pub label: String,
    /// From the ground up.
    pub parts: Vec<(&'static str, f64)>,
}

/// The bars are drawn in these units and stretched to the page.
const WIDTH: u32 = 10_000;
const HEIGHT: u32 = 1000;
/// Room for at least so many bars, so that a few are no walls.
const FEWEST: usize = 12;
/// Words below them.
const LABELS: usize = 4;
/// Lines across, at most.
const LINES: usize = 4;
/// What is there at all can be seen: so much of the height.
const LEAST: f64 = 0.015;

const LINE: RGBColor = RGBColor(0xd9, 0xde, 0xe5);
const COLOURS: [(&str, RGBColor); 4] = [
    ("completed", RGBColor(0x1b, 0x7a, 0x43)),
    ("failed", RGBColor(0xb3, 0x26, 0x1e)),
    ("cancelled", RGBColor(0x6b, 0x5f, 0x7a)),
    ("processing", RGBColor(0x0b, 0x62, 0xb8)),
];

/// Bars side by side; `said` tells in a sentence what they show.
pub fn bars(bars: &[Bar], unit: &str, said: &str) -> Markup {
    let height = |bar: &Bar| bar.parts.iter().map(|(_, value)| value).sum::<f64>();
    let lines = lines(bars.iter().map(height).fold(0.0, f64::max));
    let top = lines.last().copied().unwrap_or(1.0);
    let room = bars.len().max(FEWEST);
    let percent = |of: f64| format!("{:.2}%", of * 100.0);
    let step = f64::from(WIDTH) / room as f64;
    let label = |place: usize| bars.get(place).map_or("", |bar| &bar.label);
    html! {
        div.chart {
            div.unit { (unit) }
            svg.lines aria-hidden="true" {
                @for line in &lines {
                    text x="100%" y=(percent(1.0 - line / top)) dy="0.35em" text-anchor="end" { (tick(*line)) }
                }
            }
            svg.plot viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(said) {
                (PreEscaped(drawn(bars, &lines, top, room).unwrap_or_default()))
                @for (place, bar) in bars.iter().enumerate() {
                    g {
                        title { (bar.title) }
                        rect.hit x=(format!("{:.0}", place as f64 * step)) y="0"
                            width=(format!("{step:.0}")) height=(HEIGHT) {}
                    }
                }
            }
            svg.labels aria-hidden="true" {
                @for place in (0..LABELS).map(|part| part * room / LABELS) {
                    text x=(percent(place as f64 / room as f64)) y="1em" { (label(place)) }
                }
            }
        }
    }
}

/// Round numbers for the lines across, from the ground to above the highest bar.
fn lines(most: f64) -> Vec<f64> {
    let most = if most > 0.0 && most.is_finite() { most } else { 1.0 };
    let axis: RangedCoordf64 = (0.0..most).into();
    let mut lines = axis.key_points(LINES);
    if let [.., before, last] = lines[..]
        && last < most
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

/// The lines and the bars. Nothing but memory is written to, so that nothing fails.
fn drawn(
    bars: &[Bar],
    lines: &[f64],
    top: f64,
    room: usize,
) -> Result<String, DrawingAreaErrorKind<std::io::Error>> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        let mut chart = ChartBuilder::on(&area).build_cartesian_2d(0.0..room as f64, 0.0..top)?;
        let line = |y: &f64| PathElement::new(vec![(0.0, *y), (room as f64, *y)], LINE);
        chart.draw_series(lines.iter().map(line))?;
        for (place, bar) in bars.iter().enumerate() {
            let (left, right) = (place as f64 + 0.1, place as f64 + 0.9);
            let mut ground = 0.0;
            let part = |(colour, value): &(&str, f64)| {
                let from = ground;
                ground += value.max(top * LEAST);
                Rectangle::new([(left, from), (right, ground.min(top))], known(colour).filled())
            };
            let parts = bar.parts.iter().filter(|(_, value)| *value > 0.0);
            chart.draw_series(parts.map(part).collect::<Vec<_>>())?;
        }
        area.present()?;
    }
    Ok(svg)
}

fn known(name: &str) -> RGBColor {
    let found = COLOURS.iter().find(|(known, _)| *known == name);
    found.map_or(LINE, |(_, colour)| *colour)
}

/// A box of a graph.
pub struct Node {
    /// Its first line.
    pub name: String,
    /// Its second.
    pub detail: String,
    /// The name of its colour.
    pub colour: String,
    /// Where it leads.
    pub to: String,
    /// The boxes it comes after, by place in the list, where all of those stand before it.
    pub after: Vec<usize>,
}

const BOX: (f64, f64) = (190.0, 44.0);
const GAP: (f64, f64) = (50.0, 14.0);

/// Boxes from left to right, each to the right of those it comes after.
pub fn graph(nodes: &[Node], said: &str) -> Markup {
    let mut columns = vec![0; nodes.len()];
    let mut filled: Vec<usize> = Vec::new();
    let mut places = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let before = node.after.iter().filter(|parent| **parent < at);
        columns[at] = before.map(|parent| columns[*parent] + 1).max().unwrap_or(0);
        filled.resize(filled.len().max(columns[at] + 1), 0);
        let (column, row) = (columns[at] as f64, filled[columns[at]] as f64);
        filled[columns[at]] += 1;
        places.push((column * (BOX.0 + GAP.0) + 1.0, row * (BOX.1 + GAP.1) + 1.0));
    }
    let width = filled.len() as f64 * (BOX.0 + GAP.0) - GAP.0 + 2.0;
    let height = filled.iter().max().copied().unwrap_or(0) as f64 * (BOX.1 + GAP.1) + 2.0;
    html! {
        div.scroll {
            svg.graph viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height)
                role="group" aria-label=(said) {
                @for (node, (x, y)) in nodes.iter().zip(&places) {
                    @for parent in node.after.iter().filter_map(|parent| places.get(*parent)) {
                        path.edge d=(format!("M{} {} C{} {} {} {} {x} {}",
                            parent.0 + BOX.0, parent.1 + BOX.1 / 2.0,
                            parent.0 + BOX.0 + GAP.0 / 2.0, parent.1 + BOX.1 / 2.0,
                            x - GAP.0 / 2.0, y + BOX.1 / 2.0, y + BOX.1 / 2.0)) {}
                    }
                    a href=(node.to) {
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
        Bar { title: "<b>".to_owned(), label: "x".to_owned(), parts }
    }

    #[test]
    fn bars_are_as_high_as_their_values_and_names_are_escaped() {
        let chart = bars(&[bar(1.0), bar(4.0), bar(0.0)], "jobs", "said").into_string();
        assert!(chart.contains("height=\"999\" opacity"), "{chart}");
        assert!(chart.contains("height=\"249\" opacity"), "{chart}");
        assert_eq!(chart.matches("fill=\"#1B7A43\"").count(), 2, "{chart}");
        assert!(chart.contains("&lt;b&gt;") && !chart.contains("<b>"), "{chart}");
        assert!(!chart.contains("style="), "no page would allow it: {chart}");
    }

    #[test]
    fn lines_are_round_and_reach_over_the_highest_bar() {
        assert_eq!(lines(5.0), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(lines(0.0).last(), Some(&1.0));
        for most in [0.003, 0.7, 1.0, 7.3, 99.0, 12_345.0, 3e9] {
            let lines = lines(most);
            assert!((3..=7).contains(&lines.len()), "{lines:?}");
            assert!(lines[lines.len() - 1] >= most, "{lines:?}");
        }
        assert_eq!([0.0, 0.25, 1.5, 12_000.0].map(tick), ["0", "0.25", "1.5", "12,000"]);
    }

    #[test]
    fn the_stylesheet_knows_every_colour_by_its_light_value() {
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
    fn what_comes_after_stands_to_the_right() {
        let node = |after: &[usize]| Node {
            name: String::new(),
            detail: String::new(),
            colour: String::new(),
            to: "/".to_owned(),
            after: after.to_vec(),
        };
        let drawn = graph(&[node(&[]), node(&[]), node(&[0, 1])], "said").into_string();
        assert_eq!(drawn.matches("class=\"edge\"").count(), 2);
        assert!(drawn.contains("x=\"241\""), "{drawn}");
    }
}
