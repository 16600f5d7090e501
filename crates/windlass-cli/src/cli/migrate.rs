//! `windlass migrate`: the store's schema, and what is kept beside the user's data.

use super::config;
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::Engine;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Only show the statements and privileges each connection's ledger and outbox need
    #[arg(long)]
    print: bool,
}

pub(super) async fn run(args: Args, path: &Path) -> Result<ExitCode> {
    let config = config::config(path)?;
    let engine = Engine::builder(config).connect().await?;
    for (name, configured) in &engine.config().connections {
        let connection = engine.connection(name)?;
        let outbox = configured.outbox.then(|| connection.outbox());
        if args.print {
            println!("-- connection {name}\n{}", connection.ledger_ddl());
            if let Some(outbox) = outbox {
                println!("{}", outbox.ddl());
            }
            continue;
        }
        connection.prepare().await?;
        println!("connection {name}: the ledger is there");
        if let Some(outbox) = outbox {
            outbox.prepare().await?;
            println!("connection {name}: the outbox is there");
        }
    }
    if !args.print {
        println!("store: up to date");
    }
    Ok(ExitCode::SUCCESS)
}
