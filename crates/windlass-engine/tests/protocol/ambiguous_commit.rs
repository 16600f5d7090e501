//! A connection that breaks at COMMIT leaves the outcome unknown. The ledger knows it: nothing is
//! done twice, nothing is left out.

use crate::common::*;
use std::sync::Arc;
use std::time::Duration;
use windlass_connectors::{
    Commit, ConnectorError, DeferredItem, DeferredState, Effect, ReadLimits, WriteItem,
};
use windlass_core::{Change, Counts, Cursor, ItemError, Key};
use windlass_engine::Engine;
use windlass_testkit::Proxy;

/// Statements that only the transaction of a batch runs, not the one of a fence.
const BATCH: &str = "UPDATE windlass_ledger";
const ROWS: i64 = 600;
const MOST_CUTS: usize = 12;
/// Many commits, so that many can be cut.
const SMALL: &str = "chunk.items = 60\nchunk.commit = 4";

pub(crate) async fn a_statement_is_done_once_though_the_answers_to_its_commits_are_lost(
    world: World,
) {
    let proxy = proxy(&world).await;
    let engine = via(&world, &proxy, &job(ADD, SMALL)).await;
    complete_while_cut(&engine, &proxy, |proxy| proxy.cut_after_commit_of(BATCH)).await;
    world.each_once(ROWS).await;
}

pub(crate) async fn a_statement_is_done_once_though_its_commits_never_arrive(world: World) {
    let proxy = proxy(&world).await;
    let engine = via(&world, &proxy, &job(ADD, SMALL)).await;
    complete_while_cut(&engine, &proxy, |proxy| proxy.cut_before_commit()).await;
    world.each_once(ROWS).await;
}

pub(crate) async fn updates_and_inserts_are_done_once_though_answers_are_lost(world: World) {
    let proxy = proxy(&world).await;
    let engine = handling(&world, &proxy, 0).await;
    complete_while_cut(&engine, &proxy, |proxy| proxy.cut_after_commit_of(BATCH)).await;
    world.each_once(ROWS).await;
    world.logged_once(ROWS).await;
}

pub(crate) async fn updates_and_inserts_are_done_once_though_commits_never_arrive(world: World) {
    let proxy = proxy(&world).await;
    let engine = handling(&world, &proxy, 0).await;
    complete_while_cut(&engine, &proxy, |proxy| proxy.cut_before_commit_of(BATCH)).await;
    world.each_once(ROWS).await;
    world.logged_once(ROWS).await;
}

/// The cursor does not move when held items are committed: only the number of commits tells.
pub(crate) async fn held_items_are_done_once_though_answers_are_lost(world: World) {
    let proxy = proxy(&world).await;
    let engine = handling(&world, &proxy, 1).await;
    complete_while_cut(&engine, &proxy, |proxy| proxy.cut_after_commit_of("windlass_deferred"))
        .await;
    world.each_once(ROWS).await;
    world.logged_once(ROWS).await;
}

pub(crate) async fn held_items_are_done_once_though_commits_never_arrive(world: World) {
    let proxy = proxy(&world).await;
    let engine = handling(&world, &proxy, 1).await;
    complete_while_cut(&engine, &proxy, |proxy| proxy.cut_before_commit_of("windlass_deferred"))
        .await;
    world.each_once(ROWS).await;
    world.logged_once(ROWS).await;
}

/// What makes it safe: a commit is refused unless the ledger stands where the commit began.
pub(crate) async fn a_commit_that_has_happened_is_refused_the_second_time(world: World) {
    world.visits(10).await;
    let engine = world.engine(&job(ADD, "")).await;
    let job = submit(&engine).await;
    load(&engine, job).await;
    let worker = ByHand::claim(&engine, job).await;
    let ledger = worker.fence().await.unwrap();

    worker.commit(&ledger).await.unwrap();
    let again = worker.commit(&ledger).await;

    assert!(matches!(again, Err(ConnectorError::LeaseLost)), "{again:?}");
    world.each_once(10).await;
}

/// The same for held items, whose commits leave the cursor where it is.
pub(crate) async fn a_commit_of_held_items_is_refused_the_second_time(world: World) {
    world.visits(1).await;
    let engine = world.builder(&job(HANDLER, ""));
    let engine = engine.handler("work", async |visit: Visit, _| visit.done());
    let engine = engine.connect().await.unwrap();
    let job = submit(&engine).await;
    load(&engine, job).await;
    let worker = ByHand::claim(&engine, job).await;
    let begun = worker.fence().await.unwrap();
    let connection = worker.connection();
    let read = connection
        .read(&worker.scope, &worker.claimed.key_set, ReadLimits::new(10, 1 << 20))
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
        version: item.version.clone(),
        change: insert,
        record: item.record,
        attempts: 1,
        conflicts: 0,
    };
    let settle = Commit { resolve: vec![item.key], ..commit_of(Effect::Write(vec![write])) };
    connection.commit(&worker.scope, &ledger, settle.clone()).await.unwrap();
    let again = connection.commit(&worker.scope, &ledger, settle).await;

    assert!(matches!(again, Err(ConnectorError::LeaseLost)), "{again:?}");
    world.logged_once(1).await;
}

on_each!(
    a_commit_that_has_happened_is_refused_the_second_time,
    a_commit_of_held_items_is_refused_the_second_time,
);

on_servers!(
    a_statement_is_done_once_though_the_answers_to_its_commits_are_lost,
    a_statement_is_done_once_though_its_commits_never_arrive,
    updates_and_inserts_are_done_once_though_answers_are_lost,
    updates_and_inserts_are_done_once_though_commits_never_arrive,
    held_items_are_done_once_though_answers_are_lost,
    held_items_are_done_once_though_commits_never_arrive,
);

/// A proxy in front of the server of a world with visits.
async fn proxy(world: &World) -> Arc<Proxy> {
    world.visits(ROWS).await;
    Arc::new(world.app.proxy().await)
}

/// An engine whose data, but not whose store, is behind the proxy.
async fn via(world: &World, proxy: &Proxy, jobs: &str) -> Engine {
    builder(&via_toml(world, proxy, jobs)).connect().await.unwrap()
}

/// An engine whose handler fails on the first tries of every item.
async fn handling(world: &World, proxy: &Proxy, failures: u32) -> Engine {
    let work = move |visit: Visit, context: windlass_engine::ItemContext| async move {
        match context.attempt() {
            attempt if attempt <= failures => Err(ItemError::transient("not yet")),
            _ => visit.done(),
        }
    };
    let toml = via_toml(world, proxy, &job(HANDLER, SMALL));
    builder(&toml).handler("work", work).connect().await.unwrap()
}

fn via_toml(world: &World, proxy: &Proxy, jobs: &str) -> String {
    toml(&proxy.url_via(&world.app.url()), &world.store.url(), jobs)
}

/// Works `JOB` to its end while the proxy is armed anew after every cut.
async fn complete_while_cut(engine: &Engine, proxy: &Arc<Proxy>, arm: fn(&Proxy)) {
    let job = submit(engine).await;
    let cutting = tokio::spawn(keep_cutting(proxy.clone(), arm));
    let done = work(engine, job).await;
    cutting.abort();
    proven(engine, &done).await;
    assert!(proxy.cuts() > MOST_CUTS / 2, "only {} commits were cut", proxy.cuts());
}

/// Not for ever: a database of which every commit is lost can do nothing.
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
