//! A dead letter that cannot be written is reported and not lost.

use crate::common::{Data, eventually};
use crate::relationships::fixture::{RelationshipsFixture, SOURCES};

#[tokio::test]
async fn an_unwritable_dead_letter_fails_its_chunk_and_is_written_after_a_repair() {
    for fixture in RelationshipsFixture::both().await {
        let (refuse, mend) = match &fixture.data {
            Data::Postgres(_) => (
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                     $$ BEGIN RAISE EXCEPTION 'no letters today'; END $$; \
                 CREATE TRIGGER refuse BEFORE INSERT ON windlass_deferred \
                     FOR EACH ROW EXECUTE FUNCTION refuse()",
                "DROP TRIGGER refuse ON windlass_deferred",
            ),
            _ => (
                "CREATE TRIGGER refuse BEFORE INSERT ON windlass_deferred \
                     BEGIN SELECT RAISE(ABORT, 'no letters today'); END",
                "DROP TRIGGER refuse",
            ),
        };
        fixture.data.run(refuse).await;
        fixture.analyse(SOURCES).await.ok();
        let worker = fixture.worker();
        let id = fixture.job_of("sources/payment.py").await;
        let job = fixture.ended(&id).await;
        assert_eq!(job["status"], "FAILED");
        assert!(job["error"].as_str().unwrap().contains("no letters today"), "{job:#}");
        let log = worker.stderr();
        assert!(log.contains("ERROR") && log.contains("failed to store a dead letter"), "{log}");
        // The other file is not affected.
        let other = fixture.ended(&fixture.job_of("sources/cart.py").await).await;
        assert_eq!(other["status"], "COMPLETED");

        fixture.data.run(mend).await;
        fixture.sandbox.run(&format!("retry {id}")).await.ok();
        eventually("it completes", async || fixture.sandbox.status(&id).await == "COMPLETED").await;
        fixture.sandbox.prove(&id).await;
        assert_eq!(fixture.letters(&format!("--job {id}")).await.len(), 2);
        assert_eq!(fixture.number("SELECT count(*) FROM relationships").await, 11);
    }
}
