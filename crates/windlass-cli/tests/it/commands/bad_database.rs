//! Databases that are unavailable, read-only, full, or changed since the job was submitted.

use crate::common::{BINARY, CliSandbox, Data, config, job, raise, refused, said, text};
use serde_json::Value as Json;
use windlass_testkit::Windlass;

/// A port of this machine on which nothing listens.
fn closed_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test]
async fn an_unreachable_server_is_named_without_its_password() {
    let url = format!("postgres://clerk:hush@127.0.0.1:{}/app", closed_port());
    let sandbox = CliSandbox::with(&config("sqlite:windlass.db", &url, &raise(5)));
    for command in ["check", "run RAISE", "submit RAISE", "run RAISE --dry-run"] {
        let output = sandbox.run(command).await;
        refused(&output, &["WL0005", "connections.app.url", "cannot be reached"]);
        assert!(!said(&output).contains("hush"), "{output:?}");
    }
    assert_eq!(sandbox.json("jobs").await, serde_json::json!([]));

    let store = CliSandbox::with(&config(&url, "sqlite:app.db", &raise(5)));
    let output = store.run("jobs").await;
    refused(&output, &["store"]);
    assert!(!said(&output).contains("hush"), "{output:?}");
}

#[tokio::test]
async fn a_missing_file_is_named_and_not_created() {
    let sandbox = CliSandbox::with(&config("sqlite:windlass.db", "sqlite:missing.db", &raise(5)));
    for command in ["check", "run RAISE", "submit RAISE"] {
        refused(&sandbox.run(command).await, &["connections.app.url", "missing.db"]);
    }
    assert!(!sandbox.path("missing.db").exists());

    sandbox.write("notes.db", &"this is no database, whatever its name says\n".repeat(100));
    sandbox.write("windlass.toml", &config("sqlite:windlass.db", "sqlite:notes.db", &raise(5)));
    refused(&sandbox.run("check").await, &["connections.app.url", "not a database"]);
    sandbox.write("windlass.toml", &config("sqlite:no/folder/w.db", "sqlite:notes.db", &raise(5)));
    refused(&sandbox.run("jobs").await, &["no/folder", "does not exist"]);
}

#[tokio::test]
async fn a_table_dropped_after_the_submit_fails_the_job_with_the_reason() {
    for data in Data::both().await {
        let data = data.with_accounts(100).await;
        let sandbox = CliSandbox::on(&data, &raise(10));
        sandbox.run("check").await.ok();
        let id = sandbox.submit("RAISE").await;
        data.run("ALTER TABLE accounts RENAME TO gone").await;
        let output = sandbox.run(&format!("worker --job {id}")).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        let job = sandbox.job(&id).await;
        assert_eq!(job["status"], "FAILED");
        assert!(text(&job["error"]).contains("accounts"), "{job:#}");

        data.run("ALTER TABLE gone RENAME TO accounts").await;
        data.untouched().await;
        sandbox.run(&format!("retry {id}")).await.ok();
        sandbox.run(&format!("worker --job {id}")).await.ok();
        data.raised_once(100).await;
        sandbox.prove(&id).await;
    }
}

#[tokio::test]
async fn a_read_only_server_refuses_the_job_and_changes_nothing() {
    let data = Data::postgres().await.with_accounts(100).await;
    let Data::Postgres(database) = &data else { unreachable!() };
    let url = data.url();
    let sandbox = CliSandbox::with(&config("sqlite:windlass.db", &url, &raise(10)));
    let read_only = |value: &str| {
        format!("ALTER DATABASE {} SET default_transaction_read_only = {value}", database.name())
    };

    // The ledger cannot be created, so the submit is refused.
    data.run(&read_only("on")).await;
    refused(&sandbox.run("run RAISE").await, &["WL0006", "read-only"]);
    let writable = format!("BEGIN READ WRITE; {}; COMMIT", read_only("off"));
    data.run(&writable).await;
    data.untouched().await;

    // Read-only after the submit: the job stops with the reason.
    let id = sandbox.submit("RAISE").await;
    data.run(&read_only("on")).await;
    let output = sandbox.run(&format!("worker --job {id}")).await;
    assert!(matches!(output.code, Some(1 | 4)), "FAILED or PAUSED: {output:?}");
    let job = sandbox.job(&id).await;
    assert!(text(&job["error"]).contains("read-only"), "{job:#}");
    data.run(&writable).await;
    data.untouched().await;
    go_on(&sandbox, &job).await;
    data.raised_once(100).await;
}

/// Completes a job after its obstacle is removed.
async fn go_on(sandbox: &CliSandbox, job: &Json) {
    let id = text(&job["id"]);
    let again = if job["status"] == "PAUSED" { "resume" } else { "retry" };
    sandbox.run(&format!("{again} {id}")).await.ok();
    sandbox.run(&format!("worker --job {id}")).await.ok();
    sandbox.prove(&id).await;
}

/// Every write beyond a file's size limit fails, also for root. This simulates a full disk without a file system of
/// its own. The kernel's signal is ignored, so that the process sees the same error as on a full
/// disk.
#[tokio::test]
async fn a_file_that_cannot_grow_stops_the_job_with_the_reason_and_loses_nothing() {
    const ROWS: i64 = 20_000;
    let data = Data::sqlite().with_accounts(ROWS).await;
    // The limit also applies to the store's files, which are much smaller.
    data.run("CREATE TABLE padding AS SELECT zeroblob(8000000) AS filler").await;
    let sql = "UPDATE accounts SET amount = amount + 1, owner = hex(randomblob(250)) WHERE {chunk}";
    let retry = "retry = { attempts = 2, backoff = \"10ms\" }\n";
    let sandbox = CliSandbox::on(&data, &(job("RAISE", sql, 1000) + retry));
    let id = sandbox.submit("RAISE").await;

    let shell = Windlass::new(sandbox.path("")).binary("/bin/sh");
    // In units of 512 bytes.
    let limit = "trap '' XFSZ; ulimit -f 15640; exec \"$0\" \"$@\"";
    let output = shell.run(["-c", limit, BINARY, "worker", "--job", &id]).await;
    assert!(matches!(output.code, Some(1 | 4)), "FAILED or PAUSED: {output:?}");
    let job = sandbox.job(&id).await;
    assert!(text(&job["error"]).contains("SQLITE_"), "{job:#}");
    let raised = "SELECT count(*) FROM accounts WHERE amount = id * 7 % 1000 + 1";
    assert_eq!(data.number(raised).await, job["items"]["processed"].as_i64().unwrap());

    // The limit is removed.
    go_on(&sandbox, &job).await;
    data.raised_once(ROWS).await;
}
