//! Values on their way into rows, the same for both backends.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use uuid::Uuid;
use windlass_core::{Delivery, KeyRange, PaginationState, StepKind, error_fingerprint};

use crate::alert::UNSEEN;
use crate::transitions::MERGE_DUE;
use crate::{DeadLetterFilter, NewAlert, NewDeadLetter, NewJob, Result};

/// A segment's lease, and that of a chunk which is claimed to be ended.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// Rows that one transaction removes at most.
pub(crate) const DELETE_BATCH: u32 = 10_000;

/// A time as both databases take it: milliseconds since 1970.
pub(crate) fn instant(time: DateTime<Utc>) -> i64 {
    time.timestamp_millis()
}

/// The most letters one redrive takes: they are ids in its request.
const MOST_REDRIVEN: u32 = 10_000;

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
    pub(crate) failures: Option<String>,
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
            failures: failures.as_ref().map(serde_json::to_string).transpose()?,
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
        })
    }
}

/// The request as listings show it, where that is less than the whole.
fn summary(job: &NewJob) -> Result<Option<String>> {
    let (shown, omitted) = job.request.summary();
    if omitted.is_empty() {
        return Ok(None);
    }
    let mut shown = serde_json::to_value(shown)?;
    shown[OMITTED] = serde_json::to_value(omitted)?;
    Ok(Some(shown.to_string()))
}

/// Where a summary says what is left out of it.
pub(crate) const OMITTED: &str = "omitted";

/// The state and range of the segment every job begins with.
pub(crate) fn plan() -> Result<(String, String)> {
    segment(&PaginationState::Plan, &KeyRange::ALL)
}

/// The state and range of the segment that merges a job.
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

/// One letter a key, the last given: one statement cannot write a row twice.
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

/// What a [`DeadLetterFilter`] binds; `None` restricts nothing.
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

/// The job types of a filter that names one, some, or both.
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
    pub(crate) above: Option<i64>,
    pub(crate) after: i64,
    pub(crate) unseen: i64,
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
            above: alert.above,
            after: millis(alert.after),
            unseen: millis(UNSEEN),
            delivery: delivery.as_str(),
        }
    }
}

/// How many a listing shows.
pub(crate) fn listed(limit: u32) -> i64 {
    if limit == 0 { 50 } else { limit.into() }
}

/// How many letters one redrive takes.
pub(crate) fn redriven(limit: u32) -> i64 {
    if limit == 0 { MOST_REDRIVEN.into() } else { limit.min(MOST_REDRIVEN).into() }
}

/// How many letters are marked.
pub(crate) fn marked(limit: u32) -> i64 {
    if limit == 0 { i64::MAX } else { limit.into() }
}

/// A duration as the statements bind it. A hundred years are as good as more, and can be added to
/// a time.
pub(crate) fn millis(duration: Duration) -> i64 {
    const CENTURY: i64 = 100 * 366 * 24 * 3_600_000;
    i64::try_from(duration.as_millis()).unwrap_or(CENTURY).min(CENTURY)
}

/// Text that PostgreSQL can keep: it knows no NUL.
pub(crate) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A LIKE pattern for texts that contain this one.
fn contains(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_takes_wildcards_for_letters() {
        assert_eq!(contains("50%_\\"), "%50\\%\\_\\\\%");
    }

    #[test]
    fn a_key_given_twice_is_one_letter() {
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
    fn endless_durations_stay_in_reach() {
        assert!(millis(Duration::MAX) < i64::MAX / 1000);
        assert_eq!(millis(Duration::from_secs(2)), 2000);
    }
}
