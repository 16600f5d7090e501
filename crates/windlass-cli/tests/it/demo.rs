//! `windlass demo` from an empty folder, and the commands that it suggests at its end.

use crate::common::{CliSandbox, eventually, refused};
use windlass_testkit::Windlass;

#[tokio::test]
async fn the_demo_works_and_so_do_the_commands_it_suggests() {
    let sandbox = CliSandbox::empty();
    let demo = sandbox.run("demo --folder shop --transactions 50000").await.ok();
    for part in [
        "50,000 transactions",
        "COMPLETED  SETTLE",
        "50,000 of 50,000",
        "7 dead letters",
        "CHECK constraint failed",
        "7 of 7 processed",
        "COMPLETED  CLASSIFY",
        "COMPLETED  BRANCH_REPORT",
        "reports/branches.csv",
        "BRANCH  ",
        "PROVEN",
    ] {
        assert!(demo.stdout.contains(part), "`{part}` is not in:\n{}", demo.stdout);
    }
    assert!(!demo.stdout.contains("NOT PROVEN"), "{}", demo.stdout);
    assert!(!demo.stdout.contains('\u{1b}'), "colours in a file");
    let (made, kept) = writes(&demo.stdout);
    assert_eq!(made, kept, "{}", demo.stdout);
    assert_ne!(made, "0", "the other program wrote nothing:\n{}", demo.stdout);

    // Writes of the other program fell between the read and the write of their records, and the number is that of the
    // job.
    let shop = Windlass::new(sandbox.path("shop")).binary(crate::common::BINARY);
    let jobs = shop.spawn(["jobs", "--type", "CLASSIFY", "--json"]).wait().await.ok();
    let conflicts = crate::common::parse(&jobs)[0]["items"]["conflicts"].as_i64().unwrap();
    assert!(conflicts >= 5, "{jobs:?}");
    let met = format!("  {conflicts} came between the read and the write of its record");
    assert!(demo.stdout.contains(&met), "{met}:\n{}", demo.stdout);
    // The report comes from map, reduce and report, and its page is there under the name that is printed.
    let opened = demo.stdout.lines().find_map(|line| line.trim().strip_prefix("xdg-open "));
    let page = opened.unwrap().split_whitespace().next().unwrap();
    let page = sandbox.read(&format!("shop/{page}"));
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("branch 7"), "{page}");
    let report = sandbox.read("shop/reports/branches.csv");
    assert_eq!(report.lines().count(), 13, "a header and twelve branches: {report}");
    let settled: i64 = report
        .lines()
        .skip(1)
        .map(|row| row.split(',').nth(1).unwrap().parse::<i64>().unwrap())
        .sum();
    assert_eq!(settled, 50_000, "{report}");

    let suggested = suggestions(&demo.stdout);
    for needed in ["jobs", "chunks ", "dead list", "check", "run CLASSIFY", "run REFRESH", "worker"]
    {
        assert!(suggested.iter().any(|line| line.starts_with(needed)), "{needed}: {suggested:?}");
    }
    for command in suggested {
        let running = shop.spawn(command.split_whitespace());
        if command == "worker" {
            eventually("it works", async || running.stderr().contains("slots; stop with")).await;
            running.term();
        }
        running.wait().await.ok();
    }

    // An existing demo is not overwritten.
    let again = sandbox.run("demo --folder shop --transactions 50000").await;
    refused(&again, &["shop", "--folder"]);
}

#[tokio::test]
async fn an_interrupted_demo_names_the_command_that_continues_it() {
    let sandbox = CliSandbox::empty();
    let demo = sandbox.spawn("demo --folder shop --transactions 500000");
    let shop = Windlass::new(sandbox.path("shop")).binary(crate::common::BINARY);
    eventually("a job of the demo runs", async || {
        sandbox.path("shop/windlass.toml").exists()
            && shop.spawn(["jobs", "--json"]).wait().await.stdout.contains("PROCESSING")
    })
    .await;
    demo.term();
    let left = demo.wait().await;
    assert_eq!(left.code, Some(130), "{left:?}");
    let (_, rest) = left.stderr.split_once("`windlass ").unwrap();
    let (command, _) = rest.split_once('`').unwrap();
    let continued = shop.spawn(command.split_whitespace()).wait().await;
    assert!(continued.stdout.contains("COMPLETED"), "{continued:?}");
}

/// The numbers of "N notes written while the job ran, N still there".
fn writes(stdout: &str) -> (&str, &str) {
    let line = stdout.lines().find(|line| line.contains("written while the job ran")).unwrap();
    let (made, rest) = line.trim().split_once(" notes written while the job ran, ").unwrap();
    (made, rest.split_once(" still there").unwrap().0)
}

/// The commands after "Inspect it", without their descriptions.
fn suggestions(stdout: &str) -> Vec<String> {
    let (_, farewell) = stdout.split_once("Inspect it").unwrap();
    let commands = farewell.lines().filter_map(|line| line.trim().strip_prefix("windlass "));
    commands.map(|line| line.split("   ").next().unwrap().trim().to_owned()).collect()
}
