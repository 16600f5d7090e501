//! A dead letter that cannot be written is loud and loses nothing.

use crate::common::{Data, eventually};
use crate::world::{SOURCES, World};

#[tokio::test]
async fn it_fails_its_chunk_aloud_and_is_written_when_the_database_is_mended() {
    for world in World::both().await {
        let (refuse, mend) = match &world.data {
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
        world.data.run(refuse).await;
        world.analyse(SOURCES).await.ok();
        let worker = world.worker();
        let id = world.job_of("sources/payment.py").await;
        let job = world.ended(&id).await;
        assert_eq!(job["status"], "FAILED");
        assert!(job["error"].as_str().unwrap().contains("no letters today"), "{job:#}");
        let log = worker.stderr();
        assert!(log.contains("ERROR") && log.contains("could not be set aside"), "{log}");
        // The other file is not stopped by it.
        let other = world.ended(&world.job_of("sources/cart.py").await).await;
        assert_eq!(other["status"], "COMPLETED");

        world.data.run(mend).await;
        world.sandbox.run(&format!("retry {id}")).await.ok();
        eventually("it completes", async || world.sandbox.status(&id).await == "COMPLETED").await;
        world.sandbox.prove(&id).await;
        assert_eq!(world.letters(&format!("--job {id}")).await.len(), 2);
        assert_eq!(world.number("SELECT count(*) FROM relationships").await, 11);
    }
}
