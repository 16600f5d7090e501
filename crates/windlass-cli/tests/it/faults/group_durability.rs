//! PostgreSQL crashes between the commits of chunks and their completion. With `chunk.durability = "group"` the commits
//! are not on disk before they are flushed, and a crash undoes them together with their ledger rows.

use super::durable::unflushed;
use crate::common::{CliSandbox, Data, config, eventually, raise, text};
use windlass_testkit::{Gate, PostgresServer, Running, StoppedWalWriter};

const ROWS: i64 = 1000;
const RAISED: &str = "SELECT count(*) FROM accounts WHERE amount <> id * 7 % 1000";
/// In the statement that makes commits durable.
const FLUSH: &str = "AS given (job_id, chunk";
/// In the statement that completes chunks.
const COMPLETE: &str = "AS d (number, epoch, cursor, read";

/// Where the store is.
#[derive(Clone, Copy)]
enum Store {
    SameServer,
    OtherServer,
}

struct Crash {
    server: PostgresServer,
    data: Data,
    gate: Gate,
    sandbox: CliSandbox,
    worker: Running,
    id: String,
    wal_writer: StoppedWalWriter,
}

impl Crash {
    /// A worker that has committed all chunks, and is held at a statement to its data or to its store.
    async fn held(store: Store, durability: &str, at: &str) -> Crash {
        let (server, data) = unflushed(ROWS).await;
        let store = match store {
            Store::SameServer => server.database().await,
            Store::OtherServer => PostgresServer::shared().database().await,
        };
        let jobs = format!("{}chunk.durability = \"{durability}\"\n", raise(100));
        let sandbox = CliSandbox::with(&config(store.url(), &data.url(), &jobs));
        sandbox.run("migrate").await.ok();
        let id = sandbox.submit("RAISE").await;
        // Only what follows may be lost. Nothing is flushed in the background from here on: the WAL writer, which would
        // do that after ten seconds at the latest, is stopped.
        data.run("CHECKPOINT").await;
        let wal_writer = server.stop_wal_writer().await;
        let address = |url: &str| {
            let host = url.split('@').nth(1).and_then(|rest| rest.split('/').next());
            host.unwrap().parse().unwrap()
        };
        let url = if at == COMPLETE { store.url().to_owned() } else { data.url() };
        let gate = Gate::before(address(&url), at).await;
        let config = config(store.url(), &data.url(), &jobs);
        sandbox.write("windlass.toml", &config.replace(&url, &gate.url_via(&url)));
        let worker = sandbox.spawn(&format!("worker --job {id}"));
        gate.reached().await;
        eventually("all chunks are committed", async || data.number(RAISED).await == ROWS).await;
        Crash { server, data, gate, sandbox, worker, id, wal_writer }
    }

    /// Crashes the database. Returns how many records have their effect afterwards.
    async fn crash(&self) -> i64 {
        // A stopped process would delay the restart.
        self.wal_writer.kill();
        self.server.restart_immediate();
        self.data.number(RAISED).await
    }

    /// Lets the worker continue to the end of the job.
    async fn finish(self) {
        self.gate.open();
        self.worker.wait().await.ok();
        assert_eq!(text(&self.sandbox.job(&self.id).await["status"]), "COMPLETED");
        self.data.raised_once(ROWS).await;
        self.sandbox.prove(&self.id).await;
    }
}

#[tokio::test]
async fn commits_that_a_crash_undoes_are_done_again() {
    let crash = Crash::held(Store::OtherServer, "group", FLUSH).await;
    assert!(crash.crash().await < ROWS, "the crash must undo something");
    crash.finish().await;
    // Here the store's own writes may have flushed everything.
    let crash = Crash::held(Store::SameServer, "group", FLUSH).await;
    crash.crash().await;
    crash.finish().await;
}

#[tokio::test]
async fn flushed_commits_survive_a_crash_before_their_completion() {
    for (store, durability) in [
        (Store::OtherServer, "group"),
        (Store::SameServer, "group"),
        (Store::OtherServer, "commit"),
        (Store::SameServer, "commit"),
    ] {
        let crash = Crash::held(store, durability, COMPLETE).await;
        assert!(crash.crash().await > 0, "the flushed chunks keep their effect");
        crash.finish().await;
    }
}
