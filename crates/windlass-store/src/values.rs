//! Column values and statement parameters, shared by both backends.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use uuid::Uuid;
use windlass_core::{
    ChunkStatus, Delivery, KeyRange, PaginationState, StepKind, error_fingerprint,
};

use crate::alert::CONDITION_STALE_AFTER;
use crate::transitions::MERGE_DUE;
use crate::{CompletePlan, DeadLetterFilter, NewAlert, NewChunk, NewDeadLetter, NewJob, Result};

/// The lease of a segment, and of a chunk that is leased only to be cancelled.
pub(crate) const SEGMENT_LEASE: Duration = Duration::from_secs(30);

/// The longest lease of a chunk that waits for a slot of its worker. If the worker dies, others take
/// such chunks soon. From the first heartbeat in a slot the lease is as long as `chunk.lease`.
pub(crate) const QUEUED_LEASE: Duration = Duration::from_secs(10);

/// The maximum number of rows that one transaction deletes.
pub(crate) const DELETE_BATCH: u32 = 10_000;

/// A time as both databases take it: milliseconds since 1970-01-01 UTC.
pub(crate) fn instant(time: DateTime<Utc>) -> i64 {
    time.timestamp_millis()
}

/// The maximum number of letters of one redrive. Its request lists their keys.
const MAX_REDRIVEN: u32 = 10_000;

/// The columns of a new job.
pub(crate) struct JobColumns {
    pub(crate) id: Uuid,
    pub(crate) root: Uuid,
    pub(crate) redrive: bool,
    pub(crate) job_type: String,
    pub(crate) submitter: String,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) request: String,
    pub(crate) identity: String,
    pub(crate) definition: String,
    pub(crate) definition_hash: String,
    pub(crate) failures: String,
    pub(crate) priority: i64,
    pub(crate) connection: String,
    pub(crate) handler: Option<String>,
    pub(crate) lease: i64,
    pub(crate) timeout: i64,
    pub(crate) concurrency: Option<i64>,
    pub(crate) rate: Option<i64>,
    pub(crate) on_failed: &'static str,
    pub(crate) rules: Option<String>,
    pub(crate) merge: Option<&'static str>,
    pub(crate) summary: Option<String>,
    pub(crate) plan: PlanColumns,
}

/// The columns of the segments and chunks that a job begins with: of its plan, which is still to be made or complete.
pub(crate) struct PlanColumns {
    pub(crate) open_segments: i64,
    pub(crate) items_total: i64,
    pub(crate) status_of_segments: &'static str,
    /// The states and the ranges of the segments, from number zero.
    pub(crate) segments: (Vec<String>, Vec<String>),
    /// The segment of all chunks.
    pub(crate) segment_of_chunks: i64,
    /// The key sets and the numbers of items of the chunks.
    pub(crate) chunks: (Vec<String>, Vec<i64>),
}

impl PlanColumns {
    fn of(plan: Option<&CompletePlan>) -> Result<PlanColumns> {
        let Some(plan) = plan else {
            let (state, range) = self::plan()?;
            return Ok(PlanColumns {
                open_segments: 1,
                items_total: 0,
                status_of_segments: ChunkStatus::Pending.as_str(),
                segments: (vec![state], vec![range]),
                segment_of_chunks: 0,
                chunks: Default::default(),
            });
        };
        let first = segment(&plan.state, &KeyRange::ALL);
        let others = plan.segments.iter().map(|new| segment(&new.state, &new.range));
        let segments = std::iter::once(first).chain(others).collect::<Result<Vec<_>>>()?;
        let chunk = |chunk: &NewChunk| Ok((serde_json::to_string(&chunk.key_set)?, chunk.items));
        Ok(PlanColumns {
            open_segments: 0,
            items_total: plan.chunks.iter().map(|chunk| chunk.items).sum(),
            status_of_segments: ChunkStatus::Completed.as_str(),
            segments: segments.into_iter().unzip(),
            segment_of_chunks: plan.segments.len() as i64,
            chunks: plan.chunks.iter().map(chunk).collect::<Result<Vec<_>>>()?.into_iter().unzip(),
        })
    }

    /// The number of chunks.
    pub(crate) fn chunks_total(&self) -> i64 {
        self.chunks.0.len() as i64
    }
}

impl JobColumns {
    pub(crate) fn of(job: &NewJob, redrive: bool) -> Result<JobColumns> {
        let definition = job.definition.to_json().to_string();
        let failures = &job.definition.failures;
        let handler = match &job.definition.step.kind {
            StepKind::Handler(name) => Some(name.clone()),
            _ => None,
        };
        Ok(JobColumns {
            id: job.id,
            root: job.root,
            redrive,
            job_type: job.definition.name.clone(),
            submitter: job.identity.name.clone(),
            idempotency_key: job.request.idempotency_key.clone(),
            request: serde_json::to_string(&job.request)?,
            identity: serde_json::to_string(&job.identity)?,
            definition_hash: hex::encode(Sha256::digest(&definition)),
            definition,
            failures: serde_json::to_string(failures)?,
            priority: job.request.priority().into(),
            connection: job.definition.source.connection.clone(),
            handler,
            lease: millis(job.definition.chunk.lease),
            timeout: millis(job.definition.chunk.timeout),
            concurrency: job.definition.throughput.concurrency.map(i64::from),
            rate: job.definition.throughput.items_per_second.map(i64::from),
            on_failed: job.request.on_failed.unwrap_or_default().as_str(),
            rules: (!job.rules.is_empty())
                .then(|| serde_json::to_string(&job.rules))
                .transpose()?,
            merge: job.definition.merges().then_some(MERGE_DUE),
            summary: summary(job)?,
            plan: PlanColumns::of(job.plan.as_ref())?,
        })
    }
}

/// The shortened request that listings show; `None` when the request is short enough.
fn summary(job: &NewJob) -> Result<Option<String>> {
    let (shown, omitted) = job.request.summary();
    if omitted.is_empty() {
        return Ok(None);
    }
    let mut shown = serde_json::to_value(shown)?;
    shown[OMITTED] = serde_json::to_value(omitted)?;
    Ok(Some(shown.to_string()))
}

/// The key of a shortened request that describes what was left out.
pub(crate) const OMITTED: &str = "omitted";

/// The state and range of the first segment of a job.
pub(crate) fn plan() -> Result<(String, String)> {
    segment(&PaginationState::Plan, &KeyRange::ALL)
}

/// The state and range of the merge segment.
pub(crate) fn merge() -> Result<(String, String)> {
    segment(&PaginationState::Merge, &KeyRange::ALL)
}

/// The columns of a segment.
pub(crate) fn segment(state: &PaginationState, range: &KeyRange) -> Result<(String, String)> {
    Ok((serde_json::to_string(state)?, serde_json::to_string(range)?))
}

/// The columns of a dead letter.
pub(crate) struct LetterColumns {
    pub(crate) id: Uuid,
    pub(crate) key: String,
    pub(crate) record: String,
    pub(crate) error: String,
    pub(crate) fingerprint: String,
    pub(crate) context: String,
    pub(crate) attempts: i64,
}

/// One letter per key, the last one given: a statement cannot write the same row twice.
pub(crate) fn letters(letters: &[NewDeadLetter]) -> Vec<LetterColumns> {
    let by_key: BTreeMap<_, _> = letters.iter().map(|letter| (&letter.key, letter)).collect();
    let columns = |letter: &NewDeadLetter| LetterColumns {
        id: Uuid::now_v7(),
        key: letter.key.clone(),
        record: letter.record.to_string(),
        error: clean(&letter.error),
        fingerprint: clean(&error_fingerprint(&letter.error)),
        context: letter.context.to_string(),
        attempts: letter.attempts.into(),
    };
    by_key.into_values().map(columns).collect()
}

/// The parameters of a [`DeadLetterFilter`]; `None` does not restrict.
pub(crate) struct LetterArguments {
    pub(crate) ids: Option<Vec<Uuid>>,
    pub(crate) job: Option<Uuid>,
    pub(crate) job_types: Option<Vec<String>>,
    pub(crate) error: Option<String>,
    pub(crate) status: Option<&'static str>,
    pub(crate) age: Option<i64>,
    pub(crate) before: Option<Uuid>,
    pub(crate) submitter: Option<String>,
    pub(crate) fingerprint: Option<String>,
}

impl LetterArguments {
    pub(crate) fn of(filter: &DeadLetterFilter) -> LetterArguments {
        LetterArguments {
            ids: (!filter.ids.is_empty()).then(|| filter.ids.clone()),
            job: filter.job,
            job_types: job_types(filter),
            error: filter.error.as_deref().map(|text| contains(&clean(text))),
            status: filter.status.map(|status| status.as_str()),
            age: filter.older_than.map(millis),
            before: filter.before,
            submitter: filter.submitted_by.clone(),
            fingerprint: filter.fingerprint.as_deref().map(clean),
        }
    }
}

/// The job types of a filter, which may name one, several or both.
fn job_types(filter: &DeadLetterFilter) -> Option<Vec<String>> {
    match (&filter.job_type, &filter.job_types) {
        (Some(one), None) => Some(vec![one.clone()]),
        (Some(one), Some(some)) => Some(some.iter().filter(|name| *name == one).cloned().collect()),
        (None, some) => some.clone(),
    }
}

/// The columns of an alert.
pub(crate) struct AlertColumns {
    pub(crate) id: Uuid,
    pub(crate) kind: &'static str,
    pub(crate) subject: String,
    pub(crate) job_type: String,
    pub(crate) job: Option<Uuid>,
    pub(crate) submitter: Option<String>,
    pub(crate) message: String,
    pub(crate) details: String,
    pub(crate) threshold: Option<i64>,
    pub(crate) sustained_for: i64,
    pub(crate) stale_after: i64,
    pub(crate) delivery: &'static str,
}

impl AlertColumns {
    pub(crate) fn of(alert: &NewAlert) -> AlertColumns {
        let (job, submitter) = alert.job.clone().unzip();
        let delivery = if alert.post { Delivery::Pending } else { Delivery::Logged };
        AlertColumns {
            id: Uuid::now_v7(),
            kind: alert.kind.as_str(),
            subject: alert.subject.clone(),
            job_type: alert.job_type.clone(),
            job,
            submitter,
            message: clean(&alert.message),
            details: clean(&alert.details.to_string()),
            threshold: alert.threshold,
            sustained_for: millis(alert.sustained_for),
            stale_after: millis(CONDITION_STALE_AFTER),
            delivery: delivery.as_str(),
        }
    }
}

/// The limit of a listing.
pub(crate) fn list_limit(limit: u32) -> i64 {
    if limit == 0 { 50 } else { limit.into() }
}

/// The limit of a redrive.
pub(crate) fn redrive_limit(limit: u32) -> i64 {
    if limit == 0 { MAX_REDRIVEN.into() } else { limit.min(MAX_REDRIVEN).into() }
}

/// The limit of marking dead letters.
pub(crate) fn mark_limit(limit: u32) -> i64 {
    if limit == 0 { i64::MAX } else { limit.into() }
}

/// A duration in milliseconds. Longer durations are cut to a century, which can be added to a time
/// without overflow.
pub(crate) fn millis(duration: Duration) -> i64 {
    const CENTURY: i64 = 100 * 366 * 24 * 3_600_000;
    i64::try_from(duration.as_millis()).unwrap_or(CENTURY).min(CENTURY)
}

/// Replaces NUL characters, which PostgreSQL cannot store.
pub(crate) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A LIKE pattern for texts that contain this text.
fn contains(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_like_pattern_escapes_wildcards() {
        assert_eq!(contains("50%_\\"), "%50\\%\\_\\\\%");
    }

    #[test]
    fn a_repeated_key_gives_one_letter() {
        let letter = |key: &str, error: &str| NewDeadLetter {
            key: key.to_owned(),
            record: serde_json::json!({}),
            error: error.to_owned(),
            context: serde_json::json!(null),
            attempts: 1,
        };
        let columns = letters(&[letter("[2]", "a"), letter("[1]", "b"), letter("[2]", "c\0")]);
        let kept: Vec<_> = columns.iter().map(|l| (l.key.as_str(), l.error.as_str())).collect();
        assert_eq!(kept, [("[1]", "b"), ("[2]", "c\u{fffd}")]);
    }

    #[test]
    fn long_durations_are_cut() {
        assert!(millis(Duration::MAX) < i64::MAX / 1000);
        assert_eq!(millis(Duration::from_secs(2)), 2000);
    }
}
