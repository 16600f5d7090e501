//! The programs that the tests start, installed where that is possible.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Which tests are going to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    AllTests,
    QuickTests,
}

struct Need {
    what: &'static str,
    /// Debian packages.
    packages: &'static [&'static str],
    is_installed: fn() -> bool,
    /// Whether `cargo xtask test --quick` needs it too.
    quick: bool,
}

const NEEDS: &[Need] = &[
    Need {
        what: "the PostgreSQL server programs (initdb, postgres)",
        packages: &["postgresql"],
        is_installed: has_postgres,
        quick: true,
    },
    // The package mariadb-server would also start a system service; the tests start their own servers.
    Need {
        what: "the MariaDB server programs (mariadbd, mariadb-install-db)",
        packages: &["mariadb-server-core", "mariadb-client-core"],
        is_installed: has_mariadb,
        quick: true,
    },
    Need { what: "PgBouncer", packages: &["pgbouncer"], is_installed: has_pgbouncer, quick: false },
    Need {
        what: "libfaketime",
        packages: &["libfaketime"],
        is_installed: has_libfaketime,
        quick: false,
    },
    Need {
        what: "Python 3",
        packages: &["python3"],
        is_installed: || on_path("python3"),
        quick: true,
    },
    Need {
        what: "the Python module venv",
        packages: &["python3-venv"],
        is_installed: has_venv,
        quick: false,
    },
    Need { what: "Node.js", packages: &["nodejs"], is_installed: || on_path("node"), quick: false },
    Need {
        what: "Chromium and chromedriver",
        packages: &["chromium", "chromium-driver"],
        is_installed: || on_path("chromium") && on_path("chromedriver"),
        quick: false,
    },
    Need { what: "jq", packages: &["jq"], is_installed: || on_path("jq"), quick: false },
    // Installs the validator of state machines, and the PostgreSQL servers of `--matrix`.
    Need { what: "npm", packages: &["npm"], is_installed: || on_path("npm"), quick: false },
];

/// Installs missing programs if possible. Returns whether all are installed; prints those that are not.
pub(crate) fn install(tests: For) -> bool {
    let missing = || {
        let needed = move |need: &&Need| need.quick || tests != For::QuickTests;
        NEEDS.iter().filter(needed).filter(|need| !(need.is_installed)())
    };
    if missing().next().is_some() {
        match cannot_install() {
            None => install_packages(missing().flat_map(|need| need.packages).copied().collect()),
            Some(reason) => eprintln!("xtask: cannot install missing programs: {reason}"),
        }
    }
    let missing: Vec<_> = missing().collect();
    for need in &missing {
        eprintln!("xtask: missing: {}", need.what);
    }
    if !missing.is_empty() {
        let packages: Vec<_> = missing.iter().flat_map(|need| need.packages).copied().collect();
        eprintln!("xtask: on Debian or Ubuntu: apt-get install {}", packages.join(" "));
    }
    missing.is_empty()
}

/// Searches the same folders as the test kit.
fn has_postgres() -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = env::var_os("WINDLASS_PG_BIN").map(PathBuf::from).into_iter();
    folders
        .chain(versions.map(|version| version.path().join("bin")))
        .chain(path())
        .any(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}

/// `mariadb-install-db` calls `my_print_defaults`, which is in another package.
fn has_mariadb() -> bool {
    let exists = |program| on_path(program) || Path::new("/usr/sbin").join(program).is_file();
    ["mariadbd", "mariadb-install-db", "my_print_defaults"].into_iter().all(exists)
}

fn has_libfaketime() -> bool {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders.into_iter().any(|folder| folder.path().join("faketime/libfaketime.so.1").is_file())
}

/// Debian installs it in a folder that is only on root's PATH.
fn has_pgbouncer() -> bool {
    on_path("pgbouncer") || Path::new("/usr/sbin/pgbouncer").is_file()
}

/// Debian's python3 package does not contain it.
fn has_venv() -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", "import ensurepip, venv"]).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

fn on_path(program: &str) -> bool {
    path().iter().any(|folder| folder.join(program).is_file())
}

/// Why packages cannot be installed, if they cannot.
fn cannot_install() -> Option<&'static str> {
    // The owner of this process's folder in /proc is the user of this process.
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    match (is_root, on_path("apt-get")) {
        (true, true) => None,
        (false, _) => Some("this process does not run as root"),
        (true, false) => Some("there is no apt-get"),
    }
}

/// The caller checks again what is missing, so a failure is only printed here.
fn install_packages(packages: Vec<&str>) {
    eprintln!("xtask: installing {}", packages.join(", "));
    let install = ["install", "-y", "--no-install-recommends"];
    if !apt_get(&["update"]) {
        eprintln!("xtask: `apt-get update` failed; is the package mirror reachable?");
    } else if !apt_get(&[&install[..], &packages[..]].concat()) {
        eprintln!("xtask: `apt-get install` failed");
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
