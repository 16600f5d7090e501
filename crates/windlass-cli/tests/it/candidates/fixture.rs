//! The example with its own database, and the operations that the tests need.

use crate::common::{CliSandbox, Data, parse};
use serde_json::Value as Json;
use std::sync::atomic::{AtomicU32, Ordering};
use windlass_testkit::{Database, Moto, Windlass, built_program, python_program};

/// The example's rows, originals and job types, and a folder to run commands in.
pub(crate) struct CandidatesFixture {
    pub(crate) data: Data,
    pub(crate) sandbox: CliSandbox,
    environment: Vec<(String, String)>,
}

/// The program that migrates candidates.
pub(crate) const HANDLER: &str = "candidates-migrate";
/// Candidates without an original, by default.
pub(crate) const MISSING: i64 = 3;

impl CandidatesFixture {
    /// `candidates` candidates, with their originals in a folder.
    pub(crate) async fn new(candidates: u32) -> CandidatesFixture {
        CandidatesFixture::with(candidates, "file:originals/".to_owned(), Vec::new()).await
    }

    /// The same, with their originals in a bucket of this endpoint.
    pub(crate) async fn in_a_bucket(candidates: u32, moto: &Moto) -> CandidatesFixture {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let originals = format!("s3://{}/originals-{number}/", Moto::BUCKET);
        CandidatesFixture::with(candidates, originals, moto.environment()).await
    }

    async fn with(
        candidates: u32,
        originals: String,
        more: Vec<(String, String)>,
    ) -> CandidatesFixture {
        let data = Data::postgres().await;
        // PATH contains the `python3` that has the packages, and the handler.
        let programs = [python_program("python"), built_program("windlass-candidates", HANDLER)];
        let folders = programs.map(|program| program.parent().unwrap().display().to_string());
        let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap());
        let mut environment = vec![
            ("DATABASE_URL".to_owned(), data.url()),
            ("ORIGINALS".to_owned(), originals),
            ("PATH".to_owned(), path),
        ];
        environment.extend(more);
        let sandbox =
            CliSandbox::with(include_str!("../../../../../examples/candidates/windlass.toml"));
        let sandbox =
            environment.iter().fold(sandbox, |sandbox, (name, value)| sandbox.env(name, value));
        for (name, text) in [
            ("candidates.sql", include_str!("../../../../../examples/candidates/candidates.sql")),
            ("generate.py", include_str!("../../../../../examples/candidates/generate.py")),
        ] {
            sandbox.write(name, text);
        }
        let fixture = CandidatesFixture { data, sandbox, environment };
        fixture.generate(&format!("--candidates {candidates} --missing {MISSING}")).await;
        fixture
    }

    /// Runs the generator.
    pub(crate) async fn generate(&self, flags: &str) {
        let python = Windlass::new(self.sandbox.path("")).binary("/usr/bin/env");
        let variables = self.environment.iter();
        let python = variables.fold(python, |python, (name, value)| python.env(name, value));
        let words = ["python3", "generate.py"].into_iter().chain(flags.split_whitespace());
        python.run(words).await.ok();
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.data.number(sql).await
    }

    /// The text that a query returns.
    pub(crate) async fn text(&self, sql: &str) -> String {
        self.database().one(sql).await
    }

    pub(crate) fn database(&self) -> &Database {
        let Data::Postgres(database) = &self.data else { panic!("the example is on PostgreSQL") };
        database
    }

    /// The identifiers of `many` candidates of a year, in order.
    pub(crate) async fn identifiers(&self, year: &str, many: u32) -> Vec<String> {
        let sql = format!(
            "SELECT string_agg(identifier::text, ' ') FROM (SELECT identifier FROM candidates \
             WHERE reporting_year = '{year}' AND document ->> 'points' <> '' \
             ORDER BY identifier LIMIT {many}) AS these"
        );
        self.text(&sql).await.split(' ').map(str::to_owned).collect()
    }

    /// Runs a job type, which must complete and be proven.
    pub(crate) async fn complete(&self, request: &str) -> Json {
        let job = parse(
            &self.sandbox.run(&format!("run {request} --allow-dead-letters --json")).await.ok(),
        );
        self.sandbox.prove(job["id"].as_str().unwrap()).await;
        job
    }

    /// The number of these candidates at a version.
    pub(crate) async fn at_version(&self, version: i64, of: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM candidates WHERE version = {version} AND ({of})");
        self.number(&sql).await
    }

    /// The number of these candidates.
    pub(crate) async fn candidates(&self, of: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM candidates WHERE {of}")).await
    }

    /// The last states of a job's segments, without the plan, which is the first segment.
    pub(crate) async fn states(&self, id: &str) -> Vec<Json> {
        let sql = format!(
            "SELECT json_agg(state::json ORDER BY number)::text FROM windlass_segments \
             WHERE job_id = '{id}' AND number > 0"
        );
        serde_json::from_str(&self.text(&sql).await).unwrap()
    }

    /// Replaces a text in windlass.toml.
    pub(crate) fn edit(&self, from: &str, to: &str) {
        let text = self.sandbox.read("windlass.toml");
        assert!(text.contains(from), "{from}");
        self.sandbox.write("windlass.toml", &text.replace(from, to));
    }
}
