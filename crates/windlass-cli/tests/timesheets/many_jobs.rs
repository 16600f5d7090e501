//! Many small jobs: every one of them is worked, once. README.md has figures; here no time is taken.

use crate::common::eventually;
use crate::world::{World, report_of};
use serde_json::json;

const JOBS: i64 = 200;

#[tokio::test]
async fn two_hundred_small_jobs_are_all_worked() {
    let world = World::new(100).await;
    let servers = [world.serve(2).await, world.serve(2).await];
    let mut ids = Vec::new();
    for key in 1..=JOBS {
        let request = report_of("TIMESHEET_REPORT", &format!("{key}"), &[key]);
        ids.push(servers[key as usize % 2].submit(&world.chief, &request).await);
    }
    let done = "SELECT count(*) FROM windlass_jobs WHERE status = 'COMPLETED'";
    eventually("all are completed", async || world.number(done).await == JOBS).await;
    for (id, key) in ids.iter().zip(1..) {
        let rows = servers[0].output(&world.chief, id).await;
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(rows[0]["timesheet"], json!(key));
        assert_eq!(world.given(id), [(key, 1)].into());
    }
}
