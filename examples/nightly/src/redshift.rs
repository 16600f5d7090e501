//! Loads the report into Redshift's stand-in: the result in S3, COPY, and one transaction.

use std::fs;
use std::time::{Duration, Instant};

use windlass_testkit::RedshiftServer;

use crate::command;
use crate::night::Weather;
use crate::servers::{Servers, loaded, with_replicas};

const DATE: &str = "2026-02-02";

/// The measurements of the load.
pub(crate) struct Load {
    pub(crate) report: Duration,
    /// Whether the stand-in has the same totals as the bank, to the cent.
    pub(crate) equal: bool,
}

/// Runs the report of `windlass-redshift.toml`.
pub(crate) async fn run(servers: &Servers) -> anyhow::Result<Load> {
    let database = servers.postgres.database().await;
    let redshift = RedshiftServer::start(&database, &servers.moto).await;
    redshift.run(include_str!("../redshift.sql")).await;
    let config = with_replicas(include_str!("../windlass-redshift.toml"))?;
    fs::write(servers.folder.path().join("windlass-redshift.toml"), config)?;
    let mut environment = servers.environment(Weather::Calm);
    environment.extend(
        [
            ("STORE_URL", servers.warehouse.url().to_owned()),
            ("REDSHIFT_URL", redshift.url()),
            ("REDSHIFT_ROLE", "arn:aws:iam::123456789012:role/redshift-copy".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let param = format!("date={DATE}");
    let config = ["--config", "windlass-redshift.toml"];
    let arguments = ["run", "DAILY_REPORT", "--param", &param, "--json"];
    let begun = Instant::now();
    let arguments = [&config[..], &arguments].concat();
    let done = command::run(servers.folder.path(), &environment, &arguments).await?;
    let report = begun.elapsed();
    eprintln!("DAILY_REPORT into Redshift's stand-in: {}", done.json["status"]);
    Ok(Load { report, equal: loaded(&database, DATE).await == servers.own.0 })
}
