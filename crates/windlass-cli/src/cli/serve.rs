//! `windlass serve`: the API and the dashboard, schedules, dependencies and alerts, and workers beside them.

use super::config;
use super::progress::Interrupt;
use anyhow::Result;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use windlass::{Engine, Handle, Options, Server, Worker};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  windlass serve                        dashboard and API on 127.0.0.1:8080, schedules, workers
  windlass serve --concurrency 0            the API and the schedules alone
  windlass serve --listen 0.0.0.0:80    for other machines; needs [auth] in windlass.toml")]
pub(super) struct Args {
    /// Chunks at work at once in this process; 0 works none
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1024))]
    concurrency: Option<u16>,
    /// The address, instead of what [server] says
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    restore: config::Restore,
}

pub(super) async fn run(args: Args, path: &Path) -> Result<ExitCode> {
    let mut config = config::config(path)?;
    config.server.listen = args.listen.unwrap_or(config.server.listen);
    let mut interrupt = Interrupt::listen()?;
    let engine = Engine::builder(config).connect().await?;
    args.restore.check(&engine).await?;
    let server = Server::bind(engine.clone()).await?;
    let open = if engine.config().auth.is_some() { "" } else { ", for this machine alone" };
    eprintln!("listening on http://{}{open}; Ctrl-C or SIGTERM stops", server.address()?);
    let (defaults, timekeeper) = (Options::default(), engine.clone());
    let slots = args.concurrency.map_or(defaults.slots, usize::from);
    let (working, handle) = (slots > 0)
        .then(|| {
            let (worker, handle) = Worker::new(engine, Options { slots, ..defaults });
            (tokio::spawn(worker.run()), handle)
        })
        .unzip();
    let alone = handle.is_none();
    let keeping = tokio::spawn(async move {
        // A worker does the last two by itself.
        let beside = async {
            if alone {
                tokio::join!(timekeeper.run_dependents(), timekeeper.run_outbox_relay());
            }
        };
        tokio::join!(timekeeper.run_scheduler(), timekeeper.run_alerts(), beside);
    });
    let leave = || handle.iter().for_each(Handle::shutdown);
    let stop = async {
        interrupt.wait().await;
        eprintln!("stopping: nothing new is claimed or accepted, what is under way finishes");
        leave();
    };
    let served = server.run(stop).await;
    leave();
    // Given up anywhere, what was half done is finished, or done again as the same, by whoever
    // comes next.
    keeping.abort();
    if let Some(working) = working {
        working.await?;
    }
    served?;
    eprintln!("stopped");
    Ok(ExitCode::SUCCESS)
}
