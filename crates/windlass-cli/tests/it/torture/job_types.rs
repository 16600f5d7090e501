//! The tables and the job types of the torture test.

use crate::common::Data;

/// Rows of each table.
pub(super) const ITEMS: i64 = 240;

/// The tables whose records have a trace.
pub(super) const TRACED: [&str; 3] = ["plain", "guarded", "refreshed"];

/// Creates and fills the tables.
pub(super) async fn create(data: &Data) {
    let numbers = data.numbers(ITEMS);
    let key = "id bigint PRIMARY KEY NOT NULL";
    data.run(&format!(
        "CREATE TABLE plain ({key}, bad bigint NOT NULL, flaw bigint NOT NULL CHECK (flaw = 0), trace text NOT NULL);
         CREATE TABLE guarded ({key}, bad bigint NOT NULL, version bigint NOT NULL, trace text NOT NULL);
         CREATE TABLE refreshed ({key}, version bigint NOT NULL, trace text NOT NULL);
         CREATE TABLE facts ({key}, branch bigint NOT NULL, amount bigint NOT NULL);
         CREATE TABLE inserted (token varchar(100) NOT NULL, item bigint NOT NULL);
         CREATE TABLE totals (mark varchar(100) NOT NULL, branch bigint NOT NULL, n bigint, total bigint);
         INSERT INTO plain SELECT n, CASE WHEN n % 60 = 7 THEN 1 ELSE 0 END, 0, '' FROM ({numbers}) AS numbers;
         INSERT INTO guarded SELECT n, CASE WHEN n % 60 = 7 THEN 1 ELSE 0 END, 1, '' FROM ({numbers}) AS numbers;
         INSERT INTO refreshed SELECT n, 1, '' FROM ({numbers}) AS numbers;
         INSERT INTO facts SELECT n, n % 4, n * 7 % 1000 FROM ({numbers}) AS numbers;"
    ))
    .await;
}

/// Logs every change of a ledger row in the transaction that makes it, so that the order of commits is known from the
/// database itself.
pub(super) async fn log_ledger(data: &Data) {
    let columns = "job_id, chunk, epoch, nonce, commits, processed, dead";
    let values = columns.split(", ").map(|column| format!("NEW.{column}")).collect::<Vec<_>>();
    let insert = format!("INSERT INTO ledger_log ({columns}) VALUES ({})", values.join(", "));
    let seq = match data {
        Data::Postgres(_) => "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        Data::Mariadb(_) => "bigint AUTO_INCREMENT PRIMARY KEY",
        Data::Sqlite(_) => "integer PRIMARY KEY",
    };
    data.run(&format!(
        "CREATE TABLE ledger_log (seq {seq}, job_id varchar(36), chunk bigint, epoch bigint, \
         nonce bigint, commits bigint, processed bigint, dead bigint)"
    ))
    .await;
    match data {
        Data::Postgres(_) => {
            data.run(&format!(
                "CREATE FUNCTION log_ledger() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN {insert}; RETURN NULL; END $$;
                 CREATE TRIGGER logged AFTER INSERT OR UPDATE ON windlass_ledger \
                 FOR EACH ROW EXECUTE FUNCTION log_ledger()"
            ))
            .await;
        }
        Data::Mariadb(_) | Data::Sqlite(_) => {
            for event in ["INSERT", "UPDATE"] {
                data.run(&format!(
                    "CREATE TRIGGER logged_{event} AFTER {event} ON windlass_ledger \
                     FOR EACH ROW BEGIN {insert}; END"
                ))
                .await;
            }
        }
    }
}

/// The job types. Leases are short, so that frozen processes lose them.
pub(super) fn job_types(data: &Data, service: u16) -> String {
    let append = |name: &str| match data {
        Data::Mariadb(_) => format!("trace = CONCAT(trace, ' {name}:', :mark)"),
        _ => format!("trace = trace || ' {name}:' || :mark"),
    };
    let common = "chunk.items = 30\nchunk.lease = \"2s\"\n\
                  retry = { attempts = 4, backoff = \"200ms\", max = \"1s\" }\n";
    let job = |name: &str, table: &str, step: &str| {
        format!(
            "[jobs.{name}]\nsource = {{ connection = \"app\", table = \"{table}\" }}\n{step}\n{common}"
        )
    };
    let sql = |name: &str, set: &str| {
        let step = format!(
            "step.sql = \"UPDATE plain SET {set}{} WHERE {{chunk}}\"\nchunk.commit = 10",
            append(name)
        );
        job(name, "plain", &step)
    };
    let marked = "params = { mark = { type = \"text\", required = false } }";
    [
        sql("ADD", "flaw = bad, "),
        sql("AFTER", ""),
        sql("TICK", "")
            + "schedule = { cron = \"* * * * *\", missed = \"run-all\", params = { mark = \"{date}T{time}\" } }\n",
        job("RUN", "plain", "step.command = [\"python3\", \"mark.py\"]\nchunk.commit = 10"),
        job(
            "CALL",
            "guarded",
            &format!(
                "step.http = \"http://127.0.0.1:{service}/\"\nstep.version = \"version\"\nchunk.commit = 10"
            ),
        ),
        job(
            "REFRESH",
            "refreshed",
            &format!("{marked}\nstep.refresh = true\nstep.version = \"version\"\nchunk.commit = 10"),
        ),
        job(
            "TOTAL",
            "facts",
            "step.map = \"SELECT branch, count(*) AS n, sum(amount) AS total FROM {source} WHERE {chunk} GROUP BY branch\"\n\
             reduce = \"SELECT branch, sum(n) AS n, sum(total) AS total FROM parts GROUP BY branch ORDER BY branch\"\n\
             load = { connection = \"app\", table = \"totals\", replace = [\"mark\"] }\n\
             report = { to = \"file:out/{job_id}.csv\", page = false }",
        ),
        job(
            "EXPORT",
            "facts",
            &format!("{marked}\nstep.export = {{ to = \"file:out/{{job_id}}/\", format = \"csv\", columns = [\"id\"] }}"),
        ),
        "[[dependencies]]\njob = \"AFTER\"\nafter = [\"ADD\"]\nmatch = [\"mark\"]\n".to_owned(),
    ]
    .concat()
}
