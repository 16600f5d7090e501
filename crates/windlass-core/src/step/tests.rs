//! What steps are accepted and refused, and what of them a job keeps.

use crate::Config;

fn job_type(step: &str) -> Result<crate::JobType, String> {
    let text = format!(
        "[connections.app]\nurl = \"sqlite:a\"\n[jobs.A]\nsource.connection = \"app\"\n\
         source.table = \"t\"\nstep.version = \"v\"\n{step}\n"
    );
    let config = Config::parse(&text, |_| Some("hush".into())).map_err(|p| p.to_string())?;
    let problems: String = config.problems().iter().map(|p| p.to_string() + "\n").collect();
    if problems.is_empty() { Ok(config.jobs["A"].clone()) } else { Err(problems) }
}

#[test]
fn a_secret_header_is_pinned_by_its_name_alone() {
    let step = "step.http = \"https://a/b\"\nstep.headers = { Authorization = \"Bearer ${T}\" }";
    let snapshot = job_type(step).unwrap().to_json().to_string();
    assert!(snapshot.contains("\"Authorization\":\"\""), "{snapshot}");
    assert!(!format!("{snapshot}{:?}", job_type(step)).contains("hush"));
}

#[test]
fn a_variable_of_a_command_or_an_address_is_pinned_by_its_name_alone() {
    for (step, kept, expanded) in [
        ("step.command = [\"run\", \"--key=${T}\"]", "\"--key=${T}\"", "--key=hush"),
        ("step.command = ['''\nrun\n''', '''a\n${T}''']", "a\\n${T}", "a\nhush"),
        ("step.http = \"https://${T}.example/?key=${T}\"", "?key=${T}", "?key=hush"),
    ] {
        let job_type = job_type(step).unwrap();
        let snapshot = job_type.to_json().to_string();
        assert!(snapshot.contains(kept), "{snapshot}");
        assert!(!format!("{snapshot}{job_type:?}").contains("hush"));
        let text = match &job_type.step.kind {
            crate::StepKind::Command(words) => words[1].clone(),
            crate::StepKind::Http(endpoint) => endpoint.url.clone(),
            other => unreachable!("{other:?}"),
        };
        assert!(job_type.expand(&text).contains(expanded), "{text}");
    }
}

#[test]
fn wrong_fields_are_refused_with_what_would_be_right() {
    for (step, expected) in [
        ("step.command = []", "python3"),
        ("step.command = [\"a\"]\nstep.env = [\"A=b\"]", "name of a variable"),
        ("step.command = [\"a\"]\nstep.env = [\"WINDLASS_TOKEN\"]", "no command gets it"),
        ("step.refresh = true\nstep.env = [\"A\"]", "step.command"),
        ("step.refresh = true\nstep.insecure = true", "step.http"),
        ("step.refresh = true\nstep.on_bad_row = \"fail\"", "requires step.map or step.export"),
        ("step.map = \"a\"\nstep.on_bad_row = \"skip\"", "expected `dead-letter` or `fail`"),
        ("step.command = [\"a\"]\nstep.headers = { A = \"b\" }", "step.http"),
        ("step.http = \"ftp://a\"", "http://"),
        ("step.http = \"http://a b/\"", "not a URL"),
        ("step.http = \"http://a:99999/\"", "not a URL"),
        ("step.http = \"http://u:p@a/\"", "step.headers"),
        ("step.http = \"http://a/\"\nstep.headers = { \"A b\" = \"\" }", "header's name"),
        ("step.http = \"http://a/\"\nstep.headers = { Host = \"b\" }", "by Windlass"),
        ("step.http = \"http://a/\"\nstep.headers = { A = \"b\\nc\" }", "line break"),
        ("step.http = \"http://a/\"\nstep.concurrency = 0", "at least 1"),
        ("step.command = [\"a\"]\nstep.timeout = \"4m\"", "a quarter of chunk.timeout"),
        ("step.refresh = true\nstep.timeout = \"4s\"", "step.command"),
        ("step.command = [\"a\"]\nstep.http = \"http://a\"", "exactly one kind"),
        ("step.map = \"SELECT 1 FROM {source}\"", "no {chunk}"),
        ("step.map = \"SELECT 1 FROM {source} WHERE {chunk}\"", "step.version"),
        ("step.export = { to = \"file:a/\", format = \"csv\" }", "{job_id}"),
        ("step.export = { to = \"a/{job_id}\", format = \"csv\" }", "not a folder"),
        ("step.export = { to = \"file:{job_id}/\", format = \"xml\" }", "parquet"),
        ("step.refresh = true\nreduce = \"SELECT 1\"", "step.map"),
        ("step.handler = \"h\"\nstep.guard = \"rowid\"", "`version`, `xmin`, `columns`"),
        ("step.handler = \"h\"\nstep.guard = \"xmin\"", "remove step.guard or step.version"),
    ] {
        let message = job_type(step).unwrap_err();
        assert!(message.contains(expected), "{step}: {message}");
    }
}

#[test]
fn a_step_needs_no_version_and_a_guard_needs_records_that_are_written_back() {
    let refusals = |step: &str| {
        let text = format!(
            "[connections.app]\nurl = \"sqlite:a\"\n[jobs.A]\nsource.connection = \"app\"\n{step}\n"
        );
        let problems = Config::parse(&text, |_| None).unwrap().problems();
        problems.iter().map(ToString::to_string).collect::<String>()
    };
    let table = "source.table = \"t\"\n";
    for step in ["step.refresh = true", "step.handler = \"h\"", "step.command = [\"a\"]"] {
        assert_eq!(refusals(&format!("{table}{step}")), "");
    }
    for guard in ["xmin", "columns"] {
        let guard = format!("step.guard = \"{guard}\"");
        assert_eq!(refusals(&format!("{table}step.handler = \"h\"\n{guard}")), "");
        for (step, expected) in [
            (format!("{table}step.refresh = true"), "does not apply to step.refresh"),
            (
                format!("{table}step.sql = \"DELETE FROM t WHERE {{chunk}}\""),
                "does not apply to step.sql",
            ),
            (
                "source.query = \"SELECT 1 id\"\nsource.key = [\"id\"]\nstep.handler = \"h\""
                    .to_owned(),
                "does not apply to this source",
            ),
        ] {
            let message = refusals(&format!("{step}\n{guard}"));
            assert!(message.contains(expected), "{step}: {message}");
        }
    }
}
