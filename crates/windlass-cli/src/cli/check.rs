//! `windlass check`: validates the configuration and explains each job type.

use super::check_replicas::{Replica, ask_replicas};
use super::{config, escape, print};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use windlass::{Checked, Engine, JobType, Problem, step_problem};
use windlass_connectors::RowCount;
use windlass_core::StepKind;
use windlass_core::config::{Dialect, Health};
use windlass_core::problem::Code;
use windlass_server::check_keys;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, path: &Path) -> anyhow::Result<ExitCode> {
    let config = config::config(path)?;
    let mut problems = config.problems();
    let rules = config.dependencies.clone();
    let (mut plans, mut healths) = (Vec::new(), Vec::new());
    let (mut warnings, mut replicas) = (Vec::new(), Vec::new());
    if problems.is_empty() {
        // A warning only: the server may run on another machine, or its issuer be unavailable for a moment.
        if let Some(auth) = &config.auth
            && let Err(error) = check_keys(auth).await
        {
            warnings.push(error.to_string());
        }
        if config.store.dialect == Dialect::Strict {
            warnings.push(STRICT_STORE.to_owned());
        }
        let engine = super::config::connect(config).await?;
        for (name, connection) in &engine.config().connections {
            let found = ask_replicas(&engine, name).await;
            warnings.extend(found.iter().filter_map(|found| found.warning(connection.max_lag)));
            replicas.extend(found);
            warnings.extend(durability_risk(&engine, name).await);
            if let Some(health) = &connection.health {
                match measure(&engine, name, health).await {
                    Ok(number) => healths.push((name.clone(), number, health.limit)),
                    Err(problem) => problems.push(problem),
                }
            }
        }
        for job_type in engine.config().jobs.values() {
            match engine.check_job_type(job_type).await {
                Ok(checked) => {
                    match engine.check_statements(&checked).await {
                        Ok(unprepared) => warnings.extend(
                            unprepared
                                .into_iter()
                                .map(|what| format!("jobs.{}.{what}", job_type.name)),
                        ),
                        Err(problem) => {
                            problems.push(problem);
                            continue;
                        }
                    }
                    let rows = match job_type.source.items {
                        true => None,
                        false => Some(engine.row_count(&checked).await?),
                    };
                    match ask(&engine, job_type).await {
                        Ok(answered) => plans.push(Plan { checked, rows, answered }),
                        Err(problem) => problems.push(problem),
                    }
                }
                // A database that is unavailable is so for all its job types; report it once.
                Err(found) => {
                    let new = found.into_iter().filter(|problem| !problems.contains(problem));
                    problems.extend(new.collect::<Vec<_>>());
                }
            }
        }
    }
    if args.json {
        let plan = |Plan { checked, rows, answered }: &Plan| {
            json!({
                "jobType": checked.definition.name,
                "definition": checked.definition.to_json(),
                "estimatedRows": rows.map(RowCount::rows),
                "rowsCounted": matches!(rows, Some(RowCount::Counted(_))),
                "guard": checked.definition.guard(&checked.table),
                "guarantee": checked.definition.guarantee(),
                "answeredMs": answered.map(|answered| answered.as_millis() as u64),
            })
        };
        let plans: Vec<_> = plans.iter().map(plan).collect();
        let health = |(name, number, limit): &(String, Option<f64>, f64)| json!({"connection": name, "measures": number, "limit": limit});
        let healths: Vec<_> = healths.iter().map(health).collect();
        let ok = problems.is_empty();
        let replicas: Vec<_> = replicas.iter().map(Replica::to_json).collect();
        print::json(&json!({
            "ok": ok,
            "jobTypes": plans,
            "health": healths,
            "replicas": replicas,
            "warnings": warnings,
            "problems": problems,
        }))?;
    } else {
        replicas.iter().for_each(Replica::show);
        for (name, number, limit) in &healths {
            let number = number.map_or("NULL".to_owned(), |number| number.to_string());
            println!("connection {name}: health is {number}; work is throttled above {limit}\n");
        }
        plans.iter().for_each(show);
        for rule in &rules {
            println!("{}\n", super::dependencies::describe(rule));
        }
        warnings.iter().for_each(|warning| {
            println!("{}: warning: {}", path.display(), escape::indented(warning, 2));
        });
        show_problems(path, &problems);
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

const STRICT_STORE: &str = "store.dialect: `strict` has no notifications, so processes poll for changes; it is slower, and \
                            tested on PostgreSQL only";

/// Why commits on a connection could be lost. An unreachable database is reported elsewhere.
async fn durability_risk(engine: &Engine, name: &str) -> Option<String> {
    let risk = engine.connection(name).ok()?.durability_risk().await.ok()??;
    Some(format!("connections.{name}: {risk}"))
}

/// The current result of a connection's health statement.
async fn measure(engine: &Engine, name: &str, health: &Health) -> Result<Option<f64>, Problem> {
    let problem = |error: String| {
        let field = format!("connections.{name}.health.sql");
        let detail = format!("{error}; expected a SELECT of one number");
        Problem::field(Code::Configuration, field, detail)
    };
    let connection = engine.connection(name).map_err(|error| problem(error.to_string()))?;
    connection.measure(&health.sql).await.map_err(|error| problem(error.to_string()))
}

/// Sends an empty batch to a command or a service and measures the answer. Handlers are registered in
/// another program, so they cannot be tested from here.
async fn ask(engine: &Engine, job_type: &JobType) -> Result<Option<Duration>, Problem> {
    if !matches!(job_type.step.kind, StepKind::Command(_) | StepKind::Http(_)) {
        return Ok(None);
    }
    let begun = Instant::now();
    let answered = engine.check_step(job_type, super::request::token()).await;
    answered.map_err(|error| step_problem(job_type, error))?;
    Ok(Some(begun.elapsed()))
}

/// A job type without problems.
struct Plan {
    checked: Checked,
    /// The rows of its source; `None` if the request brings the items.
    rows: Option<RowCount>,
    /// The time in which the step answered an empty batch.
    answered: Option<Duration>,
}

fn show(Plan { checked, rows, answered }: &Plan) {
    let Checked { definition, table, commit_items, .. } = checked;
    println!("{}", definition.name);
    if !definition.description.is_empty() {
        println!("  {}", escape::indented(&definition.description, 2));
    }
    let items = i64::from(definition.chunk_items());
    if let Some(rows) = rows {
        reads(definition, *rows, items, *commit_items);
    } else {
        let (key, each) = (definition.source.key.join(", "), print::number(items));
        println!("  reads     the items of each request by ({key}), in chunks of {each}");
        if let Some(unit) = &definition.source.unit {
            println!("  unit      all items of a request have the same {unit}");
        }
    }
    for (filter, column) in &definition.source.filters {
        println!("  filter    {filter}: lookups in the index on {column}");
    }
    let step = match &definition.step.kind {
        StepKind::Refresh => "refresh: writes each record back unchanged".to_owned(),
        StepKind::Sql(sql) => {
            format!("sql: {}", sql.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        StepKind::Handler(name) => {
            format!("handler {name}: runs in the Rust program that registers it")
        }
        StepKind::Command(words) => format!("command: {}", words.join(" ")),
        StepKind::Http(endpoint) => {
            format!("http: POST {}", endpoint.url)
        }
        StepKind::Export(export) => {
            format!("export: parts as {} to {}", export.format, export.to)
        }
        StepKind::Map(sql) => {
            format!("map: {}", sql.split_whitespace().collect::<Vec<_>>().join(" "))
        }
    };
    println!("  does      {step}");
    if !definition.step.env.is_empty() {
        let names: Vec<&str> = definition.step.environment().collect();
        println!("  env       {}", names.join(", "));
    }
    if let Some(reduce) = &definition.reduce {
        let reduce = reduce.split_whitespace().collect::<Vec<_>>().join(" ");
        println!("  then      reduce: {reduce}");
    }
    if let Some(load) = &definition.load {
        println!("  loads     {} on {}", load.table, load.connection);
        if let Some(from) = load.copy.as_ref().and_then(|copy| copy.from.as_ref()) {
            println!("            with COPY from {from}");
        }
    }
    if let Some(report) = &definition.report {
        println!("  reports   {}", report.to);
    }
    if let Some(answered) = answered {
        println!("  answers   an empty batch in {} ms", answered.as_millis());
    }
    if let Some(guard) = definition.describe_guard(table) {
        println!("  guard     {guard}");
    }
    println!("  failures  {}", definition.failures);
    println!("  promises  {}\n", definition.guarantee());
}

fn reads(definition: &JobType, rows: RowCount, items: i64, commit_items: u32) {
    let number = i64::try_from(rows.rows()).unwrap_or(i64::MAX);
    let chunks = print::count(number.div_euclid(items) + i64::from(number % items > 0), "chunk");
    let (count, each) = (print::count(number, "row"), print::number(items));
    let size = match rows {
        RowCount::Counted(_) => format!("{count} in {chunks} of {each}"),
        RowCount::Estimated(_) => format!("an estimated {count}, about {chunks} of {each}"),
        RowCount::MoreThan(_) => format!("more than {count} in chunks of {each}"),
    };
    let then = match definition.step.kind.makes_parts() {
        true => "one part per chunk".to_owned(),
        false => {
            let items = print::number(i64::from(commit_items));
            match definition.commit_time() {
                Some(time) => format!("commits of at most {items} that take about {time:?}"),
                None => format!("a commit every {items}"),
            }
        }
    };
    println!(
        "  reads     {} by ({}): {size}, {then}",
        definition.source.table.as_deref().unwrap_or("a query"),
        definition.source.key.join(", "),
    );
    if definition.source.query.is_some() {
        let unique =
            if matches!(definition.step.kind, StepKind::Sql(_)) { "" } else { " and unique" };
        println!(
            "  checks    that the key is never NULL{unique}: no index guarantees it for a query, so \
             planning reads all of its rows once more"
        );
    }
}

fn show_problems(path: &Path, problems: &[Problem]) {
    for problem in problems {
        println!("{}: {}", path.display(), escape::indented(&problem.to_string(), 2));
    }
    match problems.len() {
        0 => println!("no problems found"),
        n => println!("{} found", print::count(n as i64, "problem")),
    }
}
