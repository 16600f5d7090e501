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
    /// The status of a job.
    ///
    /// ```
    /// use windlass_core::JobStatus;
    ///
    /// assert!(JobStatus::Completed.is_final());
    /// assert_eq!("PAUSED".parse::<JobStatus>().unwrap(), JobStatus::Paused);
    /// ```
    JobStatus {
        /// Submitted and not planned yet.
        Queued = "QUEUED",
        /// Being planned, processed or merged.
        Processing = "PROCESSING",
        /// No new work is leased until it is resumed.
        Paused = "PAUSED",
        /// Every item is processed, skipped or a dead letter.
        Completed = "COMPLETED",
        /// It ended with an error, which is in `error`.
        Failed = "FAILED",
        /// Cancelled, and nothing of it can commit any more. Until then it is `PROCESSING` and being
        /// cancelled.
        Cancelled = "CANCELLED",
    }
}

status! {
    /// The phase of a `PROCESSING` job.
    Phase {
        /// Segments are being split into chunks.
        Planning = "planning",
        /// All chunks are planned and being processed.
        Working = "working",
        /// The parts are being merged.
        Merging = "merging",
    }
}

status! {
    /// The status of a chunk. Segments have the same.
    ///
    /// ```
    /// use windlass_core::ChunkStatus;
    ///
    /// assert_eq!(ChunkStatus::Pending.as_str(), "PENDING");
    /// ```
    ChunkStatus {
        /// Waiting to be leased.
        Pending = "PENDING",
        /// A worker has its lease.
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
    /// The status of a dead letter.
    ///
    /// ```
    /// use windlass_core::DeadLetterStatus;
    ///
    /// assert_eq!("new".parse::<DeadLetterStatus>().unwrap(), DeadLetterStatus::New);
    /// ```
    DeadLetterStatus {
        /// Open: neither redriven nor ignored.
        New = "new",
        /// A redrive processed its item.
        Reprocessed = "reprocessed",
        /// An operator decided that it needs no action.
        Ignored = "ignored",
    }
}

status! {
    /// The kind of an alert.
    AlertKind {
        /// A job ended `FAILED`.
        JobFailed = "job-failed",
        /// A job has more dead letters than its budget allows.
        BudgetExceeded = "budget-exceeded",
        /// A job is late, or will be at its current rate.
        DeadlineAtRisk = "deadline-at-risk",
        /// A job type has more open dead letters than the configured limit.
        DeadLetters = "dead-letters",
        /// No worker can run the work that waits.
        NoWorker = "no-worker",
        /// The circuit breaker has suspended a job type, because its step is unavailable.
        Suspended = "suspended",
        /// Requests in an outbox are refused.
        OutboxRefused = "outbox-refused",
    }
}

status! {
    /// The state of the delivery of an alert.
    Delivery {
        /// Logged and listed, but not posted.
        Logged = "logged",
        /// Waiting to be posted.
        Pending = "pending",
        /// The receiver accepted it.
        Delivered = "delivered",
        /// The receiver did not accept it in time; no further attempt is made.
        GivenUp = "given-up",
    }
}

/// A text is not the name of a status.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a status; expected one of {known:?}")]
pub struct UnknownStatus {
    text: String,
    known: &'static [&'static str],
}

/// A transition that the table of edges does not contain.
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
        (Queued, Processing, "a worker leased its first segment"),
        (Queued, Paused, "paused before it began"),
        (Queued, Cancelled, "cancelled before it began"),
        (Processing, Completed, "its last chunk ended and none failed"),
        (Processing, Failed, "its last chunk ended and some failed, or it cannot continue"),
        (Processing, Cancelled, "cancelled while it was processed"),
        (Processing, Paused, "paused, or its failure budget is exceeded"),
        (Paused, Queued, "resumed before it had begun"),
        (Paused, Processing, "resumed after it had begun"),
        (Paused, Cancelled, "cancelled while it was paused"),
        (Paused, Failed, "a chunk that was in progress found that it cannot continue"),
        (Failed, Queued, "its failed chunks are retried"),
        (Failed, Cancelled, "a failed redrive is given up, which releases its dead letters"),
    ]
};

/// The legal edges of a chunk, a sentence each. Every other edge is refused.
pub const CHUNK_EDGES: &[(ChunkStatus, ChunkStatus, &str)] = {
    use ChunkStatus::{Cancelled, Completed, Failed, Pending, Processing};
    &[
        (Pending, Processing, "a worker leased it at a new epoch"),
        (Pending, Cancelled, "its job was cancelled and no worker ever leased it"),
        (Processing, Pending, "its lease was lost, or its worker handed it back"),
        (Processing, Completed, "its cursor reached the end and no item is deferred"),
        (Processing, Failed, "its attempts are used up, or its error is permanent"),
        (Processing, Cancelled, "its job was cancelled and the ledger is fenced"),
        (Failed, Pending, "its job was retried"),
    ]
};

impl JobStatus {
    /// Checks that a transition is in [`JOB_EDGES`].
    ///
    /// # Errors
    /// It is not.
    pub fn check_edge(self, to: JobStatus) -> Result<(), IllegalEdge> {
        check(JOB_EDGES, "a job", self, to, JobStatus::as_str)
    }

    /// Whether the job has ended. A failed one can still be retried.
    pub const fn is_final(self) -> bool {
        matches!(self, JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled)
    }
}

impl ChunkStatus {
    /// Checks that a transition is in [`CHUNK_EDGES`].
    ///
    /// # Errors
    /// It is not.
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
