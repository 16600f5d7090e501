//! A relay that is killed after it has submitted a job and before it removes the row.

use crate::common::{Data, eventually, text};
use crate::outbox::fixture::OutboxFixture;
use serde_json::json;

/// On PostgreSQL, a gate blocks the relay at exactly that point.
#[tokio::test]
async fn a_relay_killed_before_it_removes_the_row_causes_no_second_job() {
    let fixture = OutboxFixture::on(Data::postgres().await).await;
    let Data::Postgres(database) = &fixture.data else { panic!("not PostgreSQL") };
    fixture
        .data
        .run(
            "CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN OLD; END $$; \
             CREATE TRIGGER gate BEFORE DELETE ON windlass_outbox \
                 FOR EACH ROW EXECUTE FUNCTION gate(); \
             INSERT INTO orders VALUES ('a')",
        )
        .await;
    let keeper = database.client().await;
    keeper.batch_execute("SELECT pg_advisory_lock(7)").await.unwrap();
    let request = json!({"params": {"order": "a"}, "items": [{"order": "a"}]});
    let id = format!("SELECT windlass_enqueue('SHIP', '{request}')::text");
    let id: String = database.one(&id).await;
    for _ in 0..3 {
        let relay = fixture.relay();
        let at_the_gate = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
                           WHERE locktype = 'advisory' AND objid = 7 AND NOT granted \
                           AND datname = current_database()";
        eventually("a relay is blocked at the gate", async || {
            assert!(relay.is_running(), "{}", relay.stderr());
            fixture.data.number(at_the_gate).await > 0
        })
        .await;
        let jobs = fixture.jobs().await;
        assert_eq!((jobs.len(), text(&jobs[0]["id"])), (1, id.clone()), "submitted");
        assert_eq!(fixture.waiting().await, 1, "the row is not removed");
        relay.kill9();
        relay.wait().await;
        // The relay's server session still exists and has locked the row.
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks l \
                   JOIN pg_database d ON d.oid = l.database \
                   WHERE locktype = 'advisory' AND objid = 7 AND NOT granted \
                   AND datname = current_database()";
        fixture.data.number(end).await;
    }
    keeper.batch_execute("SELECT pg_advisory_unlock(7)").await.unwrap();
    assert_eq!(fixture.ship_all().await, 1);
}

/// On SQLite, the removal fails, which looks the same to the relay.
#[tokio::test]
async fn a_row_that_cannot_be_removed_causes_no_second_job() {
    let fixture = OutboxFixture::on(Data::sqlite()).await;
    let request = json!({"params": {"order": "a"}, "items": [{"order": "a"}]});
    fixture
        .data
        .run(&format!(
            "CREATE TRIGGER gate BEFORE DELETE ON windlass_outbox \
                 BEGIN SELECT RAISE(ABORT, 'not now'); END; \
             INSERT INTO orders VALUES ('a'); \
             INSERT INTO windlass_outbox (job_type, request) VALUES ('SHIP', '{request}')"
        ))
        .await;
    for _ in 0..3 {
        let relay = fixture.relay();
        eventually("the relay has tried to remove the row", async || {
            relay.stderr().contains("not now")
        })
        .await;
        relay.kill9();
        relay.wait().await;
        assert_eq!((fixture.jobs().await.len(), fixture.waiting().await), (1, 1));
    }
    fixture.data.run("DROP TRIGGER gate").await;
    assert_eq!(fixture.ship_all().await, 1);
}
