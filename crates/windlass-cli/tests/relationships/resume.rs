//! A worker that is killed in the middle of a file: another goes on, and no point is resolved twice.

use crate::common::eventually;
use crate::world::World;

const POINTS: i64 = 450;

#[tokio::test]
async fn a_job_goes_on_where_its_worker_was_killed() {
    for world in World::both().await {
        let functions: String =
            (0..POINTS).map(|n| format!("def f{n:03}():\n    g{n}()\n")).collect();
        world.sandbox.write("many.py", &functions);
        let config = world.sandbox.read("windlass.toml").replace(
            "chunk.commit = 100",
            "chunk.commit = 100\nchunk.lease = \"1s\"\nthroughput = { concurrency = 1 }",
        );
        world.sandbox.write("windlass.toml", &config);
        // It stops before one point for as long as there is a file of that name.
        let resolve = world.sandbox.read("resolve.py").replace(
            "    tree = ast.parse",
            "    while point[\"name\"] == \"f250\" and os.path.exists(\"hold\"): pass\n    tree = ast.parse",
        );
        world.sandbox.write("resolve.py", &resolve);
        world.sandbox.write("hold", "");
        world.analyse("many.py").await.ok();
        let worker = world.worker();
        let resolved = "SELECT count(*) FROM relationships";
        eventually("two batches are committed", async || world.number(resolved).await == 200).await;
        worker.kill9();
        worker.wait().await;

        std::fs::remove_file(world.sandbox.path("hold")).unwrap();
        let _next = world.worker();
        let id = world.job_of("many.py").await;
        let job = world.ended(&id).await;
        assert_eq!(
            (&job["status"], &job["items"]["processed"]),
            (&"COMPLETED".into(), &POINTS.into())
        );
        assert_eq!(world.number(resolved).await, POINTS);
        world.sandbox.prove(&id).await;
        assert_eq!(world.jobs().await.len(), 1);
    }
}
