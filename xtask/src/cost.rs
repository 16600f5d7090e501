//! `cargo xtask nightly --cost`: the monthly cost of document E's diagram, and of what deploy/terraform creates.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;

const PRICES: &str = include_str!("../../examples/nightly/prices.toml");

/// The designs that are compared, in the order of the columns.
const DESIGNS: [&str; 3] = ["as drawn", "as deployed", "without replicas"];
/// The document's limit, in dollars a month.
const BUDGET: f64 = 3000.0;

const NIGHTS: f64 = 30.0;
const HOURS: f64 = 730.0;
/// Ten million transactions in chunks of 10,000.
const CHUNKS: f64 = 1000.0;
/// The document: a thousand functions of 1 GB, ten minutes each.
const FUNCTION_SECONDS: f64 = 600.0;
/// The bank's 5 TB, which every replica holds.
const SOURCE_GB: f64 = 5120.0;
/// The smallest workgroup of Redshift Serverless, 5 minutes for the load and an hour for readers.
const WAREHOUSE_RPU_HOURS: f64 = 4.0 * (5.0 + 60.0) / 60.0;
/// Defaults of deploy/terraform: 4 workers and one task for each of two jobs, with 2 vCPU and 4 GB.
const TASKS: f64 = 6.0;
/// Half an hour a night for each task, many times what was measured, for starts and for a slower database.
const TASK_HOURS: f64 = 0.5;
/// Gigabytes of Parquet of one night's export: 200,000 transactions were 3.9 MB.
const EXPORT_GB: f64 = 0.2;

#[derive(Deserialize)]
struct PriceList {
    region: String,
    as_of: String,
    prices: BTreeMap<String, Price>,
}

#[derive(Deserialize)]
struct Price {
    usd: f64,
    unit: String,
    source: String,
}

struct Line {
    what: &'static str,
    price: &'static str,
    /// A month's quantity in each design.
    quantities: [f64; 3],
}

/// Every priced part of the designs.
fn lines() -> Vec<Line> {
    let line = |what, price, quantities| Line { what, price, quantities };
    let only_drawn = |quantity: f64| [quantity, 0.0, 0.0];
    let only_deployed = |quantity: f64| [0.0, quantity, quantity];
    let (tasks, replicas) = (TASKS * TASK_HOURS * NIGHTS, [3.0, 1.0, 0.0]);
    let functions = CHUNKS * NIGHTS;
    vec![
        line(
            "functions: 1,000 of 1 GB, 10 min",
            "lambda-gb-second",
            only_drawn(functions * FUNCTION_SECONDS),
        ),
        line(
            "functions: with split and aggregation",
            "lambda-request",
            only_drawn(functions + 2.0 * NIGHTS),
        ),
        line("queue: send, receive, delete", "sqs-request", only_drawn(3.0 * functions)),
        line("idempotency table: writes", "dynamodb-write", only_drawn(functions)),
        line("idempotency table: reads", "dynamodb-read", only_drawn(functions)),
        line("tasks: 6 of 2 vCPU, 30 min", "fargate-vcpu-hour", only_deployed(2.0 * tasks)),
        line("tasks: 6 of 4 GB, 30 min", "fargate-gb-hour", only_deployed(4.0 * tasks)),
        line("state machine", "step-transition", [10.0 * NIGHTS; 3]),
        line("schedule", "scheduler-invocation", [NIGHTS; 3]),
        line("replicas: 3, 1, 0", "replica-hour", replicas.map(|count| count * HOURS)),
        line("replicas: 5 TB each", "replica-gb-month", replicas.map(|count| count * SOURCE_GB)),
        line("proxy: 2 vCPU", "proxy-vcpu-hour", [2.0 * HOURS; 3]),
        line("store", "store-hour", only_deployed(HOURS)),
        line("store: 20 GB", "store-gb-month", only_deployed(20.0)),
        line("output: parts", "s3-write", [functions; 3]),
        line("output: read by the aggregation", "s3-read", only_drawn(functions)),
        line("output: 30 nights kept", "s3-gb-month", [EXPORT_GB * NIGHTS; 3]),
        line(
            "warehouse: 4 RPU, 65 min a day",
            "redshift-rpu-hour",
            [WAREHOUSE_RPU_HOURS * NIGHTS; 3],
        ),
        line("warehouse: 1 GB", "redshift-gb-month", [1.0; 3]),
        line("secrets", "secret-month", [1.0, 3.0, 3.0]),
        line("key", "key-month", [1.0; 3]),
        line("alarms", "alarm-month", [6.0; 3]),
        line("log", "log-gb", [2.0; 3]),
    ]
}

/// The tables of examples/nightly/COST.md.
pub(crate) fn tables() -> anyhow::Result<String> {
    let list: PriceList = toml::from_str(PRICES).context("prices.toml")?;
    let mut text = format!("| a month of 30 nights | {} |\n|---|", DESIGNS.join(" | "));
    text += &"---:|".repeat(DESIGNS.len());
    let mut totals = [0.0; DESIGNS.len()];
    for line in lines() {
        let price = list
            .prices
            .get(line.price)
            .with_context(|| format!("prices.toml has no price `{}`", line.price))?;
        let costs = line.quantities.map(|quantity| quantity * price.usd);
        let cells = line.quantities.iter().zip(costs).map(|(quantity, cost)| match *quantity {
            0.0 => "–".to_owned(),
            quantity => {
                format!("{} × {} = {}", grouped(quantity), decimal(price.usd), dollars(cost))
            }
        });
        text += &format!("\n| {} | {} |", line.what, cells.collect::<Vec<_>>().join(" | "));
        for (total, cost) in totals.iter_mut().zip(costs) {
            *total += cost;
        }
    }
    let bold = |cells: Vec<String>| format!("**{}**", cells.join("** | **"));
    text += &format!(
        "\n| **total** | {} |",
        bold(totals.iter().map(|total| dollars(*total)).collect())
    );
    let verdict = |total: &f64| match BUDGET - total {
        left if left >= 0.0 => format!("{} below", dollars(left)),
        left => format!("{} above", dollars(-left)),
    };
    let verdicts = totals.iter().map(verdict).collect();
    text += &format!("\n| **against {} a month** | {} |\n", dollars(BUDGET), bold(verdicts));
    text += &format!(
        "\n| dollars per, in {}, {} | | source |\n|---|---:|---|\n",
        list.region, list.as_of
    );
    for price in list.prices.values() {
        text += &format!("| {} | {} | {} |\n", price.unit, decimal(price.usd), price.source);
    }
    Ok(text)
}

fn dollars(amount: f64) -> String {
    match amount {
        small if small < 0.005 => "$0.00".to_owned(),
        amount => {
            let cents = format!("{amount:.2}");
            let (whole, cents) = cents.split_once('.').unwrap_or((&cents, "00"));
            format!("${}.{cents}", grouped(whole.parse().unwrap_or(amount.trunc())))
        }
    }
}

/// A price without an exponent and without trailing zeros.
fn decimal(price: f64) -> String {
    format!("{price:.10}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number with commas between thousands, and at most two decimals.
fn grouped(number: f64) -> String {
    let text = decimal((number * 100.0).round() / 100.0);
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if decimals.is_empty() { grouped } else { format!("{grouped}.{decimals}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../examples/nightly/COST.md");

    #[test]
    fn numbers_are_grouped_and_rounded() {
        assert_eq!(grouped(18_000_000.0), "18,000,000");
        assert_eq!(grouped(130.0), "130");
        assert_eq!(grouped(0.125), "0.13");
        assert_eq!(dollars(2678.126), "$2,678.13");
        assert_eq!(dollars(0.0001), "$0.00");
        assert_eq!(decimal(0.0000166667), "0.0000166667");
    }

    #[test]
    fn the_page_has_the_computed_tables() {
        let tables = tables().unwrap();
        assert!(PAGE.contains(&tables), "COST.md must contain what is computed:\n{tables}");
    }

    #[test]
    fn every_price_is_used() {
        let list: PriceList = toml::from_str(PRICES).unwrap();
        let used: Vec<_> = lines().iter().map(|line| line.price).collect();
        for name in list.prices.keys() {
            assert!(used.contains(&name.as_str()), "{name} is not used");
        }
    }
}
