//! Dependencies in the shape of a diamond, while all processes are killed repeatedly. Each job is submitted exactly
//! once, at whatever point of a transaction a process dies.

use crate::common::seeded_rng::SeededRng;
use crate::common::{CliSandbox, Data, job};
use std::time::Duration;

const ROWS: i64 = 60;
const ROUNDS: i64 = 15;

#[tokio::test]
async fn each_job_of_a_diamond_runs_once_on_postgresql() {
    diamonds(Data::postgres().await, 3).await;
}

#[tokio::test]
async fn each_job_of_a_diamond_runs_once_on_sqlite() {
    diamonds(Data::sqlite(), 1).await;
}

async fn diamonds(data: Data, processes: usize) {
    let data = data.with_accounts(ROWS).await;
    let names = ["TOP", "LEFT", "RIGHT", "BOTTOM"];
    let sql = "UPDATE accounts SET amount = amount + 1 WHERE {chunk}";
    let lease = "chunk.lease = \"1s\"\n";
    let jobs: String = names.iter().map(|name| job(name, sql, 20) + lease).collect();
    let rule = |job: &str, after: &str| {
        format!("[[dependencies]]\njob = \"{job}\"\nafter = [{after}]\nmatch = [\"round\"]\n")
    };
    let rules = rule("LEFT", "\"TOP\"")
        + &rule("RIGHT", "\"TOP\"")
        + &rule("BOTTOM", "\"LEFT\", \"RIGHT\"");
    let sandbox = CliSandbox::on(&data, &(jobs + &rules));
    for round in 0..ROUNDS {
        sandbox.submit(&format!("TOP --param round={round}")).await;
    }
    let mut rng = SeededRng::new(20_261_116);
    let start = || sandbox.spawn("worker --concurrency 2");
    let mut running: Vec<_> = (0..processes).map(|_| start()).collect();
    let mut kills = 0;
    loop {
        // A random delay, so that kills happen at any point.
        tokio::time::sleep(Duration::from_millis(rng.next_in(50..400))).await;
        if done(&sandbox).await == 4 * ROUNDS as usize {
            break;
        }
        // Towards the end, the test would only wait for a segment's lease of thirty seconds.
        if kills < 12 {
            let victim = &mut running[rng.next_in(0..processes as u64) as usize];
            victim.kill9();
            *victim = start();
            kills += 1;
        }
    }
    let listed = sandbox.json("jobs --limit 1000").await;
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 4 * ROUNDS as usize, "no job twice");
    for name in names {
        let mut rounds: Vec<_> = listed
            .iter()
            .filter(|job| job["jobType"] == name)
            .map(|job| job["request"]["params"]["round"].as_i64().unwrap())
            .collect();
        rounds.sort();
        assert_eq!(rounds, (0..ROUNDS).collect::<Vec<_>>(), "{name}");
    }
    let wrong =
        format!("SELECT count(*) FROM accounts WHERE amount - id * 7 % 1000 <> {}", 4 * ROUNDS);
    assert_eq!(data.number(&wrong).await, 0, "each effect once");
    let waiting = sandbox.json("dependencies").await;
    assert_eq!(
        (&waiting["waiting"], &waiting["due"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
}

async fn done(sandbox: &CliSandbox) -> usize {
    let listed = sandbox.json("jobs --limit 1000 --status COMPLETED").await;
    listed.as_array().unwrap().len()
}
