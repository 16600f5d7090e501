//! The service: the REST API over [`Engine`], who may use it, and what can be measured.
//!
//! `auth/` tells who asks, `routes/` has a file per topic, `visible.rs` decides whose jobs they
//! see, `watch.rs` looks at the store once for all who follow a job, and `problem.rs` is what
//! every error looks like. `dashboard/` is the same for people who would rather look. The words and the JSON are those of the command line.

mod access_scope;
mod auth;
mod bodies;
mod connections;
mod dashboard;
mod document;
mod extract;
mod limit;
mod metrics;
mod output;
mod problem;
mod range;
mod request_id;
mod routes;
mod streams;
mod watch;

pub use auth::{AuthError, TokenRequest, make_token, try_keys};

use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use windlass_core::{Config, Problem};
use windlass_engine::Engine;

/// Why the server does not start, or went down.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The configuration is wrong.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The keys are.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The address cannot be used.
    #[error("server.listen: {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// The system failed while we served.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    router: axum::Router,
    stopping: CancellationToken,
    measuring: tokio::task::JoinHandle<()>,
    limits: connections::Limits,
    patience: Duration,
}

/// What all requests share.
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) door: auth::Authenticator,
    pub(crate) limiter: limit::Limiter,
    pub(crate) watch: watch::Watch,
    pub(crate) streams: Arc<streams::Streams>,
    pub(crate) lengths: output::Lengths,
    pub(crate) meter: metrics::Meter,
    pub(crate) document: String,
    /// Whether the store could be reached, and when that was.
    pub(crate) readiness: Mutex<Option<(Instant, bool)>>,
    pub(crate) stopping: CancellationToken,
}

impl Server {
    /// Listens where `[server]` says. From here on the address answers, as soon as the server runs.
    pub async fn bind(engine: Engine) -> Result<Server, ServerError> {
        let config = engine.config();
        check(config)?;
        let (server, door) = (config.server.clone(), auth::Authenticator::new(config).await?);
        let address = server.listen;
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| ServerError::Listen { address, error })?;
        let (routes, document) = routes::all(config.auth.is_some()).split_for_parts();
        let stopping = CancellationToken::new();
        let limits = connections::Limits::new(&server);
        let app = Arc::new(App {
            watch: watch::Watch::new(engine.clone(), stopping.clone()),
            streams: streams::Streams::new(limits.streams, server.max_streams_per_caller as usize),
            lengths: output::Lengths::default(),
            meter: metrics::Meter::new(),
            limiter: limit::Limiter::new(server.requests_per_second),
            document: document.to_json().unwrap_or_default(),
            readiness: Mutex::default(),
            stopping: stopping.clone(),
            engine,
            door,
        });
        let measuring = tokio::spawn(metrics::run(app.clone()));
        let router = routes
            .merge(dashboard::routes())
            .fallback(dashboard::same_origin::no_page)
            .method_not_allowed_fallback(problem::no_method)
            .layer(DefaultBodyLimit::max(server.max_body))
            .layer(from_fn_with_state(bodies::Bodies::new(&server), bodies::guard))
            .layer(CatchPanicLayer::custom(problem::panicked))
            .layer(from_fn(bodies::private))
            .layer(from_fn(request_id::name))
            .with_state(app);
        Ok(Server { listener, router, stopping, measuring, limits, patience: server.shutdown })
    }

    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr, ServerError> {
        Ok(self.listener.local_addr()?)
    }

    /// Serves until `stop` is over: then nothing new is accepted, those who follow events are
    /// told the end, and answers under way have a moment to finish.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServerError> {
        let stopping = self.stopping.clone();
        let serving = connections::serve(self.listener, self.router, self.limits, stopping);
        let mut serving = tokio::spawn(serving);
        let ended = tokio::select! {
            () = stop => None,
            ended = &mut serving => Some(ended),
        };
        self.stopping.cancel();
        let ended = match ended {
            Some(ended) => Ok(ended),
            None => tokio::time::timeout(self.patience, &mut serving).await,
        };
        self.measuring.abort();
        match ended {
            Ok(ended) => Ok(ended.map_err(std::io::Error::other)?),
            Err(_) => {
                tracing::warn!("answers that were still under way are cut off");
                serving.abort();
                Ok(())
            }
        }
    }
}

/// Refuses what `windlass check` would: first of all, an open door to the world.
fn check(config: &Config) -> Result<(), Problem> {
    let about_us = |problem: &Problem| {
        let field = problem.field.as_deref().unwrap_or_default();
        ["server", "auth", "alerts"].iter().any(|table| field.starts_with(table))
    };
    config.problems().into_iter().find(about_us).map_or(Ok(()), Err)
}
