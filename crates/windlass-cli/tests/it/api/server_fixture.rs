//! A running `windlass serve`, and a client that checks what every response must have.

use crate::common::{CliSandbox, eventually, server, text};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value as Json, json};
use windlass_testkit::Running;

/// A server process, with the URL and token to call it.
pub(crate) struct TestServer {
    pub(crate) sandbox: CliSandbox,
    pub(crate) process: Running,
    pub(crate) url: String,
    client: Client,
    token: Option<String>,
}

/// A response of the API.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl TestServer {
    /// Starts a server without workers.
    pub(crate) async fn start(sandbox: CliSandbox) -> TestServer {
        TestServer::with(sandbox, 0).await
    }

    /// Starts a server with this many slots.
    pub(crate) async fn with(sandbox: CliSandbox, concurrency: u32) -> TestServer {
        let (process, url) = server::start(&sandbox, concurrency).await;
        TestServer { sandbox, process, url, client: server::client(), token: None }
    }

    /// Starts a server that may open only this many file descriptors.
    pub(crate) async fn with_descriptors(
        sandbox: CliSandbox,
        descriptors: u32,
        concurrency: u32,
    ) -> TestServer {
        let command = format!("serve -v --listen 127.0.0.1:0 --concurrency {concurrency}");
        let process = sandbox.spawn_with_descriptors(descriptors, &command);
        let url = server::url(&process).await;
        TestServer { sandbox, process, url, client: server::client(), token: None }
    }

    /// Uses another token for the next requests.
    pub(crate) fn token(&mut self, token: &str) -> &TestServer {
        self.token = Some(token.to_owned());
        self
    }

    /// A request with the current token.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> ApiResponse {
        ApiResponse::of(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Json) -> ApiResponse {
        self.send(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Json) -> ApiResponse {
        self.send(Method::PUT, path, Some(body)).await
    }

    /// Sends a request with an optional body.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Json>,
    ) -> ApiResponse {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        ApiResponse::of(request).await
    }

    /// Submits a job that must be accepted; returns its id.
    pub(crate) async fn submit(&self, request: Json) -> String {
        text(&self.post("/api/v1/jobs", &request).await.is(201)["id"])
    }

    /// Waits until a job has a status.
    pub(crate) async fn until(&self, id: &str, status: &str) -> Json {
        let mut job = Json::Null;
        eventually(&format!("job {id} is {status}"), async || {
            job = self.get(&format!("/api/v1/jobs/{id}")).await.is(200);
            job["status"] == status
        })
        .await;
        job
    }
}

impl ApiResponse {
    pub(crate) async fn of(request: RequestBuilder) -> ApiResponse {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let response = ApiResponse { status, headers, text: read(response).await };
        response.check();
        response
    }

    /// Checks the common headers, and that an error is a problem.
    fn check(&self) {
        assert!(self.headers.contains_key("x-request-id"), "{self:?}");
        assert_eq!(self.headers["x-content-type-options"], "nosniff", "{self:?}");
        assert!(self.headers.contains_key("cache-control"), "{self:?}");
        if self.status >= 400 {
            assert_eq!(self.headers[CONTENT_TYPE], "application/problem+json", "{self:?}");
            let problem = self.json();
            assert_eq!(problem["status"], self.status, "{self:?}");
            assert!(!text(&problem["title"]).is_empty() && !text(&problem["type"]).is_empty());
        }
    }

    /// Asserts the status; returns the body.
    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> Json {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    /// Asserts an error with this status for this field.
    #[track_caller]
    pub(crate) fn is_rejected(&self, status: u16, field: &str) {
        assert_eq!(self.is(status)["field"], field, "{self:?}");
    }

    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.text).unwrap_or(Json::Null)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap())
    }
}

async fn read(mut response: Response) -> String {
    // An event stream does not end by itself.
    if response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream") {
        return String::new();
    }
    let mut text = Vec::new();
    while let Some(part) = response.chunk().await.unwrap() {
        text.extend_from_slice(&part);
    }
    String::from_utf8(text).unwrap()
}

/// The secret that signs tokens.
pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// An `[auth]` table with that secret and all roles.
pub(crate) fn auth() -> String {
    format!("\n[auth]\nkey = \"{SECRET}\"\nissuer = \"tests\"\naudience = \"windlass\"\n{ROLES}")
}

/// One role for each permission, with and without `all_jobs`.
pub(crate) const ROLES: &str = r#"[auth.roles]
nobody = { may = [] }
viewer = { may = ["view"] }
submitter = { may = ["submit"] }
operator = { may = ["operate"] }
administrator = { may = ["administer"] }
all-viewer = { may = ["view"], all_jobs = true }
all-submitter = { may = ["submit"], all_jobs = true }
all-operator = { may = ["operate"], all_jobs = true }
all-administrator = { may = ["administer"], all_jobs = true }
clerk = { may = ["view", "submit", "operate"] }
chief = { may = ["view", "submit", "operate", "administer"], all_jobs = true }
"#;

/// The claims of a token that `auth` accepts.
pub(crate) fn claims(subject: &str, role: &str) -> Json {
    json!({"sub": subject, "roles": role, "iss": "tests", "aud": "windlass", "exp": now() + 3600})
}

pub(crate) fn now() -> i64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64
}

/// A token that `auth` accepts.
pub(crate) fn token(subject: &str, role: &str) -> String {
    signed(&claims(subject, role))
}

/// A token with these claims.
pub(crate) fn signed(claims: &Json) -> String {
    let key = jsonwebtoken::EncodingKey::from_secret(SECRET.as_bytes());
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), claims, &key).unwrap()
}
