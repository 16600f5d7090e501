//! The planner is killed in the middle of a segment. No chunk is missing or duplicated.

use crate::common::{CliSandbox, Data, raise};

#[tokio::test]
async fn planning_continues_where_a_killed_planner_stopped() {
    const ROWS: i64 = 10_000;
    let data = Data::postgres().await.with_accounts(ROWS).await;
    // Each page takes time, until the test removes the delay.
    data.pace(10.0).await;
    let slow = "source.where = \"(SELECT pg_sleep(seconds) FROM pace) IS NOT NULL\"\n";
    let sandbox = CliSandbox::on(&data, &(raise(10) + slow + "chunk.lease = \"1s\"\n"));
    let id = sandbox.submit("RAISE --parallel-segments 1").await;

    let first = sandbox.spawn("worker");
    let in_the_middle = |job: &serde_json::Value| {
        job["phase"] == "planning" && job["chunks"]["total"].as_i64() >= Some(200)
    };
    sandbox.until(&id, "some pages are planned", in_the_middle).await;
    first.kill9();
    let killed = sandbox.job(&id).await;
    assert!(in_the_middle(&killed), "planning was complete: {killed:#}");
    assert!(killed["items"]["total"].as_i64() < Some(ROWS), "{killed:#}");

    data.pace(0.0).await;
    // The lease of a segment is too long for a test, so expire it.
    data.run(
        "UPDATE windlass_segments SET lease_until = clock_timestamp() WHERE status = 'PROCESSING'",
    )
    .await;
    let _second = sandbox.spawn("worker");
    let job = sandbox.completed(&id).await;
    assert_eq!(job["items"]["total"], ROWS);
    assert_eq!(job["items"]["processed"], ROWS);
    assert_eq!(job["chunks"]["total"], job["chunks"]["completed"]);
    data.raised_once(ROWS).await;
    let audit = sandbox.prove(&id).await;
    assert_eq!(audit["planned"], ROWS);
}
