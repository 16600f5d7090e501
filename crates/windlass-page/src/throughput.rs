//! How fast a job went, and when.

use crate::chart::{Bar, bars};
use crate::elements::nothing;
use crate::words::{absolute, length, number, rate_text};
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};
use std::time::Duration;
use windlass_core::Job;
use windlass_store::Pace;

/// Stretches of the chart, about.
const STRETCHES: i64 = 60;

/// How long a stretch of the throughput chart is: a round length, so that bars stay where they are.
pub fn stretch(job: &Job, now: DateTime<Utc>) -> Duration {
    let seconds =
        job.started_at.map_or(0, |at| (job.finished_at.unwrap_or(now) - at).num_seconds());
    let wanted = seconds / STRETCHES;
    let round = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400];
    let found = round.into_iter().find(|length| *length >= wanted).unwrap_or(604_800);
    Duration::from_secs(found as u64)
}

/// Items a second of the chunks that ended, a bar for each stretch of time.
pub fn throughput(paces: &[Pace], stretch: Duration) -> Markup {
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
    while at <= last.at {
        let mut items = 0;
        while let Some(pace) = known.next_if(|pace| pace.at <= at) {
            items += if pace.at == at { pace.items } else { 0 };
        }
        let rate = items as f64 / stretch.as_secs_f64();
        let title = format!("{}: {} items, {}", absolute(at), number(items), rate_text(Some(rate)));
        let label = at.format("%H:%M:%S").to_string();
        columns.push(Bar { title, label, parts: vec![("completed", rate)] });
        at += step;
    }
    let said =
        format!("Items a second of the chunks that ended, in stretches of {}", length(stretch));
    html! { (bars(&columns, "items/s", &said)) p.faint { (said) ". Times are UTC." } }
}
