//! Writers that meet at the same records, on a DynamoDB that runs requests in parallel.

use super::{HANDLER, table, write};
use crate::harness::{Db, key};
use crate::writing::item;
use futures::future::join_all;
use serde_json::json;
use uuid::Uuid;
use windlass_connectors::Scope;
use windlass_connectors::dynamodb::{Ending, JobProgress, Records, SegmentPlan, Written};
use windlass_core::{Change, JobId, Key};

const RECORDS: i64 = 24;
const WRITERS: usize = 8;

async fn with_records() -> (Db, Scope, Records) {
    let db = Db::ministack().await;
    table(&db, RECORDS).await;
    let scope = db.scope(HANDLER).await;
    let records = Records::open(&db.tables().url()).await.unwrap();
    (db, scope, records)
}

fn keys() -> Vec<Key> {
    (1..=RECORDS).map(key).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_written_once_by_a_job_with_many_deliveries() {
    let (db, scope, records) = with_records().await;
    let job = Uuid::now_v7();
    let deliver = async || {
        let mut written = 0;
        for read in records.read(&scope, keys(), job).await.unwrap() {
            let change = Change::default().set("kind", 9);
            let result = records.write(&scope, &read, &change, job).await.unwrap();
            written += usize::from(result == Written::Done);
        }
        written
    };
    let written: usize = join_all((0..WRITERS).map(|_| deliver())).await.into_iter().sum();
    assert_eq!(written, RECORDS as usize);
    let versions = db.rows("SELECT DISTINCT version FROM t").await;
    assert_eq!(versions, [["2"]]);
}

/// Ends all items of a job: writers with even numbers write records, the others skip every third item and record every
/// fourth as dead. Whatever is first counts.
async fn end_all(records: &Records, scope: &Scope, job: JobId, writer: usize) {
    let mut open = keys();
    while !open.is_empty() {
        let known = records.known_outcomes(job, &open).await.unwrap().unwrap();
        open.retain(|key| known.of(key).is_none());
        let read = records.read(scope, open.clone(), job).await.unwrap();
        let read: Vec<_> = read.into_iter().filter(|read| !read.has_job(job)).collect();
        let change = Change::default().set("kind", 9);
        let endings: Vec<Ending<'_>> = read
            .iter()
            .enumerate()
            .map(|(n, read)| match (writer % 2, n % 12) {
                (1, 0 | 3 | 6 | 9) => Ending::Skipped(&read.item.key),
                (1, 4 | 8) => Ending::Dead(&read.item.key),
                _ => Ending::Processed(read, &change),
            })
            .collect();
        let results = records.commit_counted(scope, job, known, &endings).await;
        let left = read.iter().zip(results);
        let left = left.filter(|(_, result)| *result.as_ref().unwrap() == Written::Conflict);
        open = left.map(|(read, _)| read.item.key.clone()).collect();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_item_counts_once_however_its_deliveries_end() {
    let (db, scope, records) = with_records().await;
    let job = Uuid::now_v7();
    let segments = ["0".to_owned()];
    records.begin_job(job, "TEST", &json!({"jobType": "TEST"}), &segments).await.unwrap();
    let all = SegmentPlan { items: RECORDS as u64, is_done: true };
    records.plan_segment(job, "0", all).await.unwrap();
    join_all((0..WRITERS).map(|writer| end_all(&records, &scope, job, writer))).await;
    let progress = records.progress(job).await.unwrap().unwrap();
    let JobProgress { processed, skipped, dead, .. } = progress;
    assert_eq!(processed + skipped + dead, RECORDS as u64, "{progress:?}");
    assert!(progress.is_complete());
    let written = db.number("SELECT count(*) FROM t WHERE version = 2").await;
    assert_eq!(written as u64, processed, "{progress:?}");
    assert_eq!(db.number("SELECT count(*) FROM t WHERE version > 2").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_races_with_itself_happens_once() {
    let (db, scope, _) = with_records().await;
    let ledger = db.fenced(1).await;
    let items = super::read(&db, &scope, 1..=RECORDS).await;
    let items: Vec<_> =
        items.into_iter().map(|read| item(read, Change::default().set("kind", 9))).collect();
    let commits = (0..WRITERS).map(|_| db.data.commit(&scope, &ledger, write(items.clone())));
    let committed = join_all(commits).await.into_iter().filter(Result::is_ok).count();
    assert_eq!(committed, 1);
    assert_eq!(db.rows("SELECT DISTINCT version FROM t").await, [["2"]]);
}
