//! `cargo xtask screenshots`: makes the screenshots of the documentation with the test that prepares their data.

use crate::{cargo, needs, python};
use anyhow::Context;
use oxipng::{Options, optimize_from_memory};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

/// Where the documentation has its images.
const IMAGES: &str = "docs/images";

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    if !needs::install(needs::For::AllTests) {
        return Ok(ExitCode::from(2));
    }
    python::TESTS.install();
    let made = [
        "test",
        "--workspace",
        "--all-features",
        "--test",
        "it",
        "--",
        "dashboard::screenshots::documentation_screenshots",
    ];
    if !cargo::succeeds(&made)? {
        return Ok(ExitCode::FAILURE);
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let scene = target.join("dashboard/scene");
    fs::create_dir_all(IMAGES)?;
    for image in fs::read_dir(&scene).with_context(|| scene.display().to_string())? {
        let image = image?.path();
        let name = image.file_name().context("the screenshot has no file name")?;
        let smaller = optimize_from_memory(&fs::read(&image)?, &Options::default())?;
        fs::write(Path::new(IMAGES).join(name), &smaller)?;
        println!("{IMAGES}/{}  {} kB", name.display(), smaller.len() / 1000);
    }
    Ok(ExitCode::SUCCESS)
}
