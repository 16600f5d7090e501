//! `windlass run TYPE --help`: the params, filters and claims of a job type.

use super::print;
use std::fmt::Write as _;
use windlass::Config;
use windlass_core::{JobType, Param};

/// Prints what a job type takes, after the help of a command that names one.
pub(super) fn print(args: &[String]) {
    let mut words = args.iter().skip_while(|word| !matches!(word.as_str(), "run" | "submit"));
    let after = words.by_ref().skip(1);
    let path = value_of(args, "--config").unwrap_or("windlass.toml");
    let Ok(config) = Config::from_path(path) else { return };
    let named = after.filter_map(|word| config.jobs.get(word)).next();
    if let Some(job_type) = named {
        println!("\n{}", describe(job_type, &config));
    }
}

/// The value of a flag, as `--flag value` or `--flag=value`.
fn value_of<'a>(args: &'a [String], flag: &str) -> Option<&'a str> {
    let mut words = args.iter();
    words.find_map(|word| match word.strip_prefix(flag)? {
        "" => args.iter().skip_while(|other| *other != word).nth(1).map(String::as_str),
        rest => rest.strip_prefix('='),
    })
}

fn describe(job_type: &JobType, config: &Config) -> String {
    let mut text = format!("Job type {}:", job_type.name);
    if !job_type.description.is_empty() {
        let _ = write!(text, " {}", job_type.description);
    }
    let mut line = |flag: String, meaning: String| {
        let _ = write!(text, "\n  {flag:<34} {meaning}");
    };
    for (name, param) in &job_type.params {
        line(format!("--param {name}=…"), meaning(param));
    }
    if job_type.params.is_empty() {
        match config.known_params(job_type) {
            Some(known) => {
                let used = job_type.used_params();
                for name in known.iter().filter(|name| used.contains_key(*name)) {
                    line(format!("--param {name}=…"), format!("used by {}", used[name]));
                }
            }
            None => line("--param NAME=…".to_owned(), "any; the handler receives them".to_owned()),
        }
    }
    for (name, column) in &job_type.source.filters {
        line(format!("--filter {name}=…"), format!("only records with these values of {column}"));
    }
    for (name, column) in &job_type.source.claims {
        line(format!("--claim {name}=…"), format!("the submitter's values of {column}"));
    }
    text
}

fn meaning(param: &Param) -> String {
    let mut text = param.kind.as_str().to_owned();
    match &param.default {
        Some(default) => _ = write!(text, ", default {}", print::scalar(default)),
        None if param.required => text.push_str(", required"),
        None => text.push_str(", optional"),
    }
    if !param.description.is_empty() {
        let _ = write!(text, ": {}", param.description);
    }
    text
}
