//! The descriptions are those of the values that are sent.

use super::*;
use serde::de::DeserializeOwned;
use serde_json::json;
use windlass_core as core;
use windlass_store as store;

/// A value can be read by its description, and is written the same by it.
#[track_caller]
fn is_described<T: Serialize + DeserializeOwned>(value: &impl Serialize) {
    let sent = serde_json::to_value(value).unwrap();
    let read: T = serde_json::from_value(sent.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), sent);
}

#[test]
fn every_shape_is_that_of_its_value() {
    let (id, now) = (Uuid::now_v7(), Utc::now());
    let request = core::Request {
        filter: Some([("years".to_owned(), Some(vec![Json::from(1)]))].into()),
        parallel_segments: Some(1),
        max_items_per_segment: Some(1),
        params: [("a".to_owned(), Json::from(1))].into(),
        priority: Some(1),
        idempotency_key: Some("k".to_owned()),
        ids: Some(vec![Json::from(1)]),
        ..core::Request::new("J")
    };
    is_described::<Request>(&request);
    is_described::<Job>(&core::Job {
        omitted: [("ids".to_owned(), 7)].into(),
        id,
        job_type: "J".to_owned(),
        status: core::JobStatus::Queued,
        phase: Some(core::Phase::Planning),
        priority: 5,
        request,
        submitted_by: "me".to_owned(),
        created_at: now,
        started_at: None,
        finished_at: Some(now),
        items: core::ItemCounts::default(),
        chunks: core::ChunkCounts::default(),
        error: None,
    });
    is_described::<Alert>(&store::Alert {
        id,
        kind: core::AlertKind::JobFailed,
        job_type: "J".to_owned(),
        job_id: Some(id),
        message: "m".to_owned(),
        details: serde_json::json!({"a": 1}),
        at: now,
        cleared_at: None,
        delivery: core::Delivery::Pending,
        attempts: 1,
        next_at: Some(now),
        delivered_at: None,
        error: None,
    });
    is_described::<Chunk>(&store::ChunkRow {
        job_id: id,
        chunk: 0,
        segment: 1,
        status: core::ChunkStatus::Pending,
        epoch: 0,
        key_set: core::KeySet::range(None, None),
        items: 1,
        cursor: core::Cursor::Start,
        counts: core::Counts::default(),
        attempts: 0,
        losses: 0,
        worker: None,
        started_at: None,
        finished_at: None,
        error: None,
    });
    is_described::<Segment>(&store::SegmentRow {
        segment: 0,
        status: core::ChunkStatus::Completed,
        state: core::PaginationState::Plan,
        range: core::KeyRange::ALL,
        error: None,
    });
    is_described::<DeadLetter>(&store::DeadLetter {
        id,
        job_id: id,
        job_type: "J".to_owned(),
        chunk: 0,
        key: Json::from(1),
        record: Json::Null,
        error: "e".to_owned(),
        fingerprint: "e".to_owned(),
        context: Json::Null,
        attempts: 1,
        status: core::DeadLetterStatus::New,
        redrive_job: None,
        created_at: now,
        updated_at: now,
    });
    let redriven = windlass_engine::Redriven { job_id: id, original_job: id, letters: 1 };
    is_described::<Redriven>(&redriven);
    is_described::<Control>(&store::Control {
        subject: "*".to_owned(),
        stopped: false,
        suspended: None,
        concurrency: None,
        rate: Some(1),
    });
    is_described::<Worker>(&store::WorkerRow {
        name: "w".to_owned(),
        slots: 1,
        chunks: 0,
        job_types: None,
        started_at: now,
        seen_at: now,
        vanished: false,
    });
    let schedule = json!({"cron": "0 3 * * *", "deadline": "3h", "params": {"day": "{date}"},
        "claims": {"county": "all"}});
    is_described::<Schedule>(&windlass_engine::Scheduled {
        row: store::ScheduleRow {
            job_type: "J".to_owned(),
            spec: "s".to_owned(),
            next_at: Some(now),
            paused: false,
            last_at: None,
            last_job: Some(id),
            error: None,
            now,
        },
        schedule: serde_json::from_value(schedule).unwrap(),
        next_times: vec![now],
    });
}

#[test]
fn every_status_is_described() {
    core::JobStatus::ALL.iter().for_each(is_described::<JobStatus>);
    core::Phase::ALL.iter().for_each(is_described::<Phase>);
    core::ChunkStatus::ALL.iter().for_each(is_described::<ChunkStatus>);
    core::DeadLetterStatus::ALL.iter().for_each(is_described::<DeadLetterStatus>);
    let missed = [core::Missed::Skip, core::Missed::RunOnce, core::Missed::RunAll];
    missed.iter().for_each(is_described::<Missed>);
    let overlap = [core::Overlap::Skip, core::Overlap::Queue, core::Overlap::CancelRunning];
    overlap.iter().for_each(is_described::<Overlap>);
}
