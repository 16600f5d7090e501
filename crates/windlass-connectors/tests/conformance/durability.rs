//! Every write next to the user's data is on disk when it is confirmed, whatever the server, the database and the
//! role set for `synchronous_commit`. Checked in the write-ahead log.

use crate::harness::{Db, effect, everything, key};
use std::time::Duration;
use windlass_connectors::{
    Commit, ConnectorError, DeferredItem, DeferredState, Effect, Fence, Ledger, LoadRequest,
    OutboxRow, Params, Rows, SubmitResult, Submitter,
};
use windlass_core::{ChunkId, Column, ColumnType, Counts, Cursor, Load, Value};
use windlass_testkit::{Database, MariaServer, Options, PostgresServer};

struct Log(Database);

impl Log {
    async fn end(&self) -> i64 {
        self.0.one("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").await
    }

    /// Runs a call that writes. Everything must be flushed when it returns.
    async fn durable<T>(
        &self,
        what: &str,
        call: impl Future<Output = Result<T, ConnectorError>>,
    ) -> T {
        let before = self.end().await;
        let answer = call.await.unwrap();
        let flushed = "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint";
        let (flushed, end) = (self.0.one::<i64>(flushed).await, self.end().await);
        assert!(end > before, "{what}: wrote nothing, so this proves nothing");
        // At the end of a page, the header of the next page counts as written.
        assert!(end - flushed <= 40, "{what}: {} bytes are not flushed", end - flushed);
        answer
    }
}

struct Taking;

#[async_trait::async_trait]
impl Submitter for Taking {
    async fn submit(&self, given: OutboxRow) -> SubmitResult {
        match given.job_type.as_str() {
            "BAD" => SubmitResult::Refused("is bad".to_owned()),
            _ => SubmitResult::Submitted,
        }
    }
}

#[tokio::test]
async fn confirmed_writes_are_flushed() {
    let server = PostgresServer::start_lazy();
    let database = server.database().await;
    let (name, off) = (database.name(), "SET synchronous_commit = off");
    database.run(&format!("ALTER DATABASE {name} {off}; ALTER ROLE windlass {off}")).await;
    database
        .run(
            "CREATE TABLE t (id bigint PRIMARY KEY, n bigint NOT NULL, busy boolean);
             INSERT INTO t SELECT n, 0 FROM generate_series(1, 10) n;
             CREATE TABLE result (branch text, n bigint)",
        )
        .await;
    let (log, db) = (Log(database.clone()), Db::postgres_on(database.clone()).await);
    let data = &db.data;
    database
        .run("DROP TABLE windlass_ledger, windlass_deferred, windlass_emitted, windlass_stores")
        .await;
    log.durable("prepare", data.prepare()).await;

    let job = uuid::Uuid::now_v7();
    let fence =
        |number: i64| Fence { chunk: ChunkId { job, number }, epoch: 1, nonce: 0, lost: false };
    let fenced = log.durable("fence", data.fence(&[fence(0), fence(1)])).await;
    let ledger: Vec<Ledger> = fenced.into_iter().flatten().collect();
    let toml = "source.table = \"t\"\nstep.sql = \"UPDATE t SET n = n + 1 WHERE {chunk}\"\n\
                step.mark = \"busy\"\nchunk.durability = \"commit\"";
    let scope = db.scope(toml).await;
    log.durable("mark", data.mark(&scope, &ledger[0], &everything())).await;
    let statement = effect(Effect::Statement(everything()));
    let committed = log.durable("a statement", data.commit(&scope, &ledger[0], statement)).await;
    let held = DeferredItem {
        key: key(1),
        state: DeferredState::Dead,
        attempts: 1,
        conflicts: 0,
        error: "bad".to_owned(),
        context: serde_json::Value::Null,
        record: serde_json::json!({ "id": 1 }),
        wait: Duration::ZERO,
    };
    let dead = Commit { defer: vec![held], ..effect(Effect::Nothing) };
    log.durable("a dead item", data.commit(&scope, &committed.ledger, dead)).await;
    let moved = Commit {
        counts: Counts { read: 1, skipped: 1, ..Counts::default() },
        ..Commit::new(Cursor::End, Effect::Nothing)
    };
    log.durable("a move of the ledger", data.commit(&scope, &ledger[1], moved)).await;

    let column = |name: &str, kind| Column {
        name: name.to_owned(),
        kind,
        sql_type: String::new(),
        nullable: true,
    };
    let rows = Rows {
        columns: vec![column("branch", ColumnType::Text), column("n", ColumnType::Int)],
        rows: vec![vec![Value::from("a"), Value::Int(1)]],
    };
    let load = Load::into_table("a", "result", ["branch"]);
    let fenced = data.fence(&[fence(-1)]).await.unwrap().pop().unwrap().unwrap();
    log.durable(
        "a load",
        data.replace(
            &fenced,
            LoadRequest { load: &load, result: &rows, params: &Params::new(), bounds: &[] },
        ),
    )
    .await;

    log.durable("make the outbox", data.outbox().prepare(&[])).await;
    for job_type in ["GOOD", "BAD"] {
        database.run(&format!("SELECT windlass_enqueue('{job_type}', '{{}}')")).await;
    }
    log.durable("relay", data.outbox().relay(&Taking)).await;
    log.durable("prune", data.prune(job)).await;
}

/// Commits of a group may be lost until they are flushed. A flush reports rows that are not as they were committed.
#[tokio::test]
async fn commits_of_a_group_are_flushed_together() {
    let server = PostgresServer::start_lazy();
    let database = server.database().await;
    database
        .run("CREATE TABLE t (id bigint PRIMARY KEY, n bigint); INSERT INTO t VALUES (1, 0)")
        .await;
    let (log, db) = (Log(database.clone()), Db::postgres_on(database.clone()).await);
    let data = &db.data;
    let job = uuid::Uuid::now_v7();
    let fence =
        |number: i64| Fence { chunk: ChunkId { job, number }, epoch: 1, nonce: 7, lost: false };
    let fenced = data.fence(&[fence(0), fence(1), fence(2)]).await.unwrap();
    let [first, second, unworked]: [Ledger; 3] =
        fenced.into_iter().flatten().collect::<Vec<_>>().try_into().unwrap();
    let toml = "source.table = \"t\"\nstep.sql = \"UPDATE t SET n = n + 1 WHERE {chunk}\"";
    let scope = db.scope(toml).await;
    let _stopped = server.stop_wal_writer().await;
    let before = log.end().await;
    let statement = effect(Effect::Statement(everything()));
    let first = data.commit(&scope, &first, statement).await.unwrap().ledger;
    let moved = Commit::new(Cursor::End, Effect::Nothing);
    let second = data.commit(&scope, &second, moved).await.unwrap().ledger;
    let flushed = "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint";
    assert!(database.one::<i64>(flushed).await <= before, "the commits wait for a flush");

    let undone = Ledger { commits: second.commits + 1, ..second.clone() };
    let other_lease = Ledger { nonce: 8, ..first.clone() };
    let kept = log.durable("a flush", data.flush(&[first, undone, unworked])).await;
    assert_eq!(kept, [true, false, true]);
    assert_eq!(data.flush(&[other_lease, second]).await.unwrap(), [false, true]);
    assert_eq!(data.flush(&[]).await.unwrap(), Vec::<bool>::new());
}

/// No session can set it on MariaDB, so the server's settings are checked.
#[tokio::test]
async fn a_server_that_may_lose_commits_is_reported() {
    let db = Db::postgres().await;
    let risk = db.data.durability_risk().await.unwrap().unwrap();
    assert!(risk.contains("fsync = off"), "the shared server of the tests has it: {risk}");
    let safe = PostgresServer::start(Options::default());
    let safe = Db::postgres_on(safe.database().await).await;
    assert_eq!(safe.data.durability_risk().await.unwrap(), None);

    let db = Db::mariadb().await;
    let risk = db.data.durability_risk().await.unwrap().unwrap();
    assert!(risk.contains("innodb_flush_log_at_trx_commit = 2"), "{risk}");
    let flushing = "--innodb-flush-log-at-trx-commit=1";
    let server = MariaServer::start_with(&[flushing]);
    let safe = windlass_connectors::connect(server.database().await.url(), 1).await.unwrap();
    assert_eq!(safe.durability_risk().await.unwrap(), None);
    let server = MariaServer::start_with(&[flushing, "--log-bin=binlog", "--sync-binlog=0"]);
    let lost = windlass_connectors::connect(server.database().await.url(), 1).await.unwrap();
    let risk = lost.durability_risk().await.unwrap().unwrap();
    assert!(risk.contains("sync_binlog = 0"), "{risk}");
    assert_eq!(Db::sqlite().await.data.durability_risk().await.unwrap(), None);
}
