//! The histogram of chunk durations.

use crate::chart::{Bar, BarLabel, bars};
use crate::components::empty_state;
use crate::format::{count, millis};
use maud::{Markup, html};
use windlass_store::DurationBucket;

/// The approximate number of bars.
const BARS: i64 = 12;

/// A histogram of chunk durations. Chunks above the 99th percentile share the last bar.
pub fn duration_chart(buckets: &[DurationBucket]) -> Markup {
    let chunks: i64 = buckets.iter().map(|bucket| bucket.chunks).sum();
    let (Some(longest), true) = (buckets.last(), chunks > 0) else {
        return empty_state("No completed chunks.");
    };
    let width = round_width(percentile(buckets, chunks, 0.99) / BARS);
    let edges = (percentile(buckets, chunks, 0.99) / width + 1).min(longest.millis / width + 1);
    let within = |from: i64, to: i64| {
        let found = buckets.iter().filter(|bucket| (from..to).contains(&bucket.millis));
        found.map(|bucket| bucket.chunks).sum::<i64>()
    };
    let bar = |from: i64, to: i64, range: String| {
        let chunks = within(from, to);
        let title = format!("{range}: {}", count(chunks, "chunk", "chunks"));
        Bar {
            title,
            label: BarLabel::Text(millis(from)),
            parts: vec![("processing", chunks as f64)],
        }
    };
    let mut columns: Vec<Bar> = (0..edges)
        .map(|index| (index * width, (index + 1) * width))
        .map(|(from, to)| bar(from, to, format!("{} to {}", millis(from), millis(to))))
        .collect();
    if within(edges * width, i64::MAX) > 0 {
        let from = edges * width;
        columns.push(bar(from, i64::MAX, format!("{} and longer", millis(from))));
    }
    let description = format!(
        "Duration of {} from the first lease to completion: median {}, 95th percentile {}, maximum {}",
        count(chunks, "chunk", "chunks"),
        millis(percentile(buckets, chunks, 0.5)),
        millis(percentile(buckets, chunks, 0.95)),
        millis(longest.millis),
    );
    html! { (bars(&columns, "chunks", &description)) p.faint { (description) "." } }
}

/// The duration within which this fraction of the chunks was completed.
fn percentile(buckets: &[DurationBucket], chunks: i64, fraction: f64) -> i64 {
    let wanted = (chunks as f64 * fraction).ceil() as i64;
    let mut counted = 0;
    let reached = buckets.iter().find(|bucket| {
        counted += bucket.chunks;
        counted >= wanted
    });
    reached.map_or(0, |bucket| bucket.millis)
}

/// The smallest round width of a bar that is at least `wanted`.
fn round_width(wanted: i64) -> i64 {
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
    fn one_slow_chunk_does_not_hide_the_distribution_of_the_rest() {
        let mut buckets: Vec<DurationBucket> =
            (20..30).map(|millis| DurationBucket { millis, chunks: 100 }).collect();
        buckets.push(DurationBucket { millis: 60_000, chunks: 1 });
        let chart = duration_chart(&buckets).into_string();
        assert!(chart.contains("<title>20 ms to 22 ms: 200 chunks</title>"), "{chart}");
        assert!(chart.contains("and longer: 1 chunk<"), "{chart}");
        assert!(chart.contains("median 25 ms") && chart.contains("maximum 1 min"), "{chart}");
    }

    #[test]
    fn every_chunk_is_in_one_bar() {
        for times in [vec![0], vec![0, 1, 2], vec![120, 130, 990, 1000], vec![9_800_000]] {
            let buckets: Vec<DurationBucket> =
                times.iter().map(|millis| DurationBucket { millis: *millis, chunks: 1 }).collect();
            let chart = duration_chart(&buckets).into_string();
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
        assert!(duration_chart(&[]).into_string().contains("No completed chunks"));
    }

    #[test]
    fn widths_are_round() {
        assert_eq!(
            [0, 1, 2, 3, 6, 11, 49, 7000].map(round_width),
            [1, 1, 2, 5, 10, 20, 50, 10_000]
        );
    }
}
