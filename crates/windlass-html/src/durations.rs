//! How long a job's chunks took.

use crate::chart::{Bar, bars};
use crate::components::nothing;
use crate::format::{count, millis};
use maud::{Markup, html};
use windlass_store::DurationBucket;

/// Bars of the chart, about.
const BARS: i64 = 12;

/// Chunks by how long they took; those that took much longer than most share the last bar.
pub fn durations(took: &[DurationBucket]) -> Markup {
    let chunks: i64 = took.iter().map(|took| took.chunks).sum();
    let (Some(longest), true) = (took.last(), chunks > 0) else {
        return nothing("No chunk has been completed.");
    };
    let width = width(share(took, chunks, 0.99) / BARS);
    let edges = (share(took, chunks, 0.99) / width + 1).min(longest.millis / width + 1);
    let within = |from: i64, to: i64| {
        let found = took.iter().filter(|took| (from..to).contains(&took.millis));
        found.map(|took| took.chunks).sum::<i64>()
    };
    let bar = |from: i64, to: i64, range: String| {
        let chunks = within(from, to);
        let title = format!("{range}: {}", count(chunks, "chunk", "chunks"));
        Bar { title, label: millis(from), parts: vec![("processing", chunks as f64)] }
    };
    let mut columns: Vec<Bar> = (0..edges)
        .map(|place| (place * width, (place + 1) * width))
        .map(|(from, to)| bar(from, to, format!("{} to {}", millis(from), millis(to))))
        .collect();
    if within(edges * width, i64::MAX) > 0 {
        let from = edges * width;
        columns.push(bar(from, i64::MAX, format!("{} and longer", millis(from))));
    }
    let said = format!(
        "{} by how long they took, from the first claim to the end: half within {}, 95 of 100 \
         within {}, the longest {}",
        count(chunks, "chunk", "chunks"),
        millis(share(took, chunks, 0.5)),
        millis(share(took, chunks, 0.95)),
        millis(longest.millis),
    );
    html! { (bars(&columns, "chunks", &said)) p.faint { (said) "." } }
}

/// The time within which this share of the chunks was done.
fn share(took: &[DurationBucket], chunks: i64, share: f64) -> i64 {
    let wanted = (chunks as f64 * share).ceil() as i64;
    let mut passed = 0;
    let reached = took.iter().find(|took| {
        passed += took.chunks;
        passed >= wanted
    });
    reached.map_or(0, |took| took.millis)
}

/// A round width of a bar, at least this.
fn width(wanted: i64) -> i64 {
    let mut scale = 1;
    loop {
        for round in [1, 2, 5] {
            if round * scale >= wanted.min(i64::MAX / 20) {
                return round * scale;
            }
        }
        scale *= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_chunk_does_not_hide_how_the_others_differ() {
        let mut took: Vec<DurationBucket> =
            (20..30).map(|millis| DurationBucket { millis, chunks: 100 }).collect();
        took.push(DurationBucket { millis: 60_000, chunks: 1 });
        let chart = durations(&took).into_string();
        assert!(chart.contains("<title>20 ms to 22 ms: 200 chunks</title>"), "{chart}");
        assert!(chart.contains("and longer: 1 chunk<"), "{chart}");
        assert!(
            chart.contains("half within 25 ms") && chart.contains("the longest 1 min"),
            "{chart}"
        );
    }

    #[test]
    fn every_chunk_is_in_one_bar() {
        for times in [vec![0], vec![0, 1, 2], vec![120, 130, 990, 1000], vec![9_800_000]] {
            let took: Vec<DurationBucket> =
                times.iter().map(|millis| DurationBucket { millis: *millis, chunks: 1 }).collect();
            let chart = durations(&took).into_string();
            let bars = chart.matches("fill=\"#0B62B8\"").count();
            assert!((1..=times.len()).contains(&bars), "{times:?}: {chart}");
            let counted: usize = chart
                .split("<title>")
                .skip(1)
                .map(|title| title.split(": ").nth(1).unwrap().split(' ').next().unwrap())
                .map(|chunks| chunks.parse::<usize>().unwrap())
                .sum();
            assert_eq!(counted, times.len(), "{chart}");
        }
        assert!(durations(&[]).into_string().contains("No chunk"));
    }

    #[test]
    fn widths_are_round() {
        assert_eq!([0, 1, 2, 3, 6, 11, 49, 7000].map(width), [1, 1, 2, 5, 10, 20, 50, 10_000]);
    }
}
