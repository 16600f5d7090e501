//! A worker is killed in the middle of a file. Another continues, and no point is resolved twice.

use crate::relationships::fixture::RelationshipsFixture;

const POINTS: i64 = 450;

#[tokio::test]
async fn a_job_continues_where_its_worker_was_killed() {
    for fixture in RelationshipsFixture::both().await {
        let functions: String =
            (0..POINTS).map(|n| format!("def f{n:03}():\n    g{n}()\n")).collect();
        fixture.kill_worker(&functions, "f250", 100, 200).await;
        let _next = fixture.worker();
        let id = fixture.job_of("many.py").await;
        let job = fixture.ended(&id).await;
        assert_eq!(
            (&job["status"], &job["items"]["processed"]),
            (&"COMPLETED".into(), &POINTS.into())
        );
        let resolved = "SELECT count(*) FROM relationships";
        assert_eq!(fixture.number(resolved).await, POINTS);
        fixture.sandbox.prove(&id).await;
        assert_eq!(fixture.jobs().await.len(), 1);
    }
}
