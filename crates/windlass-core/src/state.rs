//! The statuses of jobs, chunks and dead letters, and the one table of legal edges between them.

use serde::{Deserialize, Serialize};

/// Writes a status enum whose names are the same in Rust's `Display`, in JSON and in SQL.
macro_rules! status {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:tt),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// Every status, for tests and listings.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The name used in SQL, JSON, the CLI and logs.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnknownStatus;
            fn from_str(text: &str) -> Result<Self, UnknownStatus> {
                match text {
                    $($text => Ok($name::$variant),)+
                    _ => Err(UnknownStatus { text: text.to_owned(), known: &[$($text),+] }),
                }
            }
        }
    };
}

status! {
    /// Where a job is in its life.
    JobStatus {
        /// Submitted; nothing is loaded yet.
        Queued = "QUEUED",
        /// Being loaded or worked.
        Processing = "PROCESSING",
        /// Nothing new is claimed until somebody resumes it.
        Paused = "PAUSED",
        /// Every item is processed, skipped or a dead letter.
        Completed = "COMPLETED",
        /// Something could not be done; `error` says what.
        Failed = "FAILED",
        /// An operator cancelled it, and nothing of it can commit any more. Until that is so, the job
        /// is `PROCESSING` and says that it is being cancelled.
        Cancelled = "CANCELLED",
    }
}

status! {
    /// What a `PROCESSING` job is busy with.
    Phase {
        /// Segments are still being cut into chunks.
        Planning = "planning",
        /// All chunks are known and being worked.
        Working = "working",
        /// The parts are being merged.
        Merging = "merging",
    }
}

status! {
    /// Where a chunk is in its life. Segments use the same statuses.
    ChunkStatus {
        /// Waits to be claimed.
        Pending = "PENDING",
        /// A worker holds its lease.
        Processing = "PROCESSING",
        /// Its effect is committed.
        Completed = "COMPLETED",
        /// Its attempts are used up.
        Failed = "FAILED",
        /// Its job was cancelled.
        Cancelled = "CANCELLED",
    }
}

status! {
    /// What became of a dead letter.
    DeadLetterStatus {
        /// Nobody has dealt with it yet.
        New = "new",
        /// A redrive succeeded on its item.
        Reprocessed = "reprocessed",
        /// Somebody decided that it needs nothing.
        Ignored = "ignored",
    }
}

status! {
    /// What an alert is about.
    AlertKind {
        /// A job ended `FAILED`.
        JobFailed = "job-failed",
        /// More items of a job died than its budget allows.
        BudgetExceeded = "budget-exceeded",
        /// A job is late, or will be as it goes.
        DeadlineAtRisk = "deadline-at-risk",
        /// A job type has more dead letters than it should.
        DeadLetters = "dead-letters",
        /// Nobody can take the work that waits.
        NoWorker = "no-worker",
    }
}

status! {
    /// How the delivery of an alert stands.
    Delivery {
        /// It is in the log and here, and nowhere else.
        Logged = "logged",
        /// It is on its way.
        Pending = "pending",
        /// The receiver has taken it.
        Delivered = "delivered",
        /// The receiver did not take it for so long that nobody tries any more.
        GivenUp = "given-up",
    }
}

/// A text that names no status.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a status; one of {known:?} would be")]
pub struct UnknownStatus {
    text: String,
    known: &'static [&'static str],
}

/// A move that the table of edges does not contain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot go from {from} to {to}")]
pub struct IllegalEdge {
    what: &'static str,
    from: &'static str,
    to: &'static str,
}

/// The legal edges of a job, a sentence each. Every other edge is refused.
pub const JOB_EDGES: &[(JobStatus, JobStatus, &str)] = {
    use JobStatus::{Cancelled, Completed, Failed, Paused, Processing, Queued};
    &[
        (Queued, Processing, "a loader has claimed its first segment"),
        (Queued, Paused, "somebody paused it before it began"),
        (Queued, Cancelled, "somebody cancelled it before it began"),
        (Processing, Completed, "its last chunk has ended and none failed"),
        (Processing, Failed, "its last chunk has ended and some failed, or it cannot go on"),
        (Processing, Cancelled, "somebody cancelled it at work"),
        (Processing, Paused, "somebody paused it, or its failure budget is exceeded"),
        (Paused, Queued, "somebody resumed it and it had not begun"),
        (Paused, Processing, "somebody resumed it and it had begun"),
        (Paused, Cancelled, "somebody cancelled it while it was paused"),
        (Paused, Failed, "a chunk in flight when it was paused found that it cannot go on"),
        (Failed, Queued, "somebody retries what failed"),
        (Failed, Cancelled, "an operator gives up a failed redrive, which releases its letters"),
    ]
};

/// The legal edges of a chunk, a sentence each. Every other edge is refused.
pub const CHUNK_EDGES: &[(ChunkStatus, ChunkStatus, &str)] = {
    use ChunkStatus::{Cancelled, Completed, Failed, Pending, Processing};
    &[
        (Pending, Processing, "a worker has claimed it at a new epoch"),
        (Pending, Cancelled, "its job was cancelled and no worker ever claimed it"),
        (Processing, Pending, "its lease was lost, or its worker handed it back"),
        (Processing, Completed, "its cursor reached the end and no item waits"),
        (Processing, Failed, "its attempts are used up"),
        (Processing, Cancelled, "its job was cancelled and the ledger is fenced"),
        (Failed, Pending, "somebody retries what failed"),
    ]
};

impl JobStatus {
    /// Refuses a move that is not in [`JOB_EDGES`].
    pub fn check_edge(self, to: JobStatus) -> Result<(), IllegalEdge> {
        check(JOB_EDGES, "a job", self, to, JobStatus::as_str)
    }

    /// Whether the job has ended; a failed one may still be retried.
    pub const fn is_final(self) -> bool {
        matches!(self, JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled)
    }
}

impl ChunkStatus {
    /// Refuses a move that is not in [`CHUNK_EDGES`].
    pub fn check_edge(self, to: ChunkStatus) -> Result<(), IllegalEdge> {
        check(CHUNK_EDGES, "a chunk", self, to, ChunkStatus::as_str)
    }
}

fn check<S: Copy + PartialEq>(
    edges: &[(S, S, &str)],
    what: &'static str,
    from: S,
    to: S,
    name: fn(S) -> &'static str,
) -> Result<(), IllegalEdge> {
    if edges.iter().any(|edge| edge.0 == from && edge.1 == to) {
        return Ok(());
    }
    Err(IllegalEdge { what, from: name(from), to: name(to) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_job_statuses_is_legal_exactly_when_the_contract_says_so() {
        let legal = "QUEUED>PROCESSING QUEUED>PAUSED QUEUED>CANCELLED PROCESSING>COMPLETED \
                     PROCESSING>FAILED PROCESSING>CANCELLED PROCESSING>PAUSED PAUSED>QUEUED \
                     PAUSED>PROCESSING PAUSED>CANCELLED PAUSED>FAILED FAILED>QUEUED \
                     FAILED>CANCELLED";
        for from in JobStatus::ALL {
            for to in JobStatus::ALL {
                let pair = format!("{from}>{to}");
                let expected = legal.split_whitespace().any(|edge| edge == pair);
                assert_eq!(from.check_edge(*to).is_ok(), expected, "{pair}");
            }
        }
    }

    #[test]
    fn every_pair_of_chunk_statuses_is_legal_exactly_when_the_contract_says_so() {
        let legal = "PENDING>PROCESSING PENDING>CANCELLED PROCESSING>PENDING PROCESSING>COMPLETED \
                     PROCESSING>FAILED PROCESSING>CANCELLED FAILED>PENDING";
        for from in ChunkStatus::ALL {
            for to in ChunkStatus::ALL {
                let pair = format!("{from}>{to}");
                let expected = legal.split_whitespace().any(|edge| edge == pair);
                assert_eq!(from.check_edge(*to).is_ok(), expected, "{pair}");
            }
        }
    }

    #[test]
    fn a_refused_edge_says_from_where_to_where() {
        let error = JobStatus::Completed.check_edge(JobStatus::Queued).unwrap_err();
        assert_eq!(error.to_string(), "a job cannot go from COMPLETED to QUEUED");
    }

    #[test]
    fn names_round_trip() {
        for status in JobStatus::ALL {
            assert_eq!(status.as_str().parse::<JobStatus>().unwrap(), *status);
            assert_eq!(serde_json::to_string(status).unwrap(), format!("\"{status}\""));
        }
        assert!("DONE".parse::<ChunkStatus>().unwrap_err().to_string().contains("COMPLETED"));
    }
}
