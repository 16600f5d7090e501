//! Each clause is needed: without it, the checker finds a counterexample.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model};
use windlass_model::{Clause, GenerationClause, Generations, Protocol, Scope};

const ONCE: &str = "each effect at most once";
const DONE: &str = "COMPLETED means done";
const FINAL: &str = "no effect after the end of a chunk";
const COVERED: &str = "the chunks cover each item once";
const LEFT: &str = "every state is left";
const VALID: &str = "a valid lease is never refused";

/// The scope and the property that show what each clause is for.
fn counterexamples() -> Vec<(Clause, Scope, &'static str)> {
    vec![
        (Clause::FenceRaisesRow, Scope::operators(), FINAL),
        (Clause::FenceRefusesOlderEpochs, Scope::faults(), VALID),
        (Clause::ConfirmAfterFence, Scope::faults(), ONCE),
        (Clause::EpochInCommit, Scope::operators(), FINAL),
        (Clause::CommitsInCommit, Scope::smallest(), ONCE),
        (Clause::CommitsCounted, Scope::faults(), ONCE),
        (Clause::EffectWithLedger, Scope::smallest(), ONCE),
        (Clause::DeferredWithLedger, Scope::faults(), DONE),
        (Clause::RecoveryCreatesNoRow, Scope::faults(), ONCE),
        (Clause::EpochInStore, Scope::operators(), VALID),
        (Clause::NonceInStore, Scope::restore(), DONE),
        (Clause::LossEndsLease, Scope::database(), ONCE),
        (Clause::FlushBeforeEnd, Scope::database(), DONE),
        (Clause::FlushComparesRow, Scope::database(), DONE),
        (Clause::LettersBeforeEnd, Scope::faults(), DONE),
        (Clause::CountWithEnd, Scope::smallest(), LEFT),
        (Clause::JobEndDurable, Scope::chunks(), ONCE),
        (Clause::FailOnlyFenced, Scope::operators(), FINAL),
        (Clause::RedriveSettlesByCommit, Scope::redrive(), FINAL),
        (Clause::CancelRaisesEpoch, Scope::operators(), FINAL),
        (Clause::CancelFences, Scope::operators(), FINAL),
        (Clause::CloseBeforePrune, Scope::operators(), ONCE),
        (Clause::RestoreRaisesEpochs, Scope::restore(), VALID),
        (Clause::SplitAcknowledged, Scope::splits(), ONCE),
        (Clause::SplitWithoutDeferred, Scope::splits(), DONE),
        (Clause::SplitComparesLease, Scope::splits_of_lost_leases(), ONCE),
        (Clause::SplitInOneTransaction, Scope::splits(), COVERED),
        (Clause::RestoreFindsRest, Scope::restored_splits(), ONCE),
    ]
}

/// The steps of a counterexample of a property.
pub(crate) fn counterexample(protocol: Protocol, property: &'static str) -> Option<usize> {
    let found = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = protocol.checker().threads(2).finish_when(found).spawn_bfs().join();
    checker.discovery(property).map(|path| path.into_actions().len())
}

#[test]
fn each_clause_is_needed() {
    for (clause, scope, property) in counterexamples() {
        let steps = counterexample(Protocol::new(scope).without(clause), property);
        let name = scope.name;
        println!("without {clause:?}, in the scope {name}: {property} fails after {steps:?} steps");
        assert!(steps.is_some(), "{name}: {property} holds although {} not", clause.says());
    }
}

/// After a restore, the nonce in the fence and the nonce in the commit each separate two leases of one epoch.
#[test]
fn one_comparison_of_the_nonce_beside_the_data_is_needed() {
    let neither = Protocol::new(Scope::restore()).without(Clause::NonceInFence);
    let steps = counterexample(neither.without(Clause::NonceInCommit), FINAL);
    assert!(steps.is_some());
}

/// Since recovery creates no row, its confirmation only ends the work of a lost lease earlier.
#[test]
fn the_confirmation_after_a_broken_connection_is_not_needed_for_safety() {
    for scope in [Scope::faults(), Scope::redrive()] {
        let model = Protocol::new(scope).without(Clause::RecoveryConfirms);
        model.checker().threads(2).spawn_bfs().join().assert_properties();
    }
}

#[test]
fn every_clause_is_judged() {
    let mut judged: BTreeSet<_> = counterexamples().iter().map(|(clause, ..)| *clause).collect();
    judged.extend([Clause::NonceInFence, Clause::NonceInCommit, Clause::RecoveryConfirms]);
    assert_eq!(judged, BTreeSet::from(Clause::ALL));
}

#[test]
fn each_clause_of_the_check_at_start_is_needed() {
    for clause in GenerationClause::ALL {
        let checker = Generations::default().without(clause).checker().spawn_bfs().join();
        let failures = [
            "no start is refused without a restore",
            "no process runs on a restored store unnoticed",
        ];
        let found = failures.iter().any(|property| checker.discovery(property).is_some());
        assert!(found, "every property holds although {} not", clause.says());
    }
}
