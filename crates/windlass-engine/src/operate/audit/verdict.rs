//! What the checks of an audit add up to.

use super::Audit;
use super::store::StoreCheck;
use serde::Serialize;
use windlass_core::JobId;

/// The verdict of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Store, ledger and source agree: every item was done exactly once.
    Proven,
    /// Something contradicts that.
    NotProven,
    /// Nothing contradicts it, but not everything could be checked.
    CannotBeJudged,
}

impl Verdict {
    /// The verdict for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Proven => "PROVEN",
            Verdict::NotProven => "NOT PROVEN",
            Verdict::CannotBeJudged => "CANNOT BE JUDGED",
        }
    }
}

/// How the source changed since planning, chunk by chunk: a row that moved from one chunk to another
/// disappeared from the first and appeared in the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Rows that came into the planned ranges, and new ones behind the greatest planned key.
    pub appeared: i64,
    /// Rows that are not in their range any more.
    pub disappeared: i64,
}

/// The reasons that the checks collect.
#[derive(Debug, Default)]
pub(super) struct Notes {
    findings: Lines,
    not_judged: Lines,
}

/// The first lines, and how many more there were: a broken job need not print a million.
#[derive(Debug, Default)]
struct Lines {
    lines: Vec<String>,
    more: usize,
}

const MOST_LINES: usize = 20;

impl Notes {
    /// Something must hold, or the job is not proven.
    pub(super) fn expect(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.findings.push(otherwise);
        }
    }

    /// The job is not proven.
    pub(super) fn finding(&mut self, line: impl Into<String>) {
        self.findings.push(|| line.into());
    }

    /// Something could not be checked.
    pub(super) fn not_judged(&mut self, line: impl Into<String>) {
        self.not_judged.push(|| line.into());
    }

    pub(super) fn into_audit(
        self,
        job_id: JobId,
        store: &StoreCheck<'_>,
        ledger_rows: i64,
        drift: Option<super::Drift>,
        left: i64,
    ) -> Audit {
        let (findings, not_judged) = (self.findings.into_lines(), self.not_judged.into_lines());
        let verdict = match (findings.is_empty(), not_judged.is_empty()) {
            (false, _) => Verdict::NotProven,
            (true, false) => Verdict::CannotBeJudged,
            (true, true) => Verdict::Proven,
        };
        Audit {
            job_id,
            verdict,
            segments: store.segment_count(),
            chunks: store.chunk_count(),
            planned: store.planned(),
            counts: store.counts(),
            ledger_rows,
            drift,
            left,
            findings,
            not_judged,
        }
    }
}

impl Lines {
    fn push(&mut self, line: impl FnOnce() -> String) {
        match self.lines.len() < MOST_LINES {
            true => self.lines.push(line()),
            false => self.more += 1,
        }
    }

    fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("and {} more", self.more));
        }
        self.lines
    }
}
