//! Statements with and without a valid `{chunk}`.

use super::check;
use crate::sql::Dialect::{self, Mysql, Postgres, Sqlite};
use windlass_core::Config;

fn verdict(dialect: Dialect, step: &str, sql: &str) -> Result<(), String> {
    let text = format!(
        "[jobs.J]\nsource = {{ connection = \"a\", table = \"visits\", key = [\"id\"], \
         claims = {{ county = \"county\" }} }}\nstep.{step} = '''{sql}'''\n"
    );
    let job_type = Config::parse(&text, |_| None).unwrap().jobs["J"].clone();
    check(dialect, &job_type).map_err(|problem| problem.to_string())
}

const ALL: [Dialect; 3] = [Postgres, Sqlite, Mysql];

#[test]
fn bound_statements_are_accepted() {
    for sql in [
        "UPDATE visits SET a = a + 1 WHERE {chunk}",
        "UPDATE visits SET a = :month WHERE b > 1 AND ({chunk} AND (c = 1 OR d = 2));",
        "UPDATE visits SET a = (SELECT max(x) FROM w WHERE w.id = 1) WHERE {chunk}",
        "DELETE FROM visits WHERE {chunk} AND a = 'x OR y' -- done",
        "INSERT INTO other SELECT id, a FROM visits WHERE {chunk}",
        "UPDATE log SET a = 1 WHERE visit IN (SELECT id FROM visits WHERE {chunk})",
        "DELETE FROM log WHERE visit IN (SELECT v.other FROM visits v WHERE {chunk:v}) AND a = 1",
        "INSERT INTO other (a) SELECT v.a FROM visits v JOIN w ON w.id = v.id WHERE {chunk:v}",
        "INSERT INTO other (a) SELECT a FROM visits WHERE {chunk} UNION ALL SELECT b FROM visits WHERE {chunk}",
    ] {
        for dialect in ALL {
            verdict(dialect, "sql", sql).unwrap_or_else(|why| panic!("{dialect:?} {sql}: {why}"));
        }
    }
    for sql in [
        "UPDATE visits AS v SET a = w.b FROM w WHERE w.id = v.id AND {chunk:v}",
        "UPDATE visits SET a = 1 FROM (SELECT pg_sleep(0.1)) w WHERE {chunk}",
        "WITH picked AS (SELECT id FROM visits WHERE {chunk} FOR UPDATE) \
         UPDATE visits SET a = 1 FROM picked WHERE visits.id = picked.id",
        "WITH gone AS (DELETE FROM visits WHERE {chunk} RETURNING *) INSERT INTO other SELECT * FROM gone",
        "DELETE FROM visits USING w WHERE w.id = visits.id AND {chunk:visits}",
        "MERGE INTO totals t USING (SELECT id, a FROM visits WHERE {chunk}) s ON t.id = s.id \
         WHEN MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, s.a)",
        "UPDATE totals SET a = q.n FROM (SELECT id, count(*) n FROM visits WHERE {chunk} GROUP BY id) q \
         WHERE q.id = totals.id",
    ] {
        verdict(Postgres, "sql", sql).unwrap_or_else(|why| panic!("{sql}: {why}"));
    }
    for sql in [
        "UPDATE visits AS v JOIN rates ON rates.id = v.id SET v.a = rates.rate WHERE {chunk:v}",
        "UPDATE visits SET a = 1 WHERE {chunk} AND SLEEP(0.0002) = 0 LIMIT 5",
        "DELETE v FROM visits v JOIN w ON w.id = v.id WHERE {chunk:v}",
    ] {
        verdict(Mysql, "sql", sql).unwrap_or_else(|why| panic!("{sql}: {why}"));
    }
    for sql in [
        "SELECT a, count(*) n FROM {source} WHERE {chunk} GROUP BY a",
        "SELECT e.a, count(*) n FROM {source} e LEFT JOIN w ON w.id = e.id WHERE {chunk:e} GROUP BY e.a",
        "WITH mine AS (SELECT * FROM {source} WHERE {chunk}) SELECT a, count(*) n FROM mine GROUP BY a",
    ] {
        for dialect in ALL {
            verdict(dialect, "map", sql).unwrap_or_else(|why| panic!("{dialect:?} {sql}: {why}"));
        }
    }
}

#[test]
fn unbound_statements_are_refused() {
    for sql in [
        "UPDATE visits SET a = 1 WHERE {chunk} OR a = 1",
        "UPDATE visits SET a = 1 WHERE ({chunk} OR a = 1) AND b = 1",
        "UPDATE visits SET a = 1 WHERE NOT {chunk}",
        "UPDATE visits SET a = 1 WHERE NOT ({chunk} AND a = 1)",
        "UPDATE visits SET a = 1 WHERE {chunk} = false",
        "UPDATE visits SET a = 1 WHERE {chunk} IS NOT NULL",
        "UPDATE visits SET a = 1 WHERE coalesce({chunk}, true)",
        "UPDATE visits SET a = 1 WHERE CASE WHEN {chunk} THEN 1 ELSE 1 END = 1",
        "UPDATE visits SET a = {chunk}",
        "UPDATE visits SET a = 1 WHERE EXISTS (SELECT 1 FROM visits WHERE {chunk})",
        "UPDATE visits SET a = 1 WHERE a IN (SELECT a FROM visits WHERE {chunk})",
        "UPDATE visits SET a = 1 WHERE id IN (SELECT id FROM visits WHERE {chunk})",
        "UPDATE log SET a = 1 WHERE visit NOT IN (SELECT id FROM visits WHERE {chunk})",
        "UPDATE log SET a = 1 WHERE visit IN (SELECT id FROM visits WHERE {chunk}) OR a = 2",
        "UPDATE log SET a = 1 WHERE visit IN (SELECT id FROM visits WHERE {chunk} OR true)",
        "UPDATE log SET a = 1 WHERE visit IN (SELECT visit FROM visits WHERE {chunk})",
        "UPDATE log SET a = 1 WHERE visit IN (SELECT log.visit FROM visits WHERE {chunk})",
        "UPDATE log SET a = 1 WHERE visit IN (SELECT w.id FROM visits v, w WHERE {chunk:v})",
        "UPDATE log SET a = 1 WHERE 1 IN (SELECT id FROM visits WHERE {chunk})",
        "UPDATE log SET a = 1 WHERE EXISTS (SELECT id FROM visits WHERE {chunk})",
        "UPDATE visits SET a = 1 WHERE {chunk}; DELETE FROM visits",
        "DELETE FROM visits; UPDATE visits SET a = 1 WHERE {chunk}",
        "DELETE FROM visits WHERE {chunk} OR true",
        "INSERT INTO other SELECT * FROM visits WHERE {chunk} OR true",
        "INSERT INTO other SELECT * FROM visits WHERE {chunk} UNION ALL SELECT * FROM visits",
        "INSERT INTO other SELECT b.* FROM visits AS v, visits AS b WHERE {chunk:v}",
        "INSERT INTO other SELECT * FROM w LEFT JOIN visits ON {chunk:visits}",
        "UPDATE visits SET county = 'x' WHERE {chunk}",
        "TRUNCATE TABLE visits /* */ {chunk}",
        "UPDATE visits SET a = windlass_chunk_0 WHERE {chunk}",
    ] {
        for dialect in ALL {
            assert!(verdict(dialect, "sql", sql).is_err(), "{dialect:?} {sql}");
        }
    }
    for sql in [
        "UPDATE visits SET a = 1 FROM visits AS b WHERE {chunk:b}",
        "WITH picked AS (SELECT id FROM visits WHERE {chunk}) UPDATE visits SET a = 1 FROM picked",
        "WITH picked AS (SELECT id FROM visits WHERE {chunk}) UPDATE visits SET a = 1",
        "WITH x AS (DELETE FROM visits RETURNING id) UPDATE visits SET a = 1 WHERE {chunk}",
        "WITH x AS (UPDATE visits SET county = 'b' WHERE {chunk} RETURNING id) SELECT id FROM x",
        "INSERT INTO visits SELECT * FROM visits WHERE {chunk} ON CONFLICT (id) DO UPDATE SET a = 1",
        "MERGE INTO visits v USING w ON {chunk:v} WHEN NOT MATCHED THEN INSERT (id) VALUES (w.id)",
        "UPDATE visits SET a = 1 WHERE a = E'\\' AND {chunk} --'",
        "UPDATE visits SET a = 1 /* /* */ WHERE {chunk} */",
    ] {
        assert!(verdict(Postgres, "sql", sql).is_err(), "{sql}");
    }
    for sql in [
        "UPDATE visits SET a = 1 WHERE b = 'it\\' AND {chunk} #'",
        "UPDATE visits SET a = 1 WHERE {chunk} /*! OR 1 = 1 */",
        "UPDATE visits SET a = 1 WHERE {chunk} /*M! OR 1 = 1 */",
        "REPLACE INTO visits SELECT * FROM visits WHERE {chunk}",
        "UPDATE visits v JOIN w ON w.x = 1 SET w.a = 1 WHERE {chunk:v}",
    ] {
        assert!(verdict(Mysql, "sql", sql).is_err(), "{sql}");
    }
    for sql in [
        "SELECT count(*) n FROM {source} WHERE {chunk} OR true",
        "SELECT count(*) n FROM {source} WHERE NOT {chunk}",
        "SELECT (SELECT count(*) FROM {source}) n FROM {source} WHERE {chunk}",
        "SELECT count(*) n FROM {source} WHERE {chunk} UNION ALL SELECT count(*) FROM {source}",
        "SELECT count(*) FILTER (WHERE {chunk}) n FROM {source}",
        "DELETE FROM visits WHERE {chunk}",
    ] {
        assert!(verdict(Postgres, "map", sql).is_err(), "{sql}");
    }
}

#[test]
fn placeholders_that_the_database_reads_as_a_string_or_a_comment_are_refused() {
    for (dialect, value) in [
        (Mysql, r"'it\'s :p'"),
        (Mysql, "# it's :p\n 1"),
        (Postgres, "/* a /* b */ :p */ 1"),
        (Sqlite, r"E'\' :p'"),
    ] {
        let sql = format!("UPDATE visits SET a = {value} WHERE {{chunk}}");
        let why = verdict(dialect, "sql", &sql).unwrap_err();
        assert!(why.contains("ends elsewhere"), "{dialect:?} {sql}: {why}");
    }
    for (dialect, value) in [
        (Postgres, r"'C:\' || :p"),
        (Postgres, r"CAST(:p AS jsonb) ? 'a'"),
        (Sqlite, r"b LIKE '%\%' ESCAPE '\' AND :p"),
        (Mysql, r"CONCAT('C:\\', :p)"),
    ] {
        let sql = format!("UPDATE visits SET a = {value} WHERE {{chunk}}");
        verdict(dialect, "sql", &sql).unwrap_or_else(|why| panic!("{dialect:?} {sql}: {why}"));
    }
}
