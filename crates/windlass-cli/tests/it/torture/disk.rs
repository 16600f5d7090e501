//! A small file system that can be filled up, where the system allows to mount one.

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name contains the process id, so that other processes can tell whether the folder is in use.
const PREFIX: &str = "windlass-torture-disk-";

/// A mounted tmpfs, unmounted with this handle, or by a later run if this process is killed.
pub(super) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it. `None`, with the reason printed, if that is not allowed.
    pub(super) fn mount(megabytes: u32) -> Option<SmallDisk> {
        sweep();
        let folder = std::env::temp_dir().join(format!("{PREFIX}{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let size = format!("size={megabytes}m");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder);
        match command.output() {
            Ok(output) if output.status.success() => Some(SmallDisk(folder)),
            failed => {
                eprintln!(
                    "torture: no full disk is tried, because no tmpfs can be mounted: {failed:?}"
                );
                let _ = std::fs::remove_dir(&folder);
                None
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file until there is no room left.
    pub(super) fn fill(&self) {
        use std::io::Write as _;
        let mut file = std::fs::File::create(self.0.join("filler")).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Removes that file.
    pub(super) fn free(&self) {
        let _ = std::fs::remove_file(self.0.join("filler"));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

/// Also while a file in it is open: the space is free when the last one is closed.
fn unmount(folder: &Path) {
    let _ = Command::new("umount").arg("--lazy").arg(folder).output();
    let _ = std::fs::remove_dir(folder);
}

/// Unmounts those of dead processes.
fn sweep() {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|pid| pid.parse().ok());
        if owner.is_some_and(|pid| kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH)) {
            unmount(&entry.path());
        }
    }
}
