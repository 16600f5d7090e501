//! `windlass init`: writes a commented windlass.toml with job types that pass `check` and change nothing.

use super::private;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Write as _};
use std::path::Path;
use std::process::ExitCode;
use windlass_connectors::Connection;
use windlass_core::{ColumnType, Source, Table};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  windlass init                                          asks for a database
  windlass init sqlite:app.db
  windlass init postgres://localhost/app --table orders --table order_lines
  windlass init postgres://localhost/app --schema sales
  windlass init mysql://user@localhost/app
  windlass init dynamodb://eu-west-1")]
pub(super) struct Args {
    /// A database whose tables become job types: sqlite:FILE, postgres://…, mysql://…,
    /// dynamodb://REGION
    url: Option<String>,
    /// A table; may be repeated. The largest tables by default
    #[arg(long, value_name = "TABLE", requires = "url")]
    table: Vec<String>,
    /// Only tables of this schema, in PostgreSQL
    #[arg(long, value_name = "SCHEMA", requires = "url")]
    schema: Option<String>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// The part of the file that needs no database.
const HEAD: &str = include_str!("init.toml");
/// The tables that become job types if none is named, to keep the file readable.
const MAX_TABLES: usize = 10;
/// The tables whose size is compared.
const MAX_COMPARED: usize = 300;

pub(super) async fn run(args: Args, path: &Path) -> Result<ExitCode> {
    if path.exists() && !args.force {
        bail!("{} already exists; --force overwrites it", path.display());
    }
    let (url, tables) = match args.url {
        None if std::io::stdin().is_terminal() => ask()?,
        url => (url, args.table),
    };
    let Some(url) = url else {
        let text = format!("{HEAD}\n{}", example("sqlite:app.db"));
        private::write(path, &text).with_context(|| path.display().to_string())?;
        println!("wrote {}; validate it with `windlass check`", path.display());
        return Ok(ExitCode::SUCCESS);
    };
    let (text, first) = from_database(&url, &tables, args.schema.as_deref()).await?;
    private::write(path, &format!("{HEAD}\n{text}")).with_context(|| path.display().to_string())?;
    println!("wrote {}; validate it with `windlass check`", path.display());
    if let Some(first) = first {
        println!("then see a few records, and change nothing: windlass run {first} --dry-run");
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks for the database and the tables.
fn ask() -> Result<(Option<String>, Vec<String>)> {
    let mut lines = std::io::stdin().lock().lines();
    let mut answer = |question: &str| -> Result<String> {
        print!("{question} ");
        std::io::stdout().flush()?;
        Ok(lines.next().transpose()?.unwrap_or_default().trim().to_owned())
    };
    let url = answer("Database (sqlite:FILE, postgres://…, mysql://…; empty for an example):")?;
    if url.is_empty() {
        return Ok((None, Vec::new()));
    }
    let tables = answer("Tables, separated by commas (empty for the largest ones):")?;
    let tables = tables.split(',').map(str::trim).filter(|name| !name.is_empty());
    Ok((Some(url), tables.map(str::to_owned).collect()))
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

/// The connection and the job types of a database, and the name of the first job type that can run.
async fn from_database(
    url: &str,
    named: &[String],
    schema: Option<&str>,
) -> Result<(String, Option<String>)> {
    let connection_to = windlass_connectors::connect(url, 2).await?;
    let (tables, more) = tables(connection_to.as_ref(), url, named, schema).await?;
    // A password must not be in a file that may be committed to version control.
    let written = if windlass_drivers::redact(url) == url { url } else { "${DATABASE_URL}" };
    let mut text = connection(written);
    if written != url {
        text.insert_str(0, "# The URL has a password: set DATABASE_URL in the environment.\n");
    }
    let (mut names, mut first) = (BTreeSet::new(), None);
    for table in &tables {
        let name = unique_name(&table.name, &mut names);
        text.push_str(&job_types(table, &name));
        if first.is_none() && is_usable(table) {
            first = Some(format!("{}_{name}", reading(table)));
        }
    }
    if more > 0 {
        let _ = writeln!(text, "# … and {more} smaller tables; `--table` names others");
    }
    Ok((text, first))
}

/// The tables to write, and how many others there are.
async fn tables(
    connection: &dyn Connection,
    url: &str,
    named: &[String],
    schema: Option<&str>,
) -> Result<(Vec<Table>, usize)> {
    let describe = async |name: String| {
        let source = Source { table: Some(name), ..Source::default() };
        connection.describe(&source).await
    };
    let in_schema = |name: &String| match (schema, name.split_once('.')) {
        (Some(schema), None) => format!("{schema}.{name}"),
        _ => name.clone(),
    };
    if !named.is_empty() {
        let mut tables = Vec::new();
        for name in named {
            tables.push(describe(in_schema(name)).await?);
        }
        return Ok((tables, 0));
    }
    let mut names = connection.base_tables().await?;
    if names.is_empty() {
        bail!("{} has no tables", windlass_drivers::redact(url));
    }
    if let Some(schema) = schema {
        // Tables of the search path are listed without their schema.
        let mut kept = Vec::new();
        for name in names {
            match name.split_once('.') {
                Some((of, _)) if of == schema => kept.push(name),
                Some(_) => {}
                None if describe(format!("{schema}.{name}")).await.is_ok() => kept.push(name),
                None => {}
            }
        }
        // A table of the search path may have the name of another one in this schema.
        let unique: BTreeSet<String> = kept.iter().map(in_schema).collect();
        names = unique.into_iter().collect();
        if names.is_empty() {
            bail!("--schema {schema}: {} has no tables in it", windlass_drivers::redact(url));
        }
    }
    let count = names.len();
    let mut tables = Vec::new();
    for name in names.into_iter().take(MAX_COMPARED) {
        // A table that cannot be read by this user is no job type.
        tables.extend(describe(name).await.ok());
    }
    tables.sort_by_key(|table| std::cmp::Reverse((is_usable(table), table.estimated_rows)));
    tables.truncate(MAX_TABLES);
    let more = count - tables.len();
    Ok((tables, more))
}

/// The part of a job type's name that stands for a table; no two tables have the same.
fn unique_name(table: &str, taken: &mut BTreeSet<String>) -> String {
    let name = table.to_uppercase().replace(|c: char| !c.is_alphanumeric(), "_");
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let mut candidates = std::iter::once(name.clone()).chain(numbered);
    let free = candidates.find(|candidate| taken.insert(candidate.clone()));
    free.unwrap_or(name)
}

fn connection(url: &str) -> String {
    format!("[connections.app]\nurl = {}\n\n", quoted(url))
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Whether a job type on the table can run as it is written.
fn is_usable(table: &Table) -> bool {
    let has_guard = !table.open || version(table).is_some();
    !table.primary_key.is_empty() && has_guard
}

/// The column that looks like an optimistic lock.
fn version(table: &Table) -> Option<&'static str> {
    let is_version = |name: &&str| {
        table.column(name).is_some_and(|column| column.kind == ColumnType::Int && !column.nullable)
    };
    ["version", "lock_version", "row_version"].into_iter().find(is_version)
}

/// What the first job type of a table does: DynamoDB computes nothing, so its records are refreshed.
fn reading(table: &Table) -> &'static str {
    if table.open { "REFRESH" } else { "COUNT" }
}

/// The job types of a table: one that reads it, and one that refreshes it where it has a version. They
/// are comments where the user has to decide something.
fn job_types(table: &Table, name: &str) -> String {
    let mut lines = vec![format!("# {}: about {} rows", table.name, table.estimated_rows)];
    let prefix = if is_usable(table) { "" } else { "# " };
    let mut field = |line: String| lines.push(format!("{prefix}{line}"));
    let source = |field: &mut dyn FnMut(String)| {
        field("source.connection = \"app\"".to_owned());
        field(format!("source.table = {}", quoted(&table.name)));
        match table.primary_key.as_slice() {
            [] => field(
                "source.key = [\"…\"]           # the table has no primary key: name a unique, indexed, \
                 NOT NULL key"
                    .to_owned(),
            ),
            key => field(format!("source.key = {}", serde_json::json!(key))),
        }
    };
    if !table.open {
        field(format!("[jobs.COUNT_{name}]"));
        field("description = \"Count the rows; changes nothing\"".to_owned());
        source(&mut field);
        field("step.map = \"SELECT count(*) AS n FROM {source} WHERE {chunk}\"".to_owned());
        field("reduce = \"SELECT sum(n) AS n FROM parts\"".to_owned());
    }
    let version = version(table);
    if table.open || version.is_some() {
        field(String::new());
        field(format!("[jobs.REFRESH_{name}]"));
        field("description = \"Write each record back as it is, so that triggers run\"".to_owned());
        source(&mut field);
        field("step.refresh = true".to_owned());
        match version {
            Some(version) => field(format!("step.version = \"{version}\"")),
            None => {
                field("step.version = \"version\"      # an attribute with a number".to_owned())
            }
        }
    }
    let text: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    text.join("\n") + "\n\n"
}
