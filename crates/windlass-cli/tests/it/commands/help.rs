//! Help, wrong usage, finding the configuration, and no colours in files and pipes.

use crate::common::{CliSandbox, Data, raise, refused, said};

/// The commands that `--help` lists, including subcommands such as `dead list`.
async fn commands(sandbox: &CliSandbox) -> Vec<String> {
    let (mut all, mut groups) = (Vec::new(), vec![String::new()]);
    while let Some(group) = groups.pop() {
        let help = sandbox.run(&format!("{group} --help")).await.ok().stdout;
        let Some((_, listed)) = help.split_once("\nCommands:\n") else { continue };
        let lines = listed.lines().take_while(|line| line.starts_with("  "));
        // The second line of a long description is indented further.
        let names = lines.filter(|line| !line.starts_with("   "));
        for name in names.filter_map(|line| line.split_whitespace().next()) {
            if name != "help" {
                let command = format!("{group} {name}").trim().to_owned();
                groups.push(command.clone());
                all.push(command);
            }
        }
    }
    assert!(all.iter().any(|command| command == "dead list") && all.len() > 30, "{all:?}");
    all
}

#[tokio::test]
async fn every_command_has_help_with_an_example() {
    let sandbox = CliSandbox::empty();
    for command in commands(&sandbox).await {
        let help = sandbox.run(&format!("{command} --help")).await.ok();
        assert!(help.stdout.contains(&format!("Usage: windlass {command}")), "{}", help.stdout);
        assert!(help.stdout.contains("--config"), "{command}: {}", help.stdout);
        assert!(help.stderr.is_empty(), "{command}: {}", help.stderr);
    }
    for command in ["", "init", "run", "submit", "worker", "jobs", "job"] {
        let help = sandbox.run(&format!("{command} --help")).await.ok();
        assert!(help.stdout.contains("Example"), "{command}: {}", help.stdout);
        assert!(help.stdout.contains("  windlass "), "{command}: {}", help.stdout);
    }
    let help = sandbox.run("--help").await.ok();
    assert!(
        help.stdout.contains("Exit codes: 0 every item processed or skipped, 1 failed"),
        "{}",
        help.stdout
    );
    sandbox.run("--version").await.ok();
}

/// Commands without `--json`: long-running programs, files, switches, and groups of commands.
const WITHOUT_JSON: [&str; 11] = [
    "dead",
    "dead export",
    "demo",
    "init",
    "migrate",
    "schedules pause",
    "schedules resume",
    "serve",
    "start",
    "stop",
    "token",
];

#[tokio::test]
async fn every_command_with_a_result_takes_json() {
    let sandbox = CliSandbox::empty();
    for command in commands(&sandbox).await {
        let help = sandbox.run(&format!("{command} --help")).await.ok();
        let takes = help.stdout.contains("--json");
        let expected = !WITHOUT_JSON.contains(&command.as_str());
        assert_eq!(takes, expected, "{command}: {}", help.stdout);
    }
}

#[tokio::test]
async fn wrong_usage_is_exit_code_two() {
    let sandbox = CliSandbox::empty();
    refused(&sandbox.run("").await, &["Usage: windlass"]);
    refused(&sandbox.run("juggle").await, &["juggle"]);
    refused(&sandbox.run("job not-an-id").await, &["not-an-id"]);
    refused(&sandbox.run("run").await, &["<TYPE>"]);
    refused(&sandbox.run("run RAISE --concurrency 0").await, &["--concurrency"]);
    refused(&sandbox.run("jobs --status DONE").await, &["DONE", "COMPLETED"]);
    refused(&sandbox.run("demo --transactions 3").await, &["--transactions"]);
}

#[tokio::test]
async fn a_missing_configuration_is_reported_with_how_to_create_one() {
    let sandbox = CliSandbox::empty();
    for command in ["check", "jobs", "run RAISE", "worker", "migrate"] {
        refused(&sandbox.run(command).await, &["windlass.toml", "windlass init"]);
    }
    refused(&sandbox.run("jobs --config other.toml").await, &["other.toml"]);
}

#[tokio::test]
async fn the_option_config_may_be_before_or_after_the_command() {
    let data = Data::sqlite().with_accounts(10).await;
    let sandbox = CliSandbox::empty();
    sandbox.write("other.toml", &data.config(&raise(5)));
    sandbox.run("--config other.toml check").await.ok();
    sandbox.run("check --config other.toml").await.ok();
    sandbox.run("dead list --config other.toml").await.ok();
    sandbox.run("dead --config other.toml list").await.ok();
    sandbox.run("run RAISE --config other.toml").await.ok();
    data.raised_once(10).await;
}

#[tokio::test]
async fn there_are_no_colours_without_a_terminal() {
    let data = Data::sqlite().with_accounts(10).await;
    let sandbox = CliSandbox::on(&data, &raise(5));
    let ran = sandbox.run("run RAISE").await.ok();
    let id = sandbox.submit("RAISE").await;
    let mut all = said(&ran);
    for command in ["check", "jobs", "job ID", "chunks ID", "pause ID", "watch ID", "cancel ID"] {
        all += &said(&sandbox.run(&command.replace("ID", &id)).await);
    }
    for command in ["audit ID", "dead list", "resume ID", "run NOTHING", "--help", "run --wrong"] {
        all += &said(&sandbox.run(&command.replace("ID", &id)).await);
    }
    assert!(!all.contains('\u{1b}'), "{all:?}");
}
