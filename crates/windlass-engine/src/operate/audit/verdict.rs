//! The verdict of an audit, and the findings it is derived from.

use super::Audit;
use super::store::StoreCheck;
use serde::Serialize;
use windlass_core::JobId;

/// The verdict of an audit.
///
/// ```
/// use windlass_engine::Verdict;
///
/// assert_eq!(Verdict::CannotBeJudged.as_str(), "CANNOT BE JUDGED");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Verdict {
    /// Store, ledger and source agree: every item was processed exactly once.
    Proven,
    /// At least one check found a contradiction.
    NotProven,
    /// No contradiction was found, but not everything could be checked.
    CannotBeJudged,
}

impl Verdict {
    /// The verdict as shown to people.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Proven => "PROVEN",
            Verdict::NotProven => "NOT PROVEN",
            Verdict::CannotBeJudged => "CANNOT BE JUDGED",
        }
    }
}

/// How the source changed since planning, per chunk: a row that moved from one chunk to another has
/// disappeared from the first and appeared in the second.
///
/// ```
/// use windlass_engine::Drift;
///
/// assert_eq!(Drift::default().appeared, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// New rows in the planned ranges and after the greatest planned key.
    pub appeared: i64,
    /// Rows that are no longer in their range.
    pub disappeared: i64,
}

/// What the checks have found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    contradictions: LimitedLines,
    not_judged: LimitedLines,
}

/// The first lines and the number of further lines, so that a broken job does not print a million.
#[derive(Debug, Default)]
struct LimitedLines {
    lines: Vec<String>,
    more: usize,
}

/// Lines kept per kind of finding.
const MAX_LINES: usize = 20;

impl Findings {
    /// Records a contradiction unless the condition holds.
    pub(super) fn require(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.contradictions.push(otherwise);
        }
    }

    /// Records a contradiction: the job is not proven.
    pub(super) fn contradiction(&mut self, line: impl Into<String>) {
        self.contradictions.push(|| line.into());
    }

    /// Records something that could not be checked.
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
        let findings = self.contradictions.into_lines();
        let not_judged = self.not_judged.into_lines();
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

impl LimitedLines {
    fn push(&mut self, line: impl FnOnce() -> String) {
        match self.lines.len() < MAX_LINES {
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
