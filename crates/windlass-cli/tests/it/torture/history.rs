//! What a run of the torture test leaves behind: the input of the checker.
//!
//! Every effect appends a token to the trace of its record, as a list that only grows. So the records themselves say
//! which effects happened, how often, and which writes of the bystander survived.

use std::collections::BTreeMap;

/// Everything the checker judges.
#[derive(Debug, Default, Clone)]
pub(super) struct History {
    /// Each table has the keys from 1 to this number.
    pub(super) items: i64,
    pub(super) records: Vec<Record>,
    /// Rows that the handler of `CALL` inserted with its update: the token and the item.
    pub(super) inserted: Vec<(String, i64)>,
    pub(super) jobs: Vec<Job>,
    pub(super) submits: Vec<Submit>,
    pub(super) writes: Vec<Write>,
    /// Every change of a ledger row, in the order of the database.
    pub(super) ledger: Vec<LedgerChange>,
    /// What workers have logged.
    pub(super) completions: Vec<Completion>,
    pub(super) letters: Vec<Letter>,
    /// The rows that `TOTAL` must compute, and those that it loaded, by mark.
    pub(super) totals: Rows,
    pub(super) loaded: BTreeMap<String, Rows>,
}

/// The rows of a result, as text.
pub(super) type Rows = Vec<Vec<String>>;

/// A record at the end.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) table: &'static str,
    pub(super) item: i64,
    /// The tokens in the order in which they were appended.
    pub(super) tokens: Vec<String>,
    /// Incremented by every write, where the table has it.
    pub(super) version: Option<i64>,
}

/// A job as the store knows it at the end.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) id: String,
    pub(super) job_type: String,
    /// The param that makes its token unique.
    pub(super) mark: String,
    pub(super) status: Status,
    /// Whether it works the items of dead letters.
    pub(super) is_redrive: bool,
    pub(super) total: i64,
    pub(super) processed: i64,
    pub(super) dead: i64,
    /// The verdict of `windlass audit`, if it was asked.
    pub(super) audit: Option<String>,
    /// The commits in the ledger when the job was first seen as `CANCELLED`.
    pub(super) commits_when_cancelled: Option<usize>,
    pub(super) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Completed,
    Failed,
    Cancelled,
    /// Any status that is not an end.
    Open,
}

/// The files of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Output {
    #[default]
    None,
    /// The keys in the parts that the manifest lists, and the number of files that it does not list.
    Exported { keys: Vec<i64>, unlisted: usize },
    /// The rows of the report.
    Reported(Rows),
}

/// A request that an operator submitted.
#[derive(Debug, Clone)]
pub(super) struct Submit {
    pub(super) job_type: String,
    pub(super) mark: String,
    /// Whether the command succeeded. If not, the job may exist or not.
    pub(super) is_acknowledged: bool,
}

/// A transaction of the bystander: it appends its token to these records.
#[derive(Debug, Clone)]
pub(super) struct Write {
    pub(super) table: &'static str,
    pub(super) token: String,
    pub(super) items: Vec<i64>,
    /// Whether the database confirmed it. If not, it happened as a whole or not at all.
    pub(super) is_acknowledged: bool,
}

/// A ledger row after a change that was committed.
#[derive(Debug, Clone)]
pub(super) struct LedgerChange {
    pub(super) job: String,
    pub(super) chunk: i64,
    pub(super) epoch: i64,
    pub(super) nonce: i64,
    pub(super) commits: i64,
    pub(super) processed: i64,
    pub(super) dead: i64,
}

/// A log line of a worker: this chunk is completed.
#[derive(Debug, Clone)]
pub(super) struct Completion {
    pub(super) job: String,
    pub(super) chunk: i64,
    pub(super) processed: i64,
    pub(super) dead: i64,
}

/// A dead letter at the end. It belongs to the original job, also after a redrive.
#[derive(Debug, Clone)]
pub(super) struct Letter {
    pub(super) job: String,
    pub(super) item: i64,
    pub(super) is_reprocessed: bool,
}

impl Job {
    /// What the effect of this job appends to a record.
    pub(super) fn token(&self) -> String {
        format!("{}:{}", self.job_type, self.mark)
    }
}
