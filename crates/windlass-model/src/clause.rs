//! The clauses of the protocol, and where each is written.

/// A clause that can be switched off, to show what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "`Clause::says` describes each")]
pub enum Clause {
    FenceRaisesRow,
    FenceRefusesOlderEpochs,
    NonceInFence,
    ConfirmAfterFence,
    EpochInCommit,
    NonceInCommit,
    CommitsInCommit,
    CommitsCounted,
    EffectWithLedger,
    DeferredWithLedger,
    RecoveryCreatesNoRow,
    RecoveryConfirms,
    LossEndsLease,
    EpochInStore,
    NonceInStore,
    FlushBeforeEnd,
    FlushComparesRow,
    LettersBeforeEnd,
    CountWithEnd,
    JobEndDurable,
    FailOnlyFenced,
    RedriveSettlesByCommit,
    CancelRaisesEpoch,
    CancelFences,
    CloseBeforePrune,
    RestoreRaisesEpochs,
    SplitAcknowledged,
    SplitWithoutDeferred,
    SplitComparesLease,
    SplitInOneTransaction,
    RestoreFindsRest,
}

impl Clause {
    /// All clauses.
    pub const ALL: [Clause; 31] = [
        Clause::FenceRaisesRow,
        Clause::FenceRefusesOlderEpochs,
        Clause::NonceInFence,
        Clause::ConfirmAfterFence,
        Clause::EpochInCommit,
        Clause::NonceInCommit,
        Clause::CommitsInCommit,
        Clause::CommitsCounted,
        Clause::EffectWithLedger,
        Clause::DeferredWithLedger,
        Clause::RecoveryCreatesNoRow,
        Clause::RecoveryConfirms,
        Clause::LossEndsLease,
        Clause::EpochInStore,
        Clause::NonceInStore,
        Clause::FlushBeforeEnd,
        Clause::FlushComparesRow,
        Clause::LettersBeforeEnd,
        Clause::CountWithEnd,
        Clause::JobEndDurable,
        Clause::FailOnlyFenced,
        Clause::RedriveSettlesByCommit,
        Clause::CancelRaisesEpoch,
        Clause::CancelFences,
        Clause::CloseBeforePrune,
        Clause::RestoreRaisesEpochs,
        Clause::SplitAcknowledged,
        Clause::SplitWithoutDeferred,
        Clause::SplitComparesLease,
        Clause::SplitInOneTransaction,
        Clause::RestoreFindsRest,
    ];

    /// What the clause says.
    pub fn says(self) -> &'static str {
        match self {
            Clause::FenceRaisesRow => "a fence raises the ledger row to the lease",
            Clause::FenceRefusesOlderEpochs => "a row of a higher epoch refuses a fence",
            Clause::NonceInFence => "a row of the same epoch and another nonce refuses a fence",
            Clause::ConfirmAfterFence => "after the fence the store confirms the lease",
            Clause::EpochInCommit => "a commit compares the epoch of the row",
            Clause::NonceInCommit => "a commit compares the nonce of the row",
            Clause::CommitsInCommit => "a commit compares how far the row is",
            Clause::CommitsCounted => "for that it compares the number of commits, not the cursor",
            Clause::EffectWithLedger => "the effects and the ledger row are one transaction",
            Clause::DeferredWithLedger => "deferred items and the cursor are one transaction",
            Clause::RecoveryCreatesNoRow => {
                "after a broken connection a pruned row is not created again"
            }
            Clause::RecoveryConfirms => "after a broken connection the lease is confirmed again",
            Clause::LossEndsLease => "a lease whose commits the database lost ends",
            Clause::EpochInStore => "a change of a chunk in the store compares the lease",
            Clause::NonceInStore => "that comparison includes the nonce",
            Clause::FlushBeforeEnd => "commits are on the disk before the chunk ends",
            Clause::FlushComparesRow => "the flush compares the row with the last commit",
            Clause::LettersBeforeEnd => "dead letters are copied before the chunk ends",
            Clause::CountWithEnd => {
                "the end of a chunk and the count of open chunks are one transaction"
            }
            Clause::JobEndDurable => "the end of a job is on the disk before it is visible",
            Clause::FailOnlyFenced => "a chunk that cannot be fenced is released, not failed",
            Clause::RedriveSettlesByCommit => {
                "a failing chunk of a redrive commits an empty batch first"
            }
            Clause::CancelRaisesEpoch => "a cancelled chunk is leased at a new epoch",
            Clause::CancelFences => "a cancelled chunk is fenced before it ends",
            Clause::CloseBeforePrune => {
                "a failed job is closed to retries before its ledger is pruned"
            }
            Clause::RestoreRaisesEpochs => {
                "`--after-restore` raises the epochs to those of the ledger"
            }
            Clause::SplitAcknowledged => "a chunk is split only when its last commit is known",
            Clause::SplitWithoutDeferred => "a chunk with deferred items is not split",
            Clause::SplitComparesLease => "a split compares the lease",
            Clause::SplitInOneTransaction => {
                "the end of a split chunk and the new chunks are one transaction"
            }
            Clause::RestoreFindsRest => {
                "a chunk is not resumed while the store does not know a chunk of the ledger"
            }
        }
    }

    /// A file below `crates/`, and a text in it that the clause consists of.
    pub fn written_in(self) -> (&'static str, &'static str) {
        match self {
            Clause::FenceRaisesRow => (FENCE, "epoch = excluded.epoch,"),
            Clause::FenceRefusesOlderEpochs => (FENCE, "ledger.epoch < excluded.epoch"),
            Clause::NonceInFence => (FENCE, "AND ledger.nonce = excluded.nonce"),
            Clause::ConfirmAfterFence => (ACQUIRE, "self.confirm(opened).await"),
            Clause::EpochInCommit => (ADVANCE, "epoch = $3"),
            Clause::NonceInCommit => (ADVANCE, "nonce = $11"),
            Clause::CommitsInCommit => (ADVANCE, "commits = $4"),
            Clause::CommitsCounted => (ADVANCE, "commits = commits + 1"),
            Clause::EffectWithLedger => (COMMIT, "apply(self, &transaction,"),
            Clause::DeferredWithLedger => (COMMIT, "deferred::defer(&transaction,"),
            Clause::RecoveryCreatesNoRow => (RUNNER, "target.fence_again(&self.ledger)"),
            Clause::RecoveryConfirms => (RUNNER, "store().confirm(&[self.lease()])"),
            Clause::LossEndsLease => (RUNNER, "ledger.commits < self.ledger.commits"),
            Clause::EpochInStore => (END, "epoch = $3"),
            Clause::NonceInStore => (END, "nonce = $4"),
            Clause::FlushBeforeEnd => (COMPLETION, ".map(flush::flush_all)"),
            Clause::FlushComparesRow => (
                "windlass-connectors/sql/postgres/flush.sql",
                "USING (job_id, chunk, epoch, nonce, commits)",
            ),
            Clause::LettersBeforeEnd => (CHUNK_END, "match self.copy_dead_letters().await"),
            Clause::CountWithEnd => (CHUNKS, "count_ended_chunk"),
            Clause::JobEndDurable => {
                ("windlass-store/src/postgres/advance.rs", "tx.batch(DURABLE)")
            }
            Clause::FailOnlyFenced => (ACQUIRE, "self.release(lease, &chunk, &job.definition()"),
            Clause::RedriveSettlesByCommit => {
                ("windlass-engine/src/execute/settlement.rs", "Effect::Nothing")
            }
            Clause::CancelRaisesEpoch => {
                ("windlass-store/queries/postgres/lease_cancelled.sql", "epoch = c.epoch + 1")
            }
            Clause::CancelFences => {
                ("windlass-engine/src/operate/cancellation.rs", "target.fence(&[fence])")
            }
            Clause::CloseBeforePrune => {
                ("windlass-store/src/transitions.rs", "from == JobStatus::Failed && job.closed")
            }
            Clause::RestoreRaisesEpochs => {
                ("windlass-engine/src/operate/after_restore.rs", "store.raise_epochs(job,")
            }
            Clause::SplitAcknowledged => (RUNNER, "if self.ledger.commits > commits {"),
            Clause::SplitWithoutDeferred => {
                ("windlass-engine/src/execute/straggler.rs", "|| !self.ledger.counts.add_up()")
            }
            Clause::SplitComparesLease => {
                (CHUNKS, "if write_end(tx, lease, progress, &outcome).await?")
            }
            Clause::SplitInOneTransaction => (CHUNKS, "add_rest(tx, lease, &job, split)"),
            Clause::RestoreFindsRest => (ACQUIRE, "self.check_resumed(connection, chunk)"),
        }
    }
}

const FENCE: &str = "windlass-connectors/sql/postgres/fence.sql";
const ADVANCE: &str = "windlass-connectors/sql/postgres/advance.sql";
const COMMIT: &str = "windlass-connectors/src/postgres/commit.rs";
const ACQUIRE: &str = "windlass-engine/src/execute/acquire.rs";
const RUNNER: &str = "windlass-engine/src/execute/chunk_runner.rs";
const COMPLETION: &str = "windlass-engine/src/execute/completion.rs";
const CHUNK_END: &str = "windlass-engine/src/execute/chunk_end.rs";
const CHUNKS: &str = "windlass-store/src/postgres/chunks.rs";
const END: &str = "windlass-store/queries/postgres/end_chunk.sql";
