//! Brings a candidate's document into its current form, and adds missing fields from its original publication. With the
//! argument `refresh` it does only the former, and gives back every candidate, so that every one is written.
//!
//! Reads a line with a batch and writes a line with its results, until standard input ends: see docs/handlers.md.
//! The same program runs with PostgreSQL and on Lambda. Windlass writes a document back on the condition that the
//! candidate's version is unchanged. If another writer changes it meanwhile, the candidate is read and handled
//! again, so no change is overwritten.

mod migrate;
mod on_read;

use anyhow::{Context, bail};
use futures::{StreamExt, stream};
use migrate::{Item, migrate, refresh};
use serde::Deserialize;
use serde_json::json;
use std::io::Write;
use tokio::io::{AsyncBufReadExt, BufReader};
use windlass_export::Destination;

/// Originals that are fetched concurrently.
const AT_ONCE: usize = 16;

#[derive(Deserialize)]
struct Batch {
    items: Vec<Item>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let originals = match std::env::args().nth(1).as_deref() {
        Some("refresh") => None,
        Some(other) => bail!("`{other}` is unknown; expected `refresh` or no argument"),
        None => Some(originals()?),
    };
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let batch: Batch = serde_json::from_str(&line).context("a batch")?;
        let results: Vec<_> = match &originals {
            None => batch.items.iter().map(refresh).collect(),
            Some(originals) => {
                let results = batch.items.iter().map(|item| migrate(originals, item));
                stream::iter(results).buffered(AT_ONCE).collect().await
            }
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", json!({ "results": results }))?;
        out.flush()?;
    }
    Ok(())
}

fn originals() -> anyhow::Result<Destination> {
    let url = std::env::var("ORIGINALS")
        .context("ORIGINALS is not set; it must be file:FOLDER/ or s3://BUCKET/PREFIX/")?;
    Destination::open(&url).context("ORIGINALS")
}
