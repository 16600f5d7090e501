//! The loader killed in the middle of a segment: no chunk is missing, none is there twice.

use crate::common::{Data, Place, raise};

#[tokio::test]
async fn a_load_goes_on_where_a_killed_loader_left_it() {
    const ROWS: i64 = 10_000;
    let data = Data::postgres().await.with_accounts(ROWS).await;
    // Each page of the load takes its time, until the test lets go.
    data.pace(0.5).await;
    let slow = "source.where = \"(SELECT pg_sleep(seconds) FROM pace) IS NOT NULL\"\n";
    let place = Place::on(&data, &(raise(10) + slow + "chunk.lease = \"1s\"\n"));
    let id = place.submit("RAISE --parallel-segments 1").await;

    let first = place.spawn("worker");
    let in_the_middle = |job: &serde_json::Value| {
        job["phase"] == "planning" && job["chunks"]["total"].as_i64() >= Some(200)
    };
    place.until(&id, "some pages are loaded", in_the_middle).await;
    first.kill9();
    let killed = place.job(&id).await;
    assert!(in_the_middle(&killed), "the load was over: {killed:#}");
    assert!(killed["items"]["total"].as_i64() < Some(ROWS), "{killed:#}");

    data.pace(0.0).await;
    // A segment's lease is longer than a test should be: here it runs out now.
    data.run(
        "UPDATE windlass_segments SET lease_until = clock_timestamp() WHERE status = 'PROCESSING'",
    )
    .await;
    let _second = place.spawn("worker");
    let job = place.completed(&id).await;
    assert_eq!(job["items"]["total"], ROWS);
    assert_eq!(job["items"]["processed"], ROWS);
    assert_eq!(job["chunks"]["total"], job["chunks"]["completed"]);
    data.raised_once(ROWS).await;
    let audit = place.prove(&id).await;
    assert_eq!(audit["planned"], ROWS);
}
