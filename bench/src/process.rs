//! The AWS functions *process* and *start*, compared with the same loops in boto3, on the same moto. Only the
//! client's CPU time is compared: moto's own time says nothing about AWS.

use crate::report::Report;
use crate::setup::{Bench, binary};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use windlass_testkit::{Moto, Windlass, python_program};

const LOOPS: &str = include_str!("../python/aws.py");

const CONFIG: &str = "[connections.app]\nurl = \"dynamodb://\"\n[jobs.REFRESH_CANDIDATES]\n\
    source = { connection = \"app\", table = \"candidates\", key = [\"identifier\"] }\n\
    step = { refresh = true, version = \"version\" }\nqueue.message = \"REFRESH_CANDIDATE\"\n";

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let items = bench.rows(2000);
    let moto = Moto::start();
    let boto = Boto { endpoint: format!("http://{}", moto.addr()) };
    let queue = boto.run("make", &items.to_string())?;
    let folder = tempfile::tempdir()?;
    let windlass = windlass(&moto, folder.path(), CONFIG)?;

    let theirs_loading: f64 = boto.run("load", &queue)?.parse()?;
    let theirs: f64 = boto.run("work", &queue)?.parse()?;

    let begun = Instant::now();
    let (loading, _) =
        watched(&windlass, &["submit", "REFRESH_CANDIDATES", "--queue", &queue]).await?;
    let took = begun.elapsed().as_secs_f64();
    let writes = requests(&moto, "UpdateItem");
    let ours = work(&windlass, &boto, &queue).await?;
    let writes = (requests(&moto, "UpdateItem") - writes) / items as f64;

    let per = |seconds: f64| items as f64 / seconds.max(0.01);
    let detail = format!("{:.0} items a CPU second, boto3 {:.0}", per(ours), per(theirs));
    report.at_least("process: per CPU second, against boto3", theirs / ours, 2.0, detail);
    let detail = format!(
        "{:.0} messages a CPU second, boto3 {:.0}; {:.0} messages/s",
        per(loading),
        per(theirs_loading),
        per(took)
    );
    report.note("start: per CPU second, against boto3", theirs_loading / loading, detail);
    report.at_most("process: writes an item", writes, 1.05, format!("{items} items"));

    let several = CONFIG.replace("queue.message", "queue.items_per_message = 10\nqueue.message");
    std::fs::write(folder.path().join("windlass.toml"), several)?;
    watched(&windlass, &["submit", "REFRESH_CANDIDATES", "--queue", &queue]).await?;
    let ten = work(&windlass, &boto, &queue).await?;
    let detail = format!("{:.0} items a CPU second", per(ten));
    report.note("process: ten items a message, against boto3", theirs / ten, detail);
    Ok(())
}

/// The Python loops.
struct Boto {
    endpoint: String,
}

impl Boto {
    fn run(&self, what: &str, of: &str) -> Result<String> {
        let output = Command::new(python_program("python"))
            .args(["-c", LOOPS, what, &self.endpoint, of])
            .stderr(Stdio::inherit())
            .output()?;
        ensure!(output.status.success(), "aws.py {what}: {}", output.status);
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

fn windlass(moto: &Moto, folder: &Path, config: &str) -> Result<Windlass> {
    std::fs::write(folder.join("windlass.toml"), config)?;
    let mut windlass = Windlass::new(folder).binary(binary()?);
    for (name, value) in moto.environment() {
        windlass = windlass.env(name, value);
    }
    Ok(windlass)
}

/// Works a queue until it is empty. Returns the CPU seconds of the worker.
async fn work(windlass: &Windlass, boto: &Boto, queue: &str) -> Result<f64> {
    let worker = windlass.spawn(["worker", "--queue", queue, "--concurrency", "2"]);
    boto.run("wait", queue)?;
    let used = cpu(worker.id())?;
    worker.term();
    ensure!(worker.wait().await.code == Some(0), "the worker did not end well");
    Ok(used)
}

/// Runs a command to its exit. Returns its CPU seconds and its output.
async fn watched(windlass: &Windlass, arguments: &[&str]) -> Result<(f64, String)> {
    let running = windlass.spawn(arguments);
    let mut used = 0.0;
    while running.is_running() {
        used = cpu(running.id()).unwrap_or(used);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // The process is not reaped yet, so its total is still readable.
    used = cpu(running.id()).unwrap_or(used);
    let output = running.wait().await;
    ensure!(output.code == Some(0), "{arguments:?}: {}", output.stderr);
    Ok((used, output.stdout))
}

/// The CPU seconds of a process, without its children.
fn cpu(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields = stat.rsplit_once(')').context("a process has a name")?.1;
    let mut ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    let user = ticks.next().context("user time")??;
    let system = ticks.next().context("system time")??;
    Ok((user + system) / 100.0)
}

/// The number of requests of an operation that moto has received.
fn requests(moto: &Moto, operation: &str) -> f64 {
    let answer = moto.ask("GET", &format!("/windlass/requests/us-east-1/{operation}"), "");
    answer.lines().last().and_then(|count| count.trim().parse().ok()).unwrap_or_default()
}
