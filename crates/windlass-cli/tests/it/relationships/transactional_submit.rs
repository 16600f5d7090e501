//! The results of an analysis and the job for its points are committed together or not at all.

use crate::common::{Data, eventually};
use crate::relationships::fixture::RelationshipsFixture;

#[tokio::test]
async fn a_committed_request_becomes_a_job_with_the_id_of_the_application() {
    for fixture in RelationshipsFixture::both().await {
        fixture.analyse("sources/cart.py sources/payment.py").await.ok();
        assert_eq!(fixture.jobs().await.len(), 0, "nothing is submitted yet");
        let mut waiting: Vec<String> =
            fixture.waiting().await.iter().map(|row| crate::common::text(&row["id"])).collect();
        let mut known = vec![
            fixture.job_of("sources/cart.py").await,
            fixture.job_of("sources/payment.py").await,
        ];
        waiting.sort();
        known.sort();
        assert_eq!(waiting, known);
        let _worker = fixture.worker();
        for id in &known {
            let job = fixture.ended(id).await;
            assert_eq!(
                (&job["status"], &job["submittedBy"]),
                (&"COMPLETED".into(), &"analyse".into())
            );
            fixture.sandbox.prove(id).await;
        }
        assert_eq!(fixture.jobs().await.len(), 2);
        eventually("the outbox is empty", async || fixture.waiting().await.is_empty()).await;
    }
}

#[tokio::test]
async fn a_rollback_leaves_neither_results_nor_a_job() {
    for fixture in RelationshipsFixture::both().await {
        // The last statement fails, after the request is in the outbox.
        let refuse = match &fixture.data {
            Data::Postgres(_) => {
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                     $$ BEGIN RAISE EXCEPTION 'not today'; END $$; \
                 CREATE TRIGGER refuse BEFORE UPDATE ON files FOR EACH ROW EXECUTE FUNCTION refuse()"
            }
            _ => {
                "CREATE TRIGGER refuse BEFORE UPDATE ON files \
                     BEGIN SELECT RAISE(ABORT, 'not today'); END"
            }
        };
        fixture.data.run(refuse).await;
        let analysed = fixture.analyse("sources/cart.py").await;
        assert_eq!(analysed.code, Some(1), "{analysed:?}");
        assert!(analysed.stderr.contains("not today"), "{analysed:?}");
        assert_eq!(fixture.number("SELECT count(*) FROM files").await, 0);
        assert_eq!(fixture.number("SELECT count(*) FROM points").await, 0);
        assert_eq!(fixture.waiting().await.len(), 0);
    }
}
