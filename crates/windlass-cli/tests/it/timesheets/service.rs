//! One of the `windlass serve` processes, with a client.

use crate::common::{CliSandbox, eventually, server, text};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method};
use serde_json::{Value as Json, json};
use windlass_testkit::Running;

/// A running server.
pub(crate) struct Server {
    pub(crate) process: Running,
    url: String,
    client: Client,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Server {
    /// Starts a server with this concurrency.
    pub(crate) async fn start(sandbox: &CliSandbox, workers: u32) -> Server {
        let (process, url) = server::start(sandbox, workers).await;
        Server { process, url, client: server::client() }
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Answer {
        self.send(token, Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, token: &str, path: &str, body: &Json) -> Answer {
        self.send(token, Method::POST, path, Some(body)).await
    }

    /// Gets a resource with this `Accept`, with the headers of the answer.
    pub(crate) async fn download(
        &self,
        token: &str,
        path: &str,
        accept: &str,
    ) -> (Answer, HeaderMap) {
        let url = format!("{}/api/v1/{path}", self.url);
        let request = self.client.get(url).bearer_auth(token).header("accept", accept);
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        (Answer { status, text: response.text().await.unwrap() }, headers)
    }

    async fn send(&self, token: &str, method: Method, path: &str, body: Option<&Json>) -> Answer {
        let url = format!("{}/api/v1/{path}", self.url);
        let mut request = self.client.request(method, url).bearer_auth(token);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.unwrap();
        Answer { status: response.status().as_u16(), text: response.text().await.unwrap() }
    }

    /// Submits a job, which must be accepted, and returns its id.
    pub(crate) async fn submit(&self, token: &str, request: &Json) -> String {
        text(&self.post(token, "jobs", request).await.is(201)["id"])
    }

    /// Cancels or retries a job, which must be accepted.
    pub(crate) async fn steer(&self, token: &str, id: &str, what: &str) -> Json {
        self.post(token, &format!("jobs/{id}/{what}"), &json!({})).await.is(200)
    }

    pub(crate) async fn job(&self, token: &str, id: &str) -> Json {
        self.get(token, &format!("jobs/{id}")).await.is(200)
    }

    /// All jobs of a type that the caller sees, oldest first.
    pub(crate) async fn jobs(&self, token: &str, job_type: &str) -> Vec<Json> {
        let listed = self.get(token, &format!("jobs?jobType={job_type}&limit=1000")).await.is(200);
        let mut jobs = listed.as_array().unwrap().clone();
        jobs.sort_by_key(|job| text(&job["createdAt"]));
        jobs
    }

    /// Waits until a condition on a job holds.
    pub(crate) async fn until(
        &self,
        token: &str,
        id: &str,
        what: &str,
        holds: impl Fn(&Json) -> bool,
    ) -> Json {
        let mut job = Json::Null;
        eventually(&format!("{what}, job {id}"), async || {
            job = self.job(token, id).await;
            holds(&job)
        })
        .await;
        job
    }

    /// Waits until a job has this status.
    pub(crate) async fn is(&self, token: &str, id: &str, status: &str) -> Json {
        self.until(token, id, status, |job| job["status"] == status).await
    }

    /// The rows of a job's output.
    pub(crate) async fn output(&self, token: &str, id: &str) -> Vec<Json> {
        let output = self.get(token, &format!("jobs/{id}/output")).await;
        assert_eq!(output.status, 200, "{output:?}");
        output.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Answer {
    /// The body of an answer with this status.
    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> Json {
        assert_eq!(self.status, status, "{self:?}");
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts that a request was refused with this status, and that the reason contains all these parts.
    #[track_caller]
    pub(crate) fn refuses(&self, status: u16, parts: &[&str]) {
        self.is(status);
        for part in parts {
            assert!(self.text.contains(part), "`{part}` is not in: {self:?}");
        }
    }
}
