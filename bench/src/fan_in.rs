//! Fan-in compared with what the databases do in one statement: `map` with `reduce` against one GROUP BY, `export`
//! against the fastest dump of the same columns.

use crate::report::Report;
use crate::sales::{self, COLUMNS, TOTALS};
use crate::setup::{Bench, folder_at, median};
use crate::watched::watched;
use anyhow::{Result, ensure};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use windlass_testkit::{Database, MariaDatabase, MariaServer};

/// The rows that the required ratios are defined for.
const ROWS: u64 = 10_000_000;
/// The memory limit of a run, in MB.
const MEMORY: f64 = 200.0;

/// A table of one of the databases.
enum Data {
    Postgres(Database),
    Mariadb(MariaDatabase),
}

/// What is measured.
#[derive(Clone, Copy)]
pub(crate) enum What {
    Map,
    Export,
}

/// The results on PostgreSQL.
pub(crate) async fn on_postgres(bench: &Bench, what: What, report: &mut Report) -> Result<()> {
    // A small table is read so fast that starting and planning show.
    let (of_tenth, of_all) = match what {
        What::Map => (Some(2.0), 1.2),
        What::Export => (None, 1.2),
    };
    let (rows, mut peaks) = (bench.rows(ROWS), Vec::new());
    for (rows, wanted) in [(rows / 10, of_tenth), (rows, Some(of_all))] {
        let database = bench.database().await;
        sales::in_postgres(&database, rows).await;
        let data = Data::Postgres(database.clone());
        peaks.push(figure(bench, &data, what, rows, wanted, report).await?);
        database.run("DROP TABLE sales").await;
    }
    let name = what.name("PostgreSQL");
    memory(report, &name, peaks[0], peaks[1]);
    Ok(())
}

/// The results on MariaDB.
pub(crate) async fn on_mariadb(bench: &Bench, what: What, report: &mut Report) -> Result<()> {
    let wanted = match what {
        What::Map => 1.0,
        What::Export => 1.5,
    };
    let server =
        MariaServer::start_with(&["--innodb-buffer-pool-size=2G", "--innodb-log-file-size=512M"]);
    let (rows, mut peaks) = (bench.rows(ROWS), Vec::new());
    for (rows, wanted) in [(rows / 10, None), (rows, Some(wanted))] {
        let database = server.database().await;
        sales::in_mariadb(&database, rows).await;
        let data = Data::Mariadb(database);
        peaks.push(figure(bench, &data, what, rows, wanted, report).await?);
    }
    let name = what.name("MariaDB");
    memory(report, &name, peaks[0], peaks[1]);
    Ok(())
}

/// Measures both sides in turn and records the ratio. Returns the peak memory in MB.
async fn figure(
    bench: &Bench,
    data: &Data,
    what: What,
    rows: u64,
    wanted: Option<f64>,
    report: &mut Report,
) -> Result<f64> {
    let (mut ours, mut theirs, mut peak) = (Vec::new(), Vec::new(), 0.0_f64);
    for _ in 0..3 {
        let begun = Instant::now();
        data.alone(what).await?;
        theirs.push(begun.elapsed());
        let (took, memory) = run(bench, data, what).await?;
        ours.push(took);
        peak = peak.max(memory);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let label = format!("{}, {rows} rows", what.name(data.name()));
    let detail = format!("{ours:.2} s, the database {theirs:.2} s");
    match wanted {
        Some(wanted) => report.at_most(&label, ours / theirs, wanted, detail),
        None => report.note(&label, ours / theirs, detail),
    }
    Ok(peak)
}

/// One run of the binary from start to exit, with a new store.
async fn run(bench: &Bench, data: &Data, what: What) -> Result<(Duration, f64)> {
    let (store, out) = (bench.database().await, TempDir::new()?);
    let folder = folder_at(store.url(), data.url(), &sales::jobs(out.path()))?;
    // Create the store's tables once, not in every run.
    watched(folder.path(), &["jobs"])?;
    let job = match what {
        What::Map => "TOTALS",
        What::Export => "DUMP",
    };
    let watched = watched(folder.path(), &["run", job])?;
    Ok((watched.took, watched.peak))
}

fn memory(report: &mut Report, name: &str, small: f64, large: f64) {
    let detail = format!("{small:.1} MB for the tenth");
    report.at_most(&format!("{name}: peak in MB"), large, MEMORY, detail);
    report.at_most(&format!("{name}: memory against the tenth"), large / small, 1.2, String::new());
}

impl What {
    fn name(self, database: &str) -> String {
        match self {
            What::Map => format!("map: {database}"),
            What::Export => format!("export: {database}"),
        }
    }
}

impl Data {
    fn name(&self) -> &'static str {
        match self {
            Data::Postgres(_) => "PostgreSQL",
            Data::Mariadb(_) => "MariaDB",
        }
    }

    fn url(&self) -> &str {
        match self {
            Data::Postgres(database) => database.url(),
            Data::Mariadb(database) => database.url(),
        }
    }

    /// The database's own statement or dump.
    async fn alone(&self, what: What) -> Result<()> {
        let dump = format!("SELECT {COLUMNS} FROM sales");
        match (self, what) {
            (Data::Postgres(database), What::Map) => {
                database.client().await.query(TOTALS, &[]).await?;
            }
            (Data::Mariadb(database), What::Map) => {
                database.rows(TOTALS).await;
            }
            (Data::Postgres(database), What::Export) => {
                let copy = format!("COPY ({dump}) TO STDOUT (FORMAT binary)");
                away(Command::new("psql").args(["-X", "-c", &copy, database.url()]))?;
            }
            (Data::Mariadb(database), What::Export) => {
                let server = database.server();
                let mut mariadb = Command::new("mariadb");
                mariadb.args(["--no-defaults", "--quick", "--batch", "--skip-column-names"]);
                mariadb.args(server).args(["-e", &dump, database.name()]);
                away(&mut mariadb)?;
            }
        }
        Ok(())
    }
}

/// Runs a program and discards its output.
fn away(command: &mut Command) -> Result<()> {
    let ended = command.stdout(Stdio::null()).status()?;
    ensure!(ended.success(), "{command:?}: {ended}");
    Ok(())
}
