//! A database that is busy while a job is submitted: the caller is told to try again, not to correct the job type.

use crate::protocol::common::*;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass_core::problem::Code;
use windlass_drivers::{Call, Caller, Error, ErrorClass, Intercepted, Interceptor, MemoryDatabase};
use windlass_engine::{Engine, EngineError};

/// Refuses one call, by its number.
#[derive(Default)]
struct RefusesOne {
    refused: AtomicUsize,
    calls: AtomicUsize,
}

impl Interceptor for RefusesOne {
    fn request(&self, _: Call, _: Caller) -> Intercepted<'_, Result<(), Error>> {
        let call = 1 + self.calls.fetch_add(1, Ordering::Relaxed);
        let refused = call == self.refused.load(Ordering::Relaxed);
        Box::pin(async move {
            let busy = || Error::new(ErrorClass::Busy, "too many requests");
            if refused { Err(busy()) } else { Ok(()) }
        })
    }

    fn executed(&self, _: Call, _: Option<&Error>) {}

    fn answer(&self, _: Call) -> Intercepted<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }

    fn notified(&self) -> Intercepted<'_, ()> {
        Box::pin(std::future::pending())
    }
}

const JOBS: &str = "[jobs.WRITES]
source = { connection = \"app\", table = \"visits\" }
step.sql = \"UPDATE visits SET amount = amount + 1 WHERE {chunk}\"
[jobs.LOADS]
source = { connection = \"app\", table = \"visits\" }
step.map = \"SELECT year, count(*) n FROM {source} WHERE {chunk} GROUP BY year\"
reduce = \"SELECT year, sum(n) n FROM parts GROUP BY year\"
load = { connection = \"app\", table = \"totals\", replace = [\"year\"] }";

const TABLES: &str = "CREATE TABLE visits (id INTEGER PRIMARY KEY, amount INTEGER, year INTEGER);
    CREATE TABLE totals (year INTEGER, n INTEGER)";

#[tokio::test]
async fn a_busy_database_is_no_error_of_the_job_type() {
    for job_type in ["WRITES", "LOADS"] {
        let refusals = refuse_each_call(job_type).await;
        assert!(refusals > 1, "{job_type}: {refusals} calls were refused");
    }
}

/// Submits the job type again and again, each time with another call refused, until none is. Returns how many were.
async fn refuse_each_call(job_type: &str) -> usize {
    for refused in 1.. {
        let (app, interceptor) = (MemoryDatabase::new().unwrap(), Arc::new(RefusesOne::default()));
        app.with(|db| db.execute_batch(TABLES).unwrap());
        interceptor.refused.store(refused, Ordering::Relaxed);
        let path = format!("/busy/{job_type}-{refused}.db");
        let _known = app.attach(Path::new(&path), interceptor.clone());
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("store.db").display());
        let engine =
            builder(&toml(&format!("sqlite:{path}"), &store, JOBS)).connect().await.unwrap();
        let request = asked(serde_json::json!({"jobType": job_type}));
        match engine.submit(request, Engine::local_identity()).await {
            Err(EngineError::Problem(problem)) => {
                assert_eq!(problem.code, Code::Unreachable, "call {refused}: {problem}");
                assert!(problem.detail.contains("too many requests"), "{problem}");
            }
            // The database's own error, which is not about the job type either.
            Err(EngineError::Data(error)) => {
                assert!(error.to_string().contains("too many requests"))
            }
            Err(error) => panic!("call {refused}: {error}"),
            Ok(_) if interceptor.calls.load(Ordering::Relaxed) < refused => return refused - 1,
            // The call is repeated, or not needed.
            Ok(_) => {}
        }
    }
    0
}
