//! The HTTP server: the REST API over [`Engine`], the dashboard, authentication and metrics.
//!
//! `routes/` has one file per topic of the API, and `dashboard/` one file per page. `auth/` authenticates
//! callers, `access_scope.rs` restricts what they see, `watch.rs` polls the store for event streams, and
//! `problem.rs` defines error responses. The API sends the same JSON as the command line with `--json`.

mod access_scope;
mod auth;
mod bodies;
mod byte_range;
mod connections;
mod csv;
mod dashboard;
mod extract;
mod metrics;
mod openapi;
mod output;
mod problem;
mod rate_limit;
mod request_id;
mod routes;
mod streams;
mod watch;

pub use auth::{AuthError, TokenRequest, check_keys, make_token};

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

/// The server could not start, or failed while it was running.
///
/// ```
/// use windlass_server::ServerError;
///
/// fn is_address_taken(error: &ServerError) -> bool {
///     matches!(error, ServerError::Listen { .. })
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The configuration is invalid.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The keys in `[auth]` cannot be used.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The server cannot listen on its address.
    #[error("server.listen: {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// An I/O error while serving.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A server that is bound to its address. [`Server::run`] serves requests.
///
/// ```no_run
/// use windlass_engine::Engine;
/// use windlass_server::{Server, ServerError};
///
/// async fn serve(engine: Engine) -> Result<(), ServerError> {
///     let server = Server::bind(engine).await?;
///     println!("listening on {}", server.address()?);
///     server.run(std::future::pending()).await
/// }
/// ```
pub struct Server {
    listener: TcpListener,
    router: axum::Router,
    stopping: CancellationToken,
    sampler: tokio::task::JoinHandle<()>,
    limits: connections::ConnectionLimits,
    shutdown_timeout: Duration,
}

/// The state that all requests share.
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) authenticator: auth::Authenticator,
    pub(crate) limiter: rate_limit::RequestLimiter,
    pub(crate) watch: watch::JobWatch,
    pub(crate) streams: Arc<streams::EventStreams>,
    pub(crate) lengths: output::LengthCache,
    pub(crate) metrics: metrics::MetricsExporter,
    pub(crate) openapi: String,
    /// When the store was last probed, and whether it responded.
    pub(crate) readiness: Mutex<Option<(Instant, bool)>>,
    pub(crate) stopping: CancellationToken,
}

impl Server {
    /// Binds the address in `[server]`. Clients can connect from now on; [`Server::run`] serves them.
    ///
    /// # Errors
    /// The configuration or a key is invalid, or the address cannot be bound.
    pub async fn bind(engine: Engine) -> Result<Server, ServerError> {
        let config = engine.config();
        check_config(config)?;
        let server = config.server.clone();
        let authenticator = auth::Authenticator::new(config).await?;
        let address = server.listen;
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| ServerError::Listen { address, error })?;
        let (routes, mut openapi) = routes::all(config.auth.is_some()).split_for_parts();
        openapi::add_params(&mut openapi, config);
        let stopping = CancellationToken::new();
        let limits = connections::ConnectionLimits::new(&server);
        let app = Arc::new(App {
            watch: watch::JobWatch::new(engine.clone(), stopping.clone()),
            streams: streams::EventStreams::new(
                limits.max_streams,
                server.max_streams_per_caller as usize,
            ),
            lengths: output::LengthCache::default(),
            metrics: metrics::MetricsExporter::new(),
            limiter: rate_limit::RequestLimiter::new(server.requests_per_second),
            openapi: openapi.to_json().unwrap_or_default(),
            readiness: Mutex::default(),
            stopping: stopping.clone(),
            engine,
            authenticator,
        });
        let sampler = tokio::spawn(metrics::run_sampler(app.clone()));
        let router = routes
            .merge(dashboard::routes())
            .fallback(dashboard::responses::not_found)
            .method_not_allowed_fallback(problem::method_not_allowed)
            .layer(DefaultBodyLimit::max(server.max_body))
            .layer(from_fn_with_state(bodies::BodyLimits::new(&server), bodies::limit_body))
            .layer(CatchPanicLayer::custom(problem::panicked))
            .layer(from_fn(bodies::default_headers))
            .layer(from_fn(request_id::trace_request))
            .with_state(app);
        Ok(Server {
            listener,
            router,
            stopping,
            sampler,
            limits,
            shutdown_timeout: server.shutdown,
        })
    }

    /// The bound address, with the actual port if the configured one is 0.
    ///
    /// # Errors
    /// The operating system does not report the address.
    pub fn address(&self) -> Result<SocketAddr, ServerError> {
        Ok(self.listener.local_addr()?)
    }

    /// Serves requests until `stop` completes. Then it accepts no new connections, ends event streams,
    /// and gives requests in progress `server.shutdown` to finish.
    ///
    /// # Errors
    /// The accept loop failed.
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
            None => tokio::time::timeout(self.shutdown_timeout, &mut serving).await,
        };
        self.sampler.abort();
        match ended {
            Ok(ended) => Ok(ended.map_err(std::io::Error::other)?),
            Err(_) => {
                tracing::warn!(
                    "shutdown timeout exceeded; closing connections with requests in progress"
                );
                serving.abort();
                Ok(())
            }
        }
    }
}

/// Rejects what `windlass check` rejects, above all a server without `[auth]` on a public address.
fn check_config(config: &Config) -> Result<(), Problem> {
    let concerns_server = |problem: &Problem| {
        let field = problem.field.as_deref().unwrap_or_default();
        ["server", "auth", "alerts"].iter().any(|table| field.starts_with(table))
    };
    config.problems().into_iter().find(concerns_server).map_or(Ok(()), Err)
}
