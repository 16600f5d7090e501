//! The bank, the warehouse and the object store: real servers, which stop with this process.

use std::fs;
use std::time::{Duration, Instant};

use crate::night::Weather;
use anyhow::{Context, ensure};
use tempfile::TempDir;
use windlass_testkit::{
    Database, MariaDatabase, MariaServer, Moto, Options, PostgresServer, Proxy,
};

/// The servers of a night.
pub(crate) struct Servers {
    /// The bank's primary and its two replicas.
    pub(crate) banks: [Bank; 3],
    pub(crate) warehouse: Database,
    pub(crate) moto: Moto,
    /// The totals from a single statement on the bank, and its duration.
    pub(crate) own: (Vec<String>, Duration),
    /// The folder of the commands, with the example's windlass.toml.
    pub(crate) folder: TempDir,
    /// The server of the warehouse.
    pub(crate) postgres: PostgresServer,
}

/// A server with the bank's database.
pub(crate) struct Bank {
    pub(crate) server: MariaServer,
    pub(crate) database: MariaDatabase,
    /// A proxy in front of the server that forwards everything until it is told to fail.
    pub(crate) proxy: Proxy,
}

impl Bank {
    async fn new(server: MariaServer, name: &str) -> Bank {
        let (database, proxy) = (server.existing(name), Proxy::start_mysql(server.addr()).await);
        Bank { server, database, proxy }
    }
}

/// Starts the servers and makes `rows` transactions.
pub(crate) async fn start(rows: u64) -> anyhow::Result<Servers> {
    eprintln!("starting MariaDB with two replicas, PostgreSQL and an S3 endpoint");
    let primary = MariaServer::start_primary();
    let (first, second) = (primary.replica(), primary.replica());
    let postgres = PostgresServer::start(Options::default());
    let (bank, warehouse) = (primary.database().await, postgres.database().await);
    for replica in [&first, &second] {
        primary.reach(replica).await;
    }
    let name = bank.name();
    let banks = [
        Bank::new(primary, name).await,
        Bank::new(first, name).await,
        Bank::new(second, name).await,
    ];
    let moto = Moto::start();
    let folder = TempDir::new().context("a folder to run commands in")?;
    fs::write(folder.path().join("windlass.toml"), windlass_toml()?)?;

    let begun = Instant::now();
    // The same rows on every server: that is faster than copying them through the binary log.
    let script = include_str!("../transactions.sql");
    let script = format!("SET sql_log_bin = 0, @rows = {rows};\n{script}");
    for bank in &banks {
        bank.database.run(&script).await;
    }
    warehouse.run(include_str!("../warehouse.sql")).await;
    eprintln!("{rows} transactions made three times in {:.1} s", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    let sql = "SELECT branch, count(*), COALESCE(sum(amount), 0) FROM transactions GROUP BY branch";
    let own = lines(bank.rows(sql).await);
    let took = begun.elapsed();
    eprintln!("added up by one statement of MariaDB's own in {:.1} s", took.as_secs_f64());
    Ok(Servers { banks, warehouse, moto, own: (own, took), folder, postgres })
}

/// The example's configuration with its replicas.
pub(crate) fn windlass_toml() -> anyhow::Result<String> {
    with_replicas(include_str!("../windlass.toml"))
}

/// A configuration whose commented `replicas` are used.
pub(crate) fn with_replicas(text: &str) -> anyhow::Result<String> {
    ensure!(text.contains("# replicas = "), "the configuration has no commented `replicas`");
    Ok(text.replace("# replicas = ", "replicas = "))
}

impl Servers {
    /// The variables that windlass.toml uses, and those of the S3 endpoint. The proxies are used only if they are to
    /// fail reads.
    pub(crate) fn environment(&self, weather: Weather) -> Vec<(String, String)> {
        let mut variables = self.moto.environment();
        for (bank, name) in self.banks.iter().zip(["SOURCE_URL", "REPLICA_1_URL", "REPLICA_2_URL"])
        {
            let url = match weather {
                Weather::Calm => bank.database.url().to_owned(),
                Weather::FailingReads => bank.proxy.url_via(bank.database.url()),
            };
            variables.push((name.to_owned(), url));
        }
        for (name, value) in [
            ("WAREHOUSE_URL", self.warehouse.url().to_owned()),
            ("OUTPUT", format!("s3://{}/nightly", Moto::BUCKET)),
        ] {
            variables.push((name.to_owned(), value));
        }
        variables
    }

    /// Makes this share of the statements with `text` fail, on all servers of the bank.
    pub(crate) fn fail_reads(&self, text: &str, percent: u8) {
        for bank in &self.banks {
            bank.proxy.fail_reads(text, percent);
        }
    }

    /// The number of such statements, and how many of them failed.
    pub(crate) fn reads(&self) -> (usize, usize) {
        let reads = self.banks.iter().map(|bank| bank.proxy.reads());
        reads.fold((0, 0), |sum, reads| (sum.0 + reads.0, sum.1 + reads.1))
    }
}

/// The totals of a date in a warehouse.
pub(crate) async fn loaded(warehouse: &Database, date: &str) -> Vec<String> {
    let sql = format!(
        "SELECT COALESCE(string_agg(concat_ws(E'\\t', branch, transactions, total), E'\\n'), '') \
         FROM daily_report WHERE date = '{date}'"
    );
    let text: String = warehouse.one(&sql).await;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn lines(rows: Vec<Vec<Option<String>>>) -> Vec<String> {
    let line = |row: Vec<Option<String>>| {
        row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join("\t")
    };
    let mut lines: Vec<String> = rows.into_iter().map(line).collect();
    lines.sort();
    lines
}
