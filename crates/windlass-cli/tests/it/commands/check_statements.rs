//! `windlass check` has the database prepare every statement, in every form in which it will run.

use crate::common::{CliSandbox, Data, job, printed, refused};

/// `accounts`, and `rates` with columns of the same names.
async fn data(data: Data) -> Data {
    let data = data.with_accounts(20).await;
    data.run(
        "CREATE TABLE rates (account bigint PRIMARY KEY NOT NULL, branch integer, rate bigint);
         CREATE TABLE fees (id bigint PRIMARY KEY NOT NULL, branch integer, fee bigint);
         CREATE TABLE totals (branch integer NOT NULL, total bigint, day date);
         INSERT INTO rates SELECT id, 100, 2 FROM accounts;
         INSERT INTO fees SELECT id, 100, 3 FROM accounts;",
    )
    .await;
    data
}

/// An UPDATE of `accounts` with a column of another table, in the syntax of the database.
fn joined(data: &Data, table: &str, on: &str, set: &str, chunk: &str) -> String {
    match data {
        Data::Mariadb(_) => {
            format!("UPDATE accounts AS a JOIN {table} AS o ON {on} SET a.{set} WHERE {chunk}")
        }
        _ => format!("UPDATE accounts AS a SET {set} FROM {table} AS o WHERE {on} AND {chunk}"),
    }
}

#[tokio::test]
async fn a_statement_that_the_database_refuses_is_named_with_its_field() {
    for fixture in Data::each().await {
        let data = data(fixture).await;
        let sql = |sql: &str| job("RAISE", sql, 5);
        let raise = sql("UPDATE accounts SET amount = amount + 1 WHERE {chunk}");
        let map = |select: &str| raise_as_map(select);
        let total =
            "SELECT branch, sum(amount) AS total FROM {source} WHERE {chunk} GROUP BY branch";
        let loads = |more: &str| map(total) + more;
        for (jobs, parts) in [
            (sql("UPDATE accounts SET amuont = 1 WHERE {chunk}"), ["step.sql", "amuont"]),
            (
                sql("UPDATE accounts SET amount = (SELECT max(rate) FROM rtaes) WHERE {chunk}"),
                ["step.sql", "rtaes"],
            ),
            (
                sql("UPDATE accounts SET amount = no_function(amount) WHERE {chunk}"),
                ["step.sql", "no_function"],
            ),
            (raise.clone() + "source.where = \"knid = 1\"\n", ["source.where", "knid"]),
            (
                map("SELECT brnach, count(*) AS n FROM {source} WHERE {chunk} GROUP BY brnach"),
                ["step.map", "brnach"],
            ),
            (
                loads("reduce = \"SELECT branch, sum(totla) AS total FROM parts\"\n"),
                ["reduce", "totla"],
            ),
            (
                loads(
                    "load = { connection = \"app\", table = \"totlas\", replace = [\"branch\"] }\n",
                ),
                ["load", "totlas"],
            ),
            (
                loads(
                    "load = { connection = \"app\", table = \"fees\", replace = [\"branch\"] }\n",
                ),
                ["load", "total"],
            ),
            (
                loads(
                    "load = { connection = \"app\", table = \"totals\", replace = [\"month\"] }\n",
                ),
                ["load.replace", "month"],
            ),
        ] {
            let sandbox = CliSandbox::on(&data, &jobs);
            let output = sandbox.run("check").await;
            refused(&output, &[&parts[..], &["line 7", "1 problem found"]].concat());
        }
        data.untouched().await;
    }
}

fn raise_as_map(select: &str) -> String {
    job("RAISE", select, 5).replace("step.sql", "step.map")
}

#[tokio::test]
async fn a_wrong_type_is_found_by_preparing() {
    let data = data(Data::postgres().await).await;
    for (sql, why) in [
        ("UPDATE accounts SET amount = owner WHERE {chunk}", "42804"),
        ("UPDATE accounts SET amount = 1 WHERE branch = 'north' AND {chunk}", "north"),
    ] {
        let sandbox = CliSandbox::on(&data, &job("RAISE", sql, 5));
        refused(&sandbox.run("check").await, &["step.sql", why]);
    }
    let total = "SELECT branch, now() AS total FROM {source} WHERE {chunk}";
    let load = "load = { connection = \"app\", table = \"totals\", replace = [\"branch\"] }\n";
    let sandbox = CliSandbox::on(&data, &(raise_as_map(total) + load));
    refused(&sandbox.run("check").await, &["load.table", "`total`", "timestamp", "bigint"]);
}

#[tokio::test]
async fn an_ambiguous_column_is_explained() {
    for fixture in Data::each().await {
        let data = data(fixture).await;
        let ambiguous = joined(&data, "fees", "o.id = a.id", "amount = o.fee", "{chunk}");
        let hint = ["step.sql", "mbiguous", "{chunk:alias}", "{chunk:v}"];
        refused(&CliSandbox::on(&data, &job("RAISE", &ambiguous, 5)).run("check").await, &hint);

        // Only the form with a filter is ambiguous: `rates` has `branch`, but not `id`.
        let filtered = joined(&data, "rates", "o.account = a.id", "amount = o.rate", "{chunk}");
        let jobs = job("RAISE", &filtered, 5);
        CliSandbox::on(&data, &jobs).run("check").await.ok();
        let filters = jobs + "source.filters = { branches = \"branch\" }\n";
        refused(&CliSandbox::on(&data, &filters).run("check").await, &hint);
    }
}

#[tokio::test]
async fn an_alias_qualifies_the_keys_the_filters_and_the_condition() {
    for fixture in Data::each().await {
        let data = data(fixture).await;
        let sql = joined(&data, "fees", "o.id = a.id", "amount = o.fee", "{chunk:a}");
        let condition = "accounts.branch < 5 AND (branch > 0 OR 'branch' = owner) \
                         AND branch IN (SELECT branch FROM accounts)";
        let jobs = job("RAISE", &sql, 5)
            + "source.filters = { branches = \"branch\" }\n"
            + &format!("source.where = \"{condition}\"\n");
        let sandbox = CliSandbox::on(&data, &jobs);
        sandbox.run("check").await.ok();
        sandbox.run("run RAISE --filter branches=3,4,7").await.ok();
        let set = "SELECT count(*) FROM accounts WHERE amount = 3 AND branch IN (3, 4)";
        assert_eq!(data.number(set).await, 4);
        let all = "SELECT count(*) FROM accounts WHERE amount <> id * 7 % 1000";
        assert_eq!(data.number(all).await, 4);
    }
}

/// A column in a subquery may belong to a table of the subquery, so it belongs to the source only with the
/// name of the source's table before it.
#[tokio::test]
async fn a_subquery_of_the_condition_names_the_table_of_its_outer_columns() {
    for fixture in Data::each().await {
        let data = data(fixture).await;
        let sql = joined(&data, "fees", "o.id = a.id", "amount = o.fee", "{chunk:a}");
        let by = |column: &str| {
            let condition = format!("EXISTS (SELECT 1 FROM rates WHERE account = {column})");
            job("RAISE", &sql, 5) + &format!("source.where = \"{condition}\"\n")
        };
        let hint = ["step.sql", "mbiguous", "`accounts.column`", "subquery of source.where"];
        refused(&CliSandbox::on(&data, &by("id")).run("check").await, &hint);
        let sandbox = CliSandbox::on(&data, &by("accounts.id"));
        sandbox.run("check").await.ok();
        sandbox.run("run RAISE").await.ok();
        assert_eq!(data.number("SELECT count(*) FROM accounts WHERE amount = 3").await, 20);
    }
}

/// A job type that gives each record of `accounts` to a program.
fn called(more: &str) -> String {
    let step = "[jobs.CALL]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                source.filters = { branches = \"branch\" }\n\
                step.command = [\"python3\", \"call.py\"]\n";
    format!("{step}{more}\n")
}

const CALL: &str = "import json, sys\nfor line in sys.stdin:\n    print(json.dumps({'results': []}), flush=True)\n";

/// Makes the database refuse every update of `accounts` when it prepares or plans it, and returns the data as the
/// user who gets the refusal, with a part of the message.
async fn refuse_updates(data: Data) -> (Data, &'static str) {
    match &data {
        Data::Postgres(_) => {
            data.run("CREATE RULE kept AS ON UPDATE TO accounts DO INSTEAD SELECT 1").await;
            (data, "UPDATE RETURNING")
        }
        Data::Sqlite(_) => {
            let trigger = "CREATE TRIGGER kept AFTER UPDATE ON accounts BEGIN
                           INSERT INTO history VALUES (NEW.id); END";
            data.run(trigger).await;
            (data, "history")
        }
        Data::Mariadb(database) => {
            let (user, name) = (format!("reader_{}", database.name()), database.name());
            let grants = format!(
                "CREATE USER {user} IDENTIFIED BY 'change me'; GRANT SELECT, CREATE ON {name}.* TO {user}"
            );
            data.run(&grants).await;
            (Data::Mariadb(database.as_user(&user, "change me")), "denied")
        }
    }
}

#[tokio::test]
async fn updates_that_a_step_may_answer_are_prepared_under_every_guard() {
    for fixture in Data::each().await {
        let data = data(fixture).await;
        let mut guards = vec!["step.version = \"version\"", "step.guard = \"columns\""];
        if let Data::Postgres(_) = data {
            guards.push("step.guard = \"xmin\"");
        }
        let check = async |guard: &str| {
            let sandbox = CliSandbox::on(&data, &called(guard));
            sandbox.write("call.py", CALL);
            sandbox.run("check").await
        };
        for guard in &guards {
            check(guard).await.ok();
        }
        let (data, why) = refuse_updates(data).await;
        let check = async |guard: &str| {
            let sandbox = CliSandbox::on(&data, &called(guard));
            sandbox.write("call.py", CALL);
            sandbox.run("check").await
        };
        // A missing privilege is a warning, and so is a refusal where the definition names no guard: the step may only
        // insert or emit.
        let is_forbidden = why == "denied";
        for guard in guards.into_iter().chain([""]) {
            let output = check(guard).await;
            match is_forbidden || guard.is_empty() {
                true => printed(
                    &output.ok(),
                    &["warning", "jobs.CALL.step.command", "refuses every update", why],
                ),
                false => refused(&output, &["line 7", "step.command", "refuses", why]),
            }
        }
        if !matches!(data, Data::Postgres(_)) {
            let refresh = called("step.version = \"version\"")
                .replace("step.command = [\"python3\", \"call.py\"]", "step.refresh = true");
            let sandbox = CliSandbox::on(&data, &refresh);
            refused(&sandbox.run("check").await, &["line 7", "step.refresh", why]);
        }
    }
}

#[tokio::test]
async fn a_text_is_not_loaded_into_a_column_of_numbers() {
    // SQLite does not know the types of a result.
    for fixture in [Data::postgres().await, Data::mariadb().await] {
        let data = data(fixture).await;
        let owner = "SELECT branch, owner AS total FROM {source} WHERE {chunk}";
        let load = "load = { connection = \"app\", table = \"totals\", replace = [\"branch\"] }\n";
        let sandbox = CliSandbox::on(&data, &(raise_as_map(owner) + load));
        let output = sandbox.run("check").await;
        refused(&output, &["line 7", "load.table", "`total`", "bigint", "CAST(total AS"]);
        // Reduced by the database, which knows the type of the result.
        let reduce = "reduce = \"SELECT branch, total FROM parts\"\n";
        let sandbox = CliSandbox::on(&data, &(raise_as_map(owner) + reduce + load));
        refused(&sandbox.run("check").await, &["line 7", "load.table", "`total`", "CAST(total AS"]);
        let amount = owner.replace("owner", "amount");
        CliSandbox::on(&data, &(raise_as_map(&amount) + reduce + load)).run("check").await.ok();
    }
}

#[tokio::test]
async fn the_statements_of_a_load_are_prepared() {
    for fixture in Data::each().await {
        let data = data(fixture).await;
        let (sql, why) = match &data {
            Data::Mariadb(_) => (
                "DROP TABLE totals; CREATE VIEW totals AS SELECT DISTINCT branch, amount AS total FROM accounts",
                "totals",
            ),
            _ => (
                "DROP TABLE totals;
                 CREATE TABLE totals (branch integer NOT NULL, total bigint GENERATED ALWAYS AS (branch) STORED)",
                "total",
            ),
        };
        data.run(sql).await;
        let amount = "SELECT branch, amount AS total FROM {source} WHERE {chunk}";
        let load = "load = { connection = \"app\", table = \"totals\", replace = [\"branch\"] }\n";
        let output = CliSandbox::on(&data, &(raise_as_map(amount) + load)).run("check").await;
        refused(&output, &["line 7", "load.table", "refuses", why]);
    }
}
