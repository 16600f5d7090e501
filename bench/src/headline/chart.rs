//! The figures as an SVG: a line per program, with bars on logarithmic scales for rows per second and for the
//! application's latency, and the rows that are wrong after kills as text. It has a light and a dark scheme.

use super::page::{millis, thousands};
use super::{Figures, Killed, Line};
use anyhow::{Context, Result};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
const INK: RGBColor = RGBColor(0x1f, 0x23, 0x28);
const GREY: RGBColor = RGBColor(0x59, 0x63, 0x6e);
const RULE: RGBColor = RGBColor(0xd1, 0xd9, 0xe0);
const OURS: RGBColor = RGBColor(0x0b, 0x62, 0xb8);
const THEIRS: RGBColor = RGBColor(0x8c, 0x95, 0x9f);
const BAD: RGBColor = RGBColor(0xb3, 0x26, 0x1e);
const GOOD: RGBColor = RGBColor(0x1b, 0x7a, 0x43);

/// Each colour in the dark scheme.
const DARK: [(RGBColor, &str); 8] = [
    (PAPER, "#161b22"),
    (INK, "#e6edf3"),
    (GREY, "#9198a1"),
    (RULE, "#3d444d"),
    (OURS, "#58a6ff"),
    (THEIRS, "#6e7681"),
    (BAD, "#ff7b72"),
    (GOOD, "#56d364"),
];

const WIDTH: i32 = 960;
const TOP: i32 = 74;
const ROW: i32 = 34;
const BAR: i32 = 18;
const BOTTOM: i32 = 40;
const NAMES: i32 = 20;
const RATES: Panel = Panel { left: 190, width: 250 };
const LATENCIES: Panel = Panel { left: 530, width: 170 };
const WRONG: i32 = 775;

/// The place of the bars of one figure.
struct Panel {
    left: i32,
    width: i32,
}

/// The image as text.
pub(super) fn draw(figures: &Figures) -> Result<String> {
    let count = i32::try_from(figures.lines.len())?;
    let height = TOP + count * ROW + BOTTOM;
    let mut svg = String::new();
    let size = (u32::try_from(WIDTH)?, u32::try_from(height)?);
    lines(figures, SVGBackend::with_string(&mut svg, size), height)
        .ok()
        .context("the chart cannot be drawn")?;
    Ok(with_dark_scheme(&svg))
}

type Drawn<B> = std::result::Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

fn lines<B: DrawingBackend>(figures: &Figures, backend: B, height: i32) -> Drawn<B> {
    let area = backend.into_drawing_area();
    area.fill(&PAPER)?;
    let heads = [
        (RATES.left, "rows per second", "logarithmic; longer is better"),
        (LATENCIES.left, "p99 of the application", "logarithmic; shorter is better"),
        (WRONG, "rows wrong", "up to ten kill -9"),
    ];
    for (left, name, detail) in heads {
        area.draw(&text(name, (left, 26), 18, INK))?;
        area.draw(&text(detail, (left, 48), 14, GREY))?;
    }
    // A scale begins below its smallest figure, so that the shortest bar is visible.
    let rates = figures.lines.iter().map(Line::rate);
    let latencies = figures.lines.iter().map(|line| line.p99).chain([figures.alone]);
    let (rates, latencies) = (Scale::over(rates), Scale::over(latencies));
    for (at, line) in (0..).zip(&figures.lines) {
        let middle = TOP + at * ROW + ROW / 2;
        let is_ours = line.contender.is_ours();
        let (bar, ink) = if is_ours { (OURS, OURS) } else { (THEIRS, INK) };
        area.draw(&text(line.contender.name(), (NAMES, middle), 16, ink))?;
        let bars = [
            (&RATES, rates.share(line.rate()), thousands(line.rate() as u64)),
            (&LATENCIES, latencies.share(line.p99), format!("{} ms", millis(line.p99))),
        ];
        for (panel, share, label) in bars {
            let right = panel.left + (f64::from(panel.width) * share) as i32;
            let corners = [(panel.left, middle - BAR / 2), (right, middle + BAR / 2)];
            area.draw(&Rectangle::new(corners, bar.filled()))?;
            area.draw(&text(&label, (right + 6, middle), 15, INK))?;
        }
        let (label, colour) = wrong(line.killed.as_ref());
        area.draw(&text(&label, (WRONG, middle), 15, colour))?;
    }
    let alone =
        LATENCIES.left + (f64::from(LATENCIES.width) * latencies.share(figures.alone)) as i32;
    let bottom = height - BOTTOM;
    area.draw(&PathElement::new(vec![(alone, TOP), (alone, bottom)], INK))?;
    let label = format!("{} ms with no backfill", millis(figures.alone));
    area.draw(&text(&label, (alone - 4, bottom + 14), 14, GREY))?;
    area.draw(&PathElement::new(vec![(NAMES, TOP - 10), (WIDTH - NAMES, TOP - 10)], RULE))?;
    area.present()
}

fn wrong(killed: Option<&Killed>) -> (String, RGBColor) {
    match killed.map(|killed| killed.lost + killed.doubled) {
        None => ("not applicable".to_owned(), GREY),
        Some(0) => ("0".to_owned(), GOOD),
        Some(rows) => (thousands(rows.unsigned_abs()), BAD),
    }
}

fn text(
    label: &str,
    at: (i32, i32),
    size: i32,
    colour: RGBColor,
) -> Text<'static, (i32, i32), String> {
    let mut style = TextStyle::from(("system-ui, sans-serif", size).into_font());
    style.color = colour.to_backend_color();
    style.pos = Pos::new(HPos::Left, VPos::Center);
    Text::new(label.to_owned(), at, style)
}

/// A logarithmic scale.
struct Scale {
    from: f64,
    to: f64,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64> + Clone) -> Scale {
        let least = values.clone().fold(f64::INFINITY, f64::min).max(0.01);
        Scale { from: (least / 3.0).ln(), to: values.fold(least, f64::max).ln() }
    }

    /// How much of the panel's width a value takes.
    fn share(&self, value: f64) -> f64 {
        (value.max(0.01).ln() - self.from) / (self.to - self.from)
    }
}

/// `plotters` writes colours as values. A browser that prefers a dark scheme replaces them.
fn with_dark_scheme(svg: &str) -> String {
    let rules = DARK.map(|(RGBColor(red, green, blue), dark)| {
        let light = format!("#{red:02X}{green:02X}{blue:02X}");
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    });
    let style =
        format!("<style>@media (prefers-color-scheme:dark){{{}}}</style>\n", rules.concat());
    let head = svg.find('>').map_or(0, |end| end + 1);
    format!("{}\n{style}{}", &svg[..head], &svg[head..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_follows_the_head_and_names_every_colour() {
        let svg = with_dark_scheme("<svg a=\"b\">\n<rect fill=\"#FFFFFF\"/></svg>");
        assert!(
            svg.starts_with("<svg a=\"b\">\n<style>@media (prefers-color-scheme:dark)"),
            "{svg}"
        );
        assert!(svg.contains("[fill=\"#FFFFFF\"]{fill:#161b22}"), "{svg}");
    }

    #[test]
    fn a_scale_gives_the_largest_value_the_whole_width() {
        let scale = Scale::over([1.0, 100.0].into_iter());
        assert!((scale.share(100.0) - 1.0).abs() < 1e-9);
        assert!(scale.share(1.0) > 0.0);
    }
}
