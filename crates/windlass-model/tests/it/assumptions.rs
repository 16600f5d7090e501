//! What the protocol assumes: without each assumption, the checker finds a counterexample. The documents name them.

use crate::clauses::counterexample;
use windlass_model::{Budget, Protocol, Scope};

/// A backup that is older than the retention brings jobs back whose ledger rows are gone.
#[test]
fn a_restored_backup_must_be_younger_than_the_retention() {
    let budget = Budget { prunes: 1, restores: 1, ..Budget::default() };
    let scope = Scope { budget, prune_before_restore: true, ..Scope::restore() };
    assert!(counterexample(Protocol::new(scope), "each effect at most once").is_some());
}

/// A chunk that a restored store believes was never leased is cancelled without a fence.
#[test]
fn a_restored_store_must_get_no_cancel_before_after_restore() {
    let budget = Budget { cancels: 1, restores: 1, ..Budget::default() };
    let scope = Scope { budget, ..Scope::restore() };
    let property = "no effect after the end of a chunk";
    assert_eq!(counterexample(Protocol::new(scope), property), None);
    let scope = Scope { early_commands: true, ..scope };
    assert!(counterexample(Protocol::new(scope), property).is_some());
}

/// A process whose lease a restored store believes again may split a chunk that others have worked on since.
#[test]
fn a_process_that_may_split_a_chunk_must_be_stopped_before_a_restore() {
    let property = "each effect at most once";
    assert_eq!(counterexample(Protocol::new(Scope::restored_splits()), property), None);
    let scope = Scope { stopped_before_restore: false, ..Scope::restored_splits() };
    assert!(counterexample(Protocol::new(scope), property).is_some());
}
