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
    let port = closed_port();
    let server = format!("host 127.0.0.1, port {port}, database `app` as user `clerk`");
    for scheme in ["postgres", "mysql"] {
        let url = format!("{scheme}://clerk:hush@127.0.0.1:{port}/app");
        let sandbox = CliSandbox::with(&config("sqlite:windlass.db", &url, &raise(5)));
        for command in ["check", "run RAISE", "submit RAISE", "run RAISE --dry-run"] {
            let output = sandbox.run(command).await;
            refused(&output, &["WL0005", "connections.app.url", "cannot be reached", &server]);
            assert!(!said(&output).contains("hush"), "{output:?}");
        }
        assert_eq!(sandbox.json("jobs").await, serde_json::json!([]));
    }
    let url = format!("postgres://clerk:hush@127.0.0.1:{port}/app");
    let store = CliSandbox::with(&config(&url, "sqlite:app.db", &raise(5)));
    let output = store.run("jobs").await;
    refused(&output, &["WL0005", "store.url", &server]);
    assert!(!said(&output).contains("hush"), "{output:?}");
}

#[tokio::test]
async fn a_wrong_password_has_one_code_everywhere() {
    let data = Data::mariadb().await.with_accounts(5).await;
    let (before, after) =
        data.url().split_once("://").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let (_, address) = after.rsplit_once('@').unwrap();
    let url = format!("{before}://clerk:hush@{address}");
    let sandbox = CliSandbox::with(&config("sqlite:windlass.db", &url, &raise(5)));
    for command in ["check", "run RAISE", "submit RAISE", "run RAISE --dry-run"] {
        let output = sandbox.run(command).await;
        refused(&output, &["WL0005", "connections.app.url", "as user `clerk`", "1045"]);
        assert!(!said(&output).contains("hush"), "{output:?}");
    }

    let data = Data::postgres().await;
    let (_, address) =
        data.url().rsplit_once('/').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let url = data.url().replace(&address, "no_such_database");
    let sandbox = CliSandbox::with(&config("sqlite:windlass.db", &url, &raise(5)));
    refused(&sandbox.run("check").await, &["WL0005", "database `no_such_database`", "3D000"]);
    let store = CliSandbox::with(&config(&url, "sqlite:app.db", &raise(5)));
    refused(&store.run("jobs").await, &["WL0005", "store.url", "3D000"]);
}

#[tokio::test]
async fn special_characters_in_a_password_get_a_hint() {
    let port = closed_port();
    for url in [
        format!("postgres://clerk:hu/sh@127.0.0.1:{port}/app"),
        format!("postgres://clerk:hu@sh@127.0.0.1:{port}/app"),
        format!("mysql://clerk:hu#sh@127.0.0.1:{port}/app"),
    ] {
        let sandbox = CliSandbox::with(&config("sqlite:windlass.db", &url, &raise(5)));
        let output = sandbox.run("check").await;
        refused(&output, &["connections.app.url", "%40", "%2F"]);
        assert!(!said(&output).contains("hu/") && !said(&output).contains("hu#"), "{output:?}");
    }
}

#[tokio::test]
async fn a_command_that_needs_no_source_works_without_its_variable() {
    let data = Data::sqlite().with_accounts(5).await;
    let text = config("sqlite:windlass.db", "${APP_URL}", &raise(5));
    let sandbox = CliSandbox::with(&text);
    for command in ["jobs", "dead list", "schedules", "workers", "alerts", "stop", "start"] {
        sandbox.run(command).await.ok();
    }
    for command in ["check", "run RAISE", "submit RAISE"] {
        refused(&sandbox.run(command).await, &["WL0001", "line 5", "`APP_URL` is not set"]);
    }
    // The store needs its variable.
    let store = CliSandbox::with(&text.replace("sqlite:windlass.db", "${STORE_URL}"));
    refused(&store.run("jobs").await, &["line 2", "`STORE_URL` is not set"]);
    let sandbox = sandbox.env("APP_URL", &data.url());
    sandbox.run("run RAISE").await.ok();
    data.raised_once(5).await;
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
    for (data, sandbox) in CliSandbox::on_both(100, &raise(10)).await {
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
