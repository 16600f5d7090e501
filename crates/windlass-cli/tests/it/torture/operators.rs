//! Operators who submit and steer jobs at random, with the commands of the binary.

use super::history::Submit;
use crate::common::seeded_rng::SeededRng;
use crate::common::{CliSandbox, Data};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use windlass_testkit::Output;

/// The job types that operators submit. The others follow from them.
const SUBMITTED: [&str; 6] = ["ADD", "RUN", "CALL", "REFRESH", "TOTAL", "EXPORT"];

/// Commands at a time. Each is a process.
const MAX_COMMANDS: usize = 3;

/// Commands that run beside the faults, and what they found.
pub(super) struct Operators {
    sandbox: Arc<CliSandbox>,
    data: Arc<Data>,
    notes: Arc<Mutex<Notes>>,
    running: JoinSet<()>,
    free: Arc<Semaphore>,
    marks: usize,
}

/// What the operators know.
#[derive(Default, Clone)]
pub(super) struct Notes {
    pub(super) submits: Vec<Submit>,
    /// The commits of each job when it was first seen as cancelled.
    pub(super) cancelled: BTreeMap<String, usize>,
    jobs: Vec<String>,
}

impl Operators {
    pub(super) fn new(sandbox: Arc<CliSandbox>, data: Arc<Data>) -> Operators {
        let (notes, running) = (Arc::default(), JoinSet::new());
        let free = Arc::new(Semaphore::new(MAX_COMMANDS));
        Operators { sandbox, data, notes, running, free, marks: 0 }
    }

    /// Submits a job of a random type. Some are cancelled at once, while they are planned or at work.
    pub(super) fn submit(&mut self, rng: &mut SeededRng) {
        self.marks += 1;
        let job_type = SUBMITTED[rng.next_in(0..SUBMITTED.len() as u64) as usize].to_owned();
        let mark = format!("m{}", self.marks);
        let priority = rng.next_in(3..8);
        let command = format!("submit {job_type} --param mark={mark} --priority {priority}");
        let cancel = (rng.next_in(0..5) == 0).then(|| Duration::from_millis(rng.next_in(0..1500)));
        let notes = self.notes.clone();
        self.run(async move |sandbox, data| {
            let output = sandbox.run(&command).await;
            let is_acknowledged = output.code == Some(0);
            let job = output.stdout.trim().to_owned();
            {
                let mut notes = notes.lock().unwrap();
                if is_acknowledged {
                    notes.jobs.push(job.clone());
                }
                notes.submits.push(Submit { job_type, mark, is_acknowledged });
            }
            if let (Some(wait), true) = (cancel, is_acknowledged) {
                tokio::time::sleep(wait).await;
                cancel_job(&sandbox, &data, &notes, job).await;
            }
        });
    }

    /// Steers a random job or the whole.
    pub(super) fn steer(&mut self, rng: &mut SeededRng) {
        let action = rng.next_in(0..10);
        let job = {
            let notes = self.notes.lock().unwrap();
            let Some(last) = notes.jobs.len().checked_sub(1) else { return };
            // Recent jobs more often: they are at work.
            notes.jobs[last - rng.next_in(0..(last as u64 + 1).min(6)) as usize].clone()
        };
        let concurrency = rng.next_in(1..4);
        let command = match action {
            0 | 1 => {
                let notes = self.notes.clone();
                let cancel = async move |sandbox: Arc<CliSandbox>, data: Arc<Data>| {
                    cancel_job(&sandbox, &data, &notes, job).await;
                };
                return self.run(cancel);
            }
            2 => format!("pause {job}"),
            3 | 4 => format!("resume {job}"),
            5 => format!("retry {job}"),
            6 | 7 => format!("dead redrive --job {job}"),
            8 => format!("throughput ADD --concurrency {concurrency} --rate 500"),
            _ => "stop RUN".to_owned(),
        };
        let then = match action {
            2 => Some(format!("resume {job}")),
            8 => Some("throughput ADD --concurrency default --rate default".to_owned()),
            9 => Some("start RUN".to_owned()),
            _ => None,
        };
        let wait = Duration::from_millis(rng.next_in(200..2000));
        let mends = matches!(action, 6 | 7);
        self.run(async move |sandbox, data| {
            if mends {
                mend(&data).await;
            }
            sandbox.run(&command).await;
            if let Some(then) = then {
                tokio::time::sleep(wait).await;
                sandbox.run(&then).await;
            }
        });
    }

    fn run<T: Future<Output = ()> + Send>(
        &mut self,
        command: impl FnOnce(Arc<CliSandbox>, Arc<Data>) -> T + Send + 'static,
    ) {
        let (sandbox, data, free) = (self.sandbox.clone(), self.data.clone(), self.free.clone());
        self.running.spawn(async move {
            let _permit = free.acquire().await.unwrap();
            command(sandbox, data).await;
        });
    }

    /// Waits until all commands have ended. Returns what the operators know.
    pub(super) async fn finish(mut self) -> Notes {
        while let Some(ended) = self.running.join_next().await {
            ended.unwrap();
        }
        self.notes.lock().unwrap().clone()
    }
}

/// Cancels a job, and notes how many commits it has when it is first shown as cancelled.
async fn cancel_job(sandbox: &CliSandbox, data: &Data, notes: &Mutex<Notes>, job: String) {
    sandbox.run(&format!("cancel {job}")).await;
    for _ in 0..20 {
        let output = sandbox.run(&format!("job {job} --json")).await;
        match status(&output).as_str() {
            "CANCELLED" => {
                let sql = format!(
                    "SELECT count(*) FROM (SELECT DISTINCT chunk, commits FROM ledger_log \
                     WHERE job_id = '{job}' AND commits > 0) AS commits"
                );
                if let Ok(rows) = data.try_rows(&sql).await {
                    let commits = rows[0][0].parse().unwrap();
                    notes.lock().unwrap().cancelled.entry(job).or_insert(commits);
                }
                return;
            }
            "COMPLETED" | "FAILED" => return,
            _ => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Mends the records whose items are dead letters, until the bystander breaks some again.
async fn mend(data: &Data) {
    for sql in [
        "UPDATE plain SET bad = 0 WHERE bad = 1",
        "UPDATE guarded SET bad = 0, version = version + 1 WHERE bad = 1",
    ] {
        let _ = data.try_run(sql).await;
    }
}

/// The status in the JSON of a job; empty if the command failed.
fn status(output: &Output) -> String {
    let job: Json = serde_json::from_str(&output.stdout).unwrap_or_default();
    job["status"].as_str().unwrap_or_default().to_owned()
}
