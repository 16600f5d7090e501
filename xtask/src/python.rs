//! The Python packages that the tests and checks use, in virtual environments beside cargo's build output.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::cargo;

/// A virtual environment.
pub(crate) struct Environment {
    /// Its folder in cargo's target folder, named after the first package.
    folder: &'static str,
    /// Its packages, each with a fixed version.
    packages: &'static [&'static str],
    /// What fails without it.
    used_by: &'static str,
}

/// What the tests use; `windlass_testkit::python_program` looks there too.
pub(crate) const TESTS: Environment = Environment {
    folder: "schemathesis",
    packages: &TEST_PACKAGES,
    used_by: "the tests of the API document, S3, DynamoDB, AWS, Parquet and accessibility, and the check of deploy/",
};

/// Alone: it needs a copy of python-hcl2 of its own under the same name, and other versions of many packages.
pub(crate) const CHECKOV: Environment = Environment {
    folder: "checkov",
    packages: &["checkov==3.3.30"],
    used_by: "the scan of deploy/terraform",
};

/// A second implementation of DynamoDB. Alone: it needs another version of botocore.
pub(crate) const MINISTACK: Environment = Environment {
    folder: "ministack",
    packages: &["ministack==1.5.33"],
    used_by: "the tests of DynamoDB on a second implementation",
};

const TEST_PACKAGES: [&str; 11] = [
    // Tests the API against its OpenAPI document. The same seed gives the same requests.
    "schemathesis==4.32.5",
    "hypothesis==6.170.15",
    // An endpoint for S3, DynamoDB, SQS, SNS, EventBridge and Step Functions, and a client for them.
    "moto[server,stepfunctions]==5.2.5",
    // Evaluates the expressions of state machines, which moto cannot.
    "jsonata-python==0.7.1",
    "boto3==1.44.0",
    // Validate the AWS SAM template, and expand it to CloudFormation.
    "cfn-lint==1.58.0",
    "aws-sam-translator==1.115.0",
    // Reads Parquet, independently of the code that wrote it.
    "pyarrow==26.0.1",
    // Contains axe-core, which finds accessibility violations.
    "axe-core-python==0.1.0",
    // Parses Terraform.
    "python-hcl2==8.1.4",
    // Validates Kubernetes manifests; contains the schemas.
    "kubernetes-validate==1.37.0",
];

impl Environment {
    /// Installs the packages unless they are there. On failure it prints the reason and returns: only what uses them
    /// fails then.
    pub(crate) fn install(&self) {
        if let Err(error) = self.try_install() {
            eprintln!(
                "xtask: failed to install the Python packages ({}): {error:#}\n\
                 xtask: these will fail: {}",
                self.packages.join(", "),
                self.used_by
            );
        }
    }

    fn try_install(&self) -> anyhow::Result<()> {
        let folder = self.path()?;
        // The stamp is written last, so that an interrupted installation starts again.
        let (stamp, wanted) = (folder.join("installed"), self.packages.join(" "));
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        eprintln!("xtask: installing {wanted} in {}", folder.display());
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(folder.join("bin/python")).args(pip).args(self.packages))?;
        fs::write(&stamp, wanted).with_context(|| stamp.display().to_string())
    }

    /// Runs a program of the environment. Returns whether it succeeded.
    pub(crate) fn succeeds(&self, program: &str, args: &[&str]) -> anyhow::Result<bool> {
        let path = self.path()?.join("bin").join(program);
        eprintln!("xtask: {program} {}", args.join(" "));
        let status = Command::new(&path).args(args).status();
        Ok(status.with_context(|| path.display().to_string())?.success())
    }

    fn path(&self) -> anyhow::Result<PathBuf> {
        Ok(cargo::target()?.join(self.folder))
    }
}

pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let line = format!("{command:?}");
    let status = command.status().with_context(|| line.clone())?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}
