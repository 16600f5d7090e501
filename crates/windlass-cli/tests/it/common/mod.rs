//! Shared by all tests of the command line: a folder with a configuration, and the binary that runs in it.

mod data;
pub(crate) mod seeded_rng;
pub(crate) mod server;

pub(crate) use data::Data;

use serde_json::Value as Json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use windlass_testkit::{Output, Running, Windlass};

/// The longest wait for a condition. Generous, for machines under load.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_windlass");

/// A temporary folder in which commands run, removed with the test.
pub(crate) struct CliSandbox {
    folder: TempDir,
    windlass: Windlass,
}

impl CliSandbox {
    /// An empty folder.
    pub(crate) fn empty() -> CliSandbox {
        let folder = TempDir::new().unwrap();
        let windlass = Windlass::new(folder.path()).binary(BINARY);
        CliSandbox { folder, windlass }
    }

    /// A folder with this windlass.toml.
    pub(crate) fn with(config: &str) -> CliSandbox {
        let sandbox = CliSandbox::empty();
        sandbox.write("windlass.toml", config);
        sandbox
    }

    /// A folder whose store and records are in this database, with these job types.
    pub(crate) fn on(data: &Data, jobs: &str) -> CliSandbox {
        CliSandbox::with(&config(&data.store_url(), &data.url(), jobs))
    }

    /// A folder with these job types on each of [`Data::both_with_accounts`].
    pub(crate) async fn on_both(rows: i64, jobs: &str) -> Vec<(Data, CliSandbox)> {
        CliSandbox::on_all(Data::both_with_accounts(rows).await, jobs)
    }

    /// A folder with these job types on each of [`Data::each_with_accounts`].
    pub(crate) async fn on_each(rows: i64, jobs: &str) -> Vec<(Data, CliSandbox)> {
        CliSandbox::on_all(Data::each_with_accounts(rows).await, jobs)
    }

    fn on_all(data: Vec<Data>, jobs: &str) -> Vec<(Data, CliSandbox)> {
        let sandboxes: Vec<_> = data.iter().map(|data| CliSandbox::on(data, jobs)).collect();
        data.into_iter().zip(sandboxes).collect()
    }

    /// Sets an environment variable for every command.
    pub(crate) fn env(mut self, name: &str, value: &str) -> CliSandbox {
        self.windlass = self.windlass.env(name, value);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a command, with arguments separated by spaces, and waits for its exit.
    pub(crate) async fn run(&self, command: &str) -> Output {
        self.spawn(command).wait().await
    }

    /// Starts a command.
    pub(crate) fn spawn(&self, command: &str) -> Running {
        self.windlass.spawn(command.split_whitespace())
    }

    /// Runs a command that can write no file larger than `blocks` blocks of 512 bytes, as on a full disk. The signal is
    /// ignored, because a full disk sends none.
    pub(crate) async fn run_with_room(&self, blocks: u32, command: &str) -> Output {
        // The output goes through a pipe, which has no size limit.
        let script =
            format!("(trap '' XFSZ; ulimit -f {blocks}; exec {BINARY} {command}) 2>&1 | cat");
        self.windlass.clone().binary("/bin/sh").run(["-c", &script]).await
    }

    /// Starts a command that can open at most this number of files and connections.
    pub(crate) fn spawn_with_descriptors(&self, descriptors: u32, command: &str) -> Running {
        let script = format!("ulimit -n {descriptors}; exec {BINARY} {command}");
        self.windlass.clone().binary("/bin/sh").spawn(["-c", &script])
    }

    /// Starts a command whose umask removes no permissions.
    pub(crate) fn spawn_with_open_umask(&self, command: &str) -> Running {
        let script = format!("umask 000; exec {BINARY} {command}");
        self.windlass.clone().binary("/bin/sh").spawn(["-c", &script])
    }

    /// Runs a command in a terminal with this many columns, with these lines as input.
    pub(crate) async fn run_in_terminal(&self, columns: u32, command: &str, input: &str) -> Output {
        self.write("input", input);
        let script = format!(
            "script -qec 'export TERM=xterm; stty cols {columns}; exec {BINARY} {command}' /dev/null < input"
        );
        self.windlass.clone().binary("/bin/sh").run(["-c", &script]).await
    }

    /// Runs a command whose arguments contain spaces.
    pub(crate) async fn run_words(&self, words: &[&str]) -> Output {
        self.windlass.run(words).await
    }

    /// Runs a command that must succeed, and parses the JSON that it prints.
    #[track_caller]
    pub(crate) fn json(&self, command: &str) -> impl Future<Output = Json> {
        let running = self.spawn(&format!("{command} --json"));
        async move { parse(&running.wait().await.ok()) }
    }

    /// Submits a job and returns its id.
    pub(crate) async fn submit(&self, request: &str) -> String {
        let output = self.run(&format!("submit {request}")).await.ok();
        output.stdout.trim().to_owned()
    }

    pub(crate) async fn job(&self, id: &str) -> Json {
        self.json(&format!("job {id}")).await
    }

    pub(crate) async fn status(&self, id: &str) -> String {
        text(&self.job(id).await["status"])
    }

    /// All chunks of a job.
    pub(crate) async fn chunks(&self, id: &str) -> Vec<Json> {
        let chunks = self.json(&format!("chunks {id} --limit 100000")).await;
        chunks.as_array().unwrap().clone()
    }

    /// The numbers of the chunks that a process has leased.
    pub(crate) async fn held_by(&self, id: &str, process: u32) -> Vec<i64> {
        let chunks = self.chunks(id).await;
        let held = chunks
            .iter()
            .filter(|chunk| chunk["status"] == "PROCESSING" && worked_by(chunk, process));
        held.map(|chunk| chunk["chunk"].as_i64().unwrap()).collect()
    }

    /// Waits until a condition on a job holds.
    pub(crate) async fn until(&self, id: &str, what: &str, holds: impl Fn(&Json) -> bool) -> Json {
        let mut last = Json::Null;
        eventually(&format!("{what}, job {id}"), async || {
            last = self.job(id).await;
            assert!(last["status"] != "FAILED" || holds(&last), "{last:#}");
            holds(&last)
        })
        .await;
        last
    }

    /// Submits the job type `RAISE` and works it until this holds. Returns its id and the worker.
    pub(crate) async fn worked(&self, holds: impl Fn(&Json) -> bool) -> (String, Running) {
        let id = self.submit("RAISE").await;
        let worker = self.spawn("worker");
        self.until(&id, "work is under way", holds).await;
        (id, worker)
    }

    /// Waits until a job is completed.
    pub(crate) async fn completed(&self, id: &str) -> Json {
        self.until(id, "COMPLETED", |job| job["status"] == "COMPLETED").await
    }

    /// Audits a job, which must be proven.
    pub(crate) async fn prove(&self, id: &str) -> Json {
        let audit = self.run(&format!("audit {id} --json")).await;
        assert_eq!(audit.code, Some(0), "{audit:?}");
        let audit = parse(&audit);
        assert_eq!(audit["verdict"], "proven", "{audit:#}");
        audit
    }
}

/// Evaluates a condition until it is true. Most conditions start a process, which takes time from the tested ones, so
/// there is a pause between them.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < PATIENCE, "after {PATIENCE:?} this is still not true: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A complete windlass.toml. Its job types begin at line 7.
pub(crate) fn config(store: &str, app: &str, jobs: &str) -> String {
    format!("[store]\nurl = \"{store}\"\n\n[connections.app]\nurl = \"{app}\"\n\n{jobs}")
}

/// A step that is not idempotent, in chunks of `items` rows.
pub(crate) fn raise(items: u32) -> String {
    job("RAISE", "UPDATE accounts SET amount = amount + 1 WHERE {chunk}", items)
}

/// The same, with commits that take as long as the table `pace` says. PostgreSQL only.
pub(crate) fn slow_raise(items: u32) -> String {
    let sql = "WITH pause AS MATERIALIZED (SELECT pg_sleep(seconds) FROM pace) \
               UPDATE accounts SET amount = amount + 1 FROM pause WHERE {chunk}";
    job("RAISE", sql, items)
}

/// A job type on the table `accounts`.
pub(crate) fn job(name: &str, sql: &str, items: u32) -> String {
    format!(
        "[jobs.{name}]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
         step.sql = \"{sql}\"\nchunk.items = {items}\n"
    )
}

/// Whether a chunk's last worker is this process.
pub(crate) fn worked_by(chunk: &Json, process: u32) -> bool {
    chunk["worker"].as_str().is_some_and(|name| name.ends_with(&format!(":{process}")))
}

#[track_caller]
pub(crate) fn parse(output: &Output) -> Json {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[track_caller]
pub(crate) fn text(value: &Json) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text")).to_owned()
}

/// The output of a command on stdout and stderr.
pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", output.stdout, output.stderr)
}

/// Asserts that a command printed all these parts.
#[track_caller]
pub(crate) fn printed(output: &Output, parts: &[&str]) {
    for part in parts {
        assert!(output.stdout.contains(part), "`{part}` is not in:\n{}", output.stdout);
    }
}

/// Asserts that a command was refused: exit code 2, no panic, and all these parts in the message.
#[track_caller]
pub(crate) fn refused(output: &Output, parts: &[&str]) {
    let said = said(output);
    assert_eq!(output.code, Some(2), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    for part in parts {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
}
