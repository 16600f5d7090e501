//! How fast a job went, and when.

use crate::chart::{Bar, bars};
use crate::components::nothing;
use crate::format::{absolute, count, millis, number, rate_text};
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};
use std::time::Duration;
use windlass_core::Job;
use windlass_store::ThroughputBucket;

/// Stretches of the chart, about.
const STRETCHES: i64 = 60;
/// Fewer stretches are no chart.
const FEWEST: usize = 4;

/// How long a stretch of the throughput chart is: a round length, so that bars stay where they are.
pub fn stretch(job: &Job, now: DateTime<Utc>) -> Duration {
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
    let wanted = job.started_at.map_or(0, |at| (end - at).num_milliseconds() / STRETCHES);
    let found = ROUND.into_iter().find(|length| *length >= wanted);
    Duration::from_millis(found.unwrap_or(ROUND[17]) as u64)
}

/// Items a second of the chunks that ended, a bar for each stretch of time.
pub fn throughput(paces: &[ThroughputBucket], stretch: Duration) -> Markup {
    let (Some(first), Some(last)) = (paces.first(), paces.last()) else {
        return nothing("No chunk has ended yet.");
    };
    let step = TimeDelta::from_std(stretch).unwrap_or(TimeDelta::seconds(1));
    let mut columns = Vec::new();
    let (mut at, mut known) = (first.at, paces.iter().peekable());
    // A retry days later leaves a long gap, of which the end is shown.
    if (last.at - at) / STRETCHES as i32 / 4 > step {
        at = last.at - step * (STRETCHES as i32 * 4);
    }
    let clock = match step.num_milliseconds() {
        ..1000 => "%H:%M:%S%.3f",
        1000..3_600_000 => "%H:%M:%S",
        _ => "%d %b %H:%M",
    };
    while at <= last.at {
        let mut items = 0;
        while let Some(pace) = known.next_if(|pace| pace.at <= at) {
            items += if pace.at == at { pace.items } else { 0 };
        }
        let rate = items as f64 / stretch.as_secs_f64();
        let rated = rate_text(Some(rate));
        let title = format!("{}: {} items, {rated} a second", absolute(at), number(items));
        let label = at.format(clock).to_string();
        columns.push(Bar { title, label, parts: vec![("completed", rate)] });
        at += step;
    }
    if columns.len() < FEWEST {
        let items = count(paces.iter().map(|pace| pace.items).sum(), "item", "items");
        let most = millis(step.num_milliseconds() * columns.len() as i64);
        return html! { p { (items) " within " (most) ", too short for a chart." } };
    }
    let stretches = millis(step.num_milliseconds());
    let said = format!("Items a second of the chunks that ended, in stretches of {stretches}");
    html! { (bars(&columns, "items/s", &said)) p.faint { (said) ". Times are UTC." } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_say_as_much_of_the_time_as_bars_differ_by() {
        let at = DateTime::from_timestamp_millis(1_700_000_000_100).unwrap();
        for (millis, label) in
            [(100, ">22:13:20.100<"), (1000, ">22:13:20<"), (86_400_000, ">14 Nov 22:13<")]
        {
            let stretch = Duration::from_millis(millis);
            let paces = [0, 3].map(|n| ThroughputBucket { at: at + stretch * n, items: 7 });
            let chart = throughput(&paces, stretch).into_string();
            assert!(chart.contains(label), "{chart}");
            assert_eq!(chart.matches("fill=\"#1B7A43\"").count(), 2, "{chart}");
            assert_eq!(chart.matches("<title>").count(), 4, "the gap is shown: {chart}");
        }
    }
}
