//! Charts as SVG. Their colours are the stylesheet's.

use crate::words::number;
use maud::{Markup, html};

/// A bar, its parts one above the other, each with the name of its colour.
pub struct Bar {
    /// What a closer look at it says.
    pub title: String,
    /// The word below it, where there is room.
    pub label: String,
    /// From the ground up.
    pub parts: Vec<(&'static str, f64)>,
}

/// The bars are drawn in these units and stretched to the page; words are not stretched with them.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;
/// Room for at least so many bars, so that a few are no walls.
const FEWEST: usize = 20;
/// Words below them.
const LABELS: usize = 4;

/// Bars side by side; `said` tells in a sentence what they show.
pub fn bars(bars: &[Bar], unit: &str, said: &str) -> Markup {
    let height = |bar: &Bar| bar.parts.iter().map(|(_, value)| value).sum::<f64>();
    let most = bars.iter().map(height).fold(0.0, f64::max);
    let scale = if most > 0.0 { HEIGHT / most } else { 0.0 };
    let room = bars.len().max(FEWEST);
    let step = WIDTH / room as f64;
    let label = |place: usize| bars.get(place * room / LABELS).map_or("", |bar| &bar.label);
    html! {
        div.chart {
            div.scale { (number(most.ceil() as i64)) " " (unit) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(said) {
                @for (place, bar) in bars.iter().enumerate() {
                    g {
                        title { (bar.title) }
                        rect.hit x=(round(place as f64 * step)) y="0" width=(round(step)) height=(HEIGHT) {}
                        @for (colour, y, tall) in stacked(bar, scale) {
                            rect class=(colour) x=(round(place as f64 * step + step * 0.1)) y=(round(y))
                                width=(round(step * 0.8)) height=(round(tall)) {}
                        }
                    }
                }
            }
            div.labels aria-hidden="true" { @for place in 0..LABELS { span { (label(place)) } } }
        }
    }
}

/// The parts of a bar from the ground up. What is there at all can be seen.
fn stacked(bar: &Bar, scale: f64) -> Vec<(&'static str, f64, f64)> {
    let mut top = HEIGHT;
    let parts = bar.parts.iter().filter(|(_, value)| *value > 0.0);
    parts
        .map(|(colour, value)| {
            let tall = (value * scale).max(1.5);
            top -= tall;
            (*colour, top, tall)
        })
        .collect()
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

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_bar_fills_the_height_and_names_are_escaped() {
        let bar = |value| Bar {
            title: "<b>".to_owned(),
            label: "x".to_owned(),
            parts: vec![("completed", value)],
        };
        let chart = bars(&[bar(1.0), bar(4.0), bar(0.0)], "jobs", "said").into_string();
        assert!(chart.contains("height=\"100\"") && chart.contains("height=\"25\""), "{chart}");
        assert!(chart.contains("4 jobs") && chart.contains("&lt;b&gt;"), "{chart}");
        assert_eq!(chart.matches("class=\"completed\"").count(), 2);
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
