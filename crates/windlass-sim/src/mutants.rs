//! The table of mutants: how each clause of the protocol is removed, and the seed that finds it.

use crate::focus::Focus;
use crate::mutant::Mutant;

const FENCE: &str = "INSERT INTO windlass_ledger";
const ADVANCE: &str = "-- The first statement of every commit";
const END: &str = "-- Ends a chunk whose lease is valid";
const ACQUIRE: &str = "windlass-engine/src/execute/acquire.rs";
const RELEASE: &str = "-- Hands a chunk back with its progress";
const LEASE: &str = " AND epoch = ?3 AND nonce = ?4 AND status = 'PROCESSING'";
const NO_LEASE: &str = " AND ?3 = ?3 AND ?4 = ?4";

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant::of_statements(
        "FenceRaisesRow",
        "a fence raises the ledger row to the lease",
        &[(FENCE, "epoch = excluded.epoch,\n    nonce = excluded.nonce,", "")],
    )
    .with_seed(3),
    Mutant::of_statements(
        "FenceRefusesOlderEpochs",
        "a row of a higher epoch refuses a fence",
        &[(FENCE, "windlass_ledger.epoch < excluded.epoch", "true")],
    )
    .with_seed(27),
    Mutant::of_statements(
        "LeaseInCommit",
        "a commit compares the epoch or the nonce of the row",
        &[(ADVANCE, " AND epoch = ?3 AND nonce = ?11", " AND ?3 = ?3 AND ?11 = ?11")],
    )
    .found_by(Focus::Cancels, 6),
    Mutant::of_statements(
        "CommitsInCommit",
        "a commit compares how far the row is",
        &[(ADVANCE, " AND commits = ?4", " AND ?4 = ?4")],
    )
    .with_seed(4),
    Mutant::of_statements(
        "CommitsCounted",
        "for that it compares the number of commits, not the cursor",
        &[(ADVANCE, "commits = commits + 1,", "commits = commits + (cursor <> ?5),")],
    )
    .found_by(Focus::Deferred, 2),
    Mutant::of_transaction("EffectWithLedger", "the effects and the ledger row are one transaction", ADVANCE),
    Mutant::of_statements(
        "DeferredWithLedger",
        "deferred items are stored with the cursor",
        &[
            ("-- Stores a deferred item", "VALUES (?1", "SELECT * FROM (VALUES (?1"),
            ("-- Stores a deferred item", "+ ?10)", "+ ?10)) WHERE false"),
        ],
    )
    .with_seed(3),
    Mutant::of_code(
        "RecoveryCreatesNoRow",
        "after a broken connection a pruned row is not created again",
        &[(
            "windlass-connectors/src/sqlite/fence.rs",
            "self.write(move |transaction| lock(transaction, &ledger)).await",
            "if windlass_core::is_removed(\"RecoveryCreatesNoRow\") {
            let Ledger { chunk, epoch, nonce, .. } = ledger;
            let fences = [Fence { chunk, epoch, nonce, lost: false }];
            return Ok(self.fence(&fences).await?.pop().flatten());
        }
        self.write(move |transaction| lock(transaction, &ledger)).await",
        )],
    )
    .found_by(Focus::Recoveries, 4),
    Mutant::of_code(
        "LossEndsLease",
        "a lease whose commits the database lost ends",
        &[(
            "windlass-engine/src/execute/chunk_runner.rs",
            "        if lost {",
            "        if lost && !windlass_core::is_removed(\"LossEndsLease\") {",
        )],
    )
    .found_by(Focus::LostCommits, 12),
    Mutant::of_statements(
        "EpochInStore",
        "a change of a chunk in the store compares the lease",
        &[(END, LEASE, NO_LEASE), (RELEASE, LEASE, NO_LEASE)],
    )
    .with_seed(15),
    Mutant::of_statements(
        "LettersBeforeEnd",
        "dead letters are copied before the chunk ends",
        &[
            ("-- Writes a dead letter of a chunk", "VALUES (?1", "SELECT * FROM (VALUES (?1"),
            (
                "-- Writes a dead letter of a chunk",
                "AS INTEGER))\nON",
                "AS INTEGER))) WHERE false\nON",
            ),
        ],
    )
    .with_seed(3),
    Mutant::of_transaction(
        "CountWithEnd",
        "the end of a chunk and the count of open chunks are one transaction",
        END,
    )
    .with_seed(2),
    Mutant::of_statements(
        "CancelRaisesEpoch",
        "a cancelled chunk is leased at a new epoch",
        &[(
            "-- Leases a chunk of a cancelled job",
            "epoch = epoch + 1,\n    nonce = random(),",
            "",
        )],
    )
    .with_seed(54),
    Mutant::of_statements(
        "CloseBeforePrune",
        "a failed job is closed to retries before its ledger is pruned",
        &[("-- Closes a job that ended", "SET closed = 1", "SET closed = closed")],
    )
    .found_by(Focus::Retention, 34),
    Mutant::of_code(
        "ConfirmAfterFence",
        "after the fence the store confirms the lease",
        &[(
            ACQUIRE,
            "LeaseStatus::Held => confirmed.push(chunk),",
            "LeaseStatus::Held => confirmed.push(chunk),
                _ if windlass_core::is_removed(\"ConfirmAfterFence\") => confirmed.push(chunk),",
        )],
    )
    .found_by(Focus::Stalls, 41),
    Mutant::of_code(
        "FailOnlyFenced",
        "a chunk that cannot be fenced is released, not failed",
        &[(
            ACQUIRE,
            "self.release(lease, &chunk, &job.definition().retry, &error).await;",
            "if windlass_core::is_removed(\"FailOnlyFenced\") {
                        log_unrecorded(lease.fail(&error.to_string(), false, &[]).await);
                    } else {
                        self.release(lease, &chunk, &job.definition().retry, &error).await;
                    }",
        )],
    )
    .found_by(Focus::Cancels, 40),
    Mutant::of_code(
        "RedriveSettlesByCommit",
        "a failing chunk of a redrive commits an empty batch first",
        &[(
            "windlass-engine/src/execute/settlement.rs",
            "self.commit(Commit::new(cursor, Effect::Nothing)).await?;",
            "if !windlass_core::is_removed(\"RedriveSettlesByCommit\") {
            self.commit(Commit::new(cursor, Effect::Nothing)).await?;
        }",
        )],
    )
    .found_by(Focus::Redrives, 4),
    Mutant::of_code(
        "CancelFences",
        "a cancelled chunk is fenced before it ends",
        &[(
            "windlass-engine/src/operate/cancellation.rs",
            "if let Some(ledger) = job.target.fence(&[fence]).await?.pop().flatten() {",
            "let found = match windlass_core::is_removed(\"CancelFences\") {
            true => job.target.ledger_rows(id.job, id.number - 1, 1).await?.pop(),
            false => None,
        };
        let found = found.map(|row| row.ledger).filter(|ledger| ledger.chunk == id);
        let found = match found {
            Some(ledger) => Some(ledger),
            None => job.target.fence(&[fence]).await?.pop().flatten(),
        };
        if let Some(ledger) = found {",
        )],
    )
    .found_by(Focus::Cancels, 13),
    Mutant::of_statements(
        "RestoreRaisesEpochs",
        "`--after-restore` raises the epochs to those of the ledger",
        &[(
            "-- Raises the epoch of a chunk to that of its ledger row",
            "AND epoch < ?3",
            "AND epoch < ?3 AND false",
        )],
    )
    .found_by(Focus::Restores, 24),
    Mutant::of_code(
        "SplitAcknowledged",
        "a chunk is split only when its last commit is known",
        &[(
            "windlass-engine/src/execute/chunk_runner.rs",
            "if self.ledger.commits > commits {",
            "if self.ledger.commits > commits || windlass_core::is_removed(\"SplitAcknowledged\") {",
        )],
    )
    .found_by(Focus::Splits, 4),
    Mutant::of_code(
        "SplitWithoutDeferred",
        "a chunk with deferred items is not split",
        &[(
            "windlass-engine/src/execute/straggler.rs",
            "|| !self.ledger.counts.add_up()",
            "|| !self.ledger.counts.add_up() && !windlass_core::is_removed(\"SplitWithoutDeferred\")",
        )],
    )
    .found_by(Focus::Splits, 3),
    Mutant::of_transaction(
        "SplitInOneTransaction",
        "the end of a split chunk and the new chunks are one transaction",
        "-- Shortens a chunk that is split",
    )
    .found_by(Focus::Splits, 9),
    Mutant::of_statements(
        "GuardInWrite",
        "a write compares the version that was read",
        &[("UPDATE \"items\"", "AND \"version\" = ", "AND \"version\" >= ")],
    )
    .with_seed(21),
];
