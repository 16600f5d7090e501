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
        let point = "sources/payment.py:pay:";
        let reported = log.lines().find(|line| line.contains("failed to write a dead letter"));
        let reported = reported.unwrap_or_else(|| panic!("{log}"));
        let named = reported.contains("ERROR") && reported.contains("sources/payment.py:");
        assert!(named && reported.contains("data_sha256"), "{reported}");
        assert!(job["error"].as_str().unwrap().contains(point), "{job:#}");
        // The other file is not affected.
        let other = fixture.ended(&fixture.job_of("sources/cart.py").await).await;
        assert_eq!(other["status"], "COMPLETED");
        assert_eq!(fixture.letters("").await.len(), 0);
        // The points after the refused ones are resolved.
        assert_eq!(job["items"]["processed"], 3, "{job:#}");
        assert_eq!(fixture.number("SELECT count(*) FROM relationships").await, 11);

        fixture.data.run(mend).await;
        fixture.sandbox.run(&format!("retry {id}")).await.ok();
        eventually("it completes", async || fixture.sandbox.status(&id).await == "COMPLETED").await;
        fixture.sandbox.prove(&id).await;
        assert_eq!(fixture.letters(&format!("--job {id}")).await.len(), 2);
        assert_eq!(fixture.number("SELECT count(*) FROM relationships").await, 11);
    }
}

#[tokio::test]
async fn a_worker_that_is_killed_behind_a_refused_letter_loses_and_repeats_nothing() {
    for fixture in RelationshipsFixture::both().await {
        let refuse = match &fixture.data {
            Data::Postgres(_) => {
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                     $$ BEGIN RAISE EXCEPTION 'no letters today'; END $$; \
                 CREATE TRIGGER refuse BEFORE INSERT ON windlass_deferred \
                     FOR EACH ROW EXECUTE FUNCTION refuse()"
            }
            _ => {
                "CREATE TRIGGER refuse BEFORE INSERT ON windlass_deferred \
                     BEGIN SELECT RAISE(ABORT, 'no letters today'); END"
            }
        };
        fixture.data.run(refuse).await;
        let mut functions: String =
            (0..30).map(|n| format!("def f{n:02}():\n    g{n}()\n")).collect();
        functions = functions.replace("    g3()", "    HANDLERS[3]()");
        let config = fixture.sandbox.read("windlass.toml").replace("attempts = 3", "attempts = 1");
        fixture.sandbox.write("windlass.toml", &config);
        fixture.kill_worker(&functions, "f15", 10, 9).await;
        let resolved = "SELECT count(*) FROM relationships";
        let _next = fixture.worker();
        let id = fixture.job_of("many.py").await;
        let job = fixture.ended(&id).await;
        assert_eq!((&job["status"], fixture.number(resolved).await), (&"FAILED".into(), 29));
        assert!(job["error"].as_str().unwrap().contains("many.py:f03:"), "{job:#}");

        fixture.sandbox.write("overrides.json", r#"{"HANDLERS[3]": ["pay"]}"#);
        fixture.sandbox.run(&format!("retry {id}")).await.ok();
        eventually("it completes", async || fixture.sandbox.status(&id).await == "COMPLETED").await;
        fixture.sandbox.prove(&id).await;
        assert_eq!(fixture.number(resolved).await, 30);
    }
}
