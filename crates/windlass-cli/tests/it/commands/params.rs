//! Params are declared, checked at submit and shown in the help; a job has one date.

use crate::common::{CliSandbox, Data, parse, refused};

const COUNTS: &str = "source.connection = \"app\"\nsource.table = \"accounts\"\n\
                      step.map = \"SELECT count(*) AS n FROM {source} WHERE {chunk}\"\n";

#[tokio::test]
async fn a_missing_or_unknown_param_is_refused_wherever_it_is_used() {
    for data in Data::both().await {
        let data = data.with_accounts(10).await;
        data.run("CREATE TABLE counts (month text, n bigint)").await;
        let load = "load = { connection = \"app\", table = \"counts\", replace = [\"month\"] }";
        let jobs = format!(
            "[jobs.REDUCE]\n{COUNTS}reduce = \"SELECT sum(n) * :factor AS n FROM parts\"\n\
             [jobs.REPORT]\n{COUNTS}report = {{ to = \"file:out/{{month}}.csv\" }}\n\
             [jobs.LOAD]\n{COUNTS}{load}\n"
        );
        let sandbox = CliSandbox::on(&data, &jobs);
        for (name, param, user) in [
            ("REDUCE", "factor", "reduce"),
            ("REPORT", "month", "report.to"),
            ("LOAD", "month", "load.replace"),
        ] {
            for command in ["run", "submit", "run --dry-run"] {
                let missing = sandbox.run(&format!("{command} {name}")).await;
                refused(&missing, &["WL0003", &format!("params.{param}"), "missing", user]);
                let unknown = format!("{command} {name} --param {param}=1 --param x=1");
                let unknown = sandbox.run(&unknown).await;
                refused(&unknown, &["WL0003", "params.x", "no such param", param]);
            }
            sandbox.run(&format!("run {name} --param {param}=1")).await.ok();
        }
        assert_eq!(sandbox.json("jobs").await.as_array().unwrap().len(), 3);
    }
}

#[tokio::test]
async fn declared_params_have_types_defaults_and_help() {
    for data in Data::both().await {
        let data = data.with_accounts(10).await;
        let jobs = "[jobs.RAISE]\ndescription = \"Raise every account\"\n\
                    source = { connection = \"app\", table = \"accounts\" }\n\
                    step.sql = \"UPDATE accounts SET amount = id * 100 + :by, owner = :note WHERE {chunk}\"\n\
                    params.by = { type = \"integer\", default = 7, description = \"what to add\" }\n\
                    params.note = { type = \"text\" }\n";
        let sandbox = CliSandbox::on(&data, jobs);
        let by = async |by: i64, note: &str| {
            let sql = "SELECT count(*) FROM accounts WHERE amount - id * 100";
            data.number(&format!("{sql} = {by} AND owner = '{note}'")).await
        };
        sandbox.run("run RAISE --param note=1.10").await.ok();
        assert_eq!(by(7, "1.10").await, 10);
        sandbox.run("run RAISE --param note=007 --param by=8").await.ok();
        assert_eq!(by(8, "007").await, 10);
        refused(&sandbox.run("run RAISE").await, &["params.note", "missing", "step"]);
        let wrong = sandbox.run("run RAISE --param note=x --param by=1.5").await;
        refused(&wrong, &["params.by", "`integer`", "1.5"]);
        for command in ["run", "submit"] {
            let help = sandbox.run(&format!("{command} RAISE --help")).await.ok();
            for part in [
                "Raise every account",
                "--param by=",
                "integer, default 7: what to add",
                "--param note=",
                "text, required",
                "--priority",
            ] {
                assert!(help.stdout.contains(part), "{part}: {}", help.stdout);
            }
        }
    }
}

#[tokio::test]
async fn a_job_has_one_date_in_its_zone() {
    for data in Data::both().await {
        let data = data.with_accounts(10).await;
        data.run("CREATE TABLE counts (date text, n bigint)").await;
        // At every moment the two zones have different dates.
        for (hours, fields) in [
            (14, "timezone = \"Pacific/Kiritimati\""),
            (-12, "schedule = { cron = \"0 3 1 1 *\", timezone = \"Etc/GMT+12\" }"),
        ] {
            let jobs = format!(
                "[jobs.DAY]\n{COUNTS}{fields}\n\
                 params = {{ day = {{ type = \"date\", default = \"{{date}}\" }} }}\n\
                 reduce = \"SELECT sum(n) AS n, :day AS day FROM parts\"\n\
                 report = {{ to = \"file:{{date}}.json\", page = false }}\n\
                 [jobs.LOAD]\n{COUNTS}{fields}\n\
                 load = {{ connection = \"app\", table = \"counts\", replace = [\"date\"] }}\n"
            );
            let sandbox = CliSandbox::on(&data, &jobs);
            let date =
                || (chrono::Utc::now() + chrono::TimeDelta::hours(hours)).date_naive().to_string();
            let before = date();
            sandbox.run("run DAY").await.ok();
            sandbox.run("run LOAD").await.ok();
            let days = [before, date()];
            let name = days.iter().find(|day| sandbox.path(&format!("{day}.json")).exists());
            let day = name.unwrap_or_else(|| panic!("no report of {days:?}"));
            let rows: serde_json::Value =
                serde_json::from_str(&sandbox.read(&format!("{day}.json"))).unwrap();
            assert_eq!(rows[0]["day"], day.as_str(), "{rows}");
            let loaded =
                format!("SELECT count(*) FROM counts WHERE date IN ('{}', '{}')", days[0], days[1]);
            assert_eq!(data.number(&loaded).await, 1);
            // A date that is given is the date everywhere.
            sandbox.run("run DAY --param date=2020-02-29").await.ok();
            assert!(sandbox.read("2020-02-29.json").contains("2020-02-29"));
            refused(
                &sandbox.run("run DAY --param date=29.2.2020").await,
                &["params.date", "2026-01-31"],
            );
        }
    }
}

#[tokio::test]
async fn a_dependent_gets_the_params_that_it_knows() {
    let data = Data::sqlite().with_accounts(10).await;
    let jobs = "[jobs.FIRST]\nsource = { connection = \"app\", table = \"accounts\" }\n\
                step.sql = \"UPDATE accounts SET amount = :a WHERE {chunk}\"\n\
                [jobs.SECOND]\nsource = { connection = \"app\", table = \"accounts\" }\n\
                step.sql = \"UPDATE accounts SET amount = amount + :b WHERE {chunk}\"\n\
                [[dependencies]]\njob = \"SECOND\"\nafter = [\"FIRST\"]\n";
    let sandbox = CliSandbox::on(&data, jobs);
    sandbox.run("run FIRST --param a=5 --param b=2").await.ok();
    crate::common::eventually("SECOND is submitted", async || {
        let running = sandbox.spawn("worker");
        let listed = parse(&sandbox.run("jobs --type SECOND --status COMPLETED --json").await);
        running.term();
        running.wait().await;
        listed.as_array().is_some_and(|jobs| !jobs.is_empty())
    })
    .await;
    let second = &sandbox.json("jobs --type SECOND").await[0];
    assert_eq!(second["request"]["params"], serde_json::json!({"b": 2}));
    assert_eq!(data.number("SELECT count(*) FROM accounts WHERE amount = 7").await, 10);
}
