//! The HTTP service that the tests call, in a child process.

use crate::common::eventually;
use crate::steps::fixture::items;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use tempfile::TempDir;
use windlass_testkit::{Running, Windlass};

/// A running service, and the folder with its notes.
pub(crate) struct Server {
    folder: TempDir,
    process: Running,
    port: u16,
}

impl Server {
    /// Starts on any port.
    pub(crate) async fn start() -> Server {
        Server::start_on(0).await
    }

    /// Starts on this port. Returns when it accepts connections.
    pub(crate) async fn start_on(port: u16) -> Server {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("server.py"), include_str!("server.py")).unwrap();
        let python = Windlass::new(folder.path()).binary("python3");
        let process = python.spawn(["server.py", &port.to_string()]);
        eventually("the service prints its port", async || {
            assert!(process.is_running(), "{}", process.stderr());
            process.stdout().ends_with('\n')
        })
        .await;
        let port = process.stdout().trim().parse().unwrap();
        Server { folder, process, port }
    }

    /// The URL of a behaviour, such as `reject=400:7`. Without one, every amount is raised.
    pub(crate) fn url(&self, behaviour: &str) -> String {
        url(self.port, behaviour)
    }

    pub(crate) fn kill9(&self) {
        self.process.kill9();
    }

    /// Creates a file that a behaviour looks for.
    pub(crate) fn put(&self, file: &str) {
        std::fs::write(self.folder.path().join(file), "").unwrap();
    }

    pub(crate) fn remove(&self, file: &str) {
        std::fs::remove_file(self.folder.path().join(file)).unwrap();
    }

    /// All requests so far, in order.
    pub(crate) fn requests(&self) -> Vec<Json> {
        self.notes("requests.jsonl")
    }

    /// The requests with items.
    pub(crate) fn batches(&self) -> Vec<Json> {
        let mut requests = self.requests();
        requests.retain(|request| !items(&request["batch"]).is_empty());
        requests
    }

    /// When each request was answered, by its number.
    pub(crate) fn answers(&self) -> BTreeMap<i64, Json> {
        let answers = self.notes("answers.jsonl").into_iter();
        answers.map(|answer| (answer["number"].as_i64().unwrap(), answer)).collect()
    }

    /// Only whole lines: the last one may be incomplete.
    fn notes(&self, name: &str) -> Vec<Json> {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The URL of a behaviour at a port where nothing may run yet.
pub(crate) fn url(port: u16, behaviour: &str) -> String {
    format!("http://127.0.0.1:{port}/batch?{behaviour}")
}
