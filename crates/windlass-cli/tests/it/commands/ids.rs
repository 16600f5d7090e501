//! Ids by prefix, last eight characters and `last`; tables that fit the terminal; what a job wrote; grouped letters.

use crate::common::{CliSandbox, Data, raise, refused, text};

#[tokio::test]
async fn a_job_is_named_by_a_part_of_its_id() {
    for data in Data::both().await {
        let data = data.with_accounts(10).await;
        let sandbox = CliSandbox::on(&data, &raise(5));
        refused(&sandbox.run("job last").await, &["WL0009", "no jobs"]);
        let first = sandbox.submit("RAISE").await;
        let second = sandbox.submit("RAISE").await;
        for name in [&first, &first[..35], &first[28..], &first.to_uppercase()[..30]] {
            assert_eq!(sandbox.json(&format!("job {name}")).await["id"], first.as_str(), "{name}");
        }
        assert_eq!(sandbox.json("job last").await["id"], second.as_str());
        sandbox.run(&format!("pause {}", &second[28..])).await.ok();
        sandbox.run(&format!("resume {}", &second[28..])).await.ok();
        sandbox.run("worker --job last").await.ok();
        for command in ["watch", "chunks", "output", "audit", "dependencies", "throughput --job"] {
            sandbox.run(&format!("{command} last")).await.ok();
            sandbox.run(&format!("{command} {}", &second[..35])).await.ok();
        }
        sandbox.run(&format!("dead list --job {}", &second[28..])).await.ok();
        let after = sandbox.submit(&format!("RAISE --after {}", &first[28..])).await;
        assert_eq!(sandbox.job(&after).await["request"]["after"][0], first.as_str());
        // The two ids begin with the same time.
        refused(&sandbox.run(&format!("job {}", &first[..4])).await, &["several", &first, &second]);
        refused(&sandbox.run("job 0000").await, &["WL0009", "no job 0000"]);
        refused(&sandbox.run("job latest").await, &["latest", "eight", "`last`"]);
    }
}

#[tokio::test]
async fn tables_fit_the_terminal_and_stay_aligned_with_colours() {
    let data = Data::sqlite().with_accounts(10).await;
    let name = "A_JOB_TYPE_WITH_A_NAME_THAT_IS_LONGER_THAN_MOST";
    let sandbox = CliSandbox::on(&data, &(raise(5) + &raise(5).replace("RAISE", name)));
    sandbox.run("run RAISE").await.ok();
    sandbox.submit(name).await;
    sandbox.run("pause last").await.ok();
    let id = text(&sandbox.json("jobs").await[0]["id"]);
    for columns in [80, 132] {
        let listed = sandbox.run_in_terminal(columns, "jobs", "").await.stdout;
        assert!(listed.contains("\u{1b}["), "no colours: {listed:?}");
        let plain = without_colours(&listed);
        let lines: Vec<&str> =
            plain.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 3, "a row on two lines: {plain}");
        let at = lines[0].find("ITEMS").unwrap();
        for line in &lines {
            let line: Vec<char> = line.chars().collect();
            assert!(line.len() <= columns as usize, "{columns}: {plain}");
            assert!(line[at - 1] == ' ' && line[at] != ' ', "not aligned: {plain}");
        }
        assert!(lines[1].contains(&id[28..]) && !plain.contains(&id), "{plain}");
        assert!(lines[2].contains(" COMPLETED ") && lines[2].contains("10/10"), "{plain}");
    }
}

fn without_colours(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        out.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    out + rest
}

#[tokio::test]
async fn the_summary_names_what_was_written() {
    for data in Data::both().await {
        let data = data.with_accounts(10).await;
        data.run("CREATE TABLE counts (n bigint)").await;
        let source = "source = { connection = \"app\", table = \"accounts\" }\n";
        let jobs = format!(
            "{}[jobs.REPORT]\n{source}\
             step.map = \"SELECT branch, count(*) AS n FROM {{source}} WHERE {{chunk}} GROUP BY branch\"\n\
             reduce = \"SELECT sum(n) AS n FROM parts\"\nreport = {{ to = \"file:out/counts.csv\" }}\n\
             load = {{ connection = \"app\", table = \"counts\", replace = [\"n\"] }}\n\
             [jobs.EXPORT]\n{source}step.export = {{ to = \"file:parts/{{job_id}}/\", format = \"csv\" }}\n",
            raise(5)
        );
        let sandbox = CliSandbox::on(&data, &jobs);
        for (name, parts) in [
            ("RAISE", &["wrote   10 rows of table app.accounts"][..]),
            (
                "REPORT",
                &["1 row in table app.counts", "1 row in out/counts.csv", "out/counts.csv.html"],
            ),
            ("EXPORT", &["10 rows in parts/", "manifest.json"]),
        ] {
            let run = sandbox.run(&format!("run {name}")).await.ok().stdout;
            for part in parts {
                assert!(run.contains(part), "{name}: `{part}` is not in\n{run}");
            }
        }
        let job = sandbox.json("job last").await;
        assert_eq!(job["outputs"][0]["kind"], "export", "{job:#}");
        assert_eq!(job["outputs"][0]["rows"], 10, "{job:#}");
        // A partial request does not load, and says so by not naming the table.
        sandbox.write("ids", "1\n");
        let partial = sandbox.run("run REPORT --ids-file ids").await.ok().stdout;
        assert!(!partial.contains("app.counts"), "{partial}");
    }
}

#[tokio::test]
async fn letters_are_grouped_by_error_and_tracebacks_are_text() {
    let data = Data::sqlite().with_accounts(20).await;
    let jobs = "[jobs.ENRICH]\nsource = { connection = \"app\", table = \"accounts\" }\n\
                step.command = [\"python3\", \"handler.py\"]\nstep.version = \"version\"\n\
                retry = { attempts = 1 }\n";
    let sandbox = CliSandbox::on(&data, jobs);
    sandbox.write(
        "handler.py",
        "import json, sys, traceback\n\
         def result(item):\n    \
             id = item['record']['id']\n    \
             if id % 5 == 0:\n        \
                 try:\n            \
                     return {'key': item['key'], 'update': {'amount': int('x')}}\n        \
                 except ValueError:\n            \
                     return {'key': item['key'], 'error': traceback.format_exc()}\n    \
             if id == 7:\n        \
                 return {'key': item['key'], 'error': 'unlucky'}\n    \
             return {'key': item['key'], 'skip': 'fine'}\n\
         for line in sys.stdin:\n    \
             print(json.dumps({'results': [result(i) for i in json.loads(line)['items']]}), flush=True)\n",
    );
    sandbox.run("run ENRICH").await;
    let listed = sandbox.run("dead list").await.ok().stdout;
    let (traced, unlucky) = (
        listed.find("4 dead letters of ENRICH").unwrap(),
        listed.find("1 dead letter of").unwrap(),
    );
    assert!(traced < unlucky, "the most frequent error first: {listed}");
    assert_eq!(listed.matches("Traceback (most recent call last)").count(), 1, "{listed}");
    assert!(listed.contains("\n  ValueError: ") && !listed.contains("\\n"), "{listed}");
    let letter = text(&sandbox.json("dead list --error unlucky").await[0]["id"]);
    let shown = sandbox.run(&format!("dead show {}", &letter[28..])).await.ok().stdout;
    assert!(shown.contains("unlucky"), "{shown}");
    sandbox.run(&format!("dead ignore {}", &letter[28..])).await.ok();
    assert_eq!(sandbox.json("dead list --status ignored").await[0]["id"], letter.as_str());
}
