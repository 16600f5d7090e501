//! A process is stopped while it holds the write lock of the SQLite store. Other processes report what they wait for,
//! and continue when the lock is released.

use crate::common::{CliSandbox, Data, eventually, raise};
use windlass_testkit::{Running, Windlass};

const ROWS: i64 = 100;
const HOLD: &str = "
import sqlite3, sys, time
store = sqlite3.connect('windlass.db', isolation_level=None, timeout=60)
store.execute('BEGIN IMMEDIATE')
print('held', flush=True)
while True: time.sleep(1)
";

/// A stopped process that holds the lock.
async fn stopped_holder(sandbox: &CliSandbox) -> Running {
    let holder = Windlass::new(sandbox.path("")).binary("python3").spawn(["-c", HOLD]);
    eventually("the lock is held", async || holder.stdout().contains("held")).await;
    holder.stop();
    holder
}

#[tokio::test]
async fn a_wait_for_the_write_lock_reports_who_holds_it() {
    let data = Data::sqlite().with_accounts(ROWS).await;
    let sandbox = CliSandbox::on(&data, &raise(10));
    let first = sandbox.submit("RAISE").await;
    let worker = sandbox.spawn("worker");
    sandbox.completed(&first).await;

    let holder = stopped_holder(&sandbox).await;
    let said = format!("held by another process (pid {}, python3, stopped)", holder.id());
    let says = |log: String| log.contains("the write lock of") && log.contains(&said);
    let jobs = sandbox.spawn("jobs");
    eventually("a command says what it waits for", async || says(jobs.stderr())).await;
    eventually("the worker says what it waits for", async || says(worker.stderr())).await;
    // The command gives up with an error.
    let gave_up = jobs.wait().await;
    assert_ne!(gave_up.code, Some(0), "{gave_up:?}");
    assert!(gave_up.stderr.contains("was not free within 10 s"), "{gave_up:?}");
    assert!(gave_up.stderr.contains("windlass.db"), "{gave_up:?}");

    // The holder continues and exits without a commit.
    holder.cont();
    holder.term();
    let ended = holder.wait().await;
    assert_eq!(ended.code, None, "{ended:?}");
    let second = sandbox.submit("RAISE").await;
    sandbox.completed(&second).await;
    assert!(worker.is_running());
    sandbox.prove(&second).await;
}
