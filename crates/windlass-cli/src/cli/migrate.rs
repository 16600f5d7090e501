//! `windlass migrate`: creates or updates the tables of the store, the ledgers and the outboxes.

use super::config;
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Print the statements and privileges that the ledger and outbox of each connection need
    #[arg(long)]
    print: bool,
}

pub(super) async fn run(args: Args, path: &Path) -> Result<ExitCode> {
    let config = config::config(path)?;
    let engine = config::connect(config).await?;
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
        println!("connection {name}: ledger is up to date");
        if outbox.is_some() {
            engine.prepare_outbox(name).await?;
            println!("connection {name}: outbox is up to date");
        }
    }
    if !args.print {
        println!("store is up to date");
    }
    Ok(ExitCode::SUCCESS)
}
