//! A worker with the handlers of the benchmarks, in a process of its own that a benchmark can start and kill.

use anyhow::Result;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::Path;
use std::time::Duration;
use windlass::{Config, Engine, Options, Outcome, Worker};

/// How long the handler `sleep` takes for an item.
pub(crate) const SLEEP: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Line {
    l_points: i64,
}

/// Works with the configuration of the current folder until it is killed.
pub(crate) async fn run(slots: Option<usize>) -> Result<()> {
    let slots = slots.unwrap_or(Options::default().slots);
    let engine = Engine::builder(Config::from_path(Path::new("windlass.toml"))?)
        .handler(
            "raise",
            |line: Line, _| async move { Ok(Outcome::set("l_points", line.l_points + 1)) },
        )
        .handler("sleep", |_: IgnoredAny, _| async move {
            tokio::time::sleep(SLEEP).await;
            Ok(Outcome::Skip)
        })
        .connect()
        .await?;
    let (worker, _handle) = Worker::new(engine, Options::default().with_slots(slots));
    worker.run().await;
    Ok(())
}
