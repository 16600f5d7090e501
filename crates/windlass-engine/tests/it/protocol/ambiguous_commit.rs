//! A connection that breaks at COMMIT leaves the outcome unknown. The ledger knows it, so that nothing is done twice
//! and nothing is left out.

use crate::protocol::common::*;
use std::sync::Arc;
use std::time::Duration;
use windlass_connectors::{
    Commit, ConnectorError, DeferredItem, DeferredState, Effect, ReadLimits, WriteItem,
};
use windlass_core::{Change, Counts, Cursor, ItemError, Key};
use windlass_engine::Engine;
use windlass_testkit::Proxy;

/// Statements that occur in the transaction of a batch, but not in the one of a fence.
const BATCH: &str = "UPDATE windlass_ledger";
const ROWS: i64 = 600;
const MOST_CUTS: usize = 12;
/// Many commits, so that many can be cut.
const SMALL: &str = "chunk.items = 60\nchunk.commit = 4";

pub(crate) async fn a_statement_runs_once_although_commit_answers_are_lost(fixture: EngineFixture) {
    statements_run_once(&fixture, |proxy| proxy.cut_after_commit_of(BATCH)).await;
}

pub(crate) async fn a_statement_runs_once_although_commits_never_arrive(fixture: EngineFixture) {
    statements_run_once(&fixture, |proxy| proxy.cut_before_commit()).await;
}

pub(crate) async fn updates_and_inserts_happen_once_although_commit_answers_are_lost(
    fixture: EngineFixture,
) {
    items_are_processed_once(&fixture, 0, |proxy| proxy.cut_after_commit_of(BATCH)).await;
}

pub(crate) async fn updates_and_inserts_happen_once_although_commits_never_arrive(
    fixture: EngineFixture,
) {
    items_are_processed_once(&fixture, 0, |proxy| proxy.cut_before_commit_of(BATCH)).await;
}

/// A commit of deferred items does not move the cursor, so only the number of commits shows whether it happened.
pub(crate) async fn deferred_items_are_processed_once_although_commit_answers_are_lost(
    fixture: EngineFixture,
) {
    items_are_processed_once(&fixture, 1, |proxy| proxy.cut_after_commit_of("windlass_deferred"))
        .await;
}

pub(crate) async fn deferred_items_are_processed_once_although_commits_never_arrive(
    fixture: EngineFixture,
) {
    items_are_processed_once(&fixture, 1, |proxy| proxy.cut_before_commit_of("windlass_deferred"))
        .await;
}

/// A commit is refused unless the ledger is in the state in which the commit began.
pub(crate) async fn a_commit_is_refused_the_second_time(fixture: EngineFixture) {
    let (_engine, _, worker) = ByHand::new(&fixture, 10, &job(ADD, "")).await;
    let ledger = worker.fence().await.unwrap();

    worker.commit(&ledger).await.unwrap();
    let again = worker.commit(&ledger).await;

    assert!(matches!(again, Err(ConnectorError::LeaseLost)), "{again:?}");
    fixture.each_once(10).await;
}

/// The same for deferred items, whose commits do not move the cursor.
pub(crate) async fn a_commit_of_deferred_items_is_refused_the_second_time(fixture: EngineFixture) {
    fixture.visits(1).await;
    let engine = fixture.builder(&job(HANDLER, ""));
    let engine = engine.handler("work", async |visit: Visit, _| visit.done());
    let engine = engine.connect().await.unwrap();
    let job = submit(&engine).await;
    plan_job(&engine, job).await;
    let worker = ByHand::lease(&engine, job).await;
    let begun = worker.fence().await.unwrap();
    let connection = worker.connection();
    let read = connection
        .read(&worker.scope, &worker.leased.key_set, ReadLimits::new(10, 1 << 20))
        .await
        .unwrap();
    let item = read.items.into_iter().next().unwrap();
    let hold = Commit { defer: vec![held(&item.key)], ..commit_of(Effect::Nothing) };
    let hold = Commit { counts: Counts { read: 1, ..Counts::default() }, ..hold };
    let ledger = connection.commit(&worker.scope, &begun, hold).await.unwrap().ledger;
    assert_eq!(ledger.cursor, Cursor::End);

    let insert = Change::default().insert("log", [("visit", 1.into())]);
    let write = WriteItem {
        key: item.key.clone(),
        guard: item.guard.clone(),
        change: insert.into(),
        record: item.record,
        attempts: 1,
        conflicts: 0,
    };
    let settle = Commit { resolve: vec![item.key], ..commit_of(Effect::Write(vec![write])) };
    connection.commit(&worker.scope, &ledger, settle.clone()).await.unwrap();
    let again = connection.commit(&worker.scope, &ledger, settle).await;

    assert!(matches!(again, Err(ConnectorError::LeaseLost)), "{again:?}");
    fixture.logged_once(1).await;
}

on_each!(
    a_commit_is_refused_the_second_time,
    a_commit_of_deferred_items_is_refused_the_second_time,
);

on_servers!(
    a_statement_runs_once_although_commit_answers_are_lost,
    a_statement_runs_once_although_commits_never_arrive,
    updates_and_inserts_happen_once_although_commit_answers_are_lost,
    updates_and_inserts_happen_once_although_commits_never_arrive,
    deferred_items_are_processed_once_although_commit_answers_are_lost,
    deferred_items_are_processed_once_although_commits_never_arrive,
);

/// A proxy in front of the database server.
async fn proxy(fixture: &EngineFixture) -> Arc<Proxy> {
    fixture.visits(ROWS).await;
    Arc::new(fixture.app.proxy().await)
}

/// An engine that reaches the data through the proxy, and the store directly.
async fn via(fixture: &EngineFixture, proxy: &Proxy, jobs: &str) -> Engine {
    builder(&via_toml(fixture, proxy, jobs)).connect().await.unwrap()
}

/// An engine whose handler fails on the first tries of every item.
async fn handling(fixture: &EngineFixture, proxy: &Proxy, failures: u32) -> Engine {
    let work = move |visit: Visit, context: windlass_engine::ItemContext| async move {
        match context.attempt() {
            attempt if attempt <= failures => Err(ItemError::transient("not yet")),
            _ => visit.done(),
        }
    };
    let toml = via_toml(fixture, proxy, &job(HANDLER, SMALL));
    builder(&toml).handler("work", work).connect().await.unwrap()
}

fn via_toml(fixture: &EngineFixture, proxy: &Proxy, jobs: &str) -> String {
    toml(&proxy.url_via(&fixture.app.url()), &fixture.store.url(), jobs)
}

/// Runs a statement on every visit while commits are cut.
async fn statements_run_once(fixture: &EngineFixture, cut: fn(&Proxy)) {
    let proxy = proxy(fixture).await;
    let engine = via(fixture, &proxy, &job(ADD, SMALL)).await;
    complete_while_cut(&engine, &proxy, cut).await;
    fixture.each_once(ROWS).await;
}

/// Calls a handler that fails on the first tries of every visit while commits are cut.
async fn items_are_processed_once(fixture: &EngineFixture, failures: u32, cut: fn(&Proxy)) {
    let proxy = proxy(fixture).await;
    let engine = handling(fixture, &proxy, failures).await;
    complete_while_cut(&engine, &proxy, cut).await;
    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
}

/// Works `JOB` to its end and arms the proxy again after every cut.
async fn complete_while_cut(engine: &Engine, proxy: &Arc<Proxy>, arm: fn(&Proxy)) {
    let job = submit(engine).await;
    let cutting = tokio::spawn(keep_cutting(proxy.clone(), arm));
    let done = work(engine, job).await;
    cutting.abort();
    proven(engine, &done).await;
    assert!(proxy.cuts() > MOST_CUTS / 2, "only {} commits were cut", proxy.cuts());
}

/// Stops after a number of cuts: a job cannot complete if every commit is lost.
async fn keep_cutting(proxy: Arc<Proxy>, arm: fn(&Proxy)) {
    for cuts in 0..MOST_CUTS {
        arm(&proxy);
        while proxy.cuts() == cuts {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn held(key: &Key) -> DeferredItem {
    DeferredItem {
        key: key.clone(),
        state: DeferredState::Retry,
        attempts: 1,
        conflicts: 0,
        error: "not yet".to_owned(),
        context: serde_json::Value::Null,
        record: serde_json::Value::Null,
        wait: Duration::ZERO,
    }
}
