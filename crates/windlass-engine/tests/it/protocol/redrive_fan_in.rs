//! A job and its redrives produce one result. The last merge contains the emitted rows of all of them.

use crate::protocol::common::*;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use windlass_core::{Change, ItemError, Job, JobId, JobStatus, Outcome};
use windlass_engine::Engine;
use windlass_store::DeadLetterFilter;
use windlass_testkit::eventually;

const ROWS: i64 = 30;
const REDUCED: &str = "reduce = \"SELECT count(*) AS n, sum(amount) AS total FROM parts\"\n\
                       load = { connection = \"app\", table = \"totals\", replace = [\"day\"] }";

/// The records that fail, and a gate that blocks record 3.
#[derive(Clone)]
struct Fate {
    bad: Arc<Mutex<BTreeSet<i64>>>,
    gate: watch::Sender<bool>,
}

/// A job in which records 3 and 7 are dead letters, and the switches for its handler.
async fn begun(fixture: &EngineFixture) -> (Engine, Job, Fate) {
    fixture.visits(ROWS).await;
    fixture.app.run("UPDATE visits SET amount = id").await;
    fixture.app.run("CREATE TABLE totals (day text, n bigint, total bigint)").await;
    let fate = Fate { bad: Arc::new(Mutex::new([3, 7].into())), gate: watch::Sender::new(true) };
    let decided = fate.clone();
    let handler = move |visit: Visit, _| {
        let fate = decided.clone();
        async move {
            if visit.id == 3 {
                fate.gate.subscribe().wait_for(|open| *open).await.unwrap();
            }
            if fate.bad.lock().unwrap().contains(&visit.id) {
                return Err(ItemError::permanent(format!("visit {} is bad", visit.id)));
            }
            let emit = vec![[("amount".to_owned(), visit.amount.into())].into()];
            Ok(Outcome::Done(Change { emit, ..Change::default() }))
        }
    };
    let builder = fixture.builder(&job(HANDLER, REDUCED)).handler("work", handler);
    let engine = builder.connect().await.unwrap();
    let monday = asked(json!({"jobType": "JOB", "params": {"day": "monday"}}));
    let id = engine.submit(monday, Engine::local_identity()).await.unwrap().id();
    let first = work(&engine, id).await;
    assert_eq!((first.status, first.items.dead), (JobStatus::Completed, 2));
    has_all_but(fixture, &[3, 7]).await;
    (engine, first, fate)
}

/// The table has the rows of all records but these.
async fn has_all_but(fixture: &EngineFixture, missing: &[i64]) {
    let total = ROWS * (ROWS + 1) / 2 - missing.iter().sum::<i64>();
    let n = ROWS - missing.len() as i64;
    let loaded = "FROM totals WHERE day = 'monday'";
    assert_eq!(fixture.int(&format!("SELECT sum(n) {loaded}")).await, n);
    assert_eq!(fixture.int(&format!("SELECT sum(total) {loaded}")).await, total);
}

async fn redrive(engine: &Engine, first: &Job, error: &str) -> JobId {
    let error = Some(error.to_owned());
    let filter = DeadLetterFilter { job: Some(first.id), error, ..DeadLetterFilter::default() };
    engine.redrive(&filter).await.unwrap().remove(0).job_id
}

async fn each_redrive_adds_its_rows_to_the_result(fixture: EngineFixture) {
    let (engine, first, fate) = begun(&fixture).await;
    for (mended, missing) in [(3, &[7_i64] as &[i64]), (7, &[])] {
        fate.bad.lock().unwrap().remove(&mended);
        let id = redrive(&engine, &first, "is bad").await;
        assert_eq!(work(&engine, id).await.status, JobStatus::Completed);
        has_all_but(&fixture, missing).await;
    }
}

/// Two concurrent redrives: the younger merges after the older, although it is ready earlier.
async fn concurrent_redrives_merge_in_order_of_age(fixture: EngineFixture) {
    let (engine, first, fate) = begun(&fixture).await;
    fate.bad.lock().unwrap().clear();
    fate.gate.send_replace(false);
    let older = redrive(&engine, &first, "visit 3").await;
    let younger = redrive(&engine, &first, "visit 7").await;
    let worker = Working::start(&engine, "worker", 2);
    let leases = format!("SELECT max(epoch) FROM windlass_segments WHERE job_id = '{younger}'");
    eventually("the younger one has come to merge, twice", PATIENCE, async || {
        fixture.store.int(&leases).await >= 2
    })
    .await;
    assert_eq!(engine.job(younger).await.unwrap().status, JobStatus::Processing);
    has_all_but(&fixture, &[3, 7]).await;

    fate.gate.send_replace(true);
    for id in [older, younger] {
        assert_eq!(ended(&engine, id).await.status, JobStatus::Completed);
    }
    worker.stop().await;
    has_all_but(&fixture, &[]).await;
}

on_each!(each_redrive_adds_its_rows_to_the_result, concurrent_redrives_merge_in_order_of_age);
