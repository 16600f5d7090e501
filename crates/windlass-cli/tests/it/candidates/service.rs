//! The example's `windlass serve`, which accepts requests as JSON.

use crate::common::{CliSandbox, PATIENCE, eventually, text};
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
        let process =
            sandbox.spawn(&format!("serve -v --listen 127.0.0.1:0 --concurrency {workers}"));
        let mut url = None;
        eventually("the server listens", async || {
            let said = process.stderr();
            assert!(process.is_running(), "{said}");
            let rest = said.split("listening on ").nth(1);
            url = rest.and_then(|rest| Some(rest[..rest.find([',', ';'])?].to_owned()));
            url.is_some()
        })
        .await;
        // Fails if it is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().timeout(PATIENCE).build().unwrap();
        Server { _process: process, url: url.unwrap(), client }
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

    pub(crate) async fn metrics(&self) -> String {
        let answer = self.client.get(format!("{}/metrics", self.url)).send().await.unwrap();
        answer.text().await.unwrap()
    }
}
