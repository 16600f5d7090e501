//! Processes that the tested process started. They are found by their parent, or by their working folder, which
//! only processes of the same test have.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descendant {
    /// The process id.
    pub id: u32,
    /// Its program and arguments, separated by spaces.
    pub line: String,
}

impl Descendant {
    /// Sends SIGKILL. The process may have exited already.
    pub fn kill9(&self) {
        let id = i32::try_from(self.id).expect("a process id fits into i32");
        let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
    }

    /// Whether the process is still running. A zombie counts as exited.
    pub fn is_running(&self) -> bool {
        stat(self.id).is_some_and(|(state, _)| state != "Z")
    }
}

/// The processes with this working folder. Exited processes have none, even if they are not reaped yet.
pub fn descendants_in(folder: &Path) -> Vec<Descendant> {
    let folder = folder.canonicalize().expect("the folder exists");
    all(|id| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd == folder))
}

/// The direct children of a process.
pub fn children_of(parent: u32) -> Vec<Descendant> {
    let parent = parent.to_string();
    all(|id| stat(id).is_some_and(|(_, of)| of == parent))
}

fn all(are: impl Fn(u32) -> bool) -> Vec<Descendant> {
    let entries = fs::read_dir("/proc").expect("failed to read /proc");
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let ids = names.filter_map(|name| name.parse::<u32>().ok());
    let describe = |id| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned();
        Descendant { id, line }
    };
    ids.filter(|id| are(*id)).map(describe).collect()
}

/// State and parent of a process. The program name in front of them may contain any character.
fn stat(id: u32) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned);
    Some((fields.next()?, fields.next()?))
}
