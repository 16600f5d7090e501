//! Params are declared, checked and completed, and a job has one date.

use super::*;
use serde_json::json;

fn config(jobs: &str) -> Config {
    let source = "source = { connection = \"a\", table = \"t\", key = [\"id\"] }";
    Config::parse(&jobs.replace("SOURCE", source), |_| None).unwrap()
}

fn job_type(fields: &str) -> JobType {
    config(&format!("[jobs.J]\nSOURCE\n{fields}\n")).jobs["J"].clone()
}

fn request(params: Json) -> Request {
    serde_json::from_value(json!({"jobType": "J", "params": params})).unwrap()
}

/// An id of 2026-01-01T18:00:00Z.
fn evening() -> JobId {
    let seconds = DateTime::parse_from_rfc3339("2026-01-01T18:00:00Z").unwrap().timestamp();
    let time = uuid::Timestamp::from_unix(uuid::NoContext, seconds as u64, 0);
    JobId::new_v7(time)
}

const MAP: &str = "step.map = \"SELECT 1 AS n FROM {source} WHERE {chunk}\"\n";

#[test]
fn a_param_that_any_field_uses_is_required() {
    for (fields, name) in [
        ("reduce = \"SELECT sum(n) * :factor AS n FROM parts\"", "factor"),
        ("report = { to = \"file:x/{month}.csv\" }", "month"),
        ("load = { connection = \"a\", table = \"r\", replace = [\"month\"] }", "month"),
    ] {
        let job_type = job_type(&format!("{MAP}{fields}"));
        let error = request(json!({})).check_params(&job_type).unwrap_err().to_string();
        assert!(error.contains(&format!("params.{name}")) && error.contains("missing"), "{error}");
        request(json!({ name: 1 })).check_params(&job_type).unwrap();
        let list = request(json!({ name: [1] })).check_params(&job_type).unwrap_err().to_string();
        assert!(list.contains("single value"), "{list}");
    }
    // A column of the result needs no param.
    let own = "load = { connection = \"a\", table = \"r\", replace = [\"n\"] }";
    request(json!({})).check_params(&job_type(&format!("{MAP}{own}"))).unwrap();
}

#[test]
fn unknown_params_are_refused_unless_a_handler_receives_them() {
    let text = "[jobs.J]\nSOURCE\nstep.sql = \"UPDATE t SET x = :x WHERE {chunk}\"\n\
                [jobs.CHILD]\nSOURCE\nstep.sql = \"UPDATE t SET x = :y WHERE {chunk}\"\n\
                [jobs.H]\nSOURCE\nstep.handler = \"h\"\n\
                [jobs.D]\nSOURCE\nstep.handler = \"h\"\nparams = { a = { type = \"text\" } }\n\
                [[dependencies]]\njob = \"CHILD\"\nafter = [\"J\"]\nmatch = [\"m\"]\n";
    let config = config(text);
    let check = |name: &str, params: Json| {
        request(params)
            .check_known_params(&config, &config.jobs[name])
            .map_err(|problem| problem.to_string())
    };
    // Its own, those of its dependents, those that its dependents match, and the date.
    check("J", json!({"x": 1, "y": 2, "m": 3, "date": "2026-01-01"})).unwrap();
    let error = check("J", json!({"z": 1})).unwrap_err();
    assert!(error.contains("params.z") && error.contains("`x`"), "{error}");
    check("CHILD", json!({"x": 1})).unwrap_err();
    check("H", json!({"anything": 1})).unwrap();
    check("D", json!({"a": "1"})).unwrap();
    check("D", json!({"anything": 1})).unwrap_err();
}

#[test]
fn declared_params_have_types_and_defaults() {
    let job_type = job_type(
        "step.sql = \"UPDATE t SET x = x * :factor WHERE {chunk} AND m = :month AND f = :flag\"\n\
         params = { factor = { type = \"number\", default = 1.5 }, month = {}, \
         flag = { type = \"boolean\", required = false }, n = { type = \"integer\", default = 7 } }",
    );
    assert_eq!(job_type.problems(), []);
    let again = JobType::from_json("J", job_type.to_json()).unwrap();
    assert_eq!(again.params, job_type.params);
    let complete = |params: Json| {
        let request = request(params);
        request.check_params(&job_type).map_err(|problem| problem.to_string())?;
        Ok::<_, String>(json!(request.resolve(&job_type, evening()).params))
    };
    let given = complete(json!({"month": 202501, "factor": "2.5", "flag": "true"})).unwrap();
    assert_eq!(given, json!({"month": "202501", "factor": 2.5, "flag": true, "n": 7}));
    let defaults = complete(json!({"month": "1"})).unwrap();
    assert_eq!(defaults, json!({"month": "1", "factor": 1.5, "n": 7}));
    for (wrong, name) in [
        (json!({}), "month"),
        (json!({"month": "1", "factor": "much"}), "factor"),
        (json!({"month": "1", "n": 1.5}), "params.n"),
        (json!({"month": "1", "flag": 1}), "flag"),
        (json!({"month": null}), "month"),
    ] {
        let error = complete(wrong).unwrap_err();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn definitions_that_disagree_with_their_params_are_refused() {
    let sql = "step.sql = \"UPDATE t SET x = :x WHERE {chunk}\"\n";
    for (fields, expected) in [
        ("params = { y = {} }", "params.x"),
        ("params = { x = { type = \"integer\", default = \"a\" } }", "params.x.default"),
        ("params = { x = {}, date = { type = \"text\" } }", "params.date"),
        ("schedule = { cron = \"0 3 * * *\" }", "schedule.params: lacks `x`"),
        (
            "schedule = { cron = \"0 3 * * *\", params = { x = 1, y = 2 } }\nparams = { x = {} }",
            "params.y",
        ),
    ] {
        let problems: Vec<String> = job_type(&format!("{sql}{fields}"))
            .problems()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(problems.iter().any(|found| found.contains(expected)), "{fields}: {problems:?}");
    }
}

#[test]
fn a_job_has_one_date() {
    let fields = "reduce = \"SELECT :date AS d, :day AS e FROM parts\"\n\
                  report = { to = \"file:{date}.csv\" }\n\
                  params = { day = { type = \"date\", default = \"{date}\" } }\n";
    let dates = |fields: &str, params: Json| {
        let job_type = job_type(&format!("{MAP}{fields}"));
        let resolved = request(params).resolve(&job_type, evening()).params;
        let path = job_type.date_of(&resolved, evening()).to_string();
        [path.into(), resolved["date"].clone(), resolved["day"].clone()]
    };
    let all = |date: &str| [date, date, date].map(Json::from);
    assert_eq!(dates(fields, json!({})), all("2026-01-01"));
    let zone = format!("{fields}timezone = \"Asia/Tokyo\"\n");
    assert_eq!(dates(&zone, json!({})), all("2026-01-02"));
    let zone =
        format!("{fields}schedule = {{ cron = \"0 3 * * *\", timezone = \"Asia/Tokyo\" }}\n");
    assert_eq!(dates(&zone, json!({})), all("2026-01-02"));
    assert_eq!(dates(&zone, json!({"date": "2025-12-31"})), all("2025-12-31"));
    let job_type = job_type(&format!("{MAP}{fields}"));
    for wrong in ["31/12/2025", "today", ""] {
        let error = request(json!({ "date": wrong })).check_params(&job_type).unwrap_err();
        assert!(error.to_string().contains("2026-01-31"), "{error}");
    }
}
