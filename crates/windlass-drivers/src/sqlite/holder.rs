//! Finds the process that holds the write lock of a file, on systems that report it.

use std::path::Path;

/// Describes the process that holds the write lock.
pub(super) fn describe(file: &Path) -> String {
    match find(file) {
        Some(pid) => format!("held by another process (pid {pid}{})", details(pid)),
        None => "held by another process (the system does not report which)".to_owned(),
    }
}

/// The byte of the `-shm` file that the writer of a write-ahead log locks.
const WRITE_LOCK: u64 = 120;

#[cfg(target_os = "linux")]
fn find(file: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let mut index = file.as_os_str().to_owned();
    index.push("-shm");
    // Does not open the file, since closing it would release SQLite's own locks.
    let inode = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.ino());
    let of_log = inode(Path::new(&index)).and_then(|inode| writer_of(&locks, inode, WRITE_LOCK));
    // Without a write-ahead log, the lock is on the first byte beyond 1 GiB of the file itself.
    of_log.or_else(|| writer_of(&locks, inode(file)?, 1 << 30))
}

#[cfg(not(target_os = "linux"))]
fn find(_file: &Path) -> Option<u32> {
    let _ = WRITE_LOCK;
    None
}

/// Finds in `/proc/locks` the process that locks this byte of a file for writing. A process of another namespace
/// has no id there.
#[cfg(target_os = "linux")]
fn writer_of(locks: &str, inode: u64, byte: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        // `12: POSIX ADVISORY WRITE 1234 fe:00:131 120 120`; waiting processes have an arrow.
        let mut fields = line.split_whitespace().skip(1);
        let is_write = fields.next() == Some("POSIX") && fields.nth(1) == Some("WRITE");
        let pid = fields.next().filter(|_| is_write)?.parse().ok()?;
        let of = fields.next()?.rsplit(':').next()?.parse::<u64>().ok()?;
        let from = fields.next()?.parse::<u64>().ok()?;
        // `EOF` is not a number.
        let to = fields.next()?.parse().unwrap_or(u64::MAX);
        (of == inode && (from..=to).contains(&byte) && pid > 0).then_some(pid)
    })
}

/// The name of a program, its subcommand, and whether it is stopped. Omits other arguments, which may contain
/// secrets.
fn details(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).into_owned();
    let mut words = line.split('\0');
    let program = words.next().map(Path::new).and_then(Path::file_name);
    let Some(program) = program.and_then(|name| name.to_str()) else { return String::new() };
    let is_command =
        |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let command = words.next().filter(is_command).filter(|_| program == "windlass");
    let command = command.map(|command| format!(" {command}")).unwrap_or_default();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    let stopped = if matches!(state, Some('T' | 't')) { ", stopped" } else { "" };
    format!(", {program}{command}{stopped}")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    const LOCKS: &str = "\
1: POSIX  ADVISORY  READ  11 fe:00:131 128 128
2: POSIX  ADVISORY  WRITE 12 fe:00:131 121 121
3: POSIX  ADVISORY  WRITE 13 fe:00:132 120 120
4: FLOCK  ADVISORY  WRITE 14 fe:00:131 0 EOF
5: POSIX  ADVISORY  WRITE 15 fe:00:131 120 120
5: -> POSIX  ADVISORY  WRITE 16 fe:00:131 120 120
6: POSIX  ADVISORY  WRITE 17 fe:00:133 0 EOF
7: POSIX  ADVISORY  WRITE 0 fe:00:134 120 120
";

    #[test]
    fn finds_the_process_that_locks_the_byte() {
        assert_eq!(writer_of(LOCKS, 131, WRITE_LOCK), Some(15));
        assert_eq!(writer_of(LOCKS, 132, WRITE_LOCK), Some(13));
        assert_eq!(writer_of(LOCKS, 133, WRITE_LOCK), Some(17));
        assert_eq!(writer_of(LOCKS, 134, WRITE_LOCK), None);
        assert_eq!(writer_of(LOCKS, 135, WRITE_LOCK), None);
    }

    #[test]
    fn names_a_program_without_its_arguments() {
        let details = details(std::process::id());
        assert!(details.starts_with(", ") && !details.contains("--"), "{details}");
    }
}
