//! Runs a page as a script. Marked parts run from top to bottom in one folder and one shell, with the built binary first
//! on PATH:
//!
//! - `<!-- test -->` before a block of `sh`: its lines are run;
//! - … before a block of `console`: the lines that begin with `$ ` are run. The lines below each must occur in its
//!   output in this order, with `…` for any text. A command with `exit code N` below it must exit with that
//!   code;
//! - `<!-- file: NAME -->` before a block: the block becomes this file;
//! - `<!-- test` alone: the lines up to `-->` are run. Readers do not see them.

use std::path::Path;
use std::time::{Duration, Instant};
use windlass_testkit::{Windlass, free_port};

const VISIBLE: &str = "<!-- test -->";
const HIDDEN: &str = "<!-- test";
const FILE: &str = "<!-- file: ";
/// The address in the pages. The test replaces it by a free port.
const PORT: &str = "8080";
/// The time limit of a page. One waits for a schedule, which may take a minute.
const PATIENCE: Duration = Duration::from_secs(240);

/// Runs a page in a folder with these files, which are beside the page, and with this environment.
pub(crate) async fn run(page: &str, files: &[&str], environment: &[(&str, &str)]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(&page)
        .unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let steps = steps(&text.replace(PORT, &free_port().to_string()));
    assert!(!steps.is_empty(), "{} has no {VISIBLE} before a block", page.display());

    let folder = tempfile::TempDir::new().unwrap();
    for file in files {
        let copy = folder.path().join(file);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(page.with_file_name(file), copy).unwrap();
    }
    let answers = tempfile::TempDir::new().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_windlass"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", binary.parent().unwrap().display());
    let shell = Windlass::new(folder.path()).binary("/bin/sh").env("PATH", &path);
    let shell = shell.env("ANSWERS", answers.path());
    let shell = environment.iter().fold(shell, |shell, (name, value)| shell.env(name, value));
    // One shell, so that `cd` and variables persist. It stops at the first failure.
    let running = shell.spawn(["-e", "-u", "-c", &script(&steps)]);
    let begun = Instant::now();
    while running.is_running() && begun.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let ended = !running.is_running();
    running.kill9();
    let code = running.wait().await.code;
    for (number, step) in steps.iter().enumerate() {
        // A step that did not start has no output; the last one with output has failed.
        let file = answers.path().join(number.to_string());
        let Ok(answer) = std::fs::read(file) else { continue };
        let answer = String::from_utf8_lossy(&answer);
        let last = !answers.path().join((number + 1).to_string()).exists();
        let what = &step.lines;
        assert!(ended || !last, "{}: still running: {what}\n{answer}", page.display());
        assert!(code == Some(0) || !last, "{}: {code:?}: {what}\n{answer}", page.display());
        if let Some(missing) = missing(&step.promised, &answer) {
            panic!("{}: {what}\nno line like\n{missing}\nin\n{answer}", page.display());
        }
    }
    assert_eq!(code, Some(0), "{}", page.display());
}

/// Lines for the shell, and the expected lines of their output.
#[derive(Debug, Default, PartialEq)]
struct Step {
    lines: String,
    promised: Vec<String>,
}

/// All steps as one script. Each writes its output to a file named by its number.
fn script(steps: &[Step]) -> String {
    let step = |(number, step): (usize, &Step)| {
        format!("{{\n{}}} >\"$ANSWERS/{number}\" 2>&1\n", step.lines)
    };
    steps.iter().enumerate().map(step).collect()
}

/// The marked parts of a page.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if line == HIDDEN {
            let block = lines.by_ref().take_while(|line| line.trim() != "-->");
            steps.push(plain(block));
        } else if line == VISIBLE || line.starts_with(FILE) {
            let fence = lines.next().unwrap_or_default();
            assert!(fence.starts_with("```"), "{line} must be directly before a block");
            let block = lines.by_ref().take_while(|line| !line.starts_with("```"));
            match (line.strip_prefix(FILE), fence) {
                (Some(rest), _) => steps.push(file(rest.trim_end_matches(" -->"), block)),
                (None, "```sh") => steps.push(plain(block)),
                (None, "```console") => console(block, &mut steps),
                // Blocks for other tests.
                (None, _) => {}
            }
        }
    }
    steps
}

fn plain<'a>(block: impl Iterator<Item = &'a str>) -> Step {
    let lines: String = block.map(|line| format!("{line}\n")).collect();
    assert!(!lines.trim().is_empty(), "a marked block has no command");
    Step { lines, promised: Vec::new() }
}

fn file<'a>(name: &str, block: impl Iterator<Item = &'a str>) -> Step {
    let text: String = block.map(|line| format!("{line}\n")).collect();
    Step { lines: format!("cat >{name} <<'END OF FILE'\n{text}END OF FILE\n"), promised: vec![] }
}

fn console<'a>(block: impl Iterator<Item = &'a str>, steps: &mut Vec<Step>) {
    let begun = steps.len();
    for line in block {
        match line.strip_prefix("$ ") {
            Some(command) => {
                steps.push(Step { lines: format!("{command}\n"), promised: Vec::new() });
            }
            None => {
                assert!(steps.len() > begun, "`{line}` comes before the first `$ ` of its block");
                let step = steps.last_mut().unwrap();
                if line.starts_with("exit code ") {
                    step.lines = format!("{} || echo exit code $?\n", step.lines.trim_end());
                }
                if !line.trim().is_empty() {
                    step.promised.push(line.to_owned());
                }
            }
        }
    }
    assert!(steps.len() > begun, "a marked block has no command");
}

/// The first expected line that does not follow in the output.
fn missing<'a>(promised: &'a [String], answer: &str) -> Option<&'a str> {
    let mut lines = answer.lines();
    promised.iter().map(String::as_str).find(|line| !lines.any(|given| is_like(line, given)))
}

/// Whether a line matches. The width of columns is ignored.
fn is_like(promised: &str, given: &str) -> bool {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let (promised, given) = (words(promised), words(given));
    let mut parts = promised.split('…');
    let Some(mut rest) = parts.next().and_then(|first| given.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = promised.rsplit_once('…').map(|(_, last)| last) else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part.trim()) {
            Some(at) => rest = &rest[at + part.trim().len()..],
            None => return false,
        }
    }
    given.ends_with(last)
}

#[test]
fn only_marked_blocks_are_run() {
    let page = "# W\n```sh\nrm -r everything\n```\n<!-- test -->\n```sh\nwindlass demo\ncd shop\n```\n\
                <!-- file: a.py -->\n```python\nprint('ä')\n\n```\n<!-- test\nsleep 0\n-->\n\
                <!-- test -->\n```console\n$ windlass jobs\nno jobs\n$ true\n```\n";
    let steps = steps(page);
    let lines: Vec<&str> = steps.iter().map(|step| step.lines.as_str()).collect();
    let file = "cat >a.py <<'END OF FILE'\nprint('ä')\n\nEND OF FILE\n";
    let expected = ["windlass demo\ncd shop\n", file, "sleep 0\n", "windlass jobs\n", "true\n"];
    assert_eq!(lines, expected);
    assert_eq!(steps[3].promised, ["no jobs"]);
}

#[test]
fn the_output_must_match_the_page() {
    for (promised, given, is) in [
        ("a b", " a   b ", true),
        ("a b", "a b c", false),
        ("a … c", "a bb c", true),
        ("a … c", "a bb", false),
        ("…", "anything", true),
        ("in … s: 3", "in 1.2 s: 3", true),
        ("in … s: 3", "in 1.2 s: 4", false),
        ("x… y …", "xx y 3", true),
    ] {
        assert_eq!(is_like(promised, given), is, "`{promised}` `{given}`");
    }
    let promised = ["a".to_owned(), "b".to_owned()];
    assert_eq!(missing(&promised, "0\na\n1\nb\n"), None);
    assert_eq!(missing(&promised, "b\na\n"), Some("b"));
}
