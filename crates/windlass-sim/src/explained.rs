//! Clauses without a mutant: why the simulation cannot show what they are for, and which tests do.

/// A clause of `windlass-model` that no history can miss.
pub(crate) struct Explained {
    pub(crate) clause: &'static str,
    pub(crate) because: &'static str,
    /// The tests that fail without it: files below `crates/`, each with a function.
    pub(crate) tests: &'static [&'static str],
}

const fn explained(
    clause: &'static str,
    because: &'static str,
    tests: &'static [&'static str],
) -> Explained {
    Explained { clause, because, tests }
}

const MODEL: &str = "windlass-model/tests/it/clauses.rs::each_clause_is_needed";
const MODEL_OF_NONCE: &str =
    "windlass-model/tests/it/clauses.rs::one_comparison_of_the_nonce_beside_the_data_is_needed";
const MODEL_OF_START: &str =
    "windlass-model/tests/it/clauses.rs::each_clause_of_the_check_at_start_is_needed";
const LONE_START: &str =
    "no process of the simulation starts while another is in the middle of `--after-restore`";
const ONE_OF_TWO: &str = "the epoch and the nonce each identify a lease; without both it is \
                          found (LeaseInCommit)";
const NO_SURVIVOR: &str = "it needs a process that survives a restore, which operators must stop";
const NOT_IN_SQLITE: &str = "SQLite's commits are on the disk when they return";

/// All clauses without a mutant.
pub(crate) const EXPLAINED: &[Explained] = &[
    explained(
        "EpochInCommit",
        ONE_OF_TWO,
        &[
            MODEL,
            "windlass-connectors/tests/conformance/fencing.rs::a_commit_at_an_older_epoch_changes_nothing",
        ],
    ),
    explained(
        "NonceInCommit",
        ONE_OF_TWO,
        &[
            MODEL_OF_NONCE,
            "windlass-connectors/tests/conformance/fencing.rs::a_commit_with_another_nonce_changes_nothing",
        ],
    ),
    explained(
        "NonceInFence",
        NO_SURVIVOR,
        &[
            MODEL_OF_NONCE,
            "windlass-connectors/tests/conformance/fencing.rs::an_equal_epoch_with_another_nonce_is_refused",
        ],
    ),
    explained(
        "NonceInStore",
        NO_SURVIVOR,
        &[MODEL, "windlass-store/tests/conformance/leasing.rs::a_lease_with_another_nonce_is_lost"],
    ),
    explained(
        "RecoveryConfirms",
        "no property needs it, as the model shows; it ends the work of a lost lease earlier",
        &[
            "windlass-model/tests/it/clauses.rs::the_confirmation_after_a_broken_connection_is_not_needed_for_safety",
        ],
    ),
    explained(
        "FlushBeforeEnd",
        NOT_IN_SQLITE,
        &[
            MODEL,
            "windlass-cli/tests/it/faults/group_durability.rs::flushed_commits_survive_a_crash_before_their_completion",
        ],
    ),
    explained(
        "FlushComparesRow",
        NOT_IN_SQLITE,
        &[
            MODEL,
            "windlass-connectors/tests/conformance/durability.rs::commits_of_a_group_are_flushed_together",
        ],
    ),
    explained(
        "JobEndDurable",
        NOT_IN_SQLITE,
        &[
            MODEL,
            "windlass-store/tests/conformance/durability.rs::a_call_returns_after_its_changes_are_flushed",
        ],
    ),
    explained(
        "SplitComparesLease",
        "a split compares the lease twice in SQLite: before it begins, and when the chunk ends",
        &[MODEL, "windlass-store/tests/conformance/split.rs::a_lost_lease_splits_nothing"],
    ),
    explained(
        "RestoreFindsRest",
        "`--after-restore` cancels such a job before a chunk of it is leased",
        &[
            MODEL,
            "windlass-engine/tests/it/protocol/stragglers.rs::a_restored_store_does_not_repeat_the_rest_of_a_split_chunk",
        ],
    ),
    explained("LedgerReadFirst", LONE_START, &[MODEL_OF_START]),
    explained("StoreWrittenFirst", LONE_START, &[MODEL_OF_START]),
    explained("EpochsRaisedFirst", LONE_START, &[MODEL_OF_START]),
    explained(
        "GenerationChecked",
        "operators of the simulation always use `--after-restore`",
        &[
            MODEL_OF_START,
            "windlass-cli/tests/it/faults/restore.rs::a_restored_sqlite_store_continues_only_with_after_restore_and_repeats_nothing",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::MUTANTS;
    use std::collections::BTreeSet;
    use windlass_model::{Clause, GenerationClause};

    #[test]
    fn every_clause_of_the_model_has_a_mutant_or_an_explanation() {
        let clauses = Clause::ALL.iter().map(|clause| format!("{clause:?}"));
        let clauses: BTreeSet<_> = clauses
            .chain(GenerationClause::ALL.iter().map(|clause| format!("{clause:?}")))
            .collect();
        let mutants: BTreeSet<_> = MUTANTS.iter().map(|mutant| mutant.clause.to_owned()).collect();
        let explained: BTreeSet<_> =
            EXPLAINED.iter().map(|explained| explained.clause.to_owned()).collect();
        let both: Vec<_> = mutants.intersection(&explained).collect();
        assert!(both.is_empty(), "{both:?}");
        let covered = &mutants | &explained;
        let missing: Vec<_> = clauses.difference(&covered).collect();
        assert!(missing.is_empty(), "neither a mutant nor an explanation: {missing:?}");
        let unknown: Vec<_> = explained.difference(&clauses).collect();
        assert!(unknown.is_empty(), "no clause of the model: {unknown:?}");
    }

    #[test]
    fn the_tests_that_explanations_name_exist() {
        for name in EXPLAINED.iter().flat_map(|explained| explained.tests) {
            let (file, function) = name.split_once("::").unwrap();
            let path = format!("{}/../{file}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.contains(&format!("fn {function}(")), "{name}");
        }
    }
}
