//! One child process: asked a batch, it answers with a line in time, or it has a fault.

use super::super::redact::Redactor;
use super::super::{StepBatch, wire};
use super::guard;
use super::stderr::Stderr;
use futures::FutureExt;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use windlass_core::Outcome;

/// A child in a process group of its own. Dropped, the whole group is killed.
pub(super) struct Child {
    process: tokio::process::Child,
    group: Pid,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: Stderr,
    /// Whether its group was killed, and its number may be another's.
    killed: bool,
}

/// Why a child is of no use any more.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum Fault {
    #[error("{}", ended(*.0))]
    ClaimOutcome(Option<ExitStatus>),
    #[error("gave no answer within {0:?} and was killed")]
    Late(Duration),
    #[error("wrote more than {} MB to its standard error and was killed", super::stderr::MOST_BYTES >> 20)]
    StderrOverflow,
    #[error("answered with more than {} MB in one line and was killed", MOST_ANSWER >> 20)]
    Long,
    #[error(
        "wrote more than one line for one batch; standard output is for answers only. The first was \
         `{0}`"
    )]
    Twice(String),
    #[error("gave a wrong answer: {0}")]
    Wrong(String),
}

fn ended(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("ended with exit code {code} before it answered"),
        Some((_, Some(signal))) => format!("was killed by signal {signal} before it answered"),
        _ => "closed its standard output before it answered".to_owned(),
    }
}

/// An answer may not be longer than this.
const MOST_ANSWER: u64 = 256 << 20;
/// How much of an answer is read at once.
const READ: usize = 256 << 10;
/// How long the last line of a child that has ended may take.
const AFTER_END: Duration = Duration::from_millis(200);
/// How long a child may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(5);

impl Child {
    /// Starts a program with these variables of our environment; those that are not set are left out.
    pub(super) fn start(words: &[String], environment: &[String]) -> io::Result<Child> {
        let (program, args) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Our environment holds secrets of databases, services and tokens.
        command.env_clear();
        let set = environment.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.envs(set);
        let mut process = guard::spawn(command)?;
        let group = Pid::from_raw(process.id().map_or(0, |id| id as i32));
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let stdout = BufReader::with_capacity(READ, stdout);
        Ok(Child {
            process,
            group,
            stdin: Some(stdin),
            stdout,
            stderr: Stderr::read(stderr),
            killed: false,
        })
    }

    /// Whether it lives and has nothing to say that nobody asked for.
    pub(super) fn is_ready(&mut self) -> bool {
        let silent = self.stdout.fill_buf().now_or_never().is_none();
        silent && matches!(self.process.try_wait(), Ok(None))
    }

    /// Sends a batch and reads its answer.
    pub(super) async fn ask(
        &mut self,
        batch: &StepBatch,
        timeout: Duration,
    ) -> Result<Vec<Outcome>, Fault> {
        let mut line = wire::request(batch).map_err(Fault::Wrong)?;
        line.push(b'\n');
        let loud = self.stderr.begin(batch);
        let answer = match self.answer(&line, timeout, loud).await {
            Err(Fault::ClaimOutcome(None)) => return Err(Fault::ClaimOutcome(self.status().await)),
            answer => answer?,
        };
        if !self.stdout.buffer().is_empty() {
            return Err(Fault::Twice(wire::excerpt(&answer, &Redactor::default())));
        }
        // A command gets no secret from us that it could repeat.
        wire::outcomes(batch, &answer, &Redactor::default()).map_err(Fault::Wrong)
    }

    /// The line that comes for this one, if it comes.
    async fn answer(
        &mut self,
        line: &[u8],
        timeout: Duration,
        loud: impl Future<Output = ()>,
    ) -> Result<Vec<u8>, Fault> {
        let mut talk = std::pin::pin!(Self::talk(&mut self.stdin, &mut self.stdout, line));
        tokio::select! {
            biased;
            answer = &mut talk => answer,
            () = loud => Err(Fault::StderrOverflow),
            () = tokio::time::sleep(timeout) => Err(Fault::Late(timeout)),
            // Somebody it started may hold its output open. What it wrote itself is there.
            status = self.process.wait() => match tokio::time::timeout(AFTER_END, talk).await {
                Ok(Ok(answer)) => Ok(answer),
                _ => Err(Fault::ClaimOutcome(status.ok())),
            },
        }
    }

    /// Writes and reads at once: a child that answers while it reads must not wait for us.
    async fn talk(
        stdin: &mut Option<ChildStdin>,
        stdout: &mut BufReader<ChildStdout>,
        line: &[u8],
    ) -> Result<Vec<u8>, Fault> {
        let Some(stdin) = stdin else { return Err(Fault::ClaimOutcome(None)) };
        let write = async {
            // A child that ends early shows in what it does not answer.
            let _ = stdin.write_all(line).await;
            Ok(())
        };
        let read = async {
            // Answers are about as long as what they answer, and seldom longer.
            let mut answer = Vec::with_capacity(line.len());
            let read = stdout.take(MOST_ANSWER).read_until(b'\n', &mut answer).await;
            match (read, answer.last()) {
                (Ok(_), Some(b'\n')) => Ok(answer),
                (Ok(read), _) if read as u64 == MOST_ANSWER => Err(Fault::Long),
                _ => Err(Fault::ClaimOutcome(None)),
            }
        };
        tokio::try_join!(write, read).map(|((), answer)| answer)
    }

    /// How it ended, if it has: a moment may pass between the end of its output and its own.
    async fn status(&mut self) -> Option<ExitStatus> {
        tokio::time::timeout(Duration::from_secs(1), self.process.wait()).await.ok()?.ok()
    }

    /// Ends it in order: it gets the end of its input and some time.
    pub(super) async fn end(mut self) {
        self.stdin = None;
        if tokio::time::timeout(PATIENCE, self.process.wait()).await.is_err() {
            tracing::warn!(process = %self.group, "a command goes on after the end of its input; it is killed");
        }
        self.kill().await;
    }

    /// Kills it and everything it started; gives the end of what it wrote to standard error.
    pub(super) async fn kill(mut self) -> String {
        let _ = killpg(self.group, Signal::SIGKILL);
        self.killed = true;
        let _ = self.process.wait().await;
        self.stderr.stderr_tail().await
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.killed {
            let _ = killpg(self.group, Signal::SIGKILL);
        }
        guard::forget(self.group);
    }
}
