//! The handlers in `examples/` do what their page says, in every language.

use crate::common::Place;
use std::path::Path;
use windlass_testkit::{Running, Windlass};

fn examples() -> Place {
    let place = Place::empty();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/handlers");
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        std::fs::copy(file.path(), place.path(file.file_name().to_str().unwrap())).unwrap();
    }
    place
}

fn python(place: &Place, words: &[&str]) -> Running {
    Windlass::new(place.path(".")).binary("python3").spawn(words)
}

/// Makes the people anew, runs a job type, and says what became of them.
async fn run(place: &Place, job_type: &str) -> (i64, i64, i64) {
    python(place, &["people.py"]).wait().await.ok();
    let job = place.json(&format!("run {job_type}")).await;
    let count = |name: &str| job["items"][name].as_i64().unwrap();
    assert_eq!(job["status"], "COMPLETED", "{job:#}");
    (count("processed"), count("skipped"), count("dead"))
}

#[tokio::test]
async fn the_same_in_python_node_and_shell() {
    let place = examples();
    for job_type in ["ENRICH_PYTHON", "ENRICH_NODE", "ENRICH_SHELL"] {
        assert_eq!(run(&place, job_type).await, (14, 2, 4), "{job_type}");
    }
}

#[tokio::test]
async fn the_same_as_a_service() {
    let place = examples();
    // Any port, so that two runs of this test do not meet.
    let service = python(&place, &["service.py", "0"]);
    crate::common::eventually("the service says its address", async || {
        assert!(service.is_running(), "{}", service.stderr());
        service.stdout().ends_with('\n')
    })
    .await;
    let said = service.stdout();
    let address = said.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let config = place.read("windlass.toml").replace("http://127.0.0.1:8765", address);
    place.write("windlass.toml", &config);
    assert_eq!(run(&place, "ENRICH_HTTP").await, (14, 2, 4));
    let checked = place.run("check").await.ok();
    assert!(checked.stdout.contains("no problems found"), "{}", checked.stdout);
}
