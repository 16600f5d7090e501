//! The example's `windlass serve`, which accepts requests as JSON.

use crate::common::{CliSandbox, server, text};
use reqwest::Client;
use serde_json::Value as Json;
use windlass_testkit::Running;

/// A running server with a client.
pub(crate) struct Server {
    _process: Running,
    url: String,
    client: Client,
}

impl Server {
    /// Starts a server with this concurrency.
    pub(crate) async fn start(sandbox: &CliSandbox, workers: u32) -> Server {
        let (process, url) = server::start(sandbox, workers).await;
        Server { _process: process, url, client: server::client() }
    }

    /// Posts a request and returns status and answer.
    pub(crate) async fn post(&self, request: &str) -> (u16, Json) {
        let post = self.client.post(format!("{}/api/v1/jobs", self.url));
        let post = post.header("content-type", "application/json").body(request.to_owned());
        let answer = post.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap())
    }

    /// Posts a request that must be accepted, and returns the job's id.
    pub(crate) async fn submit(&self, request: &str) -> String {
        let (status, job) = self.post(request).await;
        assert_eq!(status, 201, "{job:#}");
        text(&job["id"])
    }

    /// Posts a request that must be accepted, and waits until the job is completed.
    pub(crate) async fn complete(&self, sandbox: &CliSandbox, request: &str) -> Json {
        sandbox.completed(&self.submit(request).await).await
    }

    pub(crate) async fn metrics(&self) -> String {
        let answer = self.client.get(format!("{}/metrics", self.url)).send().await.unwrap();
        answer.text().await.unwrap()
    }
}
