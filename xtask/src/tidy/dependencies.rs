//! Whether all dependencies are ones that deny.toml accepts. What cargo already knows is checked here, so
//! that it needs nothing but cargo; known vulnerabilities are checked by cargo-deny where it is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Stdio;

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::cargo;

/// Checks licences, bans and sources, and prints what is not accepted.
pub(crate) fn are_accepted() -> anyhow::Result<bool> {
    eprintln!("xtask: licences, bans and sources of dependencies (deny.toml)");
    let text = fs::read_to_string("deny.toml").context("deny.toml")?;
    let policy: Policy = toml::from_str(&text).context("deny.toml")?;
    let packages = packages()?;
    let findings = check(&policy, &packages);
    for finding in &findings {
        eprintln!("deny.toml: {finding}");
    }
    let doubled = versions(&packages).values().filter(|versions| versions.len() > 1).count();
    eprintln!("xtask: {} dependencies, {doubled} in several versions", packages.len());
    Ok(findings.is_empty())
}

/// Crates that a program which embeds the library with PostgreSQL alone must not build.
const NOT_EMBEDDED: [&str; 8] =
    ["axum", "clap", "comfy-table", "indicatif", "maud", "mysql_async", "parquet", "rusqlite"];

/// Whether `windlass` with `--no-default-features --features postgres` is free of the server, the command
/// line, files and the other databases.
pub(crate) fn embedding_is_lean() -> anyhow::Result<bool> {
    eprintln!("xtask: dependencies of windlass --no-default-features --features postgres");
    let tree = embedded_tree("postgres")?;
    let found = embedded(&tree);
    for name in &found {
        eprintln!("xtask: embedding windlass with PostgreSQL alone builds {name}");
    }
    // The other checks build all features, so only this one compiles what remains without them.
    let check = ["check", "-p", "windlass", "--no-default-features", "--features", "postgres"];
    Ok(found.is_empty() && cargo::succeeds(&check)?)
}

/// The names of all crates that the library builds with these features, one per line.
fn embedded_tree(features: &str) -> anyhow::Result<String> {
    let args = ["tree", "--locked", "-p", "windlass", "--no-default-features", "--features"];
    let format = ["--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let args: Vec<&str> = args.into_iter().chain([features]).chain(format).collect();
    let output = cargo::command(&args).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "cargo tree failed");
    Ok(String::from_utf8(output.stdout)?)
}

/// Which of the crates that must not be embedded are in the output of `cargo tree`.
fn embedded(tree: &str) -> BTreeSet<&str> {
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| NOT_EMBEDDED.contains(name)).collect()
}

/// Whether no dependency has a known vulnerability; true, and said so, where that cannot be known.
pub(crate) fn have_no_advisories() -> anyhow::Result<bool> {
    let skipped = |why: &str| {
        eprintln!("xtask: SKIPPED: known vulnerabilities of dependencies are not checked: {why}");
        Ok(true)
    };
    let mut version = cargo::command(&["deny", "--version"]);
    if !version.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
        return skipped("cargo-deny is not installed (cargo install --locked cargo-deny)");
    }
    if !cargo::succeeds(&["deny", "fetch", "db"])? {
        return skipped("the advisory database cannot be fetched");
    }
    cargo::succeeds(&["deny", "--all-features", "check", "--disable-fetch", "advisories"])
}

/// The part of deny.toml that is checked here, in cargo-deny's own words.
#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    /// One version is accepted, and no second.
    #[serde(default)]
    deny_multiple_versions: bool,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: BTreeSet<String>,
}

/// A crate as `cargo metadata` describes it.
#[derive(Clone, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// None for the crates of this workspace.
    source: Option<String>,
}

fn packages() -> anyhow::Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let args = ["metadata", "--format-version=1", "--all-features", "--locked"];
    let output = cargo::command(&args).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "cargo metadata failed");
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    Ok(metadata.packages)
}

fn versions(packages: &[Package]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    versions
}

/// What is not accepted, each as a sentence.
fn check(policy: &Policy, packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    for package in packages {
        let Package { name, version, license, source } = package;
        let exception = policy.licenses.exceptions.iter().find(|exception| exception.name == *name);
        let allowed = |term: &str| {
            policy.licenses.allow.contains(term)
                || exception.is_some_and(|exception| exception.allow.contains(term))
        };
        match license {
            None => findings.push(format!("{name} {version} names no licence")),
            Some(license) if !satisfies(license, &allowed) => {
                findings.push(format!("{name} {version}: the licence {license} is not allowed"));
            }
            Some(_) => {}
        }
        if let Some(source) = source {
            let registry = source.strip_prefix("registry+");
            if !registry.is_some_and(|url| policy.sources.allow_registry.contains(url)) {
                findings.push(format!("{name} {version}: the source {source} is not allowed"));
            }
        }
    }
    let versions = versions(packages);
    for Ban { name, deny_multiple_versions, reason } in &policy.bans.deny {
        let found = versions.get(name.as_str()).map_or(0, BTreeSet::len);
        if found > usize::from(*deny_multiple_versions) {
            findings.push(format!("{name} is denied in {found} versions: {reason}"));
        }
    }
    for Exception { name, .. } in &policy.licenses.exceptions {
        if !versions.contains_key(name.as_str()) {
            findings
                .push(format!("the exception for {name} is not needed: no crate has this name"));
        }
    }
    findings
}

/// Whether an SPDX expression can be fulfilled with the allowed licences. AND binds tighter than OR, and
/// old crates write OR as a slash.
fn satisfies(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let (fulfilled, rest) = any_of(&tokens, allowed);
    fulfilled && rest.is_empty()
}

fn any_of<'a>(tokens: &'a [&'a str], allowed: &dyn Fn(&str) -> bool) -> (bool, &'a [&'a str]) {
    let (mut fulfilled, mut rest) = all_of(tokens, allowed);
    while let ["OR", more @ ..] = rest {
        let (other, after) = all_of(more, allowed);
        (fulfilled, rest) = (fulfilled || other, after);
    }
    (fulfilled, rest)
}

fn all_of<'a>(tokens: &'a [&'a str], allowed: &dyn Fn(&str) -> bool) -> (bool, &'a [&'a str]) {
    let (mut fulfilled, mut rest) = term(tokens, allowed);
    while let ["AND", more @ ..] = rest {
        let (other, after) = term(more, allowed);
        (fulfilled, rest) = (fulfilled && other, after);
    }
    (fulfilled, rest)
}

/// A rest that no rule reads, so that the whole expression is not fulfilled.
const MALFORMED: &[&str] = &["?"];

fn term<'a>(tokens: &'a [&'a str], allowed: &dyn Fn(&str) -> bool) -> (bool, &'a [&'a str]) {
    match tokens {
        ["(", inner @ ..] => match any_of(inner, allowed) {
            (fulfilled, [")", rest @ ..]) => (fulfilled, rest),
            _ => (false, MALFORMED),
        },
        [license, "WITH", exception, rest @ ..] => {
            (allowed(&format!("{license} WITH {exception}")), rest)
        }
        [license, rest @ ..] => (allowed(license), rest),
        [] => (false, MALFORMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        toml::from_str(include_str!("../../../deny.toml")).unwrap()
    }

    fn package(name: &str, license: &str) -> Package {
        let source = "registry+https://github.com/rust-lang/crates.io-index";
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: Some(license.to_owned()),
            source: Some(source.to_owned()),
        }
    }

    /// What is found beside exceptions for crates that are not among so few.
    fn findings(packages: &[Package]) -> Vec<String> {
        let all = check(&policy(), packages);
        all.into_iter().filter(|finding| !finding.contains("is not needed")).collect()
    }

    #[test]
    fn expressions_are_fulfilled_as_spdx_reads_them() {
        let allowed = |term: &str| ["A", "B", "C WITH x"].contains(&term);
        for yes in ["A", "A OR Z", "Z/A", "A AND B", "Z AND Y OR A", "(Z OR A) AND B", "C WITH x"] {
            assert!(satisfies(yes, &allowed), "{yes}");
        }
        for no in ["Z", "A AND Z", "(A OR B) AND Z", "C", "", "(A", "A)", "A B", "A OR", "A WITH x"]
        {
            assert!(!satisfies(no, &allowed), "{no}");
        }
    }

    #[test]
    fn every_dependency_of_the_workspace_is_accepted_and_not_with_a_licence_less() {
        let (mut policy, packages) = (policy(), packages().unwrap());
        assert_eq!(check(&policy, &packages), [""; 0]);
        for license in policy.licenses.allow.clone() {
            policy.licenses.allow.remove(&license);
            assert!(!check(&policy, &packages).is_empty(), "{license} is not needed");
            policy.licenses.allow.insert(license);
        }
    }

    #[test]
    fn an_unlisted_licence_is_found_and_an_exception_is_for_its_crate_alone() {
        assert_eq!(findings(&[package("a", "MIT OR GPL-3.0")]), [""; 0]);
        assert_eq!(findings(&[package("a", "GPL-3.0")]).len(), 1);
        assert_eq!(findings(&[package("webdriver", "MPL-2.0")]), [""; 0]);
        assert_eq!(findings(&[package("a", "MPL-2.0")]).len(), 1);
        assert_eq!(findings(&[Package { license: None, ..package("a", "") }]).len(), 1);
    }

    #[test]
    fn other_sources_denied_crates_and_second_versions_are_found() {
        for source in ["git+https://github.com/a/b", "registry+https://other.example/index"] {
            let elsewhere = Package { source: Some(source.to_owned()), ..package("a", "MIT") };
            assert_eq!(findings(&[elsewhere]).len(), 1, "{source}");
        }
        assert_eq!(findings(&[package("openssl-sys", "MIT")]).len(), 1);
        let first = package("tokio", "MIT");
        let second = Package { version: "2.0.0".to_owned(), ..first.clone() };
        assert_eq!(findings(std::slice::from_ref(&first)), [""; 0]);
        assert_eq!(findings(&[first, second]).len(), 1);
    }

    #[test]
    fn an_embedding_program_builds_what_its_features_name() {
        let postgres = embedded_tree("postgres").unwrap();
        assert_eq!(embedded(&postgres), BTreeSet::new());
        let sqlite = embedded_tree("sqlite").unwrap();
        assert_eq!(embedded(&sqlite), BTreeSet::from(["rusqlite"]));
        let all = embedded_tree("export,mysql,postgres,server,sqlite").unwrap();
        let all: Vec<_> = embedded(&all).into_iter().collect();
        assert_eq!(all, ["axum", "maud", "mysql_async", "parquet", "rusqlite"]);
    }

    #[test]
    fn an_exception_that_is_not_needed_is_found() {
        let all = check(&policy(), &[package("a", "MIT")]);
        assert_eq!(all.len(), policy().licenses.exceptions.len());
    }
}
