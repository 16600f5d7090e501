//! Every property holds in every reachable state of every scope.

use stateright::{Checker, Model};
use windlass_model::{Generations, Protocol, Scope};

fn holds(scope: Scope) {
    let checker = Protocol::new(scope).checker().threads(2).spawn_bfs().join();
    let (states, steps) = (checker.unique_state_count(), checker.max_depth());
    println!("{}: {states} states, up to {steps} steps", scope.name);
    checker.assert_properties();
}

#[test]
fn the_protocol_holds_in_the_smallest_scope() {
    holds(Scope::smallest());
}

#[test]
fn the_protocol_holds_when_workers_die_stall_and_lose_connections() {
    holds(Scope::faults());
}

#[test]
fn the_protocol_holds_when_operators_cancel_retry_and_prune() {
    holds(Scope::operators());
}

#[test]
fn the_protocol_holds_with_several_chunks_and_a_store_that_loses_writes() {
    holds(Scope::chunks());
}

#[test]
fn the_protocol_holds_when_the_database_loses_commits() {
    holds(Scope::database());
}

#[test]
fn the_protocol_holds_for_redrives() {
    holds(Scope::redrive());
}

#[test]
fn the_protocol_holds_when_the_store_is_restored() {
    holds(Scope::restore());
}

#[test]
fn the_protocol_holds_when_a_chunk_is_split() {
    holds(Scope::splits());
}

#[test]
fn the_protocol_holds_when_the_database_loses_commits_of_a_split_chunk() {
    holds(Scope::lost_splits());
}

#[test]
fn the_protocol_holds_when_the_store_is_restored_to_before_a_split() {
    holds(Scope::restored_splits());
}

#[test]
fn a_restored_store_is_refused_at_start_and_no_other() {
    let checker = Generations::default().checker().spawn_bfs().join();
    println!("generations: {} states", checker.unique_state_count());
    checker.assert_properties();
}
