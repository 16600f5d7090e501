//! The throughput chart of a job.

use crate::chart::{Bar, BarLabel, bars};
use crate::components::empty_state;
use crate::format::{TimeStyle, count, millis, rate_text, time_zone_note};
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};
use std::time::Duration;
use windlass_core::Job;
use windlass_store::ThroughputBucket;

/// The approximate number of bars.
const BARS: i64 = 60;
/// With fewer bars there is no chart.
const MIN_BARS: usize = 4;

/// The interval of a bar: a round duration, so that bars keep their position while a job runs.
pub fn bucket_interval(job: &Job, now: DateTime<Utc>) -> Duration {
    const ROUND: [i64; 18] = [
        100,
        200,
        500,
        1000,
        2000,
        5000,
        10_000,
        30_000,
        60_000,
        120_000,
        300_000,
        600_000,
        1_800_000,
        3_600_000,
        7_200_000,
        21_600_000,
        86_400_000,
        604_800_000,
    ];
    let end = job.finished_at.unwrap_or(now);
    let wanted = job.started_at.map_or(0, |at| (end - at).num_milliseconds() / BARS);
    let found = ROUND.into_iter().find(|interval| *interval >= wanted);
    Duration::from_millis(found.unwrap_or(ROUND[17]) as u64)
}

/// A chart of the items per second of completed chunks.
pub fn throughput_chart(buckets: &[ThroughputBucket], interval: Duration) -> Markup {
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else {
        return empty_state("No completed chunks yet.");
    };
    let step = TimeDelta::from_std(interval).unwrap_or(TimeDelta::seconds(1));
    let mut columns = Vec::new();
    let (mut at, mut remaining) = (first.at, buckets.iter().peekable());
    // A retry days later leaves a long gap; only its end is shown.
    if (last.at - at) / BARS as i32 / 4 > step {
        at = last.at - step * (BARS as i32 * 4);
    }
    let style = match step.num_milliseconds() {
        ..1000 => TimeStyle::Millisecond,
        1000..3_600_000 => TimeStyle::Second,
        _ => TimeStyle::DayMinute,
    };
    while at <= last.at {
        let mut items = 0;
        while let Some(bucket) = remaining.next_if(|bucket| bucket.at <= at) {
            items += if bucket.at == at { bucket.items } else { 0 };
        }
        let rate = items as f64 / interval.as_secs_f64();
        let per_second = rate_text(Some(rate));
        let items = count(items, "item", "items");
        let title = format!("{items}, {per_second} items/s");
        let label = BarLabel::Time(at, style);
        columns.push(Bar { title, label, parts: vec![("completed", rate)] });
        at += step;
    }
    if columns.len() < MIN_BARS {
        let items = count(buckets.iter().map(|bucket| bucket.items).sum(), "item", "items");
        let duration = millis(step.num_milliseconds() * columns.len() as i64);
        return html! { p { (items) " within " (duration) ": too short for a chart." } };
    }
    let interval = millis(step.num_milliseconds());
    let description = format!("Items per second of completed chunks, in intervals of {interval}");
    html! { (bars(&columns, "items/s", &description)) p.faint { (description) ". " (time_zone_note()) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_as_precise_as_the_interval() {
        let at = DateTime::from_timestamp_millis(1_700_000_000_100).unwrap();
        for (millis, label) in
            [(100, ">22:13:20.100<"), (1000, ">22:13:20<"), (86_400_000, ">Tue 14 Nov 22:13<")]
        {
            let interval = Duration::from_millis(millis);
            let buckets = [0, 3].map(|n| ThroughputBucket { at: at + interval * n, items: 7 });
            let chart = throughput_chart(&buckets, interval).into_string();
            assert!(chart.contains(label), "{chart}");
            assert_eq!(chart.matches("fill=\"#1B7A43\"").count(), 2, "{chart}");
            assert_eq!(chart.matches("<title ").count(), 4, "the gap is shown: {chart}");
        }
    }
}
