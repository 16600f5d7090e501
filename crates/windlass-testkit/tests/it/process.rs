//! Processes: their output is recorded, signals reach them, and none outlives its handle.

use std::time::Duration;

use windlass_testkit::{Descendant, Running, Windlass, children_of, descendants_in, eventually};

const LIMIT: Duration = Duration::from_secs(20);

fn shell(folder: &tempfile::TempDir) -> Windlass {
    Windlass::new(folder.path()).binary("/bin/sh")
}

async fn said(process: &Running, text: &str) {
    eventually(text, LIMIT, async || process.stdout().contains(text)).await;
}

/// The third field of /proc/ID/stat: T means stopped. `None` if the process has exited.
fn state(id: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[tokio::test]
async fn a_command_returns_its_output() {
    let folder = tempfile::tempdir().unwrap();
    let script = "pwd; echo $COLOUR; echo oh >&2; exit 3";
    let output = shell(&folder).env("COLOUR", "green").run(["-c", script]).await;
    assert_eq!(output.code, Some(3));
    let here = folder.path().canonicalize().unwrap();
    assert_eq!(output.stdout, format!("{}\ngreen\n", here.display()));
    assert_eq!(output.stderr, "oh\n");
}

#[tokio::test]
async fn signals_reach_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let process = shell(&folder).spawn(["-c", script]);
    said(&process, "ready").await;
    let id = process.id();

    process.stop();
    eventually("it is stopped", LIMIT, async || state(id) == Some('T')).await;
    process.term();
    assert_eq!(process.stdout(), "ready\n", "a stopped process does nothing");
    process.cont();
    let output = process.wait().await.ok();
    assert_eq!(output.stdout, "ready\nbye\n");
}

#[tokio::test]
async fn a_killed_process_has_no_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let process = shell(&folder).spawn(["-c", "echo ready; sleep 600"]);
    said(&process, "ready").await;
    assert!(process.is_running());
    process.kill9();
    assert_eq!(process.wait().await.code, None);
}

#[tokio::test]
async fn dropping_a_process_ends_its_children() {
    ends_its_children(drop).await;
}

#[tokio::test]
async fn killing_a_process_ends_its_children() {
    ends_its_children(|process| process.kill9()).await;
}

async fn ends_its_children(end: impl FnOnce(Running)) {
    let folder = tempfile::tempdir().unwrap();
    let process = shell(&folder).spawn(["-c", "sleep 600 & echo $!; echo ready; wait"]);
    said(&process, "ready").await;
    let parent = process.id();
    let child: u32 = process.stdout().lines().next().unwrap().parse().unwrap();
    assert!(state(child).is_some());

    end(process);

    assert_eq!(state(parent), None);
    let ended = async || matches!(state(child), None | Some('Z'));
    eventually("its child has exited", LIMIT, ended).await;
}

#[tokio::test]
async fn the_children_of_a_process_are_found_by_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let process = shell(&folder).spawn(["-c", "sleep 600 & echo $!; echo ready; wait"]);
    said(&process, "ready").await;
    let child: u32 = process.stdout().lines().next().unwrap().parse().unwrap();
    let sleeper = Descendant { id: child, line: "sleep 600".to_owned() };
    // The child starts as a copy of the shell and takes a moment to run its own program.
    let found = async || descendants_in(folder.path()).contains(&sleeper);
    eventually("the child is found", LIMIT, found).await;
    let mut ids: Vec<u32> = descendants_in(folder.path()).iter().map(|found| found.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [process.id().min(child), process.id().max(child)]);
    assert_eq!(children_of(process.id()), std::slice::from_ref(&sleeper));
    assert!(sleeper.is_running());

    // The shell waits for its child and then exits. It is no longer found, although its handle has not reaped
    // it.
    sleeper.kill9();
    let gone = async || descendants_in(folder.path()).is_empty();
    eventually("both have exited", LIMIT, gone).await;
    assert!(!process.is_running() && !sleeper.is_running());
}
