//! `windlass check` explains correct job types, and names problems with their line.

use crate::common::{CliSandbox, Data, config, job, parse, printed, raise, refused};

const REFRESH: &str = "[jobs.REFRESH]\ndescription = \"Write all back\"\n\
                       source.connection = \"app\"\nsource.table = \"accounts\"\n\
                       source.filters = { branches = \"branch\" }\n\
                       step.refresh = true\nstep.version = \"version\"\n";

#[tokio::test]
async fn correct_job_types_are_explained() {
    for (data, sandbox) in CliSandbox::on_each(100, &(raise(25) + REFRESH)).await {
        let output = sandbox.run("check").await.ok();
        printed(
            &output,
            &[
                "RAISE",
                "REFRESH",
                "Write all back",
                "accounts by (id)",
                "UPDATE accounts SET amount = amount + 1 WHERE {chunk}",
                "branches: lookups in the index on branch",
                "exactly once",
                "no problems found",
            ],
        );
        let json = sandbox.json("check").await;
        assert_eq!(json["ok"], true, "{json:#}");
        assert_eq!(json["problems"].as_array().unwrap().len(), 0);
        assert_eq!(json["jobTypes"][0]["jobType"], "RAISE");
        assert_eq!(json["jobTypes"][0]["definition"]["source"]["key"][0], "id");
        data.untouched().await;
    }
}

/// Invalid job types, each with parts of the expected message. The job types begin at line 7.
fn bad() -> Vec<(String, Vec<&'static str>)> {
    let with = |line: &str| raise(5) + line + "\n";
    let sql = |sql: &str| job("RAISE", sql, 5);
    vec![
        (with("chunk.itemz = 5"), vec!["line 12", "itemz", "items"]),
        (with("colour = \"red\""), vec!["line 12", "colour"]),
        (with("chunk.lease = \"soon\""), vec!["line 12"]),
        (with("chunk.lease = \"10m\""), vec!["line 7", "chunk.lease", "chunk.timeout"]),
        (with("chunk.commit = 50"), vec!["line 7", "chunk.commit", "chunk.items"]),
        (with("retry.attempts = 0"), vec!["line 7", "retry.attempts"]),
        (with("failures.budget = \"many\""), vec!["line 12", "0.01%"]),
        (with("step.refresh = true"), vec!["exactly one kind of step", "2"]),
        (with("source.key = [\"nr\"]"), vec!["line 7", "source.key", "`nr`", "id"]),
        (with("source.key = [\"owner\"]"), vec!["line 7", "source.key", "owner", "index"]),
        (with("source.filters = { o = \"owner\" }"), vec!["line 7", "filters", "owner", "index"]),
        (with("source.filters = { o = \"onwer\" }"), vec!["line 7", "filters", "`onwer`"]),
        (with("step.version = \"versoin\""), vec!["line 7", "step.version", "versoin"]),
        (sql("UPDATE accounts SET amount = 1"), vec!["line 7", "step.sql", "WHERE {chunk}"]),
        (sql("UPDATE accounts SET id = 1 WHERE {chunk}"), vec!["line 7", "step.sql", "`id`"]),
        (sql("UPDATE accounts SET amount = 1 WHERE {chnk}"), vec!["line 7", "{chunk}"]),
        (
            raise(5).replace("\"accounts\"", "\"acounts\""),
            vec!["line 7", "`acounts`", "`accounts`"],
        ),
        (raise(5).replace("\"app\"", "\"ap\""), vec!["line 7", "source.connection", "`app`"]),
        (raise(0), vec!["line 7", "chunk.items", "1 to 1000000"]),
        ("[jobs.RAISE\n".to_owned(), vec!["line 7"]),
    ]
}

#[tokio::test]
async fn a_problem_is_named_with_its_line() {
    for data in Data::both_with_accounts(10).await {
        for (jobs, parts) in bad() {
            let sandbox = CliSandbox::on(&data, &jobs);
            let output = sandbox.run("check").await;
            let parts: Vec<&str> = parts.into_iter().chain(["windlass.toml"]).collect();
            refused(&output, &parts);
        }
    }
}

#[tokio::test]
async fn one_bad_job_type_does_not_hide_the_others() {
    let data = Data::sqlite().with_accounts(10).await;
    let missing = raise(5).replace("RAISE", "LOWER").replace("\"accounts\"", "\"nothing\"");
    let keyless = raise(5).replace("RAISE", "HIDE") + "source.key = [\"owner\"]\n";
    let sandbox = CliSandbox::on(&data, &(raise(5) + &missing + &keyless));
    refused(
        &sandbox.run("check").await,
        &["RAISE\n", "LOWER", "nothing", "HIDE", "owner", "3 problems found"],
    );
    let output = sandbox.run("check --json").await;
    assert_eq!(output.code, Some(2));
    let json = parse(&output);
    assert_eq!(json["ok"], false);
    assert_eq!(json["jobTypes"].as_array().unwrap().len(), 1);
    assert_eq!(json["problems"][0]["line"], 17);
    assert_eq!(json["problems"][0]["code"], "WL0004");
}

#[tokio::test]
async fn a_variable_comes_from_the_environment_and_a_missing_one_is_named() {
    let data = Data::sqlite().with_accounts(10).await;
    let text = data.config(&raise(5)).replace(&data.url(), "${APP_URL}");
    let sandbox = CliSandbox::with(&text);
    refused(&sandbox.run("check").await, &["line 5", "APP_URL"]);
    let sandbox = sandbox.env("APP_URL", &data.url());
    sandbox.run("check").await.ok();
}

#[tokio::test]
async fn the_number_of_rows_is_counted_or_called_an_estimate() {
    for data in Data::each().await {
        let data = data.with_accounts(30).await;
        let query = raise(25).replace("RAISE", "QUERY").replace(
            "source.table = \"accounts\"",
            "source.query = \"SELECT a.id FROM accounts a JOIN accounts b ON b.id = a.id\"\n\
             source.key = [\"id\"]",
        );
        let filtered = raise(25).replace("RAISE", "SOME") + "source.where = \"branch = 3\"\n";
        let sandbox = CliSandbox::on(&data, &(raise(25) + &query + &filtered));
        let said = sandbox.run("check").await.ok().stdout;
        for part in [
            "accounts by (id): 30 rows in 2 chunks of 25, commits of at most 25 that take about 250ms",
            "a query by (id): 30 rows in 2 chunks of 25",
            "accounts by (id): 3 rows in 1 chunk of 25",
        ] {
            assert!(said.contains(part), "`{part}` is not in:\n{said}");
        }
        let json = sandbox.json("check").await;
        assert_eq!(json["jobTypes"][0]["estimatedRows"], 30, "{json:#}");
        assert_eq!(json["jobTypes"][0]["rowsCounted"], true, "{json:#}");
    }
    let data = Data::postgres().await.with_accounts(150_000).await;
    data.run("ANALYZE accounts").await;
    let query = raise(1000).replace("RAISE", "QUERY").replace(
        "source.table = \"accounts\"",
        "source.query = \"SELECT id, amount FROM accounts WHERE branch >= 0\"\n\
         source.key = [\"id\"]",
    );
    let sandbox = CliSandbox::on(
        &data,
        &(raise(1000)
            + &query.replace("step.sql", "step.map").replace(
                "UPDATE accounts SET amount = amount + 1 WHERE",
                "SELECT count(*) AS n FROM {source} WHERE",
            )),
    );
    let said = sandbox.run("check").await.ok().stdout;
    for part in [
        "accounts by (id): an estimated ",
        "a query by (id): an estimated ",
        "chunks of 1,000, one part per chunk",
    ] {
        assert!(said.contains(part), "`{part}` is not in:\n{said}");
    }
    assert_eq!(sandbox.json("check").await["jobTypes"][0]["rowsCounted"], false);
}

#[tokio::test]
async fn check_creates_no_table() {
    for data in Data::each_with_accounts(10).await {
        // The store is elsewhere, so that only the ledger could be created here.
        let sandbox = CliSandbox::with(&config("sqlite:windlass.db", &data.url(), &raise(5)));
        sandbox.run("check").await.ok();
        sandbox.run("run RAISE --dry-run").await.ok();
        let tables = match data {
            Data::Postgres(_) => "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'windlass%'",
            Data::Sqlite(_) => "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'windlass%'",
            Data::Mariadb(_) => {
                "SELECT count(*) FROM information_schema.tables \
                 WHERE table_schema = database() AND table_name LIKE 'windlass%'"
            }
        };
        assert_eq!(data.number(tables).await, 0);
    }
}

#[tokio::test]
async fn unknown_keys_are_a_warning() {
    let data = Data::sqlite().with_accounts(10).await;
    let closed = windlass_testkit::free_port();
    let jwks = format!("jwks = \"http://127.0.0.1:{closed}/keys\"");
    for (key, field) in [("key_file = \"gone.pem\"", "auth.key_file"), (&jwks, "auth.jwks")] {
        let auth = format!("{}\n[auth]\n{key}\n[auth.roles]\na = {{ may = [] }}\n", raise(5));
        let sandbox = CliSandbox::on(&data, &auth);
        let said = sandbox.run("check").await.ok().stdout;
        assert!(said.contains(&format!("warning: {field}")), "{said}");
        assert!(said.contains("no problems found"), "{said}");
        assert_eq!(sandbox.json("check").await["warnings"].as_array().unwrap().len(), 1);
    }
    let sandbox = CliSandbox::on(&data, &raise(5));
    assert_eq!(sandbox.json("check").await["warnings"].as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn alerts_that_cannot_be_signed_are_refused_with_their_line() {
    let data = Data::sqlite().with_accounts(10).await;
    let text = raise(5) + "[alerts]\nwebhook = \"https://hooks.example/hidden\"\n";
    let sandbox = CliSandbox::on(&data, &text);
    let line =
        sandbox.read("windlass.toml").lines().position(|line| line == "[alerts]").unwrap() + 1;
    let line = format!("line {line}");
    let checked = sandbox.run("check").await;
    refused(&checked, &[&line, "alerts.secret", "is missing"]);
    refused(&sandbox.run("serve --listen 127.0.0.1:0").await, &["alerts.secret"]);
    assert!(!crate::common::said(&checked).contains("hidden"));
}

#[tokio::test]
async fn a_store_in_mysql_is_refused_with_the_reason() {
    let data = Data::mariadb().await.with_accounts(1).await;
    let sandbox = CliSandbox::with(&config(&data.url(), &data.url(), &raise(5)));
    let output = sandbox.run("check").await;
    refused(
        &output,
        &[
            "store",
            "cannot be in MySQL, MariaDB, DynamoDB or Redshift",
            "sqlite:PATH",
            "postgres://",
        ],
    );
    assert!(!output.stderr.contains("wind%40lass"), "{}", output.stderr);
}

#[tokio::test]
async fn the_dialect_of_the_store_is_checked() {
    let data = Data::postgres().await.with_accounts(10).await;
    let with = |store: &str, dialect: &str| {
        let text = config(store, &data.url(), &raise(5));
        let dialect = format!("[store]\ndialect = \"{dialect}\"\n");
        CliSandbox::with(&text.replacen("[store]\n", &dialect, 1))
    };
    let strict = with(&data.url(), "strict");
    let said = strict.run("check").await.ok().stdout;
    assert!(said.contains("warning: store.dialect: `strict` has no notifications"), "{said}");
    strict.run("run RAISE").await.ok();
    let raised = "SELECT count(*) FROM accounts WHERE amount = id * 7 % 1000 + 1";
    assert_eq!(data.number(raised).await, 10);
    let elsewhere = with("sqlite:windlass.db", "strict").run("check").await;
    refused(&elsewhere, &["line 1", "store.dialect", "a store in PostgreSQL", "postgres://"]);
    let unknown = with(&data.url(), "cockroach").run("check").await;
    refused(&unknown, &["line 2", "cockroach", "`postgres`", "`strict`"]);
}
