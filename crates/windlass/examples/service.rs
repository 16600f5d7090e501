//! A service inside a program: API, dashboard, schedules and workers, in the process of the application.
//! It runs one job and stops; a real one would run until Ctrl-C.
//!
//! `cargo run --example service`

use rusqlite::Connection;
use std::time::Duration;
use tokio::sync::oneshot;
use windlass::{Config, Engine, JobType, Schedule, Service};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    Connection::open(path("clinic.db"))?.execute_batch(
        "CREATE TABLE visits (id INTEGER PRIMARY KEY, open INTEGER);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO visits SELECT i, 1 FROM n;",
    )?;

    let close = JobType::builder("CLOSE_VISITS")
        .connection("clinic")
        .table("visits")
        .sql("UPDATE visits SET open = 0 WHERE {chunk}")
        .schedule(Schedule::new("0 3 * * *"));
    let request = close.request();
    let mut config = Config::new(format!("sqlite:{}", path("windlass.db")))
        .connection("clinic", format!("sqlite:{}", path("clinic.db")));
    // Port 0 takes a free one. Without `auth` only addresses of this machine are accepted.
    config.server.listen = "127.0.0.1:0".parse()?;
    let engine = Engine::builder(config).job(close).connect().await?;

    let (stop, stopped) = oneshot::channel::<()>();
    let service = Service::builder(engine.clone())
        .concurrency(2)
        .shutdown_on(async {
            let _ = stopped.await;
        })
        .bind()
        .await?;
    println!("dashboard and API on http://{}", service.address()?);
    let running = tokio::spawn(service.run());

    let id = engine.submit(request, Engine::local_identity()).await?.id();
    let job = loop {
        let job = engine.job(id).await?;
        if job.status.is_final() {
            break job;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    println!("{}: {} visits closed", job.status, job.items.processed);

    let _ = stop.send(());
    let stats = running.await??;
    println!("stopped after {} chunk(s)", stats.completed);
    Ok(())
}
