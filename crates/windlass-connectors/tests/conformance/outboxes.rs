//! The outbox: inserting requests and relaying them.

use crate::harness::{Db, on_every_backend};
use async_trait::async_trait;
use serde_json::{Value as Json, json};
use std::sync::Mutex;
use std::time::Duration;
use windlass_connectors::outbox::{EnqueueError, enqueue};
use windlass_connectors::{OutboxRow, OutboxType, SubmitResult, Submitter};
use windlass_core::{Claims, Identity, JobId, JobType, Request, Value};

on_every_backend!(
    only_committed_requests_are_relayed_and_only_once,
    an_empty_list_of_items_makes_no_job,
    a_missing_or_empty_list_under_its_own_name_makes_no_job,
    items_of_two_units_are_refused_in_the_transaction,
    invalid_requests_are_refused_in_the_transaction,
    a_refused_row_keeps_its_error_and_does_not_block_others,
    an_overflowing_number_of_attempts_does_not_block_other_rows,
    a_row_that_cannot_be_updated_does_not_block_other_rows,
    rows_stay_while_nothing_can_be_submitted,
    many_rows_are_submitted_in_batches,
    a_missing_table_is_reported,
);

/// A submitter that records requests and returns a given result.
#[derive(Default)]
struct Memory {
    given: Mutex<Vec<OutboxRow>>,
    answer: Mutex<Option<SubmitResult>>,
}

impl Memory {
    fn answering(answer: SubmitResult) -> Memory {
        Memory { answer: Mutex::new(Some(answer)), ..Memory::default() }
    }

    fn ids(&self) -> Vec<JobId> {
        self.given.lock().unwrap().iter().map(|given| given.id).collect()
    }
}

#[async_trait]
impl Submitter for Memory {
    async fn submit(&self, given: OutboxRow) -> SubmitResult {
        let answer = self.answer.lock().unwrap().clone();
        let bad = given.job_type == "BAD";
        self.given.lock().unwrap().push(given);
        answer.unwrap_or(if bad {
            SubmitResult::Refused("is bad".to_owned())
        } else {
            SubmitResult::Submitted
        })
    }
}

/// Inserts requests in one transaction, which is committed or rolled back.
async fn put(
    db: &Db,
    requests: &[Request],
    commit: bool,
) -> Result<Vec<Option<JobId>>, EnqueueError> {
    let claims: Claims = [("county".to_owned(), vec![Value::from("Kent")])].into();
    let identity = Identity { name: "app".to_owned(), claims, ..Identity::default() };
    let mut ids = Vec::new();
    if db.is_postgres() {
        let mut client = db.database().client().await;
        let mut tx = client.transaction().await?;
        for request in requests {
            ids.push(enqueue(&mut tx, request, &identity).await?);
        }
        if commit { tx.commit().await? } else { tx.rollback().await? }
    } else if !db.is_sqlite() {
        let mut sql = String::from("BEGIN");
        for request in requests {
            request.check_size().map_err(EnqueueError::Problem)?;
            let mut json = serde_json::to_value(request).unwrap();
            json.as_object_mut().unwrap().remove("jobType");
            json["claims"] = json!({"county": ["Kent"]});
            json["submittedBy"] = json!("app");
            let id = JobId::now_v7();
            sql += &format!(
                "; INSERT INTO windlass_outbox (id, job_type, request) VALUES ('{id}', '{}', '{json}')",
                request.job_type
            );
            let empty = request.items.as_ref().is_some_and(Vec::is_empty);
            ids.push((!empty).then_some(id));
        }
        sql += if commit { "; COMMIT" } else { "; ROLLBACK" };
        db.run(&sql).await;
    } else {
        let mut client = db.client();
        let mut tx = client.transaction()?;
        for request in requests {
            ids.push(enqueue(&mut tx, request, &identity)?);
        }
        if commit { tx.commit()? } else { tx.rollback()? }
    }
    Ok(ids)
}

pub(crate) async fn prepared(db: &Db) {
    db.data.outbox().prepare(&[]).await.unwrap();
    // Every process does this at its start.
    db.data.outbox().prepare(&[]).await.unwrap();
}

pub(crate) async fn rows(db: &Db) -> i64 {
    db.number("SELECT count(*) FROM windlass_outbox").await
}

async fn only_committed_requests_are_relayed_and_only_once(db: Db) {
    prepared(&db).await;
    let request = |n: i64| Request {
        params: [("n".to_owned(), json!(n))].into(),
        items: Some(vec![json!({"id": n})]),
        ..Request::new("J")
    };
    put(&db, &[request(1)], false).await.unwrap();
    let ids = put(&db, &[request(2), request(3)], true).await.unwrap();
    let ids: Vec<JobId> = ids.into_iter().flatten().collect();
    assert_eq!(ids.len(), 2);
    let now = uuid::Uuid::now_v7().get_timestamp().unwrap().to_unix().0;
    for id in &ids {
        assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
        assert!(id.get_timestamp().unwrap().to_unix().0.abs_diff(now) < 600, "{id}");
    }
    let door = Memory::default();
    let relayed = db.data.outbox().relay(&door).await.unwrap();
    assert_eq!(
        (relayed.submitted, relayed.refused, relayed.unavailable, relayed.more),
        (2, 0, None, false)
    );
    let mut came = door.ids();
    came.sort();
    let mut expected = ids.clone();
    expected.sort();
    assert_eq!(came, expected);
    let given = door.given.lock().unwrap().iter().find(|given| given.id == ids[0]).unwrap().clone();
    assert_eq!(given.job_type, "J");
    let whole: Json = serde_json::from_str(&given.request).unwrap();
    let expected = json!({"params": {"n": 2}, "items": [{"id": 2}],
        "claims": {"county": ["Kent"]}, "submittedBy": "app"});
    assert_eq!(whole, expected);
    assert_eq!(rows(&db).await, 0);
    let again = Memory::default();
    db.data.outbox().relay(&again).await.unwrap();
    assert_eq!(again.ids().len(), 0);
}

/// The application is given no id. The row stays for the relay, which logs it.
async fn an_empty_list_of_items_makes_no_job(db: Db) {
    prepared(&db).await;
    let request = Request { items: Some(Vec::new()), ..Request::new("J") };
    assert_eq!(put(&db, &[request], true).await.unwrap(), [None]);
    has_no_id(&db, "J", "{\"items\": []}").await;
    assert_eq!(rows(&db).await, 2);
    let door = Memory::default();
    assert_eq!(db.data.outbox().relay(&door).await.unwrap().submitted, 2);
    assert_eq!(rows(&db).await, 0);
    let given = door.given.lock().unwrap();
    let lists = given.iter().map(|given| serde_json::from_str::<Json>(&given.request).unwrap());
    assert!(lists.into_iter().all(|request| request["items"] == json!([])));
}

/// Asserts that plain SQL returns no id for this request.
async fn has_no_id(db: &Db, job_type: &str, request: &str) {
    let function = format!("SELECT windlass_enqueue('{job_type}', '{request}') IS NULL");
    let insert = format!(
        "INSERT INTO windlass_outbox (job_type, request) VALUES ('{job_type}', '{request}')"
    );
    // MariaDB cannot replace a row, so its insert has an id.
    let returning = format!("{insert} RETURNING id");
    if !db.is_postgres() && !db.is_sqlite() {
        return db.run(&insert).await;
    }
    let answer = db.rows(db.pick(&function, &returning, "")).await;
    assert_eq!(answer.len(), if db.is_postgres() { 1 } else { 0 }, "{request}: {answer:?}");
    assert!(!db.is_postgres() || answer[0][0] == "t", "{request}: {answer:?}");
}

/// A job type whose items have another name in its payloads.
fn pois() -> JobType {
    let definition = json!({"source": {"connection": "app", "items": true, "key": ["id"],
        "unit": "fileId", "rename": {"pois": "items"}}, "step": {"command": ["resolve"]}});
    JobType::from_json("POIS", definition).unwrap()
}

async fn a_missing_or_empty_list_under_its_own_name_makes_no_job(db: Db) {
    let table = json!({"source": {"connection": "app", "table": "t"}, "step": {"refresh": true}});
    let table = JobType::from_json("TABLE", table).unwrap();
    let types = [OutboxType::of(&pois()), OutboxType::of(&table)];
    // The tables of an earlier version are completed.
    prepared(&db).await;
    for _ in 0..2 {
        db.data.outbox().prepare(&types).await.unwrap();
    }
    let empty =
        ["{\"pois\": []}", "{\"pois\": null}", "{}", "{\"items\": []}", "{\"fileId\": \"a\"}"];
    for request in empty {
        has_no_id(&db, "POIS", request).await;
    }
    assert_eq!(rows(&db).await, empty.len() as i64);
    db.run("DELETE FROM windlass_outbox").await;
    // A request for a table has no list, and is one for all its records.
    let client = put(&db, &[Request::new("TABLE")], true).await.unwrap();
    assert!(client[0].is_some());
    // So is one for a job type that is not known here.
    assert!(put(&db, &[Request::new("OTHER")], true).await.unwrap()[0].is_some());
}

/// Where the database can read the job type's unit, before the application commits.
async fn items_of_two_units_are_refused_in_the_transaction(db: Db) {
    db.data.outbox().prepare(&[OutboxType::of(&pois())]).await.unwrap();
    let mixed = [
        (
            r#"{"pois": [{"id": 1, "fileId": "a"}, {"id": 2}, {"id": 3, "fileId": "b"}]}"#,
            r#"pois[2].fileId is "b", but pois[0].fileId is "a""#,
        ),
        (r#"{"fileId": "a", "pois": [{"id": 1, "fileId": "b"}]}"#, r#"but fileId is "a""#),
        (
            r#"{"params": {"fileId": "a"}, "items": [{"id": 1, "fileId": "b"}]}"#,
            r#"items[0].fileId is "b", but fileId is "a""#,
        ),
        (
            r#"{"pois": [{"id": 1, "fileId": 1}, {"id": 2, "fileId": "1"}]}"#,
            "but pois[0].fileId is 1",
        ),
    ];
    for (request, postgres) in mixed {
        if !db.is_postgres() && !db.is_sqlite() {
            // The relay refuses it.
            continue;
        }
        let message = db.refusal("POIS", request).await;
        let expected = db.pick(postgres, "items_have_different_units", "");
        assert!(message.contains(expected), "{request}: {message}");
    }
    for (request, postgres, constraint) in [
        ("{\"pois\": [7]}", "pois[0] is no JSON object", ""),
        ("{\"pois\": 7}", "pois is no list", ""),
    ] {
        if !db.pick(postgres, constraint, constraint).is_empty() {
            let message = db.refusal("POIS", request).await;
            assert!(message.contains(postgres), "{request}: {message}");
        }
    }
    assert_eq!(rows(&db).await, 0);
    let one = |n: i64| {
        let items = vec![json!({"id": n, "fileId": "a"}), json!({"id": n + 1})];
        Request::new("POIS").with_param("fileId", "a").with_items(items)
    };
    assert!(put(&db, &[one(1), one(2)], true).await.unwrap().iter().all(Option::is_some));
    // The unit of a job type changes with its definition.
    let mut other = pois();
    other.source.unit = None;
    db.data.outbox().prepare(&[OutboxType::of(&other)]).await.unwrap();
    let items = vec![json!({"id": 1, "fileId": "a"}), json!({"id": 2, "fileId": "b"})];
    let both = Request::new("POIS").with_items(items);
    assert!(put(&db, &[both], true).await.unwrap()[0].is_some());
}

async fn invalid_requests_are_refused_in_the_transaction(db: Db) {
    prepared(&db).await;
    let large = format!("{{\"params\": {{\"a\": \"{}\"}}}}", "x".repeat(Request::MAX_BYTES));
    for (job_type, request, postgres, sqlite) in [
        ("J", "[1]", "request is no JSON object", "request_is_a_json_object"),
        ("J", "{\"items\": 1}", "items is no list", "items_is_a_list"),
        ("J", "{\"claims\": 1}", "claims is no JSON object", "claims_is_a_json_object"),
        ("J", "{\"jobType\": \"K\"}", "request has a jobType", "request_names_no_job_type"),
        ("", "{}", "job_type is missing", "job_type_is_missing"),
        ("J", large.as_str(), "8388608 are the most", "request_has_at_most_8388608_bytes"),
        ("J", "{\"items\": [{}, 7]}", "items[1] is no JSON object", ""),
        ("J", "{\"submittedBy\": 7}", "submittedBy is no text", ""),
        ("J", "{", "invalid input syntax", "request_is_a_json_object"),
    ] {
        let expected = db.pick(postgres, sqlite, sqlite);
        if expected.is_empty() {
            // The relay refuses it.
            continue;
        }
        let message = db.refusal(job_type, request).await;
        let shown: String = request.chars().take(30).collect();
        assert!(message.contains(expected), "{shown}: {message}");
    }
    let big = Request {
        items: Some(vec![json!({"id": "x".repeat(Request::MAX_BYTES)})]),
        ..Request::new("J")
    };
    let error = put(&db, &[big], true).await.unwrap_err();
    assert!(matches!(&error, EnqueueError::Problem(problem) if problem.detail.contains("8388608")));
    assert_eq!(rows(&db).await, 0);
}

async fn a_refused_row_keeps_its_error_and_does_not_block_others(db: Db) {
    prepared(&db).await;
    let ids = put(&db, &[Request::new("BAD"), Request::new("J")], true).await.unwrap();
    let relayed = db.data.outbox().relay(&Memory::default()).await.unwrap();
    assert_eq!((relayed.submitted, relayed.refused), (1, 1));
    let waiting = db.data.outbox().waiting(10).await.unwrap().unwrap();
    assert_eq!(waiting.len(), 1);
    let row = &waiting[0];
    assert_eq!((Some(row.id), row.job_type.as_str(), row.attempts), (ids[0], "BAD", 1));
    assert_eq!(row.error.as_deref(), Some("is bad"));
    assert!(row.next_at > row.created_at);
    // Not due yet, unless a second has passed.
    let later =
        db.pick("next_at + interval '1 hour'", "next_at + 3600000", "next_at + INTERVAL 1 HOUR");
    db.run(&format!("UPDATE windlass_outbox SET next_at = {later}")).await;
    let door = Memory::default();
    db.data.outbox().relay(&door).await.unwrap();
    assert_eq!(door.ids().len(), 0);
    let past = db.pick("now() - interval '1 hour'", "1", "'2001-01-01'");
    db.run(&format!("UPDATE windlass_outbox SET next_at = {past}")).await;
    db.data.outbox().relay(&door).await.unwrap();
    let came = door.given.lock().unwrap().pop().unwrap();
    assert_eq!((Some(came.id), came.error.as_deref()), (ids[0], Some("is bad")));
    assert_eq!(db.data.outbox().waiting(10).await.unwrap().unwrap()[0].attempts, 2);
}

/// The constraint refuses it. In a table without the constraint, the count does not change, and the other rows of the
/// batch are processed.
async fn an_overflowing_number_of_attempts_does_not_block_other_rows(db: Db) {
    prepared(&db).await;
    put(&db, &[Request::new("BAD")], true).await.unwrap();
    for attempts in ["2147483647", "-1"] {
        let set = format!("UPDATE windlass_outbox SET attempts = {attempts}");
        let error = db.error_of(&set).await;
        assert!(error.contains("attempts_is_a_count"), "{attempts}: {error}");
    }
    if db.is_sqlite() {
        return;
    }
    db.run("ALTER TABLE windlass_outbox DROP CONSTRAINT attempts_is_a_count").await;
    db.run("UPDATE windlass_outbox SET attempts = 2147483647").await;
    put(&db, &[Request::new("J")], true).await.unwrap();
    let relayed = db.data.outbox().relay(&Memory::default()).await.unwrap();
    assert_eq!((relayed.submitted, relayed.refused), (1, 1));
    let waiting = db.data.outbox().waiting(10).await.unwrap().unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!((waiting[0].attempts, waiting[0].error.as_deref()), (1_000_000_000, Some("is bad")));
}

/// A user's trigger refuses to update one row of a batch.
async fn a_row_that_cannot_be_updated_does_not_block_other_rows(db: Db) {
    prepared(&db).await;
    let ids = put(&db, &[Request::new("BAD"), Request::new("STUCK"), Request::new("J")], true)
        .await
        .unwrap();
    let function = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF OLD.job_type = 'STUCK' THEN RAISE EXCEPTION 'stuck'; END IF; RETURN OLD; END $$; \
        CREATE TRIGGER refuse BEFORE DELETE ON windlass_outbox FOR EACH ROW EXECUTE FUNCTION refuse()";
    let sqlite = "CREATE TRIGGER refuse BEFORE DELETE ON windlass_outbox \
        WHEN OLD.job_type = 'STUCK' BEGIN SELECT RAISE(ABORT, 'stuck'); END";
    let mysql = "CREATE TRIGGER refuse BEFORE DELETE ON windlass_outbox FOR EACH ROW \
        IF OLD.job_type = 'STUCK' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'stuck'; END IF";
    db.run(db.pick(function, sqlite, mysql)).await;
    db.data.outbox().relay(&Memory::default()).await.unwrap();
    let waiting = db.data.outbox().waiting(10).await.unwrap().unwrap();
    let mut left: Vec<_> = waiting.iter().map(|row| (Some(row.id), row.attempts)).collect();
    left.sort();
    let mut expected = [(ids[0], 1), (ids[1], 0)];
    expected.sort();
    assert_eq!(left, expected);
}

async fn rows_stay_while_nothing_can_be_submitted(db: Db) {
    prepared(&db).await;
    put(&db, &[Request::new("J"), Request::new("J")], true).await.unwrap();
    let door = Memory::answering(SubmitResult::Unavailable("no store".to_owned()));
    let relayed = db.data.outbox().relay(&door).await.unwrap();
    assert_eq!((relayed.submitted, relayed.unavailable.as_deref()), (0, Some("no store")));
    assert_eq!(door.ids().len(), 1, "the second is not even asked for");
    let waiting = db.data.outbox().waiting(10).await.unwrap().unwrap();
    assert!(
        waiting.len() == 2 && waiting.iter().all(|row| row.attempts == 0 && row.error.is_none())
    );
    assert_eq!(db.data.outbox().relay(&Memory::default()).await.unwrap().submitted, 2);
}

async fn many_rows_are_submitted_in_batches(db: Db) {
    prepared(&db).await;
    put(&db, &vec![Request::new("J"); 230], true).await.unwrap();
    let door = Memory::default();
    let mut taken = Vec::new();
    loop {
        let relayed = db.data.outbox().relay(&door).await.unwrap();
        taken.push(relayed.submitted);
        if !relayed.more {
            break;
        }
    }
    assert_eq!(taken, [100, 100, 30]);
    let mut ids = door.ids();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 230);
}

async fn a_missing_table_is_reported(db: Db) {
    assert_eq!(db.data.outbox().waiting(10).await.unwrap(), None);
    prepared(&db).await;
    assert_eq!(db.data.outbox().waiting(10).await.unwrap(), Some(Vec::new()));
}

/// While one relay submits a row, another skips it and submits the others.
#[tokio::test]
async fn two_relays_on_postgresql_share_the_rows() {
    let db = Db::postgres().await;
    prepared(&db).await;
    let ids = put(&db, &[Request::new("J")], true).await.unwrap();
    let client = db.database().client().await;
    client.batch_execute("BEGIN; SELECT * FROM windlass_outbox FOR UPDATE").await.unwrap();
    let more = put(&db, &[Request::new("J")], true).await.unwrap();
    let door = Memory::default();
    assert_eq!(db.data.outbox().relay(&door).await.unwrap().submitted, 1);
    assert_eq!(door.ids(), [more[0].unwrap()]);
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(db.data.outbox().relay(&door).await.unwrap().submitted, 1);
    assert_eq!(door.ids()[1], ids[0].unwrap());
}

/// SQLite accepts bytes in text columns. Such a row is refused, and the others are submitted.
#[tokio::test]
async fn a_row_of_sqlite_that_is_not_text_does_not_block_others() {
    let db = Db::sqlite().await;
    prepared(&db).await;
    let insert = "INSERT INTO windlass_outbox (job_type, request) VALUES ('J',";
    let bytes = db.client().execute(&format!("{insert} x'7b7d')"), []).unwrap_err().to_string();
    assert!(bytes.contains("everything_is_text"), "{bytes}");
    db.run(&format!("{insert} CAST(x'7b2261223a22ff227d' AS TEXT))")).await;
    put(&db, &[Request::new("J")], true).await.unwrap();
    let door = Memory::default();
    assert_eq!(db.data.outbox().relay(&door).await.unwrap().submitted, 2);
    let given = door.given.lock().unwrap();
    assert!(given.iter().any(|given| given.request == "\"this is not UTF-8 text\""));
}

/// The commit wakes the waiting relay, whose next poll would be in an hour.
#[tokio::test]
async fn a_commit_on_postgresql_wakes_the_relay() {
    let db = Db::postgres().await;
    prepared(&db).await;
    let hour = Duration::from_secs(3600);
    let woken = async || tokio::time::timeout(hour / 60, db.data.outbox().changed(hour)).await;
    // The first wait returns at once, since rows may have been inserted before.
    woken().await.unwrap();
    put(&db, &[Request::new("J")], true).await.unwrap();
    woken().await.unwrap();
}
