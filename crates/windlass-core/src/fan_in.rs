//! Fan-in: what is made of the parts after the last chunk, as a job type says it.

use crate::{JobType, StepKind, Template};
use serde::{Deserialize, Serialize};

/// `report = { to = "file:reports/{job_type}/{date}.parquet" }`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// A file or object; its ending says the format: `.parquet`, `.csv`, `.json`.
    pub to: String,
    /// Whether a page for people is put beside it.
    #[serde(default = "yes")]
    pub page: bool,
}

fn yes() -> bool {
    true
}

/// `load = { connection = "warehouse", table = "daily_report", replace = ["date"] }`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// The connection's name.
    pub connection: String,
    /// The table.
    pub table: String,
    /// Rows whose values of these columns appear in the result are replaced by it.
    #[serde(default)]
    pub replace: Vec<String>,
}

impl JobType {
    /// Whether something is made of the parts when all of them are there.
    pub fn merges(&self) -> bool {
        self.step.kind.makes_parts() || self.reduces()
    }

    /// Whether the parts come together in a table.
    pub fn reduces(&self) -> bool {
        matches!(self.step.kind, StepKind::Map(_))
            || self.reduce.is_some()
            || self.report.is_some()
            || self.load.is_some()
    }

    /// Everything that is wrong with the fan-in by itself.
    pub(crate) fn fan_in_problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let mut refuse = |field, detail: &str| problems.push((field, detail.to_owned()));
        let given = [
            ("reduce", self.reduce.is_some()),
            ("reduce_in", self.reduce_in.is_some()),
            ("report", self.report.is_some()),
            ("load", self.load.is_some()),
        ];
        let kind = &self.step.kind;
        if matches!(kind, StepKind::Sql(_) | StepKind::Refresh | StepKind::Export(_)) {
            for (field, _) in given.into_iter().filter(|(_, given)| *given) {
                refuse(field, "needs parts with rows: step.map, or a step that emits");
            }
        }
        if self.reduce_in.is_some() && self.reduce.is_none() {
            refuse("reduce_in", "says where to run `reduce`, which is missing");
        }
        match self.reduce.as_deref().map(Template::parse) {
            Some(Err(detail)) => refuse("reduce", &detail),
            Some(Ok(template)) if template.is_confined() => {
                refuse("reduce", "runs once over the table `parts`; {chunk} has no meaning there");
            }
            _ => {}
        }
        if let Some(Report { to, .. }) = &self.report {
            let is_place = to.starts_with("file:") || to.starts_with("s3://");
            let is_known = [".parquet", ".csv", ".json"].iter().any(|ending| to.ends_with(ending));
            if !(is_place && is_known) {
                refuse(
                    "report.to",
                    "`file:reports/{date}.parquet` or `s3://BUCKET/NAME.csv` would be right; the \
                     ending is .parquet, .csv or .json",
                );
            }
        }
        if self.load.as_ref().is_some_and(|load| load.table.is_empty()) {
            refuse("load.table", "is empty; name a table");
        }
        problems
    }
}
