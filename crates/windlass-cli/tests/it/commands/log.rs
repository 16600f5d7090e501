//! What is logged, how much, and in which form; and that SIGHUP ends no process.

use crate::common::{CliSandbox, Data, eventually, raise};
use serde_json::Value as Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A worker that logs a warning as soon as it starts.
async fn idle_worker() -> (Data, CliSandbox) {
    let data = Data::sqlite().with_accounts(10).await;
    let sandbox = CliSandbox::on(&data, &raise(5)).env("WINDLASS_PROCESSING_ENABLED", "false");
    (data, sandbox)
}

#[tokio::test]
async fn each_line_of_a_json_log_is_an_object_with_level_and_message() {
    let (_data, sandbox) = idle_worker().await;
    let worker = sandbox.spawn("worker --log-format json");
    eventually("a warning is logged", async || worker.stderr().contains("WARN")).await;
    let stderr = worker.stderr();
    let line = stderr.lines().find(|line| line.contains("WARN")).unwrap();
    let event: Json = serde_json::from_str(line).unwrap();
    assert_eq!(event["level"], "WARN");
    let message = event["message"].as_str().unwrap();
    assert!(message.contains("WINDLASS_PROCESSING_ENABLED"), "{event:#}");
}

#[tokio::test]
async fn a_quiet_command_logs_no_warnings_and_prints_its_result() {
    let (_data, sandbox) = idle_worker().await;
    let worker = sandbox.spawn("worker -q");
    eventually("the worker is listed", async || {
        sandbox.json("workers").await.as_array().is_some_and(|workers| !workers.is_empty())
    })
    .await;
    assert!(!worker.stderr().contains("WARN"), "{}", worker.stderr());
    let jobs = sandbox.run("jobs --quiet").await.ok();
    assert!(jobs.stdout.contains("no jobs"), "{}", jobs.stdout);
    assert_eq!(jobs.stderr, "");
}

/// A worker and a job with one dead letter. The log follows the job from its plan to its end.
#[tokio::test]
async fn the_log_of_a_worker_follows_a_job_to_its_end() {
    let data = Data::sqlite().with_accounts(10).await;
    data.run(
        "CREATE TRIGGER one BEFORE UPDATE ON accounts WHEN OLD.id = 7 BEGIN \
              SELECT RAISE(ABORT, 'seven is refused'); END",
    )
    .await;
    let sandbox = CliSandbox::on(&data, &raise(5));
    let worker = sandbox.spawn("worker --log-format json");
    let id = sandbox.submit("RAISE").await;
    sandbox.completed(&id).await;
    let events = || -> Vec<Json> {
        let stderr = worker.stderr();
        let of_job = |event: &Json| event["job"] == id.as_str();
        stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(of_job).collect()
    };
    let of = |message: &str| -> Vec<Json> {
        events().into_iter().filter(|event| event["message"] == message).collect()
    };
    eventually("the end of the job is logged", async || !of("job ended").is_empty()).await;
    assert!(events().iter().all(|event| event["level"] == "INFO"), "{:#?}", events());
    assert_eq!(of("job planned").len(), 1);
    let completed = of("chunk completed");
    let rows: i64 = completed.iter().map(|event| event["rows"].as_i64().unwrap()).sum();
    assert_eq!(rows, 10, "{completed:#?}");
    assert!(completed.iter().all(|event| event["seconds"].is_f64()), "{completed:#?}");
    let letters = of("dead letter");
    assert_eq!(letters.len(), 1, "{letters:#?}");
    assert_eq!(letters[0]["key"], "[7]");
    assert!(letters[0]["error"].as_str().unwrap().contains("seven is refused"), "{letters:#?}");
    let ended = of("job ended");
    assert_eq!(ended.len(), 1, "{ended:#?}");
    assert_eq!((&ended[0]["processed"], &ended[0]["dead"]), (&9.into(), &1.into()));
}

#[tokio::test]
async fn access_lines_are_logged_at_debug() {
    let (_data, sandbox) = idle_worker().await;
    for (level, logged) in [("", false), (" -v", true)] {
        let server = sandbox.spawn(&format!("serve --listen 127.0.0.1:0 --log-format json{level}"));
        eventually("the server listens", async || server.stderr().contains("http://")).await;
        let stderr = server.stderr();
        let address = stderr.split("http://").nth(1).unwrap();
        let address = address.split([',', ';']).next().unwrap().to_owned();
        let mut connection = tokio::net::TcpStream::connect(&address).await.unwrap();
        let request =
            format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        server.term();
        let stderr = server.wait().await.stderr;
        assert_eq!(stderr.contains("request completed"), logged, "{stderr}");
    }
}

/// A lost terminal, or a supervisor that reloads: the process continues.
#[tokio::test]
async fn a_hangup_ends_neither_a_worker_nor_a_server() {
    let (_data, sandbox) = idle_worker().await;
    for command in ["worker", "serve --listen 127.0.0.1:0"] {
        let process = sandbox.spawn(command);
        eventually("it runs", async || process.stderr().contains("stop with Ctrl-C")).await;
        process.hangup();
        eventually("it says so", async || process.stderr().contains("SIGHUP ignored")).await;
        assert!(process.is_running());
        process.term();
        assert_eq!(process.wait().await.code, Some(0), "{command}");
    }
}

#[tokio::test]
async fn rust_log_sets_the_filter() {
    let (_data, sandbox) = idle_worker().await;
    let sandbox = sandbox.env("RUST_LOG", "off");
    let worker = sandbox.spawn("worker");
    eventually("the worker is listed", async || {
        sandbox.json("workers").await.as_array().is_some_and(|workers| !workers.is_empty())
    })
    .await;
    assert!(!worker.stderr().contains("WARN"), "{}", worker.stderr());
}
