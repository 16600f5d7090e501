//! Schemas with the awkward types of well-known sample databases: `init`, `check`, dry runs, every kind of step and
//! the audit work on each.

use crate::common::{CliSandbox, Data, config, text};

/// A schema, and the job types that are run on it.
struct Sample {
    schema: &'static str,
    /// A table with a version, a column with text, and the rows.
    table: (&'static str, &'static str, i64),
    /// The job types that `init` must write.
    counted: &'static [&'static str],
    /// What must not be in the file: views, partitions.
    left_out: &'static [&'static str],
    /// A table to export with all its types, and its rows.
    exported: &'static [(&'static str, i64)],
}

/// Quotes a name as SQL does, for the statements of job types.
fn quoted(data: &Data, name: &str) -> String {
    match data {
        Data::Mariadb(_) => format!("`{name}`"),
        _ => format!("\\\"{name}\\\""),
    }
}

async fn works_on(data: &Data, sample: &Sample) {
    data.run(sample.schema).await;
    let sandbox = CliSandbox::empty().env("DATABASE_URL", &data.url());
    let init = sandbox.run_words(&["init", &data.url()]).await.ok();
    let written = sandbox.read("windlass.toml");
    for name in sample.counted {
        assert!(written.contains(&format!("\n[jobs.COUNT_{name}]")), "{name}:\n{written}");
    }
    for name in sample.left_out {
        assert!(!written.to_uppercase().contains(&format!("COUNT_{name}]")), "{name}:\n{written}");
    }
    sandbox.run("check").await.ok();
    let suggested = init.stdout.lines().find_map(|line| line.split_once("windlass run "));
    sandbox.run(&format!("run {}", suggested.unwrap().1)).await.ok();
    for name in sample.counted {
        sandbox.run(&format!("run COUNT_{name} --dry-run")).await.ok();
    }

    let sandbox = CliSandbox::with(&config("sqlite:windlass.db", &data.url(), &jobs(data, sample)));
    sandbox.write("handler.py", HANDLER);
    sandbox.run("check").await.ok();
    let (table, _, rows) = sample.table;
    for name in ["COUNT", "MARK", "TAG", "TAG_WITHOUT_VERSION"] {
        sandbox.run(&format!("run {name} --dry-run")).await.ok();
        let job = sandbox.json(&format!("run {name}")).await;
        assert_eq!(job["items"]["processed"], rows, "{name} on {table}: {job:#}");
        sandbox.prove(&text(&job["id"])).await;
    }
    assert_eq!(counted(&sandbox).await, rows);
    for (place, (table, rows)) in sample.exported.iter().enumerate() {
        for format in ["PARQUET", "CSV", "JSONL"] {
            let job = sandbox.json(&format!("run {format}_{place}")).await;
            assert_eq!(job["items"]["processed"], *rows, "{format} of {table}: {job:#}");
            assert_eq!(job["outputs"][0]["rows"], *rows, "{format} of {table}: {job:#}");
            sandbox.prove(&text(&job["id"])).await;
        }
    }
}

/// The result of the last job of type COUNT.
async fn counted(sandbox: &CliSandbox) -> i64 {
    let id = text(&sandbox.json("jobs --type COUNT").await[0]["id"]);
    let rows = sandbox.json(&format!("output {id}")).await;
    let n = &rows[0]["n"];
    n.as_i64().or_else(|| n.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{rows:#}"))
}

/// Appends a mark to a text column of every record.
const HANDLER: &str = "import json, sys\n\
    column = sys.argv[1]\n\
    for line in sys.stdin:\n    \
        batch = json.loads(line)\n    \
        results = [{'key': item['key'], 'update': {column: (item['record'][column] or '') + '!'}} \
                   for item in batch['items']]\n    \
        print(json.dumps({'results': results}), flush=True)\n";

fn jobs(data: &Data, sample: &Sample) -> String {
    let (table, column, _) = sample.table;
    let (sql_table, sql_column) = (quoted(data, table), quoted(data, column));
    let source =
        format!("source = {{ connection = \"app\", table = \"{table}\" }}\nchunk.items = 100\n");
    let mut jobs = format!(
        "[jobs.COUNT]\n{source}step.map = \"SELECT count(*) AS n FROM {{source}} WHERE {{chunk}}\"\n\
         reduce = \"SELECT sum(n) AS n FROM parts\"\n\
         [jobs.MARK]\n{source}\
         step.sql = \"UPDATE {sql_table} SET {sql_column} = {sql_column} WHERE {{chunk}}\"\n\
         [jobs.TAG]\n{source}step.version = \"row_version\"\n\
         step.command = [\"python3\", \"handler.py\", \"{column}\"]\n\
         [jobs.TAG_WITHOUT_VERSION]\n{source}\
         step.command = [\"python3\", \"handler.py\", \"{column}\"]\n"
    );
    for (place, (table, _)) in sample.exported.iter().enumerate() {
        for format in ["parquet", "csv", "jsonl"] {
            jobs += &format!(
                "[jobs.{}_{place}]\nsource = {{ connection = \"app\", table = \"{table}\" }}\n\
                 step.export = {{ to = \"file:out/{{job_id}}/\", format = \"{format}\" }}\n",
                format.to_uppercase()
            );
        }
    }
    jobs
}

#[tokio::test]
async fn the_music_shop_in_sqlite() {
    let sample = Sample {
        schema: include_str!("../../samples/music.sqlite.sql"),
        table: ("Track", "Name", 1500),
        counted: &["TRACK", "PLAYLIST_TRACK", "INVOICE"],
        left_out: &["TRACKLIST"],
        exported: &[("Track", 1500), ("Playlist Track", 900), ("Album", 120)],
    };
    works_on(&Data::sqlite(), &sample).await;
}

#[tokio::test]
async fn the_trading_company_in_postgresql() {
    let sample = Sample {
        schema: include_str!("../../samples/trading.postgres.sql"),
        table: ("Customers", "CompanyName", 90),
        counted: &["CUSTOMERS", "ORDERS", "ORDER_DETAILS", "SALES_TARGETS"],
        left_out: &["ORDER_SUBTOTALS"],
        exported: &[("products", 77), ("order_details", 1660), ("categories", 8)],
    };
    works_on(&Data::postgres().await, &sample).await;
}

#[tokio::test]
async fn the_trading_company_in_mariadb() {
    let sample = Sample {
        schema: include_str!("../../samples/trading.mariadb.sql"),
        table: ("Customers", "CompanyName", 90),
        counted: &["CUSTOMERS", "ORDERS", "ORDER_DETAILS"],
        left_out: &["ORDER_SUBTOTALS"],
        exported: &[("Products", 77), ("Order Details", 1660), ("Categories", 8), ("Orders", 830)],
    };
    works_on(&Data::mariadb().await, &sample).await;
}

#[tokio::test]
async fn the_trading_company_in_sqlite() {
    let sample = Sample {
        schema: include_str!("../../samples/trading.sqlite.sql"),
        table: ("Customers", "CompanyName", 90),
        counted: &["CUSTOMERS", "ORDERS", "ORDER_DETAILS"],
        left_out: &["ORDER_SUBTOTALS"],
        exported: &[("Products", 77), ("Order Details", 1660), ("Categories", 8), ("Orders", 830)],
    };
    works_on(&Data::sqlite(), &sample).await;
}

#[tokio::test]
async fn the_film_rental_in_postgresql() {
    let sample = Sample {
        schema: include_str!("../../samples/rentals.postgres.sql"),
        table: ("film", "description", 1000),
        counted: &["FILM", "FILM_ACTOR", "PAYMENT"],
        left_out: &["FILM_LIST", "PAYMENT_EARLY", "PAYMENT_LATE"],
        exported: &[("film", 1000), ("film_actor", 1000), ("payment", 1500)],
    };
    works_on(&Data::postgres().await, &sample).await;
}

#[tokio::test]
async fn the_film_rental_in_mariadb() {
    let sample = Sample {
        schema: include_str!("../../samples/rentals.mariadb.sql"),
        table: ("film", "title", 1000),
        counted: &["FILM", "STAFF", "ORDER_DETAILS"],
        left_out: &["FILM_LIST"],
        exported: &[("film", 1000), ("staff", 20), ("order details", 830)],
    };
    works_on(&Data::mariadb().await, &sample).await;
}
