//! `windlass alerts`: the alerts and their delivery.

use super::{config, print};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use uuid::Uuid;
use windlass_core::Delivery;
use windlass_store::{Alert, AlertFilter};

#[derive(clap::Args)]
#[command(after_help = "`windlass serve` raises alerts and posts them to the webhook in [alerts].

Example:
  windlass alerts --limit 10 --json")]
pub(super) struct Args {
    /// Maximum number of alerts to list
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Only alerts older than this one, for the next page
    #[arg(long, value_name = "ID")]
    before: Option<Uuid>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let filter = AlertFilter { before: args.before, limit: args.limit, ..AlertFilter::default() };
    let alerts = engine.store().alerts(&filter).await?;
    if args.json {
        print::json(&alerts)?;
        return Ok(ExitCode::SUCCESS);
    }
    if alerts.is_empty() {
        println!("no alerts; `windlass serve` raises them");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = print::table(&["AT", "KIND", "DELIVERY", "MESSAGE"]);
    for alert in &alerts {
        let over = if alert.cleared_at.is_some() { " (cleared)" } else { "" };
        let kind = format!("{}{over}", alert.kind);
        let message = print::short(&alert.message, 160);
        table.add_row([print::time(alert.at), kind, delivery(alert), message]);
    }
    println!("{table}");
    Ok(ExitCode::SUCCESS)
}

/// The state of the delivery, with the error where it failed.
fn delivery(alert: &Alert) -> String {
    let error = alert.error.as_deref().map(|error| print::short(error, 80));
    match (alert.delivery, error) {
        (Delivery::Delivered | Delivery::Logged, _) | (_, None) => alert.delivery.to_string(),
        (delivery, Some(error)) => {
            format!("{delivery} after {}: {error}", print::count(alert.attempts.into(), "attempt"))
        }
    }
}
