//! The databases of one round, and the ways to disturb them.

use super::disk::SmallDisk;
use super::job_types;
use crate::common::seeded_rng::SeededRng;
use crate::common::{CliSandbox, Data, config};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use windlass_testkit::{MariaServer, Options, PgBouncer, PostgresServer, Proxy};

/// Which database has the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Postgres,
    Mariadb,
    Sqlite,
}

/// Servers that belong to this round alone.
pub(super) struct Cluster {
    pub(super) data: Arc<Data>,
    /// How the test itself reaches the store.
    pub(super) store: String,
    pub(super) servers: Vec<Server>,
    pub(super) proxies: Vec<Proxy>,
    pub(super) poolers: Vec<PgBouncer>,
    pub(super) disk: Option<SmallDisk>,
    /// How each process reaches the store and the records.
    routes: Vec<(String, String)>,
}

/// A server that can crash.
pub(super) enum Server {
    Postgres(PostgresServer),
    Mariadb(MariaServer),
}

impl Server {
    /// Ends it as a crash would.
    pub(super) fn crash(&self) {
        match self {
            Server::Postgres(server) => server.stop_immediate(),
            Server::Mariadb(server) => server.stop_immediate(),
        }
    }

    pub(super) fn start_again(&self) {
        match self {
            Server::Postgres(server) => server.start_again(),
            Server::Mariadb(server) => server.start_again(),
        }
    }
}

fn postgres() -> PostgresServer {
    PostgresServer::start(Options { fsync: false, ..Options::default() })
}

impl Cluster {
    /// Store and records on one server or on two, as the seed says.
    pub(super) async fn start(kind: Kind, seed: u64) -> Cluster {
        let is_apart = seed % 2 == 1;
        match kind {
            Kind::Postgres => Cluster::postgres(is_apart).await,
            Kind::Mariadb => Cluster::mariadb(is_apart).await,
            Kind::Sqlite => Cluster::sqlite(is_apart),
        }
    }

    async fn postgres(is_apart: bool) -> Cluster {
        let server = postgres();
        let database = server.database().await;
        let mut servers = vec![server];
        let mut store = database.clone();
        if is_apart {
            let server = postgres();
            store = server.database().await;
            servers.push(server);
        }
        let (mut proxies, mut poolers) = (Vec::new(), Vec::new());
        for server in &servers {
            proxies.push(Proxy::start(server.addr()).await);
            poolers.push(PgBouncer::start(server));
        }
        let last = servers.len() - 1;
        let direct = (proxies[last].url_via(store.url()), proxies[0].url_via(database.url()));
        let pooled = (poolers[last].url(&store), poolers[0].url(&database));
        Cluster {
            store: store.url().to_owned(),
            data: Arc::new(Data::Postgres(database)),
            servers: servers.into_iter().map(Server::Postgres).collect(),
            proxies,
            poolers,
            disk: None,
            routes: vec![direct, pooled],
        }
    }

    /// The store is a file, or a PostgreSQL server.
    async fn mariadb(has_server: bool) -> Cluster {
        let server = MariaServer::start();
        let data = Arc::new(Data::Mariadb(server.database().await));
        let mut proxies = vec![Proxy::start_mysql(server.addr()).await];
        let mut servers = vec![Server::Mariadb(server)];
        let (mut store, mut route) = ("sqlite:windlass.db".to_owned(), None);
        if has_server {
            let server = postgres();
            store = server.database().await.url().to_owned();
            let proxy = Proxy::start(server.addr()).await;
            route = Some(proxy.url_via(&store));
            proxies.push(proxy);
            servers.push(Server::Postgres(server));
        }
        // The MySQL driver has no `sslmode`.
        let url = proxies[0].url_via(&data.url()).replace("?sslmode=disable", "");
        let routes = vec![(route.unwrap_or_else(|| store.clone()), url)];
        Cluster { data, store, servers, proxies, poolers: Vec::new(), disk: None, routes }
    }

    /// Store and records in two files, or in one.
    fn sqlite(is_apart: bool) -> Cluster {
        let disk = SmallDisk::mount(64);
        let folder = match &disk {
            Some(disk) => TempDir::new_in(disk.path()),
            None => TempDir::new(),
        };
        let data = Arc::new(Data::sqlite_in(folder.unwrap()));
        let store = match is_apart {
            true => format!("sqlite:{}", data.folder().join("store.db").display()),
            false => data.url(),
        };
        let routes = vec![(store.clone(), data.url())];
        let (servers, proxies, poolers) = (Vec::new(), Vec::new(), Vec::new());
        Cluster { data, store, servers, proxies, poolers, disk, routes }
    }

    /// A folder with a configuration for the test itself, and one for each process.
    pub(super) async fn sandbox(&self, processes: usize, service: u16) -> CliSandbox {
        job_types::create(&self.data).await;
        let jobs = job_types::job_types(&self.data, service);
        let sandbox = CliSandbox::with(&config(&self.store, &self.data.url(), &jobs));
        sandbox.write("mark.py", include_str!("mark.py"));
        for process in 0..processes {
            let (store, data) = &self.routes[process % self.routes.len()];
            sandbox.write(&format!("{process}.toml"), &config(store, data, &jobs));
        }
        sandbox.run("migrate").await.ok();
        job_types::log_ledger(&self.data).await;
        sandbox
    }

    /// Ends all disturbances.
    pub(super) fn heal(&self) {
        self.proxies.iter().for_each(|proxy| proxy.delay(Duration::ZERO));
        self.disk.iter().for_each(SmallDisk::free);
    }

    /// Disturbs a random connection. Returns whether it could.
    pub(super) async fn disturb_network(&self, rng: &mut SeededRng) -> bool {
        if self.proxies.is_empty() {
            return false;
        }
        let proxy = &self.proxies[rng.next_in(0..self.proxies.len() as u64) as usize];
        match rng.next_in(0..6) {
            0 | 1 => proxy.cut_after_commit(),
            2 | 3 => proxy.cut_before_commit(),
            4 => proxy.cut_all().await,
            _ => proxy.delay(Duration::from_millis(rng.next_in(20..400))),
        }
        true
    }
}
