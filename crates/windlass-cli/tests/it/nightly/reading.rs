//! Reads output with PyArrow, from a folder or S3.

use crate::nightly::fixture::{DATE, NightlyFixture};
use serde_json::Value as Json;
use tokio::process::Command;
use windlass_testkit::python_program;

impl NightlyFixture {
    /// The report for the date.
    pub(crate) async fn report(&self) -> Json {
        self.read("file", &format!("reports/{DATE}.parquet")).await
    }

    /// The parts in the manifest of an export, each compared with its line. Null if there is no
    /// manifest.
    pub(crate) async fn parts(&self, id: &str) -> Json {
        self.read("manifest", &format!("transactions/{DATE}/{id}")).await
    }

    async fn read(&self, kind: &str, name: &str) -> Json {
        let output = Command::new(python_program("python"))
            .args(["-c", include_str!("read.py"), kind, &format!("{}/{name}", self.root())])
            .envs(self.environment())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// The totals that were read, in the same form as the bank's own.
pub(crate) fn totals(read: &Json) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = serde_json::from_value(read["totals"].clone()).unwrap();
    rows.sort();
    rows
}
