//! The house rules. Each is a function that appends the violations in a file's text.

use std::path::Path;

const MAX_RUST_LINES: usize = 500;

/// Unfinished work and tests that do not run. Written in two parts, so that this file does not violate the rule.
const LEFTOVERS: [&str; 3] =
    [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];

/// Words in comments that mark unfinished work.
const LEFTOVER_WORDS: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];

/// Folders that exist only on one machine.
const MACHINE_FOLDERS: [&str; 3] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/fa", "rm/")];

/// The violations in a file, each as `line: rule`.
pub(super) fn check(path: &Path, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => {
            has_a_header(text, &mut findings);
            is_short(text, &mut findings);
            has_no_leftovers(text, &mut findings);
        }
        Some("sql") => sql_has_a_header(text, &mut findings),
        _ => {}
    }
    names_no_machine_folder(text, &mut findings);
    findings
}

fn has_a_header(text: &str, findings: &mut Vec<String>) {
    if !text.lines().take(5).any(|line| line.starts_with("//!")) {
        findings.push("1: a Rust file must begin with a `//!` line that states its purpose".into());
    }
}

fn is_short(text: &str, findings: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > MAX_RUST_LINES {
        findings.push(format!("{lines}: a Rust file must have at most {MAX_RUST_LINES} lines"));
    }
}

fn has_no_leftovers(text: &str, findings: &mut Vec<String>) {
    for (number, line) in numbered(text) {
        let marks = LEFTOVERS.iter().filter(|mark| line.contains(**mark));
        let mut words = line.split(|letter: char| !letter.is_alphanumeric());
        let word = words.find(|word| LEFTOVER_WORDS.contains(word));
        for leftover in marks.copied().chain(word) {
            findings.push(format!("{number}: `{leftover}` marks unfinished work"));
        }
    }
}

fn sql_has_a_header(text: &str, findings: &mut Vec<String>) {
    if !text.starts_with("--") {
        findings
            .push("1: an SQL file must begin with a `--` comment that states its purpose".into());
    }
}

fn names_no_machine_folder(text: &str, findings: &mut Vec<String>) {
    for (number, line) in numbered(text) {
        for folder in MACHINE_FOLDERS {
            let begins_there =
                |(at, _): (usize, &str)| !line[..at].ends_with(|before: char| continues(before));
            if line.match_indices(folder).any(begins_there) {
                findings.push(format!(
                    "{number}: {folder} is a folder of one machine; use a relative path"
                ));
            }
        }
    }
}

/// Whether a slash after this character continues a path, rather than beginning one.
fn continues(letter: char) -> bool {
    letter.is_alphanumeric() || "_-.~*})]>%".contains(letter)
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(Path::new(path), text).len()
    }

    #[test]
    fn a_file_that_follows_the_rules_has_no_findings() {
        assert_eq!(findings("a.rs", "//! Something.\nfn main() {}\n"), 0);
        assert_eq!(findings("a.sql", "-- Something.\nSELECT 1\n"), 0);
        assert_eq!(findings("README.md", "Anything.\n"), 0);
    }

    #[test]
    fn a_missing_header_is_found() {
        assert_eq!(findings("a.rs", "fn main() {}\n"), 1);
        assert_eq!(findings("a.sql", "SELECT 1\n"), 1);
    }

    #[test]
    fn a_file_that_is_too_long_is_found() {
        let lines = |count| "//! A line.\n".repeat(count);
        assert_eq!(findings("a.rs", &lines(MAX_RUST_LINES)), 0);
        assert_eq!(findings("a.rs", &lines(MAX_RUST_LINES + 1)), 1);
        assert_eq!(findings("a.md", &lines(MAX_RUST_LINES + 1)), 0);
    }

    #[test]
    fn unfinished_work_is_found() {
        for leftover in LEFTOVERS.iter().chain(&LEFTOVER_WORDS) {
            assert_eq!(findings("a.rs", &format!("//! A.\n// {leftover}: b\n")), 1, "{leftover}");
        }
        let template = format!("//! A.\n// {0}{0}\n", LEFTOVER_WORDS[1]);
        assert_eq!(findings("a.rs", &template), 0, "part of a longer word");
    }

    #[test]
    fn machine_folders_are_found_where_a_path_begins() {
        for folder in MACHINE_FOLDERS {
            assert_eq!(findings("a.md", &format!("see {folder}a")), 1);
            assert_eq!(findings("a.toml", &format!("path = \"{folder}a\"")), 1);
            assert_eq!(findings("a.md", &format!("see my{folder}a")), 0);
            assert_eq!(findings("a.sh", &format!("${{HOME}}{folder}a")), 0);
        }
    }
}
