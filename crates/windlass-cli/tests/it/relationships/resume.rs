//! A worker is killed in the middle of a file. Another continues, and no point is resolved twice.

use crate::common::eventually;
use crate::relationships::fixture::RelationshipsFixture;

const POINTS: i64 = 450;

#[tokio::test]
async fn a_job_continues_where_its_worker_was_killed() {
    for fixture in RelationshipsFixture::both().await {
        let functions: String =
            (0..POINTS).map(|n| format!("def f{n:03}():\n    g{n}()\n")).collect();
        fixture.sandbox.write("many.py", &functions);
        let config = fixture.sandbox.read("windlass.toml").replace(
            "chunk.commit = 100",
            "chunk.commit = 100\nchunk.lease = \"1s\"\nthroughput = { concurrency = 1 }",
        );
        fixture.sandbox.write("windlass.toml", &config);
        // The program stops at one point while a file of that name exists.
        let resolve = fixture.sandbox.read("resolve.py").replace(
            "    tree = ast.parse",
            "    while point[\"name\"] == \"f250\" and os.path.exists(\"hold\"): pass\n    tree = ast.parse",
        );
        fixture.sandbox.write("resolve.py", &resolve);
        fixture.sandbox.write("hold", "");
        fixture.analyse("many.py").await.ok();
        let worker = fixture.worker();
        let resolved = "SELECT count(*) FROM relationships";
        eventually("two batches are committed", async || fixture.number(resolved).await == 200)
            .await;
        worker.kill9();
        worker.wait().await;

        std::fs::remove_file(fixture.sandbox.path("hold")).unwrap();
        let _next = fixture.worker();
        let id = fixture.job_of("many.py").await;
        let job = fixture.ended(&id).await;
        assert_eq!(
            (&job["status"], &job["items"]["processed"]),
            (&"COMPLETED".into(), &POINTS.into())
        );
        assert_eq!(fixture.number(resolved).await, POINTS);
        fixture.sandbox.prove(&id).await;
        assert_eq!(fixture.jobs().await.len(), 1);
    }
}
