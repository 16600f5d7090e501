//! Gives candidates what their documents lack and their original publications have.
//!
//! A line with a batch comes in, a line with its results goes out, until standard input ends: see
//! docs/handlers.md. The same program serves on PostgreSQL and on Lambda. Windlass writes a document
//! back under the candidate's version: if somebody changes it meanwhile, the candidate comes again as
//! it is then, so nothing of theirs is overwritten.

mod migrate;

use anyhow::Context;
use futures::{StreamExt, stream};
use migrate::{Item, migrate};
use serde::Deserialize;
use serde_json::json;
use std::io::Write;
use tokio::io::{AsyncBufReadExt, BufReader};
use windlass_export::Destination;

/// An original takes its time to come, so several are on their way.
const AT_ONCE: usize = 16;

#[derive(Deserialize)]
struct Batch {
    items: Vec<Item>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::var("ORIGINALS")
        .context("ORIGINALS is not set; file:FOLDER/ or s3://BUCKET/PREFIX/ would be right")?;
    let originals = Destination::open(&url).context("ORIGINALS")?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let batch: Batch = serde_json::from_str(&line).context("a batch")?;
        let results = batch.items.iter().map(|item| migrate(&originals, item));
        let results: Vec<_> = stream::iter(results).buffered(AT_ONCE).collect().await;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", json!({ "results": results }))?;
        out.flush()?;
    }
    Ok(())
}
