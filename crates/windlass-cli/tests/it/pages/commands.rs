//! Every command in the documentation exists, with these options.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use windlass_testkit::Windlass;

#[tokio::test]
async fn every_command_in_the_documentation_exists() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut seen = BTreeSet::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for command in commands(&text) {
            if !seen.insert(command.clone()) {
                continue;
            }
            // A shell removes the quotes, as for a reader. `--help` succeeds if everything else is valid.
            let line = format!("{} {command} --help", env!("CARGO_BIN_EXE_windlass"));
            let shell = Windlass::new(folder.path()).binary("/bin/sh");
            let output = shell.run(["-c", &line]).await;
            let said = output.stderr;
            assert_eq!(output.code, Some(0), "{}: windlass {command}\n{said}", page.display());
        }
    }
    assert!(seen.len() > 50, "{seen:?}");
}

/// An id of a job or dead letter.
const UNKNOWN_ID: &str = "00000000-0000-0000-0000-000000000000";

/// The pages for users. The commands of the examples' pages are run by another test.
pub(crate) fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|page| page.extension().is_some_and(|kind| kind == "md"));
    std::iter::once(root.join("README.md")).chain(docs).collect()
}

/// The commands in code blocks and between backticks, each as the words after `windlass`.
fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, part) in page.split("```").enumerate() {
        // Every second part is a block, which begins with its language.
        let spans: Vec<&str> = match number % 2 {
            // The output of a command is not a command.
            1 if part.starts_with("console") => {
                part.lines().filter(|line| line.starts_with("$ ")).collect()
            }
            1 => part.lines().skip(1).collect(),
            _ => part.split('`').skip(1).step_by(2).collect(),
        };
        for span in spans {
            found.extend(span.split("windlass ").skip(1).flat_map(ways));
        }
    }
    found
}

/// The commands that a text stands for: `pause\|resume ID [--json]` are two.
fn ways(text: &str) -> Vec<String> {
    let mut text = text.replace("\\|", "\u{1}");
    // The output of another command is an id or similar.
    while let Some((before, (_, after))) =
        text.split_once("$(").and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
    {
        text = format!("{before}{UNKNOWN_ID}{after}");
    }
    // Here the command ends and a shell operator or an explanation follows.
    let end = text.find(['|', ';', '&', ')', '>', '<', '#', '…']).unwrap_or(text.len());
    let text = text[..end].replace(['[', ']'], "");
    let words: Vec<String> = text.split_whitespace().map(value).collect();
    let Some(split) = words.iter().position(|word| word.contains('\u{1}')) else {
        return vec![words.join(" ")];
    };
    let way = |choice: &str| {
        let mut words = words.clone();
        words[split] = choice.to_owned();
        words.join(" ")
    };
    words[split].split('\u{1}').map(way).collect()
}

/// A placeholder replaced by a value.
fn value(word: &str) -> String {
    match word {
        "N" => "1".to_owned(),
        // Shell variables are ids too.
        "ID" | "JOB" | "LETTER" => UNKNOWN_ID.to_owned(),
        _ if word.starts_with('$') => UNKNOWN_ID.to_owned(),
        _ => word.to_owned(),
    }
}

#[test]
fn commands_are_extracted_from_a_page() {
    let page = "Say `windlass cancel\\|pause ID`, not windlass x.\n```sh\nid=$(windlass submit A --rate N) # 1\n\
                windlass job $id | grep a\n```\n`windlass init [URL]`";
    let [cancel, pause, job] =
        ["cancel", "pause", "job"].map(|verb| format!("{verb} {UNKNOWN_ID}"));
    assert_eq!(commands(page), [&cancel, &pause, "submit A --rate 1", &job, "init URL"]);
}
