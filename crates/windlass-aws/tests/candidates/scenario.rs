//! The whole scenario: five thousand candidates, ten segments, a concurrent writer, bad records, duplicate deliveries,
//! an emergency stop while the queue is filled, and a redrive.

use crate::fixture::{CandidatesFixture, Plan};
use crate::writer::add_one;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windlass_aws::dead_letters::{self, Which};
use windlass_drivers::dynamodb::sdk::types::AttributeValue;
use windlass_testkit::Moto;
use windlass_testkit::aws::Moment;

const CANDIDATES: usize = 5000;
const BAD: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn every_candidate_is_processed_exactly_once_per_job() {
    let moto = Moto::start();
    let plan = Plan { migrate: "chunk.items = 50", ..Plan::default() };
    let fixture = CandidatesFixture::with(&moto, plan).await;
    fixture.candidates(CANDIDATES - BAD).await;
    for n in 0..BAD {
        fixture.put_candidate(&format!("bad{n}"), &[("poison", "yes")]).await;
    }
    let stop = Arc::new(AtomicBool::default());
    let writer = {
        let (stop, dynamo, table) =
            (stop.clone(), fixture.dynamo.clone(), fixture.candidates.clone());
        tokio::spawn(async move {
            let mut added: BTreeMap<String, i64> = BTreeMap::new();
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let id = format!("c{}", n * 7 % (CANDIDATES - BAD));
                if add_one(&dynamo, &table, &id).await {
                    *added.entry(id).or_default() += 1;
                }
                // Pause, so that this writer does not take all of moto's time.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            added
        })
    };

    // Stop while the queue is filled, and start the same job again.
    fixture.start.set("LOAD_SECONDS", "0");
    fixture.bus.refuse_every(7);
    fixture.bus.repeat_every(11);
    let request = json!({"jobType": "MIGRATE_CANDIDATES", "idempotencyKey": "night"});
    let start = fixture.start.clone();
    fixture.gateway.at("SendMessageBatch", Moment::After, 30, move || {
        start.set("PROCESSING_ENABLED", "false");
    });
    let answer = fixture.start.invoke(request.clone()).await.unwrap();
    fixture.bus.idle().await;
    let mapping = fixture.mapping();
    let queued = mapping.depth().await;
    assert!(queued > 0 && queued < CANDIDATES, "{queued}");
    fixture.start.set("PROCESSING_ENABLED", "true");
    fixture.start.set("LOAD_SECONDS", "10");
    let job = fixture.start_job(request).await;
    assert_eq!(answer["jobId"], *job);

    // A fifth of the messages are delivered twice.
    let mut mapping = mapping;
    (mapping.concurrency, mapping.repeat_every) = (4, 5);
    mapping.drain().await;

    // Repair and redrive the failed records.
    let dead = fixture.queue(&fixture.dead).await;
    let all = dead_letters::list(&dead, &Which::default(), 10_000).await.unwrap();
    let distinct: std::collections::BTreeSet<&String> = all.iter().map(|one| &one.body).collect();
    assert_eq!(distinct.len(), BAD);
    for n in 0..BAD {
        let key = AttributeValue::S(format!("bad{n}"));
        let mend =
            fixture.dynamo.update_item().table_name(&fixture.candidates).key("identifier", key);
        mend.update_expression("REMOVE poison").send().await.unwrap();
    }
    let work = dead.source().await.unwrap();
    dead_letters::redrive(&dead, &work, &Which::default(), Some(1000)).await.unwrap();
    mapping.drain().await;
    stop.store(true, Ordering::Relaxed);
    let added = writer.await.unwrap();

    let candidates = fixture.all_candidates().await;
    assert_eq!(candidates.len(), CANDIDATES);
    for (id, record) in &candidates {
        let others = added.get(id).copied().unwrap_or_default();
        assert_eq!(record.version(), 1 + 1 + others, "{id}");
        assert_eq!((record.jobs(), record.text("title")), (vec![job.clone()], "A TITLE"), "{id}");
    }
    assert!(added.values().sum::<i64>() > 0);
    assert_eq!(dead_letters::list(&dead, &Which::default(), 1).await.unwrap(), []);
    let writes = fixture.gateway.count("UpdateItem") as f64 / CANDIDATES as f64;
    eprintln!("requests: {:?}; writes per item {writes:.3}", fixture.gateway.counts());
    assert!(writes <= 1.05, "{writes}");
}
