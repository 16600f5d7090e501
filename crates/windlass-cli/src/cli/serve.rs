//! `windlass serve`: the API, the dashboard, schedules, dependencies, alerts, the outbox relay and workers.

use super::config;
use super::progress::Interrupt;
use anyhow::Result;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use windlass::Service;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  windlass serve                        dashboard and API on 127.0.0.1:8080, schedules, workers
  windlass serve --concurrency 0        the API and the schedules, without workers
  windlass serve --listen 0.0.0.0:80    for other machines; needs [auth] in windlass.toml")]
pub(super) struct Args {
    /// Chunks in progress at once in this process; 0 runs no jobs here
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1024))]
    concurrency: Option<u16>,
    /// The address, instead of server.listen
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    restore: config::Restore,
}

pub(super) async fn run(args: Args, path: &Path) -> Result<ExitCode> {
    let mut config = config::config(path)?;
    config.server.listen = args.listen.unwrap_or(config.server.listen);
    let mut interrupt = Interrupt::listen()?;
    let engine = config::connect(config).await?;
    args.restore.check(&engine).await?;
    let scope = if engine.config().auth.is_some() { "" } else { ", on this machine only" };
    let mut service = Service::builder(engine).shutdown_on(async move {
        interrupt.wait().await;
        eprintln!(
            "stopping: commits and requests in progress finish; unfinished chunks are handed back"
        );
    });
    if let Some(slots) = args.concurrency {
        service = service.concurrency(slots.into());
    }
    let service = service.bind().await?;
    eprintln!("listening on http://{}{scope}; stop with Ctrl-C or SIGTERM", service.address()?);
    service.run().await?;
    eprintln!("stopped");
    Ok(ExitCode::SUCCESS)
}
