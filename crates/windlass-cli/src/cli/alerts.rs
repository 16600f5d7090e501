//! `windlass alerts`: lists alerts and their delivery, and acknowledges them.

use super::{config, print};
use anyhow::{Result, bail};
use std::path::Path;
use std::process::ExitCode;
use uuid::Uuid;
use windlass::Engine;
use windlass_core::Delivery;
use windlass_store::{Alert, AlertFilter};

#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "`windlass serve` raises alerts and posts them to the webhook in [alerts].

Examples:
  windlass alerts --open                 alerts that are neither acknowledged nor over
  windlass alerts acknowledge 3f2a91c4   it is being handled
  windlass alerts acknowledge --all
  windlass alerts --limit 10 --json"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only alerts that are neither acknowledged nor over
    #[arg(long)]
    open: bool,
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

#[derive(clap::Subcommand)]
enum Command {
    /// Record that alerts are being handled: the dashboard no longer shows them as open
    Acknowledge(AcknowledgeArgs),
}

#[derive(clap::Args)]
struct AcknowledgeArgs {
    /// The alerts: their ids, or the last characters of an id
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// All open alerts
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Alerts that are read to find one by a part of its id, or to acknowledge all.
const MAX_ALERTS: u32 = 10_000;

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    match args.command {
        Some(Command::Acknowledge(args)) => acknowledge(&engine, args).await?,
        None => list(&engine, args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(engine: &Engine, args: Args) -> Result<()> {
    let Args { open, limit, before, .. } = args;
    let filter = AlertFilter { open, before, limit, ..AlertFilter::default() };
    let alerts = engine.store().alerts(&filter).await?;
    if args.json {
        return print::json(&alerts);
    }
    if alerts.is_empty() {
        println!("no {}alerts; `windlass serve` raises them", if open { "open " } else { "" });
        return Ok(());
    }
    let mut table = print::table(&["ID", "AT", "KIND", "DELIVERY", "MESSAGE"]);
    for alert in &alerts {
        let message = print::short(&alert.message, 160);
        table.add_row([
            short_id(alert),
            print::time(alert.at),
            kind(alert),
            delivery(alert),
            message,
        ]);
    }
    println!("{table}");
    Ok(())
}

async fn acknowledge(engine: &Engine, args: AcknowledgeArgs) -> Result<()> {
    let filter = AlertFilter { open: args.all, limit: MAX_ALERTS, ..AlertFilter::default() };
    let known = engine.store().alerts(&filter).await?;
    let mut chosen = Vec::new();
    for text in &args.ids {
        let mut found = known.iter().filter(|alert| alert.id.to_string().ends_with(text.as_str()));
        match (found.next(), found.next()) {
            (Some(alert), None) => chosen.push(alert),
            (Some(_), Some(_)) => {
                bail!("several alerts have an id that ends with `{text}`; give more of it")
            }
            (None, _) => bail!("there is no alert {text}; `windlass alerts` lists them"),
        }
    }
    if args.all {
        chosen.extend(&known);
    }
    let by = Engine::local_identity().name;
    let mut acknowledged = Vec::new();
    for alert in chosen {
        if engine.store().acknowledge_alert(alert.id, &by).await? {
            acknowledged.push(alert.id);
        }
    }
    if args.json {
        return print::json(&serde_json::json!({ "acknowledged": acknowledged }));
    }
    println!("{} acknowledged", print::count(acknowledged.len() as i64, "alert"));
    Ok(())
}

/// The last characters of the id, which `acknowledge` takes.
fn short_id(alert: &Alert) -> String {
    let id = alert.id.to_string();
    id[id.len() - 8..].to_owned()
}

/// The kind, and whether the alert is over or acknowledged.
fn kind(alert: &Alert) -> String {
    match (alert.cleared_at, &alert.acknowledged_by) {
        (Some(_), _) => format!("{} (cleared)", alert.kind),
        (None, Some(by)) => format!("{} (acknowledged by {by})", alert.kind),
        (None, None) => alert.kind.to_string(),
    }
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
