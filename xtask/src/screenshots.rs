//! `cargo xtask screenshots`: the pictures of the documentation, made anew by the test that has the scene.

use crate::{cargo, needs, python};
use anyhow::Context;
use oxipng::{Options, optimize_from_memory};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

/// Where the documentation has its pictures.
const IMAGES: &str = "docs/images";

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    if !needs::are_met() {
        return Ok(ExitCode::from(2));
    }
    python::make();
    let test = ["--test", "dashboard", "--", "documentation_screenshots"];
    let made = [&["test", "-p", "windlass-cli", "--all-features"], &test[..]].concat();
    if !cargo::succeeds(&made)? {
        return Ok(ExitCode::FAILURE);
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let scene = target.join("dashboard/scene");
    fs::create_dir_all(IMAGES)?;
    for picture in fs::read_dir(&scene).with_context(|| scene.display().to_string())? {
        let picture = picture?.path();
        let name = picture.file_name().context("a picture has a name")?;
        let smaller = optimize_from_memory(&fs::read(&picture)?, &Options::default())?;
        fs::write(Path::new(IMAGES).join(name), &smaller)?;
        println!("{IMAGES}/{}  {} kB", name.display(), smaller.len() / 1000);
    }
    Ok(ExitCode::SUCCESS)
}
