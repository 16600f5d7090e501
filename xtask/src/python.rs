//! The Python packages that the tests use, in one virtual environment beside cargo's build output.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// The packages, each with a fixed version.
const PACKAGES: [&str; 8] = [
    // Tests the API against its OpenAPI document. The same seed gives the same requests.
    "schemathesis==4.32.5",
    "hypothesis==6.170.15",
    // An S3, DynamoDB, SQS and EventBridge endpoint, and a client for them.
    "moto[server]==5.2.5",
    "boto3==1.44.0",
    // Validate the AWS SAM template, and expand it to CloudFormation.
    "cfn-lint==1.58.0",
    "aws-sam-translator==1.115.0",
    // Reads Parquet, independently of the code that wrote it.
    "pyarrow==26.0.1",
    // Contains axe-core, which finds accessibility violations.
    "axe-core-python==0.1.0",
];

/// Installs the packages unless they are there. On failure it prints the reason and returns: only the tests that use
/// them fail then.
pub(crate) fn install() {
    if let Err(error) = try_install() {
        eprintln!(
            "xtask: failed to install the Python packages ({}): {error:#}\n\
             xtask: the tests that use them will fail: those of the API document, S3, DynamoDB, AWS, Parquet and \
             accessibility",
            PACKAGES.join(", ")
        );
    }
}

fn try_install() -> anyhow::Result<()> {
    let folder = folder()?;
    // The stamp is written last, so that an interrupted installation starts again.
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

/// The folder where `windlass_testkit::python_program` looks: in cargo's target folder, named after the first package.
fn folder() -> anyhow::Result<PathBuf> {
    let program = env::current_exe().context("failed to find the path of xtask")?;
    let target = program.parent().and_then(Path::parent);
    Ok(target.context("xtask does not run from cargo's target folder")?.join("schemathesis"))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let line = format!("{command:?}");
    let status = command.status().with_context(|| line.clone())?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}
