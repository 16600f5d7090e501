//! The content of a report, and the escaping of all data in it.

use super::*;
use chrono::TimeDelta;
use serde_json::json;
use windlass_core::{ChunkStatus, Counts, Cursor, JobId, JobType, KeyRange, KeySet, Keys};

const SCRIPT: &str = "<script>alert(1)</script>";

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
}

/// A report in which every text is a script.
fn report(status: JobStatus) -> JobReport {
    let definition = json!({
        "description": SCRIPT,
        "source": {"connection": "app", "table": "t", "key": ["id"]},
        "step": {"map": "SELECT 1 FROM {source} WHERE {chunk}"},
        "schedule": {"cron": "0 3 * * *", "timezone": "Asia/Tokyo", "deadline": "1h"},
    });
    let request = json!({"jobType": SCRIPT, "params": {"day": SCRIPT}});
    let job: Job = serde_json::from_value(json!({
        "id": JobId::nil(), "jobType": SCRIPT, "status": status, "priority": 5,
        "request": request, "submittedBy": SCRIPT, "createdAt": at(0), "startedAt": at(1),
        "finishedAt": at(61),
        "items": {"total": 1000, "processed": 900, "skipped": 90, "dead": 10, "conflicts": 1},
        "chunks": {"total": 12, "pending": 0, "processing": 0, "completed": 10, "failed": 1,
            "cancelled": 1},
        "error": (status == JobStatus::Failed).then_some(SCRIPT),
    }))
    .unwrap();
    let chunk = ChunkRow {
        job_id: job.id,
        chunk: 3,
        segment: 1,
        status: ChunkStatus::Failed,
        epoch: 2,
        key_set: KeySet::new(None, Keys::Range(KeyRange::ALL)),
        items: 100,
        cursor: Cursor::default(),
        counts: Counts::default(),
        rows_marked: None,
        rows_updated: None,
        message: None,
        attempts: 3,
        losses: 0,
        worker: Some(SCRIPT.to_owned()),
        started_at: Some(at(2)),
        finished_at: Some(at(4)),
        error: Some(SCRIPT.to_owned()),
    };
    let error = DeadLetterGroup {
        job_type: SCRIPT.to_owned(),
        error: SCRIPT.to_owned(),
        fingerprint: SCRIPT.to_owned(),
        letters: 4,
        last_at: at(9),
    };
    JobReport {
        snapshot: JobSnapshot {
            id: job.id,
            definition: JobType::from_json("SUMS", definition).unwrap(),
            request: job.request.clone(),
            identity: serde_json::from_value(
                json!({"name": SCRIPT, "claims": {"county": [SCRIPT]}}),
            )
            .unwrap(),
            root: JobId::max(),
        },
        deadline: Some(at(61) + TimeDelta::seconds(30)),
        throughput: vec![
            ThroughputBucket { at: at(3), items: 500 },
            ThroughputBucket { at: at(5), items: 500 },
        ],
        interval: Duration::from_secs(1),
        durations: vec![
            DurationBucket { millis: 120, chunks: 9 },
            DurationBucket { millis: 2000, chunks: 1 },
        ],
        slowest: vec![chunk.clone(), chunk.clone()],
        failed: vec![chunk],
        errors: vec![error],
        outputs: vec![Output {
            name: "Report",
            location: SCRIPT.to_owned(),
            rows: Some(40),
            bytes: Some(2048),
        }],
        rows: Some(Rows {
            columns: vec![SCRIPT.to_owned(), "n".to_owned()],
            first: vec![vec![Some(SCRIPT.to_owned()), Some("7".to_owned())], vec![None, None]],
            total: 40,
        }),
        is_pruned: false,
        created_at: at(100),
        job,
    }
}

#[test]
fn all_data_is_escaped() {
    for status in [JobStatus::Completed, JobStatus::Failed, JobStatus::Cancelled] {
        let page = report(status).html();
        assert!(!page.contains("<script"), "{page}");
        assert!(page.matches("&lt;script&gt;").count() >= 12, "{page}");
        assert!(!page.contains("style=\"") && !page.contains("src="), "{page}");
    }
}

#[test]
fn a_report_has_the_outcome_the_request_and_the_result() {
    let page = report(JobStatus::Completed).html();
    for sentence in [
        "990 of 1,000 items processed or skipped; 10 dead letters.",
        "On time: the deadline was 2023-11-14 22:14:51 UTC (2023-11-15 07:14:51 JST).",
        "Redrives dead letters of",
        "40.0 %",
        "2 of 40 rows.",
        "40 rows, 2.0 KiB",
        "windlass audit 00000000-0000-0000-0000-000000000000",
        "read-only: each chunk is one part",
        "Duration of 10 chunks",
        "null",
    ] {
        assert!(page.contains(sentence), "`{sentence}` in {page}");
    }
    let failed = report(JobStatus::Failed).html();
    for sentence in
        ["finished. Committed changes stay.", "The deadline was", "windlass retry", "Do not rely"]
    {
        assert!(failed.contains(sentence), "`{sentence}` in {failed}");
    }
    let mut late = report(JobStatus::Completed);
    late.deadline = Some(at(0));
    assert!(late.html().contains("Late by 1 min 1 s"));
}

#[test]
fn pruned_chunks_are_reported() {
    let mut report = report(JobStatus::Completed);
    report.is_pruned = true;
    let page = report.html();
    assert!(
        page.contains("The chunks have been pruned") && page.contains("no longer be audited"),
        "{page}"
    );
    assert!(!page.contains("windlass audit") && !page.contains("Throughput"), "{page}");
}
