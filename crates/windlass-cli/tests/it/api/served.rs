//! A running `windlass serve`, and a client that holds every answer to what holds for all of them.

use crate::common::{CliSandbox, PATIENCE, eventually, text};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value as Json, json};
use windlass_testkit::Running;

/// The server, and where it is.
pub(crate) struct Served {
    pub(crate) sandbox: CliSandbox,
    pub(crate) process: Running,
    pub(crate) url: String,
    client: Client,
    token: Option<String>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Served {
    /// Serves the API alone.
    pub(crate) async fn start(sandbox: CliSandbox) -> Served {
        Served::with(sandbox, 0).await
    }

    /// Serves the API and works with so many slots.
    pub(crate) async fn with(sandbox: CliSandbox, workers: u32) -> Served {
        let process =
            sandbox.spawn(&format!("serve -v --listen 127.0.0.1:0 --concurrency {workers}"));
        Served::of(sandbox, process).await
    }

    /// Serves with so few descriptors for files, children and connections.
    pub(crate) async fn with_descriptors(
        sandbox: CliSandbox,
        descriptors: u32,
        workers: u32,
    ) -> Served {
        let command = format!("serve -v --listen 127.0.0.1:0 --concurrency {workers}");
        let process = sandbox.spawn_with_descriptors(descriptors, &command);
        Served::of(sandbox, process).await
    }

    async fn of(sandbox: CliSandbox, process: Running) -> Served {
        let mut url = None;
        eventually("the server listens", async || {
            let said = process.stderr();
            assert!(process.is_running(), "{said}");
            url = said.split("listening on ").nth(1).and_then(|rest| {
                let end = rest.find([',', ';'])?;
                Some(rest[..end].to_owned())
            });
            url.is_some()
        })
        .await;
        Served { sandbox, process, url: url.unwrap(), client: client(), token: None }
    }

    /// The same server, asked with another token.
    pub(crate) fn token(&mut self, token: &str) -> &Served {
        self.token = Some(token.to_owned());
        self
    }

    /// A request that is not sent yet.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Json) -> Answer {
        self.send(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Json) -> Answer {
        self.send(Method::PUT, path, Some(body)).await
    }

    /// A request, with a body where there is one.
    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<&Json>) -> Answer {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        Answer::of(request).await
    }

    /// Submits a job that must be taken, and gives its id.
    pub(crate) async fn submit(&self, request: Json) -> String {
        text(&self.post("/api/v1/jobs", &request).await.is(201)["id"])
    }

    /// Asks until a job is in a status.
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

impl Answer {
    pub(crate) async fn of(request: RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let answer = Answer { status, headers, text: read(response).await };
        answer.check();
        answer
    }

    /// What holds for every answer: it names its request, and an error is a problem.
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

    /// The body of an answer with this status.
    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> Json {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    /// A refusal with this status, about this field.
    #[track_caller]
    pub(crate) fn refuses(&self, status: u16, field: &str) {
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
    // Events go on for as long as something happens.
    if response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream") {
        return String::new();
    }
    let mut text = Vec::new();
    while let Some(part) = response.chunk().await.unwrap() {
        text.extend_from_slice(&part);
    }
    String::from_utf8(text).unwrap()
}

fn client() -> Client {
    // Whoever comes second finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().timeout(PATIENCE).build().unwrap()
}

/// A secret that tokens are signed with.
pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// `[auth]` with that secret, and a role for every kind of caller.
pub(crate) fn auth() -> String {
    format!("\n[auth]\nkey = \"{SECRET}\"\nissuer = \"tests\"\naudience = \"windlass\"\n{ROLES}")
}

/// Each permission as a role, alone and with everybody's jobs.
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
