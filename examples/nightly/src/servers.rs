//! The bank, the warehouse and the object store: real servers, which stop with this process.

use std::fs;
use std::time::{Duration, Instant};

use crate::night::Weather;
use anyhow::Context;
use tempfile::TempDir;
use windlass_testkit::{
    Database, MariaDatabase, MariaServer, Moto, Options, PostgresServer, Proxy,
};

/// The servers of a night.
pub(crate) struct Servers {
    pub(crate) bank: MariaDatabase,
    pub(crate) warehouse: Database,
    /// A proxy in front of the bank that forwards everything until it is told to fail.
    pub(crate) proxy: Proxy,
    pub(crate) moto: Moto,
    /// The totals from a single statement on the bank, and its duration.
    pub(crate) own: (Vec<String>, Duration),
    /// The folder of the commands, with the example's windlass.toml.
    pub(crate) folder: TempDir,
    _bank: MariaServer,
    _warehouse: PostgresServer,
}

/// Starts the servers and makes `rows` transactions.
pub(crate) async fn start(rows: u64) -> anyhow::Result<Servers> {
    eprintln!("starting MariaDB, PostgreSQL and an S3 endpoint");
    let (mariadb, postgres) = (MariaServer::start(), PostgresServer::start(Options::default()));
    let (bank, warehouse) = (mariadb.database().await, postgres.database().await);
    let proxy = Proxy::start_mysql(mariadb.addr()).await;
    let moto = Moto::start();
    let folder = TempDir::new().context("a folder to run commands in")?;
    fs::write(folder.path().join("windlass.toml"), include_str!("../windlass.toml"))?;

    let begun = Instant::now();
    bank.run(&format!("SET @rows = {rows};\n{}", include_str!("../transactions.sql"))).await;
    warehouse.run(include_str!("../warehouse.sql")).await;
    eprintln!("{rows} transactions made in {:.1} s", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    let sql = "SELECT branch, count(*), COALESCE(sum(amount), 0) FROM transactions GROUP BY branch";
    let own = lines(bank.rows(sql).await);
    let took = begun.elapsed();
    eprintln!("added up by one statement of MariaDB's own in {:.1} s", took.as_secs_f64());
    Ok(Servers {
        bank,
        warehouse,
        proxy,
        moto,
        own: (own, took),
        folder,
        _bank: mariadb,
        _warehouse: postgres,
    })
}

impl Servers {
    /// The variables that windlass.toml uses, and those of the S3 endpoint. The proxy is used only if it is to
    /// fail reads.
    pub(crate) fn environment(&self, weather: Weather) -> Vec<(String, String)> {
        let source = match weather {
            Weather::Calm => self.bank.url().to_owned(),
            Weather::FailingReads => self.proxy.url_via(self.bank.url()),
        };
        let mut variables = self.moto.environment();
        for (name, value) in [
            ("SOURCE_URL", source),
            ("WAREHOUSE_URL", self.warehouse.url().to_owned()),
            ("OUTPUT", format!("s3://{}/nightly", Moto::BUCKET)),
        ] {
            variables.push((name.to_owned(), value));
        }
        variables
    }

    /// The totals in the warehouse for a date.
    pub(crate) async fn loaded(&self, date: &str) -> Vec<String> {
        let sql = format!(
            "SELECT COALESCE(string_agg(concat_ws(E'\\t', branch, transactions, total), E'\\n'), '') \
             FROM daily_report WHERE date = '{date}'"
        );
        let text: String = self.warehouse.one(&sql).await;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

fn lines(rows: Vec<Vec<Option<String>>>) -> Vec<String> {
    let line = |row: Vec<Option<String>>| {
        row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join("\t")
    };
    let mut lines: Vec<String> = rows.into_iter().map(line).collect();
    lines.sort();
    lines
}
