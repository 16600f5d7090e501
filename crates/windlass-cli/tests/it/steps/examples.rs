//! The handlers in `examples/` do what their page says, in every language.

use crate::common::CliSandbox;
use std::path::Path;
use windlass_testkit::{Running, Windlass};

fn examples() -> CliSandbox {
    let sandbox = CliSandbox::empty();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/handlers");
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        std::fs::copy(file.path(), sandbox.path(file.file_name().to_str().unwrap())).unwrap();
    }
    sandbox
}

fn python(sandbox: &CliSandbox, words: &[&str]) -> Running {
    Windlass::new(sandbox.path(".")).binary("python3").spawn(words)
}

/// Creates the people again, runs a job type, and returns the counts of results.
async fn run(sandbox: &CliSandbox, job_type: &str) -> (i64, i64, i64) {
    python(sandbox, &["people.py"]).wait().await.ok();
    let job = sandbox.json(&format!("run {job_type} --allow-dead-letters")).await;
    let count = |name: &str| job["items"][name].as_i64().unwrap();
    assert_eq!(job["status"], "COMPLETED", "{job:#}");
    (count("processed"), count("skipped"), count("dead"))
}

#[tokio::test]
async fn the_python_node_and_shell_handlers_give_the_same_result() {
    let sandbox = examples();
    for job_type in ["ENRICH_PYTHON", "ENRICH_NODE", "ENRICH_SHELL"] {
        assert_eq!(run(&sandbox, job_type).await, (14, 2, 4), "{job_type}");
    }
}

#[tokio::test]
async fn the_service_gives_the_same_result() {
    let sandbox = examples();
    // Any port, so that two runs of this test do not collide.
    let service = python(&sandbox, &["service.py", "0"]);
    crate::common::eventually("the service prints its address", async || {
        assert!(service.is_running(), "{}", service.stderr());
        service.stdout().ends_with('\n')
    })
    .await;
    let said = service.stdout();
    let address = said.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let config = sandbox.read("windlass.toml").replace("http://127.0.0.1:8765", address);
    sandbox.write("windlass.toml", &config);
    assert_eq!(run(&sandbox, "ENRICH_HTTP").await, (14, 2, 4));
    let checked = sandbox.run("check").await.ok();
    assert!(checked.stdout.contains("no problems found"), "{}", checked.stdout);
}
