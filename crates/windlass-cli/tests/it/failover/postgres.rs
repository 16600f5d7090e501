//! PostgreSQL with a standby that is promoted.

use super::{ROWS, has_lost_effects, is_completed_once, start, worked_on};
use crate::common::{CliSandbox, Data, config, eventually, slow_raise};
use serde_json::Value as Json;
use windlass_testkit::{Database, Options, PostgresServer, Proxy};

/// A primary, its standby, and the address that leads to one of them.
struct Pair {
    primary: PostgresServer,
    standby: PostgresServer,
    database: Database,
    proxy: Proxy,
}

impl Pair {
    /// Replication is asynchronous.
    async fn start() -> Pair {
        let primary = PostgresServer::start(Options { fsync: false, ..Options::default() });
        let database = primary.database().await;
        let standby = primary.replica();
        let proxy = Proxy::start(primary.addr()).await;
        Pair { primary, standby, database, proxy }
    }

    /// A commit is confirmed when the standby has it.
    async fn start_synchronous() -> Pair {
        let pair = Pair::start().await;
        let server = pair.primary.existing("postgres");
        server.run("ALTER SYSTEM SET synchronous_standby_names = '*'").await;
        server.run("SELECT pg_reload_conf()").await;
        let is_synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        eventually("the standby is synchronous", async || {
            server.one::<i64>(is_synchronous).await == 1
        })
        .await;
        pair
    }

    fn url(&self) -> String {
        self.proxy.url_via(self.database.url())
    }

    /// The standby receives nothing any more, as one that lags.
    async fn stop_receiving(&self) {
        let standby = self.standby.existing("postgres");
        standby.run("ALTER SYSTEM SET primary_conninfo = ''").await;
        standby.run("SELECT pg_reload_conf()").await;
        let receivers = "SELECT count(*) FROM pg_stat_replication";
        let primary = self.primary.existing("postgres");
        eventually("the standby receives nothing", async || {
            primary.one::<i64>(receivers).await == 0
        })
        .await;
    }

    /// The primary crashes, the standby is promoted, and the address leads to it.
    async fn fail_over(&self) {
        self.primary.stop_immediate();
        self.standby.existing("postgres").run("SELECT pg_promote()").await;
        self.proxy.redirect(self.standby.addr());
        self.proxy.cut_all().await;
    }

    /// The database on the new primary.
    fn promoted(&self) -> Data {
        Data::Postgres(self.standby.existing(self.database.name()))
    }
}

fn jobs() -> String {
    slow_raise(100) + "chunk.lease = \"1s\"\n"
}

async fn with_accounts(database: &Database) -> Data {
    let data = Data::Postgres(database.clone()).with_accounts(ROWS).await;
    data.pace(3.0).await;
    data
}

#[tokio::test]
async fn records_on_a_synchronous_standby_are_neither_lost_nor_doubled() {
    let pair = Pair::start_synchronous().await;
    with_accounts(&pair.database).await;
    let sandbox = CliSandbox::with(&config("sqlite:windlass.db", &pair.url(), &jobs()));
    let started = start(&sandbox, 8).await;
    pair.fail_over().await;
    is_completed_once(&sandbox, &pair.promoted(), started).await;
}

#[tokio::test]
async fn a_store_on_a_synchronous_standby_loses_and_doubles_nothing() {
    let pair = Pair::start_synchronous().await;
    let data = with_accounts(&PostgresServer::shared().database().await).await;
    let sandbox = CliSandbox::with(&config(&pair.url(), &data.url(), &jobs()));
    let started = start(&sandbox, 8).await;
    pair.fail_over().await;
    is_completed_once(&sandbox, &data, started).await;
}

#[tokio::test]
async fn an_audit_finds_what_an_asynchronous_standby_has_lost() {
    let pair = Pair::start().await;
    with_accounts(&pair.database).await;
    let sandbox = CliSandbox::with(&config("sqlite:windlass.db", &pair.url(), &jobs()));
    let (id, _worker) = start(&sandbox, 4).await;
    pair.stop_receiving().await;
    worked_on(&sandbox, &id).await;
    pair.fail_over().await;
    has_lost_effects(&sandbox, &pair.promoted(), &id).await;
}

/// The store goes back in time while a worker runs. What it repeats, the ledger refuses or continues.
#[tokio::test]
async fn a_store_that_an_asynchronous_standby_turned_back_doubles_nothing() {
    let pair = Pair::start().await;
    let data = with_accounts(&PostgresServer::shared().database().await).await;
    let sandbox = CliSandbox::with(&config(&pair.url(), &data.url(), &jobs()));
    let (id, worker) = start(&sandbox, 4).await;
    pair.stop_receiving().await;
    worked_on(&sandbox, &id).await;
    pair.fail_over().await;
    data.pace(0.0).await;
    let has_ended = |job: &Json| job["status"] == "COMPLETED" || job["status"] == "PAUSED";
    let ended = sandbox.until(&id, "the job ends or is paused", has_ended).await;
    worker.term();
    worker.wait().await.ok();
    let next = sandbox.spawn("worker --concurrency 4 --after-restore");
    if ended["status"] == "PAUSED" {
        let why = ended["error"].as_str().unwrap_or_default();
        assert!(why.contains("restored to an older state"), "{ended:#}");
        sandbox.run(&format!("resume {id}")).await.ok();
    }
    is_completed_once(&sandbox, &data, (id, next)).await;
}
