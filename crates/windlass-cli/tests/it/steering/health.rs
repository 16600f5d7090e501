//! An unhealthy database slows work down, and work speeds up again when the database is healthy.

use crate::common::{CliSandbox, Data, eventually, refused, slow_raise};

const ROWS: i64 = 4_000;
const HEALTH: &str = "[connections.app]\nhealth = { sql = \"SELECT load FROM health\", limit = 5, every = \"100ms\" }";

async fn with_health(rows: i64, jobs: &str) -> (Data, CliSandbox) {
    let data = Data::postgres().await.with_accounts(rows).await;
    data.run("CREATE TABLE health (load int); INSERT INTO health VALUES (3)").await;
    let sandbox = CliSandbox::with(&data.config(jobs).replace("[connections.app]", HEALTH));
    (data, sandbox)
}

#[tokio::test]
async fn work_slows_down_and_recovers_and_both_are_logged() {
    let (data, sandbox) = with_health(ROWS, &(slow_raise(50) + "chunk.commit = 10\n")).await;
    data.pace(1.0).await;
    let id = sandbox.submit("RAISE").await;
    let worker = sandbox.spawn("worker --concurrency 4");
    let job =
        sandbox.until(&id, "some items are processed", |job| job["items"]["processed"] != 0).await;
    assert!(job["error"].is_null(), "{job:#}");

    data.run("UPDATE health SET load = 20").await;
    let slowest = |job: &serde_json::Value| {
        job["error"].as_str().is_some_and(|said| said.contains("throttled to 1/1024 of full speed"))
    };
    let job = sandbox.until(&id, "as slow as can be", slowest).await;
    assert!(job["error"].as_str().unwrap().contains("measures 20, over its limit of 5"), "{job:#}");
    assert_eq!(job["status"], "PROCESSING");
    for listing in ["jobs", "throughput"] {
        let listed = sandbox.run(listing).await.ok().stdout;
        assert!(listed.contains("throttled"), "{listed}");
    }
    // Each of four slots commits at most its current batch of ten rows, one more, and one after every pause of ten seconds.
    let began = std::time::Instant::now();
    let raised = "SELECT count(*) FROM accounts WHERE amount <> id * 7 % 1000";
    let so_far = data.number(raised).await;
    for _ in 0..10 {
        let said = "SELECT count(*) FROM windlass_controls WHERE suspended_until > \
                    (SELECT seen FROM look)";
        data.run("DROP TABLE IF EXISTS look").await;
        data.run("CREATE TABLE look AS SELECT suspended_until AS seen FROM windlass_controls")
            .await;
        eventually("the database is probed again", async || data.number(said).await == 1).await;
    }
    let since = data.number(raised).await - so_far;
    let most = 40 * (2 + began.elapsed().as_secs() as i64 / 10);
    assert!(since <= most, "{since} rows of {ROWS} at the slowest rate");

    data.run("UPDATE health SET load = NULL").await;
    data.pace(0.0).await;
    let done = sandbox.completed(&id).await;
    assert!(worker.stderr().contains("throttled to 1/2 of full speed"), "{}", worker.stderr());
    eventually("full speed is logged", async || worker.stderr().contains("no longer throttled"))
        .await;
    assert!(done["error"].is_null(), "{done:#}");
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_health_statement_is_checked() {
    let (data, sandbox) = with_health(100, &slow_raise(50)).await;
    let said = sandbox.run("check").await.ok().stdout;
    assert!(said.contains("connection app: health is 3; work is throttled above 5"), "{said}");
    data.run("DROP TABLE health").await;
    let said = sandbox.run("check").await;
    refused(&said, &["connections.app.health.sql", "health", "a SELECT of one number"]);
    // A database that cannot be probed counts as unhealthy, and the job continues slowly.
    let ran = sandbox.run("run RAISE --json").await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("failed its health probe"), "{ran:?}");
    data.raised_once(100).await;
}
