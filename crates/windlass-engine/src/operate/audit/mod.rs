//! The audit: proves of a job that nothing was missed and nothing was done twice.
//!
//! It holds what the job left behind against each other: the store (segments, chunks, dead letters,
//! parts, the job's own totals), the ledger beside the data, and the source as it is now. One page of
//! chunks is in memory at a time. There are three verdicts: *proven*, *not proven* where two of them
//! contradict each other, and *cannot be judged* where something is missing that would tell.

mod ledger;
mod letters;
mod output;
mod source;
mod store;
mod verdict;

pub use verdict::{Drift, Verdict};

use crate::Result;
use crate::engine::Engine;
use crate::merge::merge;
use ledger::LedgerCheck;
use letters::Letters;
use output::OutputCheck;
use source::SourceCheck;
use store::StoreCheck;
use verdict::Notes;
use windlass_core::problem::Code;
use windlass_core::{Counts, JobId, JobStatus, Problem};

/// What the audit of a job found.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Audit {
    /// The job.
    pub job_id: JobId,
    /// Whether everything holds.
    pub verdict: Verdict,
    /// Segments looked at.
    pub segments: usize,
    /// Chunks looked at.
    pub chunks: i64,
    /// Items planned.
    pub planned: i64,
    /// What became of them.
    pub counts: Counts,
    /// Ledger rows that were compared with their chunks; none where the step only reads.
    pub ledger_rows: i64,
    /// Rows that appeared in or disappeared from the planned ranges since planning; absent where the
    /// source was not read.
    pub drift: Option<Drift>,
    /// Rows that left the source because the step processed them, by `source.where` or a DELETE.
    pub left: i64,
    /// Everything that contradicts the proof, at most twenty lines: the reasons of *not proven*.
    pub findings: Vec<String>,
    /// Everything that could not be checked, at most twenty lines: the reasons of *cannot be judged*.
    pub not_judged: Vec<String>,
}

impl Audit {
    /// Whether the verdict is *proven*.
    pub fn is_proven(&self) -> bool {
        self.verdict == Verdict::Proven
    }
}

/// Chunks read at once.
const PAGE: u32 = 500;

impl Engine {
    /// Audits a job against store, ledger and source.
    pub async fn audit(&self, id: JobId) -> Result<Audit> {
        self.audit_with(id, true).await
    }

    /// Audits a job. Without the source, which may be large, nothing is ever proven: the audit says
    /// what store and ledger contradict, or that the rest cannot be judged.
    pub async fn audit_with(&self, id: JobId, read_source: bool) -> Result<Audit> {
        let job = self.job(id).await?;
        let segments = self.store().segments(id).await?;
        let gone = || Problem::new(Code::NotFound, format!("there is no job {id}"));
        let snapshot = self.store().snapshot(id).await?.ok_or_else(gone)?;
        let mut notes = Notes::default();
        let mut store = StoreCheck::new(&job, &snapshot);
        if segments.is_empty() {
            notes.not_judged(
                "the store has no chunks of this job: they are pruned when a job has ended longer \
                 ago than `retention.chunks`",
            );
            return Ok(notes.into_audit(id, &store, 0, None, 0));
        }
        store.segments(&segments, &mut notes);
        let ended = job.status == JobStatus::Completed;
        let letters = Letters::of(self, &snapshot).await?;
        let expired = self.is_ledger_expired(&job).await?;
        let root = merge::root_request(self, &snapshot).await?;
        let loads = root.is_some_and(|root| !merge::is_partial(&snapshot.definition, &root));
        let mut ledger = LedgerCheck::new(self, &snapshot, loads, expired);
        let mut output = OutputCheck::new(self, &snapshot);
        let mut source = match read_source && ended {
            true => SourceCheck::open(self, snapshot.clone(), &segments, &mut notes).await,
            false => None,
        };
        if ended && !read_source {
            notes.not_judged("the source was not read");
        }
        let mut after = None;
        loop {
            let page = self.store().chunks(id, None, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.chunk);
            for chunk in &page {
                store.chunk(chunk, &mut notes);
                if ended {
                    letters.check(chunk, &mut notes);
                }
            }
            if ended {
                ledger.page(&page, &mut notes).await;
                output.page(&page, &mut notes).await?;
            }
            if let Some(check) = &mut source
                && !check.page(&page, &mut notes).await
            {
                source = None;
            }
        }
        store.end(&segments, &mut notes);
        let (mut drift, mut left) = (None, 0);
        if ended {
            letters.end(store.counts(), &mut notes);
            ledger.end(&mut notes).await;
            output.end(&mut notes).await?;
        }
        if let Some(check) = source {
            (drift, left) = check.end(&mut notes).await;
        }
        Ok(notes.into_audit(id, &store, ledger.compared(), drift, left))
    }

    /// Whether the ledger of a job may be pruned by now.
    async fn is_ledger_expired(&self, job: &windlass_core::Job) -> Result<bool> {
        let defined = self.config().jobs.get(&job.job_type);
        let kept = defined.map(|defined| defined.retention.clone()).unwrap_or_default().chunks;
        let Some(finished) = job.finished_at else { return Ok(false) };
        let age = self.store().now().await? - finished;
        Ok(age.to_std().is_ok_and(|age| age >= kept))
    }
}
