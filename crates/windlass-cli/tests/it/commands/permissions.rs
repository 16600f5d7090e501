//! Files that Windlass creates are readable only by its own user, with any umask.

use crate::common::{CliSandbox, Data, config, eventually, parse, text};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Every file and folder below this one, with its permissions.
fn modes(folder: &Path) -> BTreeMap<PathBuf, u32> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        // Skip the test's own output files. A file may disappear meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        if path.ends_with(".testkit") {
            continue;
        }
        found.insert(path.clone(), metadata.permissions().mode() & 0o777);
        if metadata.is_dir() {
            found.extend(modes(&path));
        }
    }
    found
}

/// Asserts that new files are private and that existing ones keep their permissions. Returns the number of new ones.
#[track_caller]
fn is_private(sandbox: &CliSandbox, before: &BTreeMap<PathBuf, u32>) -> usize {
    let after = modes(&sandbox.path("."));
    for (path, mode) in &after {
        // SQLite's `-wal` and `-shm` files have the mode of their database.
        let name = path.to_str().unwrap();
        let database = name.strip_suffix("-wal").or(name.strip_suffix("-shm")).unwrap_or(name);
        let expected = match before.get(Path::new(database)) {
            Some(mode) => *mode,
            None if path.is_dir() => 0o700,
            None => 0o600,
        };
        assert_eq!(*mode, expected, "{} is {mode:o}, not {expected:o}", path.display());
    }
    after.len() - before.len()
}

const EXPORT: &str = "[jobs.EXPORT]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.export = { to = \"file:out/parts/{job_id}/\", format = \"csv\" }\n\
    [jobs.REPORT]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.map = \"SELECT branch, count(*) n FROM {source} WHERE {chunk} GROUP BY branch\"\n\
    reduce = \"SELECT branch, sum(n) n FROM parts GROUP BY branch\"\n\
    report = { to = \"file:reports/{job_type}/there.csv\" }\n\
    [jobs.BAD]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.version = \"version\"\nstep.command = [\"sh\", \"bad.sh\"]\n";

/// Every batch fails.
const BAD: &str = "while read -r line; do case $line in \
    *'\"items\":[]'*) echo '{\"results\":[]}';; *) echo '{}';; esac; done\n";

async fn accounts() -> (Data, CliSandbox) {
    let data = Data::sqlite().with_accounts(20).await;
    let sandbox = CliSandbox::with(&config("sqlite:windlass.db", &data.url(), EXPORT));
    sandbox.write("bad.sh", BAD);
    (data, sandbox)
}

#[tokio::test]
async fn files_of_jobs_are_private() {
    let (_data, sandbox) = accounts().await;
    let before = modes(&sandbox.path("."));
    let run = async |command: &str| sandbox.spawn_with_open_umask(command).wait().await;
    run("init --config new.toml").await.ok();
    run("run EXPORT").await.ok();
    run("run REPORT").await.ok();
    let id = text(&parse(&run("run REPORT --json").await.ok())["id"]);
    run(&format!("job {id} --html page.html")).await.ok();
    run("run BAD").await;
    run("dead export --to letters.jsonl").await.ok();
    let created = is_private(&sandbox, &before);
    assert!(
        sandbox.path("reports/REPORT/there.csv").exists() && sandbox.path("out/parts").is_dir()
    );
    assert!(created >= 10, "{created} files and folders: {:?}", modes(&sandbox.path(".")));
}

#[tokio::test]
async fn the_store_and_its_log_are_private_while_they_are_used() {
    let (_data, sandbox) = accounts().await;
    let before = modes(&sandbox.path("."));
    let worker = sandbox.spawn_with_open_umask("worker");
    let has = |name: &str| sandbox.path(name).exists();
    eventually("the log is there", async || has("windlass.db-wal") && has("windlass.db-shm")).await;
    assert!(worker.is_running());
    assert!(is_private(&sandbox, &before) >= 3);
}

#[tokio::test]
async fn the_demo_is_private() {
    let sandbox = CliSandbox::empty();
    let demo = sandbox.spawn_with_open_umask("demo --transactions 1000 --folder a/b");
    demo.wait().await.ok();
    assert!(is_private(&sandbox, &BTreeMap::new()) >= 5);
}

#[tokio::test]
async fn existing_files_keep_their_permissions() {
    let (_data, sandbox) = accounts().await;
    std::fs::create_dir_all(sandbox.path("reports/REPORT")).unwrap();
    for name in ["windlass.db", "reports/REPORT/there.csv", "page.html", "letters.jsonl"] {
        sandbox.write(name, "");
        let mode = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(sandbox.path(name), mode).unwrap();
    }
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.path("reports/REPORT"), open).unwrap();
    let before = modes(&sandbox.path("."));
    let id = text(&parse(&sandbox.run("run REPORT --json").await.ok())["id"]);
    sandbox.run(&format!("job {id} --html page.html")).await.ok();
    sandbox.run("dead export --to letters.jsonl").await.ok();
    assert!(sandbox.read("reports/REPORT/there.csv").contains("branch"));
    is_private(&sandbox, &before);
}
