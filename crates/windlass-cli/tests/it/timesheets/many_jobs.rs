//! Many small jobs are all completed, each once. The README has durations; this test measures none.

use crate::common::eventually;
use crate::timesheets::fixture::{TimesheetsFixture, report_of};
use serde_json::json;

const JOBS: i64 = 200;

#[tokio::test]
async fn two_hundred_small_jobs_are_all_completed() {
    let fixture = TimesheetsFixture::new(100).await;
    let servers = [fixture.serve(2).await, fixture.serve(2).await];
    let mut ids = Vec::new();
    for key in 1..=JOBS {
        let request = report_of("TIMESHEET_REPORT", &format!("{key}"), &[key]);
        ids.push(servers[key as usize % 2].submit(&fixture.chief, &request).await);
    }
    let done = "SELECT count(*) FROM windlass_jobs WHERE status = 'COMPLETED'";
    eventually("all are completed", async || fixture.number(done).await == JOBS).await;
    for (id, key) in ids.iter().zip(1..) {
        let rows = servers[0].output(&fixture.chief, id).await;
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(rows[0]["timesheet"], json!(key));
        assert_eq!(fixture.given(id), [(key, 1)].into());
    }
}
