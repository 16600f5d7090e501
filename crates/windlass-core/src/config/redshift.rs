//! Which connections may be Redshift: those of a load with `copy`, and no others.

use super::Connection;
use crate::JobType;
use crate::problem::Problem;
use std::collections::BTreeMap;

/// The problems of a job type that uses Redshift as something else than the target of a COPY, or COPY with
/// another database.
pub(super) fn problems(
    job_type: &JobType,
    connections: &BTreeMap<String, Connection>,
) -> Vec<Problem> {
    let found = |name: &str| connections.get(name).filter(|connection| connection.unset.is_none());
    let is_redshift = |name: &str| found(name).is_some_and(Connection::is_redshift);
    let mut problems = Vec::new();
    if is_redshift(&job_type.source.connection) {
        let detail = "is Redshift, which can be loaded but not be read as a source; name a connection to \
                      PostgreSQL, MySQL, SQLite or DynamoDB";
        problems.push(job_type.problem("source.connection", detail.to_owned()));
    }
    if job_type.reduce_in.as_deref().is_some_and(is_redshift) {
        let detail = "is Redshift, which cannot run `reduce`; leave it out to reduce in the source's database";
        problems.push(job_type.problem("reduce_in", detail.to_owned()));
    }
    if let Some(load) = &job_type.load {
        match (is_redshift(&load.connection), &load.copy) {
            (true, None) => {
                let detail = "is missing: Redshift loads from S3; write `copy = { from = \
                              \"s3://BUCKET/{job_id}/\", iam_role = \"…\" }`";
                problems.push(job_type.problem("load.copy", detail.to_owned()));
            }
            (false, Some(_)) if found(&load.connection).is_some() => {
                let detail = "needs a connection to Redshift (`redshift://…`); other databases are loaded \
                              without it";
                problems.push(job_type.problem("load.copy", detail.to_owned()));
            }
            _ => {}
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn problems(job: &str) -> String {
        let text = format!(
            "[connections.app]\nurl = \"postgres://h/app\"\n\
             [connections.warehouse]\nurl = \"redshift://u:secret@h/w\"\n\
             [jobs.J]\nstep.map = \"SELECT 1 FROM {{source}} WHERE {{chunk}}\"\n{job}"
        );
        let problems = Config::parse(&text, |_| None).unwrap().problems();
        problems.iter().map(|problem| problem.to_string() + "\n").collect()
    }

    #[test]
    fn redshift_is_only_the_target_of_a_load_with_copy() {
        let app = "source = { connection = \"app\", table = \"t\", key = [\"id\"] }";
        let copy = "copy = { from = \"s3://b/{job_id}/\", iam_role = \"default\" }";
        for (job, expected) in [
            (
                "source = { connection = \"warehouse\", table = \"t\", key = [\"id\"] }".to_owned(),
                "source.connection: is Redshift",
            ),
            (
                format!("{app}\nreduce = \"SELECT 1 FROM parts\"\nreduce_in = \"warehouse\""),
                "reduce_in: is Redshift",
            ),
            (
                format!("{app}\nload = {{ connection = \"warehouse\", table = \"t\" }}"),
                "load.copy: is missing",
            ),
            (
                format!("{app}\nload = {{ connection = \"app\", table = \"t\", {copy} }}"),
                "load.copy: needs a connection to Redshift",
            ),
        ] {
            let found = problems(&job);
            assert!(found.contains(expected), "{job}: {found}");
            assert!(!found.contains("secret"), "{found}");
        }
        let right =
            format!("{app}\nload = {{ connection = \"warehouse\", table = \"t\", {copy} }}");
        assert_eq!(problems(&right), "");
    }
}
