//! A whole service in one process: workers, schedules, dependencies, alerts, the outbox relay and the API.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use windlass_engine::{Engine, Handle, Options, Worker, WorkerStats};
use windlass_server::{Server, ServerError};

/// A service that listens and is ready to run: everything that `windlass serve` runs, in this process.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use windlass::{Config, Engine, Service};
///
/// let engine = Engine::builder(Config::from_path("windlass.toml")?).connect().await?;
/// // Runs until Ctrl-C or SIGTERM.
/// Service::builder(engine).concurrency(8).run().await?;
/// # Ok(())
/// # }
/// ```
pub struct Service {
    server: Server,
    engine: Engine,
    options: Options,
    shutdown: Shutdown,
}

type Shutdown = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Configures a [`Service`].
///
/// ```no_run
/// use windlass::{Engine, Service, ServiceError};
///
/// async fn serve_without_working(engine: Engine) -> Result<(), ServiceError> {
///     Service::builder(engine).concurrency(0).worker_name("api-1").run().await?;
///     Ok(())
/// }
/// ```
#[must_use = "a builder does nothing until `run` or `bind` is called"]
pub struct ServiceBuilder {
    engine: Engine,
    options: Options,
    shutdown: Option<Shutdown>,
}

/// Why a service could not start, or ended early.
///
/// ```
/// use windlass::ServiceError;
///
/// fn is_configuration(error: &ServiceError) -> bool {
///     matches!(error, ServiceError::Server(_))
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The API could not listen, its configuration is wrong, or it failed while serving.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The handlers of Ctrl-C and SIGTERM could not be installed.
    #[error("cannot listen for signals: {0}")]
    Signal(#[source] std::io::Error),
    /// The worker panicked. Its chunks are retried when their leases expire.
    #[error("the worker panicked: {0}")]
    Worker(#[source] tokio::task::JoinError),
}

impl Service {
    /// A builder with the default number of slots, which stops at Ctrl-C or SIGTERM.
    pub fn builder(engine: Engine) -> ServiceBuilder {
        ServiceBuilder { engine, options: Options::default(), shutdown: None }
    }

    /// The address that the API listens on. It differs from `server.listen` where that has port 0.
    ///
    /// # Errors
    /// The operating system does not tell the address.
    pub fn address(&self) -> Result<SocketAddr, ServiceError> {
        Ok(self.server.address()?)
    }

    /// Runs until the shutdown signal. Then nothing new is leased or accepted, commits and answers in
    /// progress finish, and chunks that are not done are handed back to other processes.
    ///
    /// # Errors
    /// The API failed, or the worker panicked.
    pub async fn run(self) -> Result<WorkerStats, ServiceError> {
        let Service { server, engine, options, shutdown } = self;
        let (worker, handle) = (options.slots > 0)
            .then(|| Worker::new(engine.clone(), options))
            .map(|(worker, handle)| (tokio::spawn(worker.run()), handle))
            .unzip();
        let background = spawn_background(engine, handle.is_none());
        let stop_worker = || handle.iter().for_each(Handle::shutdown);
        let served = server
            .run(async {
                shutdown.await;
                stop_worker();
            })
            .await;
        stop_worker();
        // Safe at any point: what was half done is finished, or repeated with the same result, by the
        // next process.
        background.abort();
        if let Err(error) = background.await
            && error.is_panic()
        {
            tracing::error!(%error, "the scheduler, alerts or outbox relay panicked");
        }
        let stats = match worker {
            Some(worker) => worker.await.map_err(ServiceError::Worker)?,
            None => WorkerStats::default(),
        };
        served?;
        Ok(stats)
    }
}

impl ServiceBuilder {
    /// Chunks in progress at once in this process. With 0 it serves the API and the schedules, and
    /// other processes do the work.
    pub fn concurrency(mut self, slots: usize) -> ServiceBuilder {
        self.options.slots = slots;
        self
    }

    /// The name of this worker in listings; host and process id by default.
    pub fn worker_name(mut self, name: impl Into<String>) -> ServiceBuilder {
        self.options.name = name.into();
        self
    }

    /// Stops the service when this future completes, instead of at Ctrl-C or SIGTERM.
    pub fn shutdown_on(
        mut self,
        signal: impl Future<Output = ()> + Send + 'static,
    ) -> ServiceBuilder {
        self.shutdown = Some(Box::pin(signal));
        self
    }

    /// Binds the address of `[server]`, without serving yet.
    ///
    /// ```no_run
    /// # async fn example(engine: windlass::Engine) -> Result<(), windlass::ServiceError> {
    /// let service = windlass::Service::builder(engine).bind().await?;
    /// println!("listening on http://{}", service.address()?);
    /// service.run().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The address cannot be bound, `[server]` or `[auth]` is invalid, or signals cannot be handled.
    pub async fn bind(self) -> Result<Service, ServiceError> {
        let shutdown = match self.shutdown {
            Some(shutdown) => shutdown,
            None => interrupted()?,
        };
        let server = Server::bind(self.engine.clone()).await?;
        Ok(Service { server, engine: self.engine, options: self.options, shutdown })
    }

    /// Binds and runs; see [`Service::run`].
    ///
    /// # Errors
    /// Those of [`ServiceBuilder::bind`] and [`Service::run`].
    pub async fn run(self) -> Result<WorkerStats, ServiceError> {
        self.bind().await?.run().await
    }
}

/// Schedules and alerts run in every service. A worker follows dependencies and relays outboxes itself,
/// so these two run here only without one.
fn spawn_background(engine: Engine, without_worker: bool) -> JoinHandle<()> {
    tokio::spawn(async move {
        let without_worker = async {
            if without_worker {
                tokio::join!(engine.run_dependents(), engine.run_outbox_relay());
            }
        };
        tokio::join!(engine.run_scheduler(), engine.run_alerts(), without_worker);
    })
}

/// Completes at Ctrl-C or SIGTERM.
fn interrupted() -> Result<Shutdown, ServiceError> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServiceError::Signal)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(ServiceError::Signal)?;
    Ok(Box::pin(async move {
        tokio::select! { _ = interrupt.recv() => {} _ = terminate.recv() => {} }
    }))
}
