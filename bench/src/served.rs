//! A `windlass serve` process with a token for its API.

use crate::setup::{binary, folder_at};
use anyhow::{Context, Result};
use std::time::Duration;
use tempfile::TempDir;
use windlass_testkit::{Database, Running, Windlass, eventually};

/// High enough that no request is rate-limited.
const SERVICE: &str = "[auth]\nkey = \"0123456789abcdef0123456789abcdef\"\n\
    [auth.roles]\nchief = { may = [\"view\", \"submit\", \"operate\", \"administer\"], all_jobs = true }\n\
    [server]\nrequests_per_second = 1000000000\n";

/// A server that stops when this handle is dropped.
pub(crate) struct Served {
    pub(crate) process: Running,
    pub(crate) port: u16,
    pub(crate) token: String,
    windlass: Windlass,
    _folder: TempDir,
}

impl Served {
    /// Serves these job types, with the store in the data's database.
    pub(crate) async fn start(database: &Database, jobs: &str, more: &[&str]) -> Result<Served> {
        Served::at(database.url(), database.url(), jobs, more).await
    }

    /// The same with a separate store and data.
    pub(crate) async fn at(store: &str, data: &str, jobs: &str, more: &[&str]) -> Result<Served> {
        let folder = folder_at(store, data, &format!("{jobs}{SERVICE}"))?;
        let windlass = Windlass::new(folder.path()).binary(binary()?);
        let token = windlass.run(["token", "--subject", "bench", "--role", "chief"]).await.ok();
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        let process = windlass.spawn(serve.iter().chain(more));
        let port = || {
            let said = process.stderr();
            let (_, rest) = said.split_once("listening on http://127.0.0.1:")?;
            rest.split(';').next()?.parse::<u16>().ok()
        };
        let patience = Duration::from_secs(30);
        eventually("the server listens", patience, async || port().is_some()).await;
        let port = port().context("the server does not say where it listens")?;
        let token = token.stdout.trim().to_owned();
        Ok(Served { process, port, token, windlass, _folder: folder })
    }

    /// Runs a command with the same configuration. Returns its output.
    pub(crate) async fn run(&self, words: &[&str]) -> String {
        self.windlass.run(words).await.ok().stdout
    }
}
