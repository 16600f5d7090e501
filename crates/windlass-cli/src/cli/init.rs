//! `windlass init`: writes a commented windlass.toml.

use super::private;
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use windlass_core::{ColumnType, Source, Table};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  windlass init
  windlass init sqlite:app.db
  windlass init postgres://localhost/app
  windlass init mysql://user@localhost/app
  windlass init dynamodb://eu-west-1")]
pub(super) struct Args {
    /// A database whose tables become job types: sqlite:FILE, postgres://…, mysql://…,
    /// dynamodb://REGION
    url: Option<String>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// The part of the file that needs no database.
const HEAD: &str = include_str!("init.toml");
/// Further tables are left out, to keep the file readable.
const MAX_TABLES: usize = 20;

pub(super) async fn run(args: Args, path: &Path) -> Result<ExitCode> {
    if path.exists() && !args.force {
        bail!("{} already exists; --force overwrites it", path.display());
    }
    let text = match &args.url {
        None => format!("{HEAD}\n{}", example("sqlite:app.db")),
        Some(url) => format!("{HEAD}\n{}", from_database(url).await?),
    };
    private::write(path, &text).with_context(|| path.display().to_string())?;
    println!("wrote {}; validate it with `windlass check`", path.display());
    Ok(ExitCode::SUCCESS)
}

fn example(url: &str) -> String {
    let table = "accounts";
    let mut text = connection(url);
    let _ = write!(
        text,
        "# [jobs.RAISE_{}]\n# source.connection = \"app\"\n# source.table = \"{table}\"\n\
         # step.sql = \"UPDATE {table} SET balance = balance + 1 WHERE {{chunk}}\"\n",
        table.to_uppercase()
    );
    text
}

async fn from_database(url: &str) -> Result<String> {
    let connection_to = windlass_connectors::connect(url, 2).await?;
    let names = connection_to.tables().await?;
    if names.is_empty() {
        bail!("{} has no tables", windlass_drivers::redact(url));
    }
    // A password must not be in a file that may be committed to version control.
    let written = if windlass_drivers::redact(url) == url { url } else { "${DATABASE_URL}" };
    let mut text = connection(written);
    if written != url {
        text.insert_str(0, "# The URL has a password: set DATABASE_URL in the environment.\n");
    }
    for name in names.iter().take(MAX_TABLES) {
        let source = Source { table: Some(name.clone()), ..Source::default() };
        text.push_str(&job_type(&connection_to.describe(&source).await?));
    }
    if names.len() > MAX_TABLES {
        let _ = writeln!(text, "# … and {} more tables", names.len() - MAX_TABLES);
    }
    Ok(text)
}

fn connection(url: &str) -> String {
    format!("[connections.app]\nurl = \"{url}\"\n\n")
}

/// A job type for a table, commented out where the user has to decide something.
fn job_type(table: &Table) -> String {
    let name = table.name.to_uppercase().replace(|c: char| !c.is_alphanumeric(), "_");
    let is_version =
        |name: &&str| table.column(name).is_some_and(|column| column.kind == ColumnType::Int);
    let version =
        ["version", "lock_version", "row_version"].into_iter().find(|name| is_version(name));
    let mut lines = Vec::new();
    lines.push(format!("# {}: about {} rows", table.name, table.estimated_rows));
    let ready = version.is_some() && !table.primary_key.is_empty();
    let prefix = if ready { "" } else { "# " };
    let mut field = |line: String| lines.push(format!("{prefix}{line}"));
    field(format!("[jobs.REFRESH_{name}]"));
    field("source.connection = \"app\"".to_owned());
    field(format!("source.table = \"{}\"", table.name));
    match table.primary_key.as_slice() {
        [] => field("source.key = [\"…\"]           # the table has no primary key: name a unique, indexed, NOT NULL key".to_owned()),
        key => field(format!("source.key = {key:?}")),
    }
    match version {
        Some(version) => {
            field("step.refresh = true".to_owned());
            field(format!("step.version = \"{version}\""));
        }
        None if table.open => {
            field("step.refresh = true".to_owned());
            field("step.version = \"version\"      # an attribute with a number".to_owned());
        }
        None => field(format!(
            "step.sql = \"UPDATE {} SET … WHERE {{chunk}}\"   # no version column: `sql` steps only",
            table.name
        )),
    }
    lines.join("\n") + "\n\n"
}
