//! The store is restored from a backup while a worker is frozen. Work since the backup happens once, the frozen worker's
//! writes do not count, and nothing continues without `--after-restore`.

use crate::common::{CliSandbox, Data, config, eventually, job, refused, slow_raise, text};
use std::path::Path;
use windlass_testkit::Running;

/// The files of a SQLite store.
const FILES: [&str; 3] = ["store.db", "store.db-wal", "store.db-shm"];

fn copy_store(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in FILES {
        let _ = std::fs::remove_file(to.join(file));
        if from.join(file).exists() {
            std::fs::copy(from.join(file), to.join(file)).unwrap();
        }
    }
}

/// Replaces the store by its backup.
fn restore(sandbox: &CliSandbox) {
    copy_store(&sandbox.path("backup"), &sandbox.path("."));
}

/// Starts a worker, backs the store up, and lets the worker continue. Returns the worker, and the number of chunks that
/// were completed soon after the backup; at least 12 more are completed by now.
async fn back_up_in_the_middle(sandbox: &CliSandbox, id: &str) -> (Running, usize) {
    let worker = sandbox.spawn("worker --concurrency 4");
    eventually("some is done", async || completed(sandbox, id).await >= 4).await;
    // No process writes to the store while it is copied.
    worker.stop();
    copy_store(&sandbox.path("."), &sandbox.path("backup"));
    worker.cont();
    let then = completed(sandbox, id).await;
    eventually("more is done", async || completed(sandbox, id).await >= then + 12).await;
    (worker, then)
}

async fn completed(sandbox: &CliSandbox, id: &str) -> usize {
    let chunks = sandbox.chunks(id).await;
    chunks.iter().filter(|chunk| chunk["status"] == "COMPLETED").count()
}

#[tokio::test]
async fn a_restored_sqlite_store_continues_only_with_after_restore_and_repeats_nothing() {
    const ROWS: i64 = 30_000;
    let data = Data::slow(ROWS, 0.2).await;
    let other = job("OTHER", "UPDATE accounts SET owner = owner WHERE {chunk}", 1000);
    let jobs = slow_raise(50) + "chunk.lease = \"2s\"\n" + &other;
    let sandbox = CliSandbox::with(&config("sqlite:store.db", &data.url(), &jobs));

    let id = sandbox.submit("RAISE").await;
    let (sleeper, then) = back_up_in_the_middle(&sandbox, &id).await;
    sandbox.run("run OTHER").await.ok();
    let forgotten = sandbox.json("jobs").await.as_array().unwrap().clone();
    let forgotten = forgotten.iter().find(|job| job["jobType"] == "OTHER").unwrap();
    let forgotten = text(&forgotten["id"]);
    sleeper.stop();
    restore(&sandbox);
    assert!(completed(&sandbox, &id).await < then + 12, "the store is in its earlier state");

    for command in ["worker", "serve --listen 127.0.0.1:0", "run OTHER"] {
        let output = sandbox.run(command).await;
        refused(&output, &["the store was restored to an older state", "--after-restore"]);
    }
    data.pace(0.0).await;
    let output = sandbox.run(&format!("worker --job {id} --after-restore")).await.ok();
    assert!(output.stderr.contains(&forgotten), "{}", output.stderr);
    sandbox.completed(&id).await;

    // When it continues, the frozen worker's leases are still in the ledger, but its commits are refused.
    sleeper.cont();
    sleeper.term();
    sleeper.wait().await.ok();
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
    // The next start needs no flag.
    sandbox.run("run OTHER").await.ok();
}

/// No process was started after the backup, so the generation does not show the restore. The ledger does.
#[tokio::test]
async fn a_fence_refused_after_a_restore_pauses_the_job_with_the_reason() {
    const ROWS: i64 = 20_000;
    let data = Data::slow(ROWS, 0.3).await;
    let jobs = slow_raise(50) + "chunk.lease = \"20s\"\n";
    let sandbox = CliSandbox::with(&config("sqlite:store.db", &data.url(), &jobs));
    let id = sandbox.submit("RAISE").await;
    let (first, _) = back_up_in_the_middle(&sandbox, &id).await;
    first.stop();
    restore(&sandbox);

    data.pace(0.0).await;
    let output = sandbox.run(&format!("worker --job {id}")).await;
    assert_eq!(output.code, Some(4), "{output:?}");
    let paused = sandbox.job(&id).await;
    let reason = text(&paused["error"]);
    for part in ["restored to an older state", "epoch 1", "--after-restore"] {
        assert!(reason.contains(part), "{reason}");
    }
    first.cont();
    first.term();
    first.wait().await.ok();
    // `--after-restore` raises the epochs, and the job can be resumed.
    let second = sandbox.spawn("worker --after-restore");
    sandbox.run(&format!("resume {id}")).await.ok();
    sandbox.completed(&id).await;
    second.term();
    second.wait().await.ok();
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}

/// The store's tables in PostgreSQL. Referenced tables come first.
const TABLES: &str =
    "SELECT string_agg(relname::text, ',' ORDER BY relname <> 'windlass_jobs', relname)
    FROM pg_class WHERE relkind = 'r' AND relname LIKE 'windlass\\_%' AND relname NOT IN
    ('windlass_ledger', 'windlass_deferred', 'windlass_emitted', 'windlass_stores', 'windlass_outbox')";

#[tokio::test]
async fn an_export_of_chunks_after_a_restored_postgres_store_lists_each_part_once() {
    an_export_after_a_restored_postgres_store_lists_each_part_once("chunk").await;
}

#[tokio::test]
async fn an_export_of_a_snapshot_after_a_restored_postgres_store_lists_each_part_once() {
    an_export_after_a_restored_postgres_store_lists_each_part_once("snapshot").await;
}

async fn an_export_after_a_restored_postgres_store_lists_each_part_once(consistency: &str) {
    const ROWS: i64 = 40_000;
    // Each read takes time until the store is restored.
    let data = Data::slow(ROWS, 0.2).await;
    let export = format!(
        "[jobs.EXPORT]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
         source.consistency = \"{consistency}\"\n\
         source.where = \"(SELECT pg_sleep(seconds) FROM pace) IS NOT NULL\"\n\
         step.export = {{ to = \"file:out/{{job_id}}/\", format = \"csv\" }}\n\
         chunk.items = 100\nchunk.lease = \"2s\"\n"
    );
    let sandbox = CliSandbox::on(&data, &export);
    let id = sandbox.submit("EXPORT").await;
    let sleeper = sandbox.spawn("worker --concurrency 4");
    let done = "SELECT count(*) FROM windlass_chunks WHERE status = 'COMPLETED'";
    eventually("some is done", async || data.number(done).await >= 10).await;
    let Data::Postgres(database) = &data else { panic!("a PostgreSQL database") };
    let tables = database.one::<String>(TABLES).await;
    let tables: Vec<&str> = tables.split(',').collect();
    let each = |sql: &dyn Fn(&str) -> String| -> String {
        tables.iter().map(|table| sql(table)).collect::<Vec<_>>().join("; ")
    };
    let dump = each(&|table| format!("CREATE TABLE backup_{table} AS TABLE {table}"));
    data.run(&format!("BEGIN ISOLATION LEVEL REPEATABLE READ; {dump}; COMMIT")).await;
    let at_backup = data.number(&done.replace("FROM ", "FROM backup_")).await;
    eventually("more is done", async || data.number(done).await >= at_backup + 20).await;
    sleeper.stop();
    let held = sandbox.held_by(&id, sleeper.id()).await;
    assert!(!held.is_empty(), "the frozen worker has leased chunks");
    let restore = each(&|table| format!("INSERT INTO {table} SELECT * FROM backup_{table}"));
    // A restored server has no sessions of before. The frozen worker may be in the middle of a transaction.
    data.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .await;
    data.run(&format!("BEGIN; TRUNCATE {}; {restore}; COMMIT", tables.join(", "))).await;
    assert_eq!(data.number(done).await, at_backup, "the store is in its earlier state");

    // Its chunks are leased again with the same epoch that the frozen worker has. With a snapshot, which ended with the
    // sessions, all chunks are planned and read again.
    data.pace(0.0).await;
    let helper = sandbox.spawn("worker --concurrency 4");
    eventually("the second worker completed the frozen worker's chunks", async || {
        let chunks = sandbox.chunks(&id).await;
        let completed = |chunk: &serde_json::Value| chunk["status"] == "COMPLETED";
        held.iter().all(|number| chunks.get(*number as usize).is_some_and(completed))
    })
    .await;
    sleeper.cont();
    sandbox.completed(&id).await;
    for worker in [sleeper, helper] {
        worker.term();
        worker.wait().await.ok();
    }

    let folder = sandbox.path(&format!("out/{id}"));
    let manifest: serde_json::Value =
        serde_json::from_str(&sandbox.read(&format!("out/{id}/manifest.json"))).unwrap();
    let mut listed = vec!["manifest.json".to_owned()];
    let mut rows = 0;
    for part in manifest["parts"].as_array().unwrap() {
        let name = text(&part["name"]);
        let content = std::fs::read_to_string(folder.join(&name)).expect("a listed part exists");
        assert_eq!(part["bytes"].as_u64(), Some(content.len() as u64), "{name}");
        rows += part["rows"].as_i64().unwrap();
        listed.push(name);
    }
    assert_eq!(rows, ROWS);
    let entries = std::fs::read_dir(&folder).unwrap();
    let mut found: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    listed.sort();
    assert_eq!(found, listed, "there are no orphaned files");
}
