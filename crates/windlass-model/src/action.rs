//! The actions of the model, and the functions that they stand for.

use crate::state::{Outcome, Statement};

/// One step of a process, of the outside world or of an operator. Numbers are indexes of processes and chunks.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "`Action::stands_for` names the functions")]
pub enum Action {
    Lease { process: usize, chunk: u8 },
    Fence(usize),
    FenceUnanswered(usize),
    HandleRefusedFence(usize),
    Confirm(usize),
    SendBatch(usize, Outcome),
    Execute(Statement),
    ExecuteHalf(Statement),
    BreakConnection(usize),
    FenceAgain(usize),
    ConfirmAgain(usize),
    HandBack(usize),
    Split(usize),
    Flush(usize),
    CopyDeadLetters(usize),
    Complete(usize),
    CompleteUnanswered(usize),
    EndHalfSplit(usize),
    Count(usize),
    Fail { process: usize },
    FailUnfenced(usize),
    FenceToSettle(usize),
    CommitToSettle(usize),
    EndFailed { process: usize, fail_job: bool },
    LeaseCancelled { process: usize, chunk: u8 },
    FenceToCancel(usize),
    EndCancelled(usize),
    Expire(u8),
    Crash(usize),
    StoreCrash,
    DataCrash,
    Cancel,
    Retry,
    Close,
    PruneLedger,
    RemoveChunks,
    Backup,
    Restore,
    AfterRestore,
    Resume,
}

impl Action {
    /// The functions and statements that an action stands for: files below `crates/`, with a function where the file
    /// is not a statement. None for what no code does: a crash, a broken connection, a backup.
    pub fn stands_for(&self) -> &'static [&'static str] {
        match self {
            Action::Lease { .. } => &[
                "windlass-engine/src/execute/acquire.rs::acquire",
                "windlass-store/src/postgres/chunks.rs::lease_chunks",
                "windlass-store/src/sqlite/chunks.rs::lease_chunks",
                "windlass-store/queries/postgres/lease_chunks.sql",
                "windlass-store/queries/sqlite/lease_chunk.sql",
            ],
            Action::Fence(_) | Action::FenceUnanswered(_) => &[
                "windlass-engine/src/execute/acquire.rs::fence",
                "windlass-engine/src/execute/acquire.rs::check_resumed",
                "windlass-engine/src/operate/after_restore.rs::unknown_chunk",
                "windlass-engine/src/execute/acquire.rs::release",
                "windlass-connectors/src/postgres/fence.rs::fence",
                "windlass-connectors/src/mysql/fence.rs::fence",
                "windlass-connectors/src/sqlite/fence.rs::fence",
                "windlass-connectors/sql/postgres/fence.sql",
            ],
            Action::HandleRefusedFence(_) => {
                &["windlass-engine/src/operate/after_restore.rs::handle_refused_fence"]
            }
            Action::Confirm(_) => &[
                "windlass-engine/src/execute/acquire.rs::confirm",
                "windlass-store/src/postgres/leases.rs::confirm",
                "windlass-store/src/transitions.rs::lease_status",
                "windlass-store/queries/postgres/confirm.sql",
                "windlass-store/queries/sqlite/confirm.sql",
            ],
            Action::SendBatch(..) => &[
                "windlass-engine/src/execute/chunk_runner.rs::run_batches",
                "windlass-engine/src/execute/chunk_runner.rs::commit",
            ],
            Action::Execute(_) | Action::ExecuteHalf(_) => &[
                "windlass-connectors/src/postgres/commit.rs::commit",
                "windlass-connectors/src/mysql/commit.rs::commit",
                "windlass-connectors/src/sqlite/commit.rs::commit",
                "windlass-connectors/sql/postgres/advance.sql",
                "windlass-connectors/sql/postgres/defer.sql",
            ],
            Action::FenceAgain(_) => &[
                "windlass-engine/src/execute/chunk_runner.rs::fence_again",
                "windlass-connectors/src/postgres/fence.rs::fence_again",
                "windlass-connectors/src/mysql/fence.rs::fence_again",
                "windlass-connectors/src/sqlite/fence.rs::fence_again",
                "windlass-connectors/src/dynamodb/fence.rs::fence_again",
            ],
            Action::ConfirmAgain(_) => &["windlass-engine/src/execute/chunk_runner.rs::recover"],
            Action::HandBack(_) => &[
                "windlass-engine/src/execute/heartbeat.rs::beat",
                "windlass-engine/src/execute/lease.rs::release",
                "windlass-store/queries/postgres/release_chunk.sql",
                "windlass-store/queries/postgres/heartbeat_chunks.sql",
            ],
            Action::Split(_) => &[
                "windlass-engine/src/execute/straggler.rs::split_if_slow",
                "windlass-engine/src/execute/straggler.rs::split_at",
            ],
            Action::EndHalfSplit(_) => &[
                "windlass-engine/src/execute/chunk_end.rs::end_split",
                "windlass-engine/src/execute/lease.rs::split",
                "windlass-store/src/postgres/chunks.rs::split",
                "windlass-store/src/postgres/chunks.rs::add_rest",
                "windlass-store/src/sqlite/chunks.rs::end_split",
                "windlass-store/queries/shared/shorten_chunk.sql",
            ],
            Action::Flush(_) => &[
                "windlass-engine/src/execute/flush.rs::flush",
                "windlass-engine/src/execute/flush.rs::flush_all",
                "windlass-connectors/src/postgres/commit.rs::flush",
                "windlass-connectors/sql/postgres/flush.sql",
            ],
            Action::CopyDeadLetters(_) => {
                &["windlass-engine/src/execute/chunk_end.rs::copy_dead_letters"]
            }
            Action::Complete(_) | Action::CompleteUnanswered(_) | Action::Count(_) => &[
                "windlass-engine/src/execute/chunk_end.rs::complete",
                "windlass-engine/src/execute/completion.rs::complete_all",
                "windlass-engine/src/execute/lease.rs::persist",
                "windlass-store/src/postgres/chunks.rs::end_chunk",
                "windlass-store/src/postgres/chunks.rs::complete_together",
                "windlass-store/src/postgres/advance.rs::advance",
                "windlass-store/src/transitions.rs::finish",
                "windlass-store/queries/postgres/end_chunk.sql",
                "windlass-store/queries/postgres/complete_chunks.sql",
            ],
            Action::Fail { .. } | Action::EndFailed { .. } | Action::FailUnfenced(_) => &[
                "windlass-engine/src/execute/chunk_end.rs::fail",
                "windlass-engine/src/execute/lease.rs::fail",
                "windlass-store/src/transitions.rs::fail",
            ],
            Action::FenceToSettle(_) | Action::CommitToSettle(_) => {
                &["windlass-engine/src/execute/settlement.rs::settle"]
            }
            Action::LeaseCancelled { .. } => &[
                "windlass-store/src/postgres/cancellation.rs::lease_cancelled",
                "windlass-store/queries/postgres/lease_cancelled.sql",
                "windlass-store/queries/sqlite/lease_cancelled.sql",
            ],
            Action::FenceToCancel(_) => &["windlass-engine/src/operate/cancellation.rs::end_chunk"],
            Action::EndCancelled(_) => &[
                "windlass-engine/src/execute/chunk_end.rs::cancel",
                "windlass-engine/src/execute/lease.rs::cancel",
                "windlass-store/src/transitions.rs::end_cancelled",
            ],
            Action::Expire(_) => &[
                "windlass-store/src/postgres/leases.rs::rescue",
                "windlass-store/src/postgres/leases.rs::expire_leases",
                "windlass-store/queries/postgres/rescue_chunks.sql",
            ],
            Action::Cancel => &[
                "windlass-engine/src/operate/cancellation.rs::cancel",
                "windlass-store/src/transitions.rs::command",
                "windlass-store/queries/postgres/cancel_chunks.sql",
            ],
            Action::Retry => &[
                "windlass-store/src/transitions.rs::command",
                "windlass-store/queries/postgres/retry_chunks.sql",
            ],
            Action::Close => &[
                "windlass-store/src/postgres/retention.rs::close_job",
                "windlass-store/queries/postgres/close_expired_job.sql",
            ],
            Action::PruneLedger => &[
                "windlass-engine/src/operate/retention.rs::prune_ledger",
                "windlass-connectors/sql/postgres/prune_ledger.sql",
            ],
            Action::RemoveChunks => &[
                "windlass-engine/src/operate/retention.rs::prune_job",
                "windlass-store/src/postgres/retention.rs::remove_chunks",
                "windlass-store/src/postgres/retention.rs::remove_job",
            ],
            Action::AfterRestore => &[
                "windlass-engine/src/operate/after_restore.rs::continue_connection",
                "windlass-store/queries/postgres/raise_epochs.sql",
            ],
            Action::Resume => &["windlass-store/src/transitions.rs::command"],
            Action::BreakConnection(_)
            | Action::Crash(_)
            | Action::StoreCrash
            | Action::DataCrash
            | Action::Backup
            | Action::Restore => &[],
        }
    }
}
