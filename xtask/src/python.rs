//! The Python packages that the tests use, in one environment of their own beside what cargo
//! builds. It is made once; the tests that need it fail where it cannot be made.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// What is installed, and what for. All are snapshot.
const PACKAGES: [&str; 8] = [
    // Tries the API by its own document; the same seed gives the same requests.
    "schemathesis==4.32.5",
    "hypothesis==6.170.15",
    // An endpoint that speaks S3, DynamoDB, SQS and EventBridge, and a client of these.
    "moto[server]==5.2.5",
    "boto3==1.44.0",
    // Say whether a template can be deployed, and what AWS makes of it.
    "cfn-lint==1.58.0",
    "aws-sam-translator==1.115.0",
    // Reads Parquet, independently of what wrote it.
    "pyarrow==26.0.1",
    // Brings axe-core, which finds what makes pages hard for some to use.
    "axe-core-python==0.1.0",
];

/// Makes it unless it is there. Where it cannot be made, it says why: all other tests still run.
pub(crate) fn make() {
    if let Err(error) = try_make() {
        eprintln!(
            "xtask: Python packages cannot be installed, so their tests will fail: {error:#}"
        );
    }
}

fn try_make() -> anyhow::Result<()> {
    let folder = folder()?;
    // Written last, so that what was begun and not finished is begun anew.
    let (stamp, wanted) = (folder.join("installed"), PACKAGES.join(" "));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    eprintln!("xtask: installing {wanted} in {}", folder.display());
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(Command::new(folder.join("bin/python")).args(pip).args(PACKAGES))?;
    fs::write(&stamp, wanted).with_context(|| stamp.display().to_string())
}

/// The tests look for it here, in the folder that has the folders of all profiles, under the name
/// of its first package.
fn folder() -> anyhow::Result<PathBuf> {
    let program = env::current_exe().context("a process knows its program")?;
    let target = program.parent().and_then(Path::parent).context("cargo's folder is gone")?;
    Ok(target.join("schemathesis"))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let line = format!("{command:?}");
    let status = command.status().with_context(|| line.clone())?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}
