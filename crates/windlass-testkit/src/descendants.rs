//! Processes that the tested process started: found by their parent, or by the folder they run in,
//! which is the test's own, so that none is missed and none is somebody else's.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descendant {
    /// The process id.
    pub id: u32,
    /// Its program and arguments, apart by spaces.
    pub line: String,
}

impl Descendant {
    /// Kills the process; it may have ended by itself meanwhile.
    pub fn kill9(&self) {
        let id = i32::try_from(self.id).expect("a pid fits");
        let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
    }

    /// Whether it has not ended yet. Who has ended may wait long for somebody to notice.
    pub fn is_running(&self) -> bool {
        stat(self.id).is_some_and(|(state, _)| state != "Z")
    }
}

/// The processes whose working folder this is. Those that have ended have none, reaped or not.
pub fn descendants_in(folder: &Path) -> Vec<Descendant> {
    let folder = folder.canonicalize().expect("the folder is there");
    all(|id| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd == folder))
}

/// The processes that this one started itself.
pub fn children_of(parent: u32) -> Vec<Descendant> {
    let parent = parent.to_string();
    all(|id| stat(id).is_some_and(|(_, of)| of == parent))
}

fn all(are: impl Fn(u32) -> bool) -> Vec<Descendant> {
    let entries = fs::read_dir("/proc").expect("the kernel lists its processes");
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let ids = names.filter_map(|name| name.parse::<u32>().ok());
    let describe = |id| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned();
        Descendant { id, line }
    };
    ids.filter(|id| are(*id)).map(describe).collect()
}

/// The state and the parent of a process. The program's name before them may hold anything.
fn stat(id: u32) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned);
    Some((fields.next()?, fields.next()?))
}
