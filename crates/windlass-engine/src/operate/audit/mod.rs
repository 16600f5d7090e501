//! The audit: proves that a job missed no item and processed none twice.
//!
//! It compares what the job left behind: the store (segments, chunks, dead letters, parts, the job's own
//! totals), the ledger beside the data, and the source as it is now. One page of chunks is in memory at a
//! time. There are three verdicts: *proven*; *not proven* if two of these contradict each other; *cannot
//! be judged* if something needed for a check is missing.

mod coverage;
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
use letters::DeadLetterCheck;
use output::OutputCheck;
use source::SourceCheck;
use store::StoreCheck;
use verdict::Findings;
use windlass_core::problem::Code;
use windlass_core::{Counts, JobId, JobStatus, Problem};

/// The result of an audit.
///
/// ```no_run
/// # async fn example(engine: &windlass_engine::Engine, job: windlass_core::JobId) -> windlass_engine::Result<()> {
/// let audit = engine.audit(job).await?;
/// for reason in audit.findings.iter().chain(&audit.not_judged) {
///     println!("{reason}");
/// }
/// assert!(audit.is_proven());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Audit {
    /// The job.
    pub job_id: JobId,
    /// The verdict.
    pub verdict: Verdict,
    /// Number of segments checked.
    pub segments: usize,
    /// Number of chunks checked.
    pub chunks: i64,
    /// Number of items planned.
    pub planned: i64,
    /// The outcomes of the items.
    pub counts: Counts,
    /// Ledger rows compared with their chunks; 0 if the step only reads.
    pub ledger_rows: i64,
    /// Rows that appeared in or disappeared from the planned ranges since planning; `None` if the source
    /// was not read.
    pub drift: Option<Drift>,
    /// Rows that left the source because the step processed them: they were deleted, or no longer match
    /// `source.where`.
    pub left: i64,
    /// Contradictions, at most twenty lines: the reasons for *not proven*.
    pub findings: Vec<String>,
    /// What could not be checked, at most twenty lines: the reasons for *cannot be judged*.
    pub not_judged: Vec<String>,
}

impl Audit {
    /// Whether the verdict is *proven*.
    pub fn is_proven(&self) -> bool {
        self.verdict == Verdict::Proven
    }
}

/// Chunks read per page.
const CHUNKS_PER_PAGE: u32 = 500;

impl Engine {
    /// Audits a job against store, ledger and source.
    ///
    /// # Errors
    /// There is no such job, or the store or its database fails.
    pub async fn audit(&self, id: JobId) -> Result<Audit> {
        self.audit_with(id, true).await
    }

    /// Audits a job, optionally without reading the source, which may be large. Without the source the
    /// verdict is never *proven*: the audit finds contradictions between store and ledger only.
    ///
    /// # Errors
    /// There is no such job, or the store or its database fails.
    pub async fn audit_with(&self, id: JobId, read_source: bool) -> Result<Audit> {
        let job = self.job(id).await?;
        let segments = self.store().segments(id).await?;
        let gone = || Problem::new(Code::NotFound, format!("there is no job {id}"));
        let snapshot = self.store().snapshot(id).await?.ok_or_else(gone)?;
        let mut findings = Findings::default();
        let mut store = StoreCheck::new(&job, &snapshot);
        if segments.is_empty() {
            findings.not_judged(
                "the store has no chunks of this job: they are pruned when `retention.chunks` has \
                 passed since its end",
            );
            return Ok(findings.into_audit(id, &store, 0, None, 0));
        }
        store.segments(&segments, &mut findings);
        let ended = job.status == JobStatus::Completed;
        let letters = DeadLetterCheck::load(self, &snapshot).await?;
        let expired = self.is_ledger_expired(&job).await?;
        let root = merge::root_request(self, &snapshot).await?;
        let loads = root.is_some_and(|root| !merge::is_partial(&snapshot.definition, &root));
        let mut ledger = LedgerCheck::new(self, &snapshot, loads, expired);
        let mut output = OutputCheck::new(self, &snapshot);
        let mut source = match read_source && ended {
            true => SourceCheck::open(self, snapshot.clone(), &segments, &mut findings).await,
            false => None,
        };
        if ended && !read_source {
            findings.not_judged("the source was not read");
        }
        let mut after = None;
        loop {
            let page = self.store().chunks(id, None, after, CHUNKS_PER_PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.chunk);
            for chunk in &page {
                store.chunk(chunk, &mut findings);
                if ended {
                    letters.check(chunk, &mut findings);
                }
            }
            if ended {
                ledger.page(&page, &mut findings).await;
                output.page(&page, &mut findings).await?;
            }
            if let Some(check) = &mut source
                && !check.page(&page, &mut findings).await
            {
                source = None;
            }
        }
        store.end(&segments, &mut findings);
        let (mut drift, mut left) = (None, 0);
        if ended {
            letters.end(store.counts(), &mut findings);
            ledger.end(&mut findings).await;
            output.end(&mut findings).await?;
        }
        if let Some(check) = source {
            (drift, left) = check.end(&mut findings).await;
        }
        if ended && snapshot.root == id {
            self.audit_redrives(id, &mut findings).await?;
        }
        Ok(findings.into_audit(id, &store, ledger.compared(), drift, left))
    }

    /// Adds what contradicts the completed redrives of a job: the items that they have reprocessed count as done in it.
    async fn audit_redrives(&self, root: JobId, findings: &mut Findings) -> Result<()> {
        for (redrive, status) in self.store().redrive_chain(root).await? {
            if redrive == root || status != JobStatus::Completed {
                continue;
            }
            let audit = Box::pin(self.audit_with(redrive, false)).await?;
            for finding in audit.findings {
                findings.contradiction(format!("redrive {redrive}: {finding}"));
            }
        }
        Ok(())
    }

    /// Whether the retention of the job's ledger has passed.
    async fn is_ledger_expired(&self, job: &windlass_core::Job) -> Result<bool> {
        let defined = self.config().jobs.get(&job.job_type);
        let retention = defined.map(|defined| defined.retention.clone()).unwrap_or_default().chunks;
        let Some(finished) = job.finished_at else { return Ok(false) };
        let age = self.store().now().await? - finished;
        Ok(age.to_std().is_ok_and(|age| age >= retention))
    }
}
