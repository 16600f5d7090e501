//! An `http` step to a service that changes nothing, compared with plain POSTs to the same service.

use crate::posts::Posts;
use crate::python::interpreter;
use crate::report::Report;
use crate::script::{Script, job};
use crate::setup::{Bench, accounts, builder, median, time_job};
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use windlass::Options;

const ECHO: &str = include_str!("../python/echo.py");

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rows = bench.rows(1_000_000);
    let slots = Options::default().slots;
    let database = bench.database().await;
    accounts(&database, rows).await;
    // A service gets the same lines as a command.
    let posts = Posts::read(&Script::prepare()?.record(&database, rows).await?)?;
    let service = Service::start()?;
    let step = format!("step.http = \"http://127.0.0.1:{}/\"", service.port);
    let engine = builder(&database, &job("NOTHING", &step))?.connect().await?;
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        bare.push(posts.send(service.port, slots).await?.took);
        ours.push(time_job(&engine, "NOTHING", slots).await?);
    }
    let (bare, ours) = (median(bare), median(ours));
    let rate = |seconds: f64| rows as f64 / seconds;
    let detail = format!("{:.0} items/s, bare POSTs {:.0}", rate(ours), rate(bare));
    report.at_least("http: against bare POSTs", bare / ours, 0.85, detail);
    Ok(())
}

/// The service in a child process. It ends when its standard input closes, so it never outlives this
/// process.
struct Service {
    process: Child,
    port: u16,
}

impl Service {
    fn start() -> Result<Service> {
        let mut process = Command::new(interpreter()?)
            .args(["-c", ECHO])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let output = process.stdout.as_mut().context("standard output is a pipe")?;
        BufReader::new(output).read_line(&mut line)?;
        let port = line.trim().parse().context("the service did not say its port")?;
        Ok(Service { process, port })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
