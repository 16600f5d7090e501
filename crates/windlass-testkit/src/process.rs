//! The real `windlass` binary: run, signalled and killed.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// The longest time that `wait` waits. After it the process counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs commands of the `windlass` binary in one folder.
#[derive(Clone, Debug)]
pub struct Windlass {
    folder: PathBuf,
    binary: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
}

impl Windlass {
    /// Commands run in `folder` and write their output to its subfolder `.testkit`.
    pub fn new(folder: impl AsRef<Path>) -> Self {
        Self { folder: folder.as_ref().to_owned(), binary: None, environment: Vec::new() }
    }

    /// Runs this program instead of `windlass_bin()`.
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Self {
        self.binary = Some(path.into());
        self
    }

    /// Sets an environment variable for every command.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Runs a command and waits for its exit.
    pub async fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
        self.spawn(args).wait().await
    }

    /// Starts a command.
    pub fn spawn(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Running {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let logs = self.folder.join(".testkit");
        fs::create_dir_all(&logs).expect("failed to create a folder");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let stdout = logs.join(format!("{number}.stdout"));
        let stderr = logs.join(format!("{number}.stderr"));

        let mut command = Command::new(self.binary.clone().unwrap_or_else(windlass_bin));
        command
            .args(args)
            .current_dir(&self.folder)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).expect("a file for the output"))
            .stderr(File::create(&stderr).expect("a file for the errors"))
            // A new process group, so that the children of the process can be killed with it.
            .process_group(0);
        let line = format!("{command:?}");
        let child = crate::spawn::spawn(command, Signal::SIGKILL)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        Running { line, child, ended: None, stdout, stderr }
    }
}

/// Raises this process's limit on open files, as far as the system allows.
pub fn allow_descriptors(descriptors: u64) {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("failed to read the limit");
    if soft < descriptors {
        setrlimit(Resource::RLIMIT_NOFILE, descriptors.min(hard), hard)
            .expect("failed to raise the limit");
    }
}

/// The binary under test: `WINDLASS_BIN`, or the one that cargo built beside the running test.
pub fn windlass_bin() -> PathBuf {
    match env::var_os("WINDLASS_BIN").map(PathBuf::from) {
        Some(path) => {
            assert!(path.is_file(), "WINDLASS_BIN is {}, which does not exist", path.display());
            path
        }
        None => built_program("windlass-cli", "windlass"),
    }
}

/// A program of another package, which cargo built beside the running test.
pub fn built_program(package: &str, name: &str) -> PathBuf {
    // Tests run as `target/<profile>/deps/<name>-<hash>`.
    let test = env::current_exe().expect("failed to find the path of the test program");
    let deps = test.parent().expect("the test program has no folder");
    let profile = if deps.ends_with("deps") { deps.parent().unwrap_or(deps) } else { deps };
    let path = profile.join(name);
    assert!(
        path.is_file(),
        "{} does not exist; `cargo build -p {package}` builds it",
        path.display()
    );
    path
}

/// The result of a command.
#[derive(Clone, Debug)]
pub struct Output {
    /// The exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// All of standard output.
    pub stdout: String,
    /// All of standard error.
    pub stderr: String,
}

impl Output {
    /// Returns itself if the exit code is 0, otherwise panics with the output.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Returns itself if the exit code is 5, for a job that completed with dead letters, otherwise panics
    /// with the output.
    #[track_caller]
    pub fn with_dead_letters(self) -> Self {
        assert_eq!(self.code, Some(5), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// A process. Dropping this handle kills it and all its children.
///
/// It is not reaped before that, so that its process id is not reused.
pub struct Running {
    line: String,
    child: Child,
    ended: Option<ExitStatus>,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGKILL, as a power failure: the process cannot react.
    pub fn kill9(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Sends SIGSTOP, as a suspended virtual machine.
    pub fn stop(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Sends SIGCONT. The process does not know that time has passed.
    pub fn cont(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Sends SIGHUP, as a terminal that closes.
    pub fn hangup(&self) {
        self.signal(Signal::SIGHUP);
    }

    /// Sends SIGTERM.
    pub fn term(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal(Signal::SIGINT);
    }

    /// Whether the process has not exited.
    pub fn is_running(&self) -> bool {
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()), look) == Ok(WaitStatus::StillAlive)
    }

    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// Its standard error so far.
    pub fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// Waits for the exit. Yields to other tasks, because the test may serve the process through a proxy.
    pub async fn wait(mut self) -> Output {
        let started = Instant::now();
        while self.is_running() {
            assert!(
                started.elapsed() < PATIENCE,
                "after {PATIENCE:?} still running: {}\nstdout:\n{}\nstderr:\n{}",
                self.line,
                self.stdout(),
                self.stderr()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let status = self.end();
        Output { code: status.code(), stdout: self.stdout(), stderr: self.stderr() }
    }

    fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("failed to signal a child process");
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id fits into i32"))
    }

    /// Kills the process group before it reaps the process: afterwards the id may belong to another process.
    fn end(&mut self) -> ExitStatus {
        if let Some(status) = self.ended {
            return status;
        }
        let _ = killpg(self.pid(), Signal::SIGKILL);
        *self.ended.insert(self.child.wait().expect("failed to wait for a child process"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Lossy, because a process may be killed in the middle of a character.
fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
