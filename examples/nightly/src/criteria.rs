//! Prints the measured values beside the required ones.

use crate::night::Night;
use crate::redshift::Load;
use anyhow::Context;
use std::time::Duration;

/// AWS list prices in Tokyo.
const PRICES: &str = include_str!("../prices.toml");

/// What a night costs, in dollars. The bank's database and the warehouse are not included: they exist without
/// Windlass. COST.md has the whole diagram.
struct Prices {
    /// Fargate with two cores and 4 GB.
    machine_hour: f64,
    s3_write: f64,
    s3_gigabyte_month: f64,
}

impl Prices {
    fn read() -> anyhow::Result<Prices> {
        let list: toml::Table = PRICES.parse()?;
        let usd = |name: &str| {
            let price =
                list.get("prices").and_then(|prices| prices.get(name)?.get("usd")?.as_float());
            price.with_context(|| format!("prices.toml has no price `{name}`"))
        };
        Ok(Prices {
            machine_hour: 2.0 * usd("fargate-vcpu-hour")? + 4.0 * usd("fargate-gb-hour")?,
            s3_write: usd("s3-write")?,
            s3_gigabyte_month: usd("s3-gb-month")?,
        })
    }

    /// One machine for the duration of the night, and one write per part.
    fn of(&self, took: Duration, night: &Night) -> f64 {
        took.as_secs_f64() / 3600.0 * self.machine_hour + night.chunks as f64 / 2.0 * self.s3_write
    }
}

/// The required values.
const NIGHT_ROWS: f64 = 10_000_000.0;
const WINDOW: Duration = Duration::from_secs(3 * 3600);
const ERROR_RATE: f64 = 0.000_1;
const RETRY_SUCCESS: f64 = 0.99;
const MONTHLY: f64 = 3000.0;
/// Required by Windlass itself: memory does not grow with the table.
const MEGABYTES: u64 = 200;

/// Prints the table. Returns whether all requirements are met.
pub(crate) fn print(
    rows: u64,
    calm: &Night,
    rough: &Night,
    redshift: &Load,
) -> anyhow::Result<bool> {
    let prices = Prices::read()?;
    let took = calm.report + calm.export;
    let scale = NIGHT_ROWS / rows as f64;
    let whole = took.mul_f64(scale);
    let errors = share(calm.unprocessed + rough.unprocessed, calm.items + rough.items);
    let failed = rough.failed_chunks.min(rough.reads.1 as u64);
    let success = 1.0 - share(failed, rough.reads.1 as u64);
    let million = prices.of(took, calm) * 1_000_000.0 / rows as f64;
    let stored = calm.bytes as f64 * scale / 1e9 * prices.s3_gigabyte_month;
    // A month of nights, with their parts kept for a month.
    let month = 30.0 * (million * NIGHT_ROWS / 1e6 + stored);
    let peak = calm.peak_megabytes.max(rough.peak_megabytes);
    let as_asked = if rows as f64 == NIGHT_ROWS { "" } else { ", for ten million by proportion" };
    let lines = [
        ("ten million within 3 h", format!("{}{as_asked}", minutes(whole)), whole < WINDOW),
        ("error rate < 0.01 %", format!("{:.4} %", errors * 100.0), errors < ERROR_RATE),
        (
            "success after retry > 99 %",
            format!(
                "{:.2} % of {} failed reads, of {}",
                success * 100.0,
                rough.reads.1,
                rough.reads.0
            ),
            success > RETRY_SUCCESS && rough.reads.1 > 0,
        ),
        (
            "cost < $3,000 a month",
            format!("${month:.2} a month, ${million:.4} a million"),
            month < MONTHLY,
        ),
        ("totals equal to the cent", yes(calm.equal), calm.equal),
        ("the same while reads fail", yes(rough.equal), rough.equal),
        ("equal in Redshift's stand-in", yes(redshift.equal), redshift.equal),
        ("memory < 200 MB", format!("{peak} MB at most"), peak < MEGABYTES),
    ];
    println!("\n{rows} transactions, {} chunks in each of two jobs\n", calm.chunks / 2);
    println!("{:<28} {:<52} met", "asked for", "measured");
    for (asked, measured, met) in &lines {
        println!("{asked:<28} {measured:<52} {}", if *met { "yes" } else { "NO" });
    }
    println!(
        "\nreport {:.1} s (one statement of the database's own: {:.1} s), export {:.1} s, {:.1} MB of \
         parts\nwhile 5 % of reads fail: report {:.1} s, export {:.1} s\nloaded into Redshift's \
         stand-in: report {:.1} s",
        calm.report.as_secs_f64(),
        calm.one_statement.as_secs_f64(),
        calm.export.as_secs_f64(),
        calm.bytes as f64 / 1e6,
        rough.report.as_secs_f64(),
        rough.export.as_secs_f64(),
        redshift.report.as_secs_f64()
    );
    Ok(lines.iter().all(|(_, _, met)| *met))
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn minutes(time: Duration) -> String {
    format!("{:.1} min", time.as_secs_f64() / 60.0)
}

fn yes(is: bool) -> String {
    if is { "equal" } else { "not equal" }.to_owned()
}
