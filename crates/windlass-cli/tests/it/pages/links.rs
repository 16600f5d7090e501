//! Every link of a page within the project leads to an existing file, section or image.

use crate::pages::commands::pages;
use std::path::Path;

#[test]
fn every_link_has_an_existing_target() {
    let mut seen = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            let to = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            assert!(to.exists(), "{}: there is no {link}", page.display());
            let leads = section.is_empty() || sections(&to).contains(&section.to_owned());
            assert!(leads, "{}: {file} has no section #{section}", page.display());
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

/// The targets of a page's links within the project.
fn links(page: &str) -> Vec<&str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).collect()
}

/// The anchors of a page's headings.
fn sections(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let name = |line: &str| {
        let line = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        line.replace(|letter: char| !letter.is_alphanumeric() && !"-_".contains(letter), "")
    };
    headings.map(name).collect()
}
