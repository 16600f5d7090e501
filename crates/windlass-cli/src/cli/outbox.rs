//! `windlass outbox`: requests that wait to be submitted, and why.

use super::{config, print};
use anyhow::Result;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

#[derive(clap::Args)]
#[command(
    after_help = "Applications put requests into the outbox of a connection with `outbox = true`.
`windlass serve` and `windlass worker` submit them. A request leaves the outbox when it is submitted; a refused one stays and is retried."
)]
pub(super) struct Args {
    /// Maximum number of requests to list per connection
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let mut outboxes = Vec::new();
    for name in engine.outboxes() {
        outboxes.push((name, engine.waiting(name, args.limit).await?));
    }
    if args.json {
        let shown = outboxes.iter().map(|(name, waiting)| {
            json!({"connection": name, "hasTable": waiting.is_some(), "waiting": waiting.as_deref().unwrap_or_default()})
        });
        print::json(&shown.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    if outboxes.is_empty() {
        println!("no outboxes; add `outbox = true` to a connection");
    }
    for (name, waiting) in &outboxes {
        let Some(waiting) = waiting else {
            println!(
                "connection {name}: no table `windlass_outbox`; create it with `windlass migrate`"
            );
            continue;
        };
        if waiting.is_empty() {
            println!("connection {name}: empty");
            continue;
        }
        println!("connection {name}:");
        let mut table = print::table(&["ID", "TYPE", "CREATED", "ATTEMPTS", "NEXT ATTEMPT", "WHY"]);
        for row in waiting {
            let why =
                row.error.as_deref().unwrap_or("waiting for `windlass serve` or `windlass worker`");
            table.add_row([
                row.id.to_string(),
                row.job_type.clone(),
                print::time(row.created_at),
                row.attempts.to_string(),
                row.error.as_ref().map(|_| print::time(row.next_at)).unwrap_or_default(),
                print::short(why, 120),
            ]);
        }
        println!("{table}");
    }
    Ok(ExitCode::SUCCESS)
}
