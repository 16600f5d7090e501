//! Converts rows of either database into the store's types.

use std::time::Duration;

use windlass_core::{
    ChunkCounts, ChunkId, ChunkStatus, Counts, Cursor, Delivery, ItemCounts, Job, JobId, JobStatus,
    JobType, Key, Phase, Request,
};

use crate::control::WORKER_VANISHED_AFTER_MS;
use crate::fields::Fields;
use crate::transitions::{self, MERGE_BEGUN};
use crate::values::OMITTED;
use crate::{
    Alert, ChunkBucket, ChunkRow, Control, DeadLetter, DeadLetterGroup, Depth, DurationBucket,
    HourlyJobs, JobSnapshot, JoinPointRow, Lease, LeasedChunk, LeasedSegment, LinkedJob, Losses,
    LostReadSnapshot, NewPart, Occurrence, OrphanedLeases, Owner, PartRow, ReadSnapshotRow,
    RedriveRoot, Result, ScheduleRow, SegmentLease, SegmentRow, SilentWorker, StoreError,
    TakenConnections, ThroughputBucket, Trigger, Unleasable, WorkerRow,
};

/// A job with its counters.
pub(crate) fn job(row: &impl Fields) -> Result<Job> {
    let (mut status, mut error) = (row.status("status")?, row.opt_text("error")?);
    let finished_at = row.opt_time("finished_at")?;
    if status == JobStatus::Cancelled && finished_at.is_none() {
        // Its leased chunks may still commit.
        (status, error) = (JobStatus::Processing, Some(transitions::being_cancelled(error)));
    }
    let merges = row.opt_text("merge")?.as_deref() == Some(MERGE_BEGUN);
    let phase = (status == JobStatus::Processing).then_some(match row.int("open_segments")? {
        0 => Phase::Working,
        _ if merges => Phase::Merging,
        _ => Phase::Planning,
    });
    let mut request: serde_json::Value = row.json("request")?;
    let omitted = request.as_object_mut().and_then(|request| request.remove(OMITTED));
    let omitted = omitted.map(serde_json::from_value).transpose()?.unwrap_or_default();
    Ok(Job {
        id: row.id("id")?,
        job_type: row.text("job_type")?,
        status,
        phase,
        waits_for: row.opt_text("waits_for")?.map(waits_for),
        priority: u8::try_from(row.int("priority")?).unwrap_or(u8::MAX),
        request: serde_json::from_value(request)?,
        omitted,
        submitted_by: row.text("submitter")?,
        created_at: row.time("created_at")?,
        started_at: row.opt_time("started_at")?,
        finished_at,
        waited: chrono::TimeDelta::milliseconds(row.int("waited_ms")?),
        items: ItemCounts {
            total: row.int("items_total")?,
            processed: row.int("processed")?,
            skipped: row.int("skipped")?,
            dead: row.int("dead")?,
            conflicts: row.int("conflicts")?,
        },
        chunks: ChunkCounts {
            total: row.int("chunks_total")?,
            pending: row.int("pending")?,
            processing: row.int("processing")?,
            completed: row.int("completed")?,
            failed: row.int("failed")?,
            cancelled: row.int("cancelled")?,
        },
        outputs: Vec::new(),
        error,
    })
}

/// What a job waits for, in a few words. The reason of an outage also names the connection and the error.
fn waits_for(reason: String) -> String {
    const OUTAGE: &str = " unavailable since ";
    match reason.split_once(OUTAGE).and_then(|(_, since)| since.split_once(": ")) {
        Some((since, _)) if reason.starts_with("database ") => format!("database{OUTAGE}{since}"),
        _ => reason,
    }
}

/// The type and submitter of a job.
pub(crate) fn owner(row: &impl Fields) -> Result<Owner> {
    let (job_type, submitted_by) = (row.text("job_type")?, row.text("submitter")?);
    Ok(Owner { id: row.id("id")?, job_type, submitted_by })
}

/// What a job was submitted with.
pub(crate) fn snapshot(row: &impl Fields) -> Result<JobSnapshot> {
    let definition = JobType::from_json(&row.text("job_type")?, row.json("definition")?)?;
    let (id, request): (_, Request) = (row.id("id")?, row.json("request")?);
    Ok(JobSnapshot {
        id,
        request: request.resolve(&definition, id),
        definition,
        identity: row.json("identity")?,
        root: row.id("root")?,
    })
}

/// A chunk in a listing.
pub(crate) fn chunk(row: &impl Fields) -> Result<ChunkRow> {
    let (status, marked) = (row.status("status")?, row.opt_int("marked")?);
    let (read, processed) = (row.int("read")?, row.int("processed")?);
    let is_repeated = status == ChunkStatus::Completed && marked == Some(0) && read == 0;
    Ok(ChunkRow {
        job_id: row.id("job_id")?,
        chunk: row.int("number")?,
        segment: number(row, "segment")?,
        status,
        epoch: row.int("epoch")?,
        key_set: row.json("key_set")?,
        items: row.int("items")?,
        cursor: Cursor::from_text(&row.text("cursor")?)?,
        counts: Counts {
            read,
            processed,
            skipped: row.int("skipped")?,
            dead: row.int("dead")?,
            conflicts: row.int("conflicts")?,
        },
        rows_marked: marked,
        rows_updated: marked.map(|_| processed),
        message: is_repeated.then(|| "already processed".to_owned()),
        attempts: row.small("attempts")?,
        losses: row.small("losses")?,
        worker: row.opt_text("worker")?,
        started_at: row.opt_time("started_at")?,
        finished_at: row.opt_time("finished_at")?,
        error: row.opt_text("error")?,
    })
}

/// A segment in a listing.
pub(crate) fn segment(row: &impl Fields) -> Result<SegmentRow> {
    Ok(SegmentRow {
        segment: number(row, "number")?,
        status: row.status("status")?,
        state: row.json("state")?,
        range: row.json("key_range")?,
        error: row.opt_text("error")?,
    })
}

/// A leased chunk.
pub(crate) fn leased_chunk(row: &impl Fields) -> Result<LeasedChunk> {
    let chunk = ChunkId { job: row.id("job_id")?, number: row.int("number")? };
    Ok(LeasedChunk {
        lease: Lease { chunk, epoch: row.int("epoch")?, nonce: row.int("nonce")? },
        key_set: row.json("key_set")?,
        items: row.int("items")?,
        attempts: row.small("attempts")?,
        lost: row.flag("lost")?,
        error: row.opt_text("error")?,
    })
}

/// A leased segment.
pub(crate) fn leased_segment(row: &impl Fields) -> Result<LeasedSegment> {
    let lease = SegmentLease {
        job: row.id("job_id")?,
        segment: number(row, "number")?,
        epoch: row.int("epoch")?,
        nonce: row.int("nonce")?,
    };
    Ok(LeasedSegment {
        lease,
        state: row.json("state")?,
        range: row.json("key_range")?,
        attempts: row.small("attempts")?,
    })
}

/// The jobs of an hour.
pub(crate) fn hourly_jobs(row: &impl Fields) -> Result<HourlyJobs> {
    Ok(HourlyJobs { at: row.time("at")?, status: row.status("status")?, jobs: row.int("jobs")? })
}

/// A bucket of consecutive chunks.
pub(crate) fn chunk_bucket(row: &impl Fields) -> Result<ChunkBucket> {
    let (status, chunks) = (row.status("status")?, row.int("chunks")?);
    Ok(ChunkBucket { bucket: row.int("bucket")?, status, chunks, dead: row.int("dead")? })
}

/// The throughput within an interval.
pub(crate) fn throughput_bucket(row: &impl Fields) -> Result<ThroughputBucket> {
    Ok(ThroughputBucket { at: row.time("at")?, items: row.int("items")? })
}

/// Chunks of about the same duration.
pub(crate) fn duration_bucket(row: &impl Fields) -> Result<DurationBucket> {
    Ok(DurationBucket { millis: row.int("millis")?, chunks: row.int("chunks")? })
}

/// A group of dead letters.
pub(crate) fn dead_letter_group(row: &impl Fields) -> Result<DeadLetterGroup> {
    Ok(DeadLetterGroup {
        job_type: row.text("job_type")?,
        error: row.text("error")?,
        fingerprint: row.text("fingerprint")?,
        letters: row.int("letters")?,
        last_at: row.time("last_at")?,
    })
}

/// A dead letter.
pub(crate) fn dead_letter(row: &impl Fields) -> Result<DeadLetter> {
    Ok(DeadLetter {
        id: row.id("id")?,
        job_id: row.id("job_id")?,
        job_type: row.text("job_type")?,
        chunk: row.int("chunk")?,
        key: key_id(&row.text("key")?)?,
        record: row.json("record")?,
        error: row.text("error")?,
        fingerprint: row.text("fingerprint")?,
        context: row.json("context")?,
        attempts: row.small("attempts")?,
        status: row.status("status")?,
        redrive_job: row.opt_id("redrive_job")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

/// A job of a redrive chain.
pub(crate) fn chained_job(row: &impl Fields) -> Result<(JobId, JobStatus)> {
    Ok((row.id("id")?, row.status("status")?))
}

/// An original job with letters to redrive.
pub(crate) fn redrive_root(row: &impl Fields) -> Result<RedriveRoot> {
    Ok(RedriveRoot {
        job: row.id("job_id")?,
        job_type: row.text("job_type")?,
        letters: row.int("letters")?.unsigned_abs(),
    })
}

/// Converts the text of a key to the form that a request's `ids` uses.
pub(crate) fn key_id(text: &str) -> Result<serde_json::Value> {
    Ok(Key::from_id(serde_json::from_str(text)?).to_id())
}

fn number(row: &impl Fields, name: &str) -> Result<i32> {
    let number = row.int(name)?;
    i32::try_from(number).map_err(|_| StoreError::Unreadable(format!("segment {number}")))
}

/// The controls of a subject.
pub(crate) fn control(row: &impl Fields) -> Result<Control> {
    Ok(Control {
        subject: row.text("subject")?,
        stopped: row.flag("stopped")?,
        suspended: row.opt_text("suspended")?,
        concurrency: row.opt_int("concurrency")?,
        rate: row.opt_int("rate")?,
    })
}

/// A chunk's lease.
pub(crate) fn lease(row: &impl Fields) -> Result<Lease> {
    let chunk = ChunkId { job: row.id("job_id")?, number: row.int("number")? };
    Ok(Lease { chunk, epoch: row.int("epoch")?, nonce: row.int("nonce")? })
}

/// A time to wait, from milliseconds.
pub(crate) fn wait(row: &impl Fields) -> Result<Duration> {
    Ok(Duration::from_millis(row.int("wait")?.try_into().unwrap_or_default()))
}

/// A worker process.
pub(crate) fn worker(row: &impl Fields) -> Result<WorkerRow> {
    Ok(WorkerRow {
        name: row.text("name")?,
        slots: row.int("slots")?,
        chunks: row.int("chunks")?,
        job_types: row.opt_text("job_types")?,
        started_at: row.time("started_at")?,
        seen_at: row.time("seen_at")?,
        vanished: row.int("silent")? > WORKER_VANISHED_AFTER_MS,
    })
}

/// A worker process that missed its last heartbeats.
pub(crate) fn silent_worker(row: &impl Fields) -> Result<SilentWorker> {
    Ok(SilentWorker { name: row.text("name")?, process: row.text("process")? })
}

/// What is taken of a connection's total.
pub(crate) fn taken(row: &impl Fields) -> Result<TakenConnections> {
    let (connections, processes) = (row.int("connections")?, row.int("processes")?);
    Ok(TakenConnections { connections, processes })
}

/// The read snapshot of a job.
pub(crate) fn read_snapshot(row: &impl Fields) -> Result<ReadSnapshotRow> {
    Ok(ReadSnapshotRow {
        number: row.int("number")?,
        server: row.text("server")?,
        name: row.text("name")?,
        fingerprint: row.text("fingerprint")?,
        lease_until: row.opt_time("lease_until")?,
    })
}

/// A read snapshot whose holder is gone.
pub(crate) fn lost_read_snapshot(row: &impl Fields) -> Result<LostReadSnapshot> {
    Ok(LostReadSnapshot {
        job: row.id("job_id")?,
        number: row.int("number")?,
        server: row.text("server")?,
        worker: row.text("worker")?,
        losses: row.int("losses")?,
        chunks: row.int("chunks_total")?,
        completed: row.int("completed")?,
        age: Duration::from_millis(row.int("age_ms")?.unsigned_abs()),
    })
}

/// The leases of a worker process that missed its last heartbeats.
pub(crate) fn orphaned_leases(row: &impl Fields) -> Result<OrphanedLeases> {
    let (worker, chunks) = (row.text("worker")?, row.int("chunks")?);
    Ok(OrphanedLeases { worker, chunks, until: row.time("until")? })
}

/// A job in a dependency graph.
pub(crate) fn linked_job(row: &impl Fields) -> Result<LinkedJob> {
    let parents = row.opt_text("parents")?.unwrap_or_default();
    let id = |text: &str| text.parse().map_err(|_| StoreError::Unreadable(format!("job {text}")));
    Ok(LinkedJob {
        id: row.id("id")?,
        job_type: row.text("job_type")?,
        status: row.status("status")?,
        submitted_by: row.text("submitter")?,
        after: parents.split_whitespace().map(id).collect::<Result<_>>()?,
    })
}

/// A join point.
pub(crate) fn join_point(row: &impl Fields) -> Result<JoinPointRow> {
    Ok(JoinPointRow {
        rule: row.json("rule")?,
        agreed: row.json("agreed")?,
        arrived: row.json("arrived")?,
        updated_at: row.time("updated_at")?,
    })
}

/// A trigger.
pub(crate) fn trigger(row: &impl Fields) -> Result<Trigger> {
    Ok(Trigger {
        id: row.id("id")?,
        request: row.json("request")?,
        identity: row.json("identity")?,
        root: row.id("root")?,
        attempts: row.int("attempts")?,
        error: row.opt_text("error")?,
    })
}

/// A part.
pub(crate) fn part(row: &impl Fields) -> Result<PartRow> {
    Ok(PartRow {
        chunk: row.int("chunk")?,
        epoch: row.int("epoch")?,
        nonce: row.int("nonce")?,
        part: NewPart {
            name: row.opt_text("name")?,
            rows: row.int("rows")?,
            bytes: row.int("bytes")?,
            sha256: row.text("sha256")?,
            content_hash: row.text("content_hash")?,
            content: row.opt_bytes("content")?,
        },
    })
}

/// A schedule.
pub(crate) fn schedule(row: &impl Fields) -> Result<ScheduleRow> {
    Ok(ScheduleRow {
        job_type: row.text("job_type")?,
        spec: row.text("spec")?,
        next_at: row.opt_time("next_at")?,
        paused: row.flag("paused")?,
        last_at: row.opt_time("last_at")?,
        last_job: row.opt_id("last_job")?,
        error: row.opt_text("error")?,
        now: row.time("now")?,
    })
}

/// An alert.
pub(crate) fn alert(row: &impl Fields) -> Result<Alert> {
    let delivery = row.status("delivery")?;
    Ok(Alert {
        id: row.id("id")?,
        kind: row.status("kind")?,
        job_type: row.text("job_type")?,
        job_id: row.opt_id("job_id")?,
        message: row.text("message")?,
        details: row.json("details")?,
        at: row.time("raised_at")?,
        cleared_at: row.opt_time("cleared_at")?,
        cleared_reason: row.opt_text("cleared_reason")?,
        acknowledged_at: row.opt_time("acknowledged_at")?,
        acknowledged_by: row.opt_text("acknowledged_by")?,
        delivery,
        attempts: row.small("attempts")?,
        next_at: row.opt_time("next_at")?.filter(|_| delivery == Delivery::Pending),
        delivered_at: row.opt_time("delivered_at")?,
        error: row.opt_text("error")?,
    })
}

/// The subject and threshold of a condition.
pub(crate) fn condition(row: &impl Fields) -> Result<(String, i64)> {
    Ok((row.text("subject")?, row.int("threshold")?))
}

/// The number of dead letters of a job type.
pub(crate) fn letter_count(row: &impl Fields) -> Result<(String, i64)> {
    Ok((row.text("job_type")?, row.int("letters")?))
}

/// A job that needs an alert.
pub(crate) fn occurrence(row: &impl Fields) -> Result<Occurrence> {
    Ok(Occurrence {
        kind: row.status("kind")?,
        subject: row.text("subject")?,
        job: row.id("id")?,
        job_type: row.text("job_type")?,
        submitted_by: row.text("submitter")?,
        at: row.time("at")?,
        error: row.opt_text("error")?,
    })
}

/// Work that no running process can lease.
pub(crate) fn unleasable(row: &impl Fields) -> Result<Unleasable> {
    Ok(Unleasable {
        job_type: row.text("job_type")?,
        jobs: row.int("jobs")?,
        connection: row.text("connection")?,
        handler: row.opt_text("handler")?,
    })
}

/// The jobs of a type with a status.
pub(crate) fn depth(row: &impl Fields) -> Result<Depth> {
    Ok(Depth {
        job_type: row.text("job_type")?,
        status: row.status("status")?,
        jobs: row.int("jobs")?,
        pending: row.int("pending")?,
        processing: row.int("processing")?,
    })
}

/// The lost leases of a job.
pub(crate) fn losses(row: &impl Fields) -> Result<Losses> {
    let job = row.id("job_id")?;
    Ok(Losses { job, job_type: row.text("job_type")?, losses: row.int("losses")? })
}
