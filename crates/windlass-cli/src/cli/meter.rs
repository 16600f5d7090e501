//! The rate of a job and the time left, as measured while a command follows it.

use std::time::{Duration, Instant};
use windlass::{Job, JobStatus};

/// Measures how fast a job proceeds. What was done before the command started does not count, and neither
/// does time in which the job is not worked on: queued, paused, or waiting for slots, a step, a database or a
/// lease.
#[derive(Default)]
pub(super) struct Meter {
    last: Option<Observation>,
    /// Items done while the command followed the job.
    done: i64,
    /// The time in which they were done.
    working: Duration,
    items_left: i64,
}

struct Observation {
    at: Instant,
    done: i64,
    is_working: bool,
}

impl Meter {
    pub(super) fn update(&mut self, job: &Job, now: Instant) {
        let done = job.items.done();
        let is_working = job.status == JobStatus::Processing && proceeds(job.waits_for.as_deref());
        if let Some(last) = &self.last {
            self.done += (done - last.done).max(0);
            // It counts if items were done, or if the job was not waiting at either end.
            if done > last.done || last.is_working && is_working {
                self.working += now.duration_since(last.at);
            }
        }
        self.items_left = (job.items.total - done).max(0);
        self.last = Some(Observation { at: now, done, is_working });
    }

    /// Items per second.
    pub(super) fn rate(&self) -> f64 {
        let seconds = self.working.as_secs_f64();
        if seconds > 0.0 { self.done as f64 / seconds } else { 0.0 }
    }

    /// The time until the job ends at this rate. Unknown before the first item, and while the job waits.
    pub(super) fn left(&self) -> Option<Duration> {
        let is_working = self.last.as_ref().is_some_and(|last| last.is_working);
        let seconds = self.items_left as f64 / self.rate();
        (is_working && seconds.is_finite()).then(|| Duration::from_secs_f64(seconds.min(1e9)))
    }
}

/// Whether a job proceeds although it waits: a throttled job does, slowly.
fn proceeds(waits_for: Option<&str>) -> bool {
    matches!(waits_for, None | Some("rate" | "health"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(done: i64, status: &str, waits_for: Option<&str>) -> Job {
        let job = json!({
            "id": windlass::JobId::nil(), "jobType": "J", "status": status, "priority": 5,
            "request": {"jobType": "J"}, "submittedBy": "me", "createdAt": "2026-01-01T00:00:00Z",
            "waitsFor": waits_for,
            "items": {"total": 1000, "processed": done, "skipped": 0, "dead": 0, "conflicts": 0},
            "chunks": {"total": 1, "pending": 0, "processing": 1, "completed": 0, "failed": 0,
                "cancelled": 0},
        });
        serde_json::from_value(job).unwrap()
    }

    #[test]
    fn earlier_work_and_time_without_work_do_not_count() {
        let (mut meter, start) = (Meter::default(), Instant::now());
        let mut update = |seconds, done, status, waits_for| {
            let at = start + Duration::from_secs(seconds);
            meter.update(&job(done, status, waits_for), at);
            (meter.rate(), meter.left().map(|left| left.as_secs()))
        };
        assert_eq!(update(0, 600, "PROCESSING", None), (0.0, None), "600 were done before");
        assert_eq!(update(10, 700, "PROCESSING", None), (10.0, Some(30)));
        assert_eq!(update(20, 700, "PROCESSING", Some("slots")), (10.0, None));
        assert_eq!(update(1000, 700, "PAUSED", None), (10.0, None));
        assert_eq!(update(2000, 700, "QUEUED", None), (10.0, None));
        assert_eq!(update(2010, 700, "PROCESSING", None), (10.0, Some(30)));
        assert_eq!(update(2020, 800, "PROCESSING", Some("rate")), (10.0, Some(20)));
        assert_eq!(
            update(2040, 800, "PROCESSING", Some("rate")),
            (5.0, Some(40)),
            "it proceeds slowly"
        );
    }
}
