//! Starts `windlass serve`, and makes clients for it.

use super::{CliSandbox, PATIENCE, eventually};
use reqwest::Client;
use windlass_testkit::Running;

/// Starts a server with this many slots on a free port. Returns its process and URL.
pub(crate) async fn start(sandbox: &CliSandbox, concurrency: u32) -> (Running, String) {
    let process =
        sandbox.spawn(&format!("serve -v --listen 127.0.0.1:0 --concurrency {concurrency}"));
    let url = url(&process).await;
    (process, url)
}

/// Waits until a server listens, and returns its URL.
pub(crate) async fn url(process: &Running) -> String {
    let mut url = None;
    eventually("the server listens", async || {
        let said = process.stderr();
        assert!(process.is_running(), "{said}");
        let rest = said.split("listening on ").nth(1);
        url = rest.and_then(|rest| Some(rest[..rest.find([',', ';'])?].to_owned()));
        url.is_some()
    })
    .await;
    url.unwrap()
}

/// An HTTP client.
pub(crate) fn client() -> Client {
    // Fails if it is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().timeout(PATIENCE).build().unwrap()
}
