//! One child process: receives a batch as a line on stdin and responds with a line on stdout.

use super::super::StepBatch;
use super::super::redact::Redactor;
use super::super::wire::{self, RequestLine};
use super::guard;
use super::stderr::Stderr;
use futures::FutureExt;
#[cfg(target_os = "linux")]
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use windlass_core::Outcome;

/// A child process in its own process group. Dropping it kills the whole group.
pub(super) struct Child {
    process: tokio::process::Child,
    group: Pid,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: Stderr,
    /// Whether the group was killed. Its id may then belong to another group.
    killed: bool,
}

/// Why a child did not process a batch. The child must be killed. The texts follow "the command".
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum ChildError {
    #[error("{}", exit_text(*.0))]
    Exited(Option<ExitStatus>),
    #[error("did not respond within {0:?} and was killed")]
    Timeout(Duration),
    #[error("wrote more than {} MB to stderr and was killed", super::stderr::MAX_STDERR_BYTES >> 20)]
    StderrOverflow,
    #[error("wrote a response line of more than {} MB and was killed", MAX_RESPONSE_BYTES >> 20)]
    ResponseTooLong,
    #[error(
        "wrote more than one line for a batch; stdout is for responses only. The first was `{0}`"
    )]
    ExtraOutput(String),
    #[error("returned an invalid response: {0}")]
    InvalidResponse(String),
    #[error("is wrong: {0}")]
    Malformed(String),
}

fn exit_text(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("exited with code {code} before it responded"),
        Some((_, Some(signal))) => format!("was killed by signal {signal} before it responded"),
        _ => "closed stdout before it responded".to_owned(),
    }
}

/// Lets a pipe hold most batches as a whole. In a pipe of the default 64 KiB, the two processes wait for each other
/// several times per batch. The pipe stays as it is where the system refuses.
fn enlarge(pipe: impl AsFd) {
    #[cfg(target_os = "linux")]
    let _ = fcntl(pipe, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

/// The size that Linux permits without a privilege.
#[cfg(target_os = "linux")]
const PIPE_BYTES: i32 = 1 << 20;
/// Maximum size of a response.
const MAX_RESPONSE_BYTES: u64 = 256 << 20;
/// Buffer size for reading responses.
const READ_BUFFER_BYTES: usize = 256 << 10;
/// How long to read the last line of a child that has exited.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// How long a child may take to exit after the end of its input.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for the exit status of a child that has closed its output.
const STATUS_TIMEOUT: Duration = Duration::from_secs(1);

impl Child {
    /// Starts a program with only these environment variables; those that are not set are left out.
    pub(super) fn start(command_line: &[String], environment: &[String]) -> io::Result<Child> {
        let (program, args) = command_line.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The environment of this process holds secrets: database URLs and tokens.
        command.env_clear();
        let set = environment.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.envs(set);
        let mut process = guard::spawn(command)?;
        let group = Pid::from_raw(process.id().map_or(0, |id| id as i32));
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        enlarge(&stdin);
        enlarge(&stdout);
        let stdout = BufReader::with_capacity(READ_BUFFER_BYTES, stdout);
        Ok(Child {
            process,
            group,
            stdin: Some(stdin),
            stdout,
            stderr: Stderr::read(stderr),
            killed: false,
        })
    }

    /// Whether the child is running and has written nothing since its last response.
    pub(super) fn is_ready(&mut self) -> bool {
        let silent = self.stdout.fill_buf().now_or_never().is_none();
        silent && matches!(self.process.try_wait(), Ok(None))
    }

    /// Sends a batch and reads its outcomes.
    pub(super) async fn process(
        &mut self,
        batch: &StepBatch,
        timeout: Duration,
    ) -> Result<Vec<Outcome>, ChildError> {
        let mut line = RequestLine::of(batch).map_err(ChildError::InvalidResponse)?.line;
        line.push(b'\n');
        let overflow = self.stderr.begin(batch);
        let response = match self.exchange(&line, timeout, overflow).await {
            Err(ChildError::Exited(None)) => return Err(ChildError::Exited(self.status().await)),
            response => response?,
        };
        if !self.stdout.buffer().is_empty() {
            return Err(ChildError::ExtraOutput(wire::excerpt(&response, &Redactor::default())));
        }
        // Nothing to redact: a command receives no secrets in its input.
        wire::outcomes(batch, &response, &Redactor::default()).map_err(|error| match error {
            wire::ResponseError::Invalid(message) => ChildError::InvalidResponse(message),
            wire::ResponseError::Malformed(message) => ChildError::Malformed(message),
        })
    }

    /// Sends a line and reads the response line, until the timeout or the end of the child.
    async fn exchange(
        &mut self,
        line: &[u8],
        timeout: Duration,
        overflow: impl Future<Output = ()>,
    ) -> Result<Vec<u8>, ChildError> {
        let mut transfer = std::pin::pin!(Self::transfer(&mut self.stdin, &mut self.stdout, line));
        tokio::select! {
            biased;
            response = &mut transfer => response,
            () = overflow => Err(ChildError::StderrOverflow),
            () = tokio::time::sleep(timeout) => Err(ChildError::Timeout(timeout)),
            // A process that the child started may keep its stdout open, so do not wait for its end. What
            // the child itself wrote is already in the pipe.
            status = self.process.wait() => match tokio::time::timeout(DRAIN_TIMEOUT, transfer).await {
                Ok(Ok(response)) => Ok(response),
                _ => Err(ChildError::Exited(status.ok())),
            },
        }
    }

    /// Writes and reads concurrently: a child that writes while it still reads must not block.
    async fn transfer(
        stdin: &mut Option<ChildStdin>,
        stdout: &mut BufReader<ChildStdout>,
        line: &[u8],
    ) -> Result<Vec<u8>, ChildError> {
        let Some(stdin) = stdin else { return Err(ChildError::Exited(None)) };
        let write = async {
            // An error here means that the child has exited, which reading detects.
            let _ = stdin.write_all(line).await;
            Ok(())
        };
        let read = async {
            // A response is usually about as long as its request.
            let mut response = Vec::with_capacity(line.len());
            let read = stdout.take(MAX_RESPONSE_BYTES).read_until(b'\n', &mut response).await;
            match (read, response.last()) {
                (Ok(_), Some(b'\n')) => Ok(response),
                (Ok(read), _) if read as u64 == MAX_RESPONSE_BYTES => {
                    Err(ChildError::ResponseTooLong)
                }
                _ => Err(ChildError::Exited(None)),
            }
        };
        tokio::try_join!(write, read).map(|((), response)| response)
    }

    /// The exit status, if the child exits soon: its output may end shortly before the process does.
    async fn status(&mut self) -> Option<ExitStatus> {
        tokio::time::timeout(STATUS_TIMEOUT, self.process.wait()).await.ok()?.ok()
    }

    /// Closes the child's stdin, gives it time to exit, and then kills it.
    pub(super) async fn close(mut self) {
        self.stdin = None;
        if tokio::time::timeout(EXIT_TIMEOUT, self.process.wait()).await.is_err() {
            tracing::warn!(process = %self.group,
                "command did not exit within {EXIT_TIMEOUT:?} after stdin was closed; killing it");
        }
        self.kill().await;
    }

    /// Kills the child and everything it started. Returns the last lines of its stderr.
    pub(super) async fn kill(mut self) -> String {
        let _ = killpg(self.group, Signal::SIGKILL);
        self.killed = true;
        let _ = self.process.wait().await;
        self.stderr.tail().await
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.killed {
            let _ = killpg(self.group, Signal::SIGKILL);
        }
        guard::unregister(self.group);
    }
}
