//! Identifies a worker process on its host, so that a peer on the same host notices when it was killed.

use std::path::Path;

/// The host (boot id and process namespace) and the process (id and start time) of this process.
/// `None` where the system does not tell.
pub(crate) fn own() -> Option<String> {
    let pid = std::process::id();
    let process = running(pid)?;
    Some(format!("{}{pid}/{}", host()?, process.started))
}

/// The prefix of all processes that this one can look up.
pub(crate) fn host() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    // Process ids of another container are not those of this one.
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{}/{}/", boot.trim(), namespace.display()))
}

/// Whether a process of this host has ended. False if this cannot be told.
pub(crate) fn has_ended(identity: &str) -> bool {
    let parts = host().and_then(|host| identity.strip_prefix(&host)?.split_once('/'));
    let Some((Ok(pid), started)) = parts.map(|(pid, started)| (pid.parse(), started)) else {
        return false;
    };
    match running(pid) {
        // Another process has the same id now, or the process is dead and its parent has not noticed.
        Some(process) => process.started != started || process.is_zombie,
        None => {
            !Path::new("/proc").join(pid.to_string()).exists() && Path::new("/proc/self").exists()
        }
    }
}

struct Process {
    started: String,
    is_zombie: bool,
}

/// Reads the state and the start time of a process.
fn running(pid: u32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    // The start time is the 22nd field of the line; the state was the third.
    let started = fields.nth(18)?.to_owned();
    Some(Process { started, is_zombie })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_ended_when_it_is_killed_and_not_before() {
        let own = own().unwrap();
        assert!(!has_ended(&own), "{own}");
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let host = host().unwrap();
        let identity = format!("{host}{}/{}", child.id(), running(child.id()).unwrap().started);
        assert!(!has_ended(&identity), "{identity}");
        child.kill().unwrap();
        while !has_ended(&identity) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(has_ended(&identity), "{identity}");
    }

    #[test]
    fn another_process_with_the_same_id_and_a_process_elsewhere_are_told_apart() {
        let own = own().unwrap();
        assert!(has_ended(&format!("{own}0")), "the start time differs");
        assert!(!has_ended(&format!("x{own}")), "another host");
        assert!(!has_ended(""));
    }
}
