//! The real `windlass` binary, run and mistreated as operators and machines do.

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

/// How long `wait` waits before it calls the process hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// Commands of the `windlass` binary in one folder.
#[derive(Clone, Debug)]
pub struct Windlass {
    folder: PathBuf,
    binary: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
}

impl Windlass {
    /// Commands run in `folder`, and leave their output in its `.testkit` for diagnosis.
    pub fn new(folder: impl AsRef<Path>) -> Self {
        Self { folder: folder.as_ref().to_owned(), binary: None, environment: Vec::new() }
    }

    /// Runs another program than `windlass_bin()`.
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Self {
        self.binary = Some(path.into());
        self
    }

    /// Sets a variable in the environment of every command.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Runs a command to its end.
    pub async fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
        self.spawn(args).wait().await
    }

    /// Starts a command that the test then watches or ends.
    pub fn spawn(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Running {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let logs = self.folder.join(".testkit");
        fs::create_dir_all(&logs).expect("the folder can be written");
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
            // A group of its own, so that what the process started can be ended with it.
            .process_group(0);
        let line = format!("{command:?}");
        let child = crate::spawn::spawn(command, Signal::SIGKILL)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        Running { line, child, ended: None, stdout, stderr }
    }
}

/// Raises the limit of open files and connections of this process, as far as the system allows it.
pub fn allow_descriptors(descriptors: u64) {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a process has limits");
    if soft < descriptors {
        setrlimit(Resource::RLIMIT_NOFILE, descriptors.min(hard), hard)
            .expect("raised to the hard limit");
    }
}

/// The binary under test: `WINDLASS_BIN`, or the one cargo built next to the running test.
pub fn windlass_bin() -> PathBuf {
    match env::var_os("WINDLASS_BIN").map(PathBuf::from) {
        Some(path) => {
            assert!(path.is_file(), "there is no {}: see WINDLASS_BIN", path.display());
            path
        }
        None => built_program("windlass-cli", "windlass"),
    }
}

/// A program of another package, which cargo built next to the running test.
pub fn built_program(package: &str, name: &str) -> PathBuf {
    // Tests run as `target/<profile>/deps/<name>-<hash>`.
    let test = env::current_exe().expect("a process knows its program");
    let deps = test.parent().expect("a program is in a folder");
    let profile = if deps.ends_with("deps") { deps.parent().unwrap_or(deps) } else { deps };
    let path = profile.join(name);
    assert!(path.is_file(), "there is no {}: `cargo build -p {package}` makes it", path.display());
    path
}

/// What a command left when it ended.
#[derive(Clone, Debug)]
pub struct Output {
    /// The exit code; `None` when a signal ended the process.
    pub code: Option<i32>,
    /// All of standard output.
    pub stdout: String,
    /// All of standard error.
    pub stderr: String,
}

impl Output {
    /// Itself when the command ended with 0; otherwise a panic that shows what it said.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// A process, which goes with all it started when this handle does.
///
/// Until then it is not reaped even if it has ended, so that its id stays its own.
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

    /// Kills the process as a power failure would: it cannot notice.
    pub fn kill9(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Freezes the process, as a machine that swaps or a paused virtual machine does.
    pub fn stop(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets a frozen process go on, unaware of the time that passed.
    pub fn cont(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Asks the process to end in order.
    pub fn term(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Whether it has not ended yet.
    pub fn is_running(&self) -> bool {
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()), look) == Ok(WaitStatus::StillAlive)
    }

    /// What it wrote to standard output so far.
    pub fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// What it wrote to standard error so far.
    pub fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// Waits for the end. It yields meanwhile, since the test may serve the process (a proxy).
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
        kill(self.pid(), signal).expect("our own child takes signals");
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a pid fits"))
    }

    /// Kills the whole group before the process is reaped: later the id may be somebody else's.
    fn end(&mut self) -> ExitStatus {
        if let Some(status) = self.ended {
            return status;
        }
        let _ = killpg(self.pid(), Signal::SIGKILL);
        *self.ended.insert(self.child.wait().expect("our own child can be waited for"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A process may be killed in the middle of a character.
fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
