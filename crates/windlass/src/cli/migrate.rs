//! `windlass migrate`: the store's schema and the ledgers' tables.

use super::load;
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::Engine;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Only show the statements and privileges each connection's ledger needs
    #[arg(long)]
    print: bool,
}

pub(super) async fn run(args: Args, path: &Path) -> Result<ExitCode> {
    let config = load::config(path)?;
    let names: Vec<String> = config.connections.keys().cloned().collect();
    let engine = Engine::builder(config).connect().await?;
    for name in names {
        let connection = engine.connection(&name)?;
        if args.print {
            println!("-- connection {name}\n{}", connection.ledger_ddl());
        } else {
            connection.prepare().await?;
            println!("connection {name}: the ledger is there");
        }
    }
    if !args.print {
        println!("store: up to date");
    }
    Ok(ExitCode::SUCCESS)
}
