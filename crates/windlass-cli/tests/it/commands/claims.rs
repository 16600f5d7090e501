//! `--claim`: the rows of a claim, `*` for all of them, and `{claim:…}` in paths.

use crate::common::{CliSandbox, Data, refused};

#[tokio::test]
async fn an_asterisk_is_unrestricted_and_a_token_never_is() {
    for data in Data::both().await {
        let data = data.with_accounts(40).await;
        let jobs = "[jobs.REPORT]\nsource = { connection = \"app\", table = \"accounts\", \
                    claims = { branch = \"branch\" } }\n\
                    step.map = \"SELECT count(*) AS n FROM {source} WHERE {chunk}\"\n\
                    reduce = \"SELECT sum(n) AS n FROM parts\"\n\
                    report = { to = \"file:out/{claim:branch}.csv\" }\n\
                    [jobs.EXPORT]\nsource = { connection = \"app\", table = \"accounts\", \
                    claims = { branch = \"branch\" } }\n\
                    step.export = { to = \"file:parts/{claim:branch}/{job_id}/\", format = \"csv\" }\n\
                    [auth]\nkey = \"a secret of at least thirty-two bytes\"\nroles.clerk = { may = [\"view\"] }\n";
        let sandbox = CliSandbox::on(&data, jobs);
        refused(&sandbox.run("run REPORT").await, &["claims.branch"]);
        for (claim, rows) in [("3", 4), ("*", 40)] {
            for name in ["REPORT", "EXPORT"] {
                sandbox.run(&format!("run {name} --claim branch={claim}")).await.ok();
                let job = sandbox.json("job last").await;
                assert_eq!(job["items"]["processed"], rows, "{name} {claim}: {job:#}");
            }
            let report = sandbox.read(&format!("out/{claim}.csv"));
            assert!(report.contains(&rows.to_string()), "{report}");
            let exported = std::fs::read_dir(sandbox.path(&format!("parts/{claim}"))).unwrap();
            assert_eq!(exported.count(), 1, "one folder of one job");
        }
        // `all` is a value like any other, and no value of the column.
        refused(&sandbox.run("run REPORT --claim branch=all").await, &["claims.branch", "all"]);
        refused(
            &sandbox.run("run REPORT --claim branch=3,*").await,
            &["claims.branch", "only value"],
        );
        let token = sandbox.run("token --subject ada --role clerk --claim branch=*").await;
        refused(&token, &["--claim branch=*", "schedule.claims"]);
    }
}
