//! What the tests need from the machine, installed where that is possible.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Need {
    what: &'static str,
    /// What to install, by Debian's names.
    packages: &'static [&'static str],
    is_there: fn() -> bool,
}

const NEEDS: &[Need] = &[
    Need {
        what: "PostgreSQL's server programs (initdb, postgres)",
        packages: &["postgresql"],
        is_there: has_postgres,
    },
    // The whole of mariadb-server would also start a service of the system, which nobody needs: the
    // tests run servers of their own.
    Need {
        what: "MariaDB's server programs (mariadbd, mariadb-install-db)",
        packages: &["mariadb-server-core", "mariadb-client-core"],
        is_there: has_mariadb,
    },
    Need { what: "PgBouncer", packages: &["pgbouncer"], is_there: has_pgbouncer },
    Need { what: "libfaketime", packages: &["libfaketime"], is_there: has_libfaketime },
    Need { what: "Python 3", packages: &["python3"], is_there: || on_path("python3") },
    Need { what: "Python's venv", packages: &["python3-venv"], is_there: has_venv },
    Need { what: "Node", packages: &["nodejs"], is_there: || on_path("node") },
    Need {
        what: "Chromium and its driver",
        packages: &["chromium", "chromium-driver"],
        is_there: || on_path("chromium") && on_path("chromedriver"),
    },
    Need { what: "jq", packages: &["jq"], is_there: || on_path("jq") },
];

/// Whether all is there in the end. If not, it has said what to install.
pub(crate) fn are_met() -> bool {
    if missing().next().is_none() {
        return true;
    }
    if can_install() {
        install(missing().flat_map(|need| need.packages).copied().collect());
    }
    for need in missing() {
        eprintln!(
            "xtask: the tests need {}: install that (Debian, Ubuntu: apt-get install {})",
            need.what,
            need.packages.join(" ")
        );
    }
    missing().next().is_none()
}

fn missing() -> impl Iterator<Item = &'static Need> {
    NEEDS.iter().filter(|need| !(need.is_there)())
}

/// Looks where the tests look.
fn has_postgres() -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = env::var_os("WINDLASS_PG_BIN").map(PathBuf::from).into_iter();
    folders
        .chain(versions.map(|version| version.path().join("bin")))
        .chain(path())
        .any(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}

/// Its own programs call `my_print_defaults`.
fn has_mariadb() -> bool {
    let there = |program| on_path(program) || Path::new("/usr/sbin").join(program).is_file();
    ["mariadbd", "mariadb-install-db", "my_print_defaults"].into_iter().all(there)
}

fn has_libfaketime() -> bool {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders.into_iter().any(|folder| folder.path().join("faketime/libfaketime.so.1").is_file())
}

/// Debian installs it where only root looks for programs.
fn has_pgbouncer() -> bool {
    on_path("pgbouncer") || Path::new("/usr/sbin/pgbouncer").is_file()
}

/// Debian ships Python without it.
fn has_venv() -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", "import ensurepip, venv"]).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

fn on_path(program: &str) -> bool {
    path().iter().any(|folder| folder.join(program).is_file())
}

fn can_install() -> bool {
    // The owner of our own process's folder is who we are.
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    is_root && on_path("apt-get")
}

/// A failure shows in what is still missing afterwards.
fn install(packages: Vec<&str>) {
    eprintln!("xtask: installing {}", packages.join(", "));
    let updated = apt_get(&["update"]);
    let install = ["install", "-y", "--no-install-recommends"];
    if !updated || !apt_get(&[&install[..], &packages[..]].concat()) {
        eprintln!("xtask: apt-get failed");
    }
}

fn apt_get(args: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command.status().is_ok_and(|status| status.success())
}

fn path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).filter(|folder| folder != Path::new("")).collect()
}
