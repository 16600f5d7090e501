//! Fan-in: what a job type makes of the parts after the last chunk.

use crate::{JobType, StepKind, Template};
use serde::{Deserialize, Serialize};

/// `report = { to = "file:reports/{job_type}/{date}.parquet" }`
///
/// ```
/// use windlass_core::Report;
///
/// let report = Report::to("file:reports/{date}.csv").without_page();
/// assert!(!report.page);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// A file or object; its ending says the format: `.parquet`, `.csv`, `.json`.
    pub to: String,
    /// Whether an HTML page is written beside it.
    #[serde(default = "yes")]
    pub page: bool,
}

fn yes() -> bool {
    true
}

impl Report {
    /// A report written to this file or object.
    pub fn to(to: impl Into<String>) -> Report {
        Report { to: to.into(), page: true }
    }

    /// Leaves out the page that is written beside the report.
    pub fn without_page(self) -> Report {
        Report { page: false, ..self }
    }
}

impl Load {
    /// Loads the result into a table; rows that have the same values of `replace` are replaced.
    pub fn into_table<C: Into<String>>(
        connection: impl Into<String>,
        table: impl Into<String>,
        replace: impl IntoIterator<Item = C>,
    ) -> Load {
        let replace = replace.into_iter().map(Into::into).collect();
        Load { connection: connection.into(), table: table.into(), replace, copy: None }
    }

    /// Loads with a COPY from S3, as Redshift needs it.
    pub fn with_copy(self, copy: S3Copy) -> Load {
        Load { copy: Some(copy), ..self }
    }
}

/// `load = { connection = "warehouse", table = "daily_report", replace = ["date"] }`
///
/// ```
/// use windlass_core::Load;
///
/// let load = Load::into_table("warehouse", "daily_report", ["date"]);
/// assert_eq!(load.replace, ["date"]);
/// ```
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
    /// Where the rows are staged for a connection to Redshift, which loads them with COPY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<S3Copy>,
}

/// `copy = { from = "s3://bucket/{job_id}/", iam_role = "arn:aws:iam::…" }`
///
/// ```
/// use windlass_core::{Load, S3Copy};
///
/// let copy = S3Copy::from_s3("s3://bucket/{job_id}/", "arn:aws:iam::123456789012:role/copy");
/// let load = Load::into_table("warehouse", "daily_report", ["date"]).with_copy(copy);
/// assert!(load.copy.is_some());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct S3Copy {
    /// The prefix in S3 that the Parquet parts and their manifest are written to. An export has its own parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The role with which Redshift reads them: an ARN, several ARNs separated by commas, or `default`.
    pub iam_role: String,
}

impl S3Copy {
    /// Stages the rows in S3, and has Redshift read them with this role.
    pub fn from_s3(from: impl Into<String>, iam_role: impl Into<String>) -> S3Copy {
        S3Copy { from: Some(from.into()), iam_role: iam_role.into() }
    }
}

impl JobType {
    /// Whether the parts are merged after the last chunk.
    pub fn merges(&self) -> bool {
        self.step.kind.makes_parts() || self.reduces()
    }

    /// Whether the result of the job is a table.
    pub fn reduces(&self) -> bool {
        match self.step.kind {
            StepKind::Map(_) => true,
            StepKind::Export(_) => false,
            _ => self.reduce.is_some() || self.report.is_some() || self.load.is_some(),
        }
    }

    /// All problems of the fan-in.
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
            let copies = self.load.as_ref().is_some_and(|load| load.copy.is_some());
            let is_copied_export = copies && matches!(kind, StepKind::Export(_));
            for (field, _) in given.into_iter().filter(|(_, given)| *given) {
                if field == "load" && is_copied_export {
                    continue;
                }
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
                    "must be a file such as `file:reports/{date}.parquet` or `s3://BUCKET/NAME.csv`; \
                     the ending is .parquet, .csv or .json",
                );
            }
        }
        if self.load.as_ref().is_some_and(|load| load.table.is_empty()) {
            refuse("load.table", "is empty; name a table");
        }
        problems.extend(self.copy_problems());
        problems.extend(self.shared_problems());
        problems
    }

    /// Problems of `load.copy`.
    fn copy_problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let Some(S3Copy { from, iam_role }) =
            self.load.as_ref().and_then(|load| load.copy.as_ref())
        else {
            return problems;
        };
        let mut refuse = |field, detail: &str| problems.push((field, detail.to_owned()));
        let is_arn = |role: &str| role.trim().starts_with("arn:aws") && role.contains(":role/");
        if iam_role != "default" && !iam_role.split(',').all(is_arn) {
            refuse(
                "load.copy.iam_role",
                "must be the ARN of a role, such as `arn:aws:iam::123456789012:role/redshift-copy`, several \
                 ARNs separated by commas, or `default`",
            );
        }
        match (&self.step.kind, from) {
            (StepKind::Export(export), from) => {
                if from.as_ref().is_some_and(|from| *from != export.to) {
                    let detail = "differs from step.export.to; an export loads its own parts, so leave it out";
                    refuse("load.copy.from", detail);
                }
                if !export.to.starts_with("s3://") {
                    let detail = "must be `s3://BUCKET/PREFIX/` with load.copy: Redshift reads the parts from S3";
                    refuse("step.export.to", detail);
                }
                if export.format != "parquet" {
                    refuse("step.export.format", "must be `parquet` with load.copy");
                }
            }
            (_, None) => refuse(
                "load.copy.from",
                "is missing; write the prefix in S3 for the parts, such as `s3://BUCKET/{job_id}/`",
            ),
            (_, Some(from)) if !from.starts_with("s3://") || !from.ends_with('/') => refuse(
                "load.copy.from",
                "must be a prefix in S3 that ends in `/`, such as `s3://BUCKET/{job_id}/`",
            ),
            (_, Some(from)) if !from.contains("{job_id}") => refuse(
                "load.copy.from",
                "lacks {job_id}, so that the jobs would share one place; write `s3://BUCKET/{job_id}/`",
            ),
            _ => {}
        }
        problems
    }

    /// Outputs that submitters of different claims would overwrite for each other: rows of the loaded table
    /// without the claim, and a report with one name for all.
    fn shared_problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let claims = &self.source.claims;
        for (claim, column) in claims {
            if let Some(load) = &self.load
                && !load.replace.contains(column)
            {
                let detail = format!(
                    "lacks `{column}`, so that a submitter would replace the rows of every other \
                     `{claim}`; add the column to the result and to load.replace"
                );
                problems.push(("load.replace", detail));
            }
            let placeholder = format!("{{claim:{claim}}}");
            if let Some(Report { to, .. }) = &self.report
                && !to.contains(&placeholder)
                && !to.contains("{job_id}")
            {
                let detail = format!(
                    "would let submitters with different `{claim}` overwrite one file; put \
                     {placeholder} or {{job_id}} into it"
                );
                problems.push(("report.to", detail));
            }
        }
        let report = self.report.as_ref().map(|report| ("report.to", &report.to));
        let export = match &self.step.kind {
            StepKind::Export(export) => Some(("step.export.to", &export.to)),
            _ => None,
        };
        let copy = self.load.as_ref().and_then(|load| load.copy.as_ref()?.from.as_ref());
        let copy = copy.map(|from| ("load.copy.from", from));
        for (field, to) in report.into_iter().chain(export).chain(copy) {
            for rest in to.split("{claim:").skip(1) {
                let name = rest.split('}').next().unwrap_or_default();
                if !claims.contains_key(name) {
                    let known = crate::config::names(claims.keys());
                    let detail = format!(
                        "`{{claim:{name}}}` is not in source.claims; known claims are {known}"
                    );
                    problems.push((field, detail));
                }
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn problems(more: &str) -> Vec<String> {
        let text = format!(
            "[jobs.J]\nsource = {{ connection = \"a\", table = \"t\", key = [\"id\"], \
             claims = {{ county = \"county_code\" }} }}\n\
             step.map = \"SELECT 1 FROM {{source}} WHERE {{chunk}}\"\n{more}\n"
        );
        let job_type = Config::parse(&text, |_| None).unwrap().jobs["J"].clone();
        job_type.problems().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn wrong_copy_keys_are_refused() {
        let role = "iam_role = \"arn:aws:iam::123456789012:role/copy\"";
        let with = |copy: &str| {
            let load = "load = { connection = \"w\", table = \"t\", replace = [\"county_code\"]";
            problems(&format!("{load}, copy = {{ {copy} }} }}"))
        };
        for (copy, expected) in [
            (role.to_owned(), "load.copy.from: is missing"),
            (format!("from = \"file:x/\", {role}"), "must be a prefix in S3"),
            (format!("from = \"s3://b/{{job_id}}\", {role}"), "that ends in `/`"),
            (format!("from = \"s3://b/x/\", {role}"), "lacks {job_id}"),
            (format!("from = \"s3://b/{{job_id}}/{{claim:x}}/\", {role}"), "{claim:x}"),
            ("from = \"s3://b/{job_id}/\", iam_role = \"copy\"".to_owned(), "must be the ARN"),
        ] {
            let found = with(&copy);
            assert!(found.iter().any(|found| found.contains(expected)), "{copy}: {found:?}");
        }
        for right in [role, "iam_role = \"default\""] {
            let found = with(&format!("from = \"s3://b/{{job_id}}/\", {right}"));
            assert_eq!(found, Vec::<String>::new());
        }
    }

    #[test]
    fn an_export_is_loaded_with_copy_alone() {
        let export = |to: &str, format: &str, copy: &str| {
            let text = format!(
                "[jobs.J]\nsource = {{ connection = \"a\", table = \"t\", key = [\"id\"] }}\n\
                 step.export = {{ to = \"{to}\", format = \"{format}\" }}\n\
                 load = {{ connection = \"w\", table = \"t\"{copy} }}\n"
            );
            let job_type = Config::parse(&text, |_| None).unwrap().jobs["J"].clone();
            job_type.problems().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        let copy = ", copy = { iam_role = \"default\" }";
        assert_eq!(export("s3://b/{job_id}/", "parquet", copy), "");
        for (to, format, copy, expected) in [
            ("s3://b/{job_id}/", "parquet", "", "load: needs parts with rows"),
            ("file:x/{job_id}/", "parquet", copy, "step.export.to: must be `s3://"),
            ("s3://b/{job_id}/", "csv", copy, "step.export.format: must be `parquet`"),
            (
                "s3://b/{job_id}/",
                "parquet",
                ", copy = { from = \"s3://c/{job_id}/\", iam_role = \"default\" }",
                "load.copy.from: differs from step.export.to",
            ),
        ] {
            let found = export(to, format, copy);
            assert!(found.contains(expected), "{to} {format} {copy}: {found}");
        }
    }

    #[test]
    fn what_submitters_of_different_claims_would_share_is_refused() {
        for (refused, expected) in [
            ("load = { connection = \"a\", table = \"t\" }", "load.replace"),
            ("load = { connection = \"a\", table = \"t\", replace = [\"d\"] }", "`county_code`"),
            ("load = { connection = \"a\", table = \"t\", replace = [\"county\"] }", "replace"),
            ("report = { to = \"file:x/{date}.csv\" }", "{claim:county}"),
            ("report = { to = \"file:x/{claim:country}-{job_id}.csv\" }", "{claim:country}"),
        ] {
            let found = problems(refused);
            assert!(found.iter().any(|found| found.contains(expected)), "{refused}: {found:?}");
        }
        for right in [
            "load = { connection = \"a\", table = \"t\", replace = [\"d\", \"county_code\"] }",
            "report = { to = \"file:x/{claim:county}/{date}.csv\" }",
            "report = { to = \"file:x/{job_id}.csv\" }",
        ] {
            assert_eq!(problems(right), Vec::<String>::new(), "{right}");
        }
    }
}
