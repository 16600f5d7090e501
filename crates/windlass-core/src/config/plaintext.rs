//! Secrets that would be sent, and keys that would be read, without TLS.

use super::Config;
use crate::problem::{Code, Problem};
use crate::{Endpoint, JobType, StepKind};
use url::{Host, Url};

/// Whether requests to this URL can be read and changed on the network: `http://` to another machine.
pub fn is_plaintext(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "http" && !is_loopback
}

/// The problem of an endpoint whose variables are already replaced.
pub fn endpoint_problem(job_type: &JobType, endpoint: &Endpoint) -> Option<Problem> {
    let has_secrets = endpoint.forward_token || !endpoint.headers.is_empty();
    (has_secrets && !endpoint.insecure && is_plaintext(&endpoint.url)).then(|| {
        let what = "sends step.headers or the submitter's token without TLS";
        job_type.problem("step.http", detail(what, "step.insecure"))
    })
}

fn job_type_problem(job_type: &JobType) -> Option<Problem> {
    let StepKind::Http(endpoint) = &job_type.step.kind else { return None };
    let url = job_type.expand(&endpoint.url);
    endpoint_problem(job_type, &Endpoint { url, ..endpoint.clone() })
}

/// Everything that would be sent or read without TLS and is not explicitly allowed.
pub(super) fn problems(config: &Config) -> Vec<Problem> {
    let mut problems: Vec<Problem> = config.jobs.values().filter_map(job_type_problem).collect();
    let jwks =
        config.auth.as_ref().filter(|auth| !auth.insecure).and_then(|auth| auth.jwks.as_ref());
    if jwks.is_some_and(|url| is_plaintext(url)) {
        let what = "reads the keys that tokens are verified with without TLS";
        let detail = detail(what, "auth.insecure");
        problems.push(Problem::field(Code::Configuration, "auth.jwks", detail));
    }
    let alerts = &config.alerts;
    let webhook = alerts.webhook.as_ref().filter(|_| !alerts.insecure);
    if webhook.is_some_and(|webhook| is_plaintext(webhook.url())) {
        let detail = detail("posts alerts without TLS", "alerts.insecure");
        let problem = Problem::field(Code::Configuration, "alerts.webhook", detail);
        problems.push(problem.at_line(alerts.line));
    }
    problems
}

fn detail(what: &str, allow: &str) -> String {
    format!(
        "{what}: everyone on the network path could read or change it. Use `https://…`, or allow it with \
         `{allow} = true`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_needs_no_tls() {
        for url in [
            "https://a.example/",
            "http://localhost/",
            "http://LOCALHOST:80/a",
            "http://127.0.0.1:8080/",
            "http://127.8.9.1/",
            "http://[::1]:80/",
            "keys.json",
            "/etc/keys.json",
        ] {
            assert!(!is_plaintext(url), "{url}");
        }
        for url in [
            "http://a.example/",
            "HTTP://A.example/",
            "http://10.0.0.1/",
            "http://0.0.0.0/",
            "http://[::]/",
            "http://[::ffff:10.0.0.1]/",
            "http://localhost.evil.example/",
            "http://127.0.0.1.evil.example/",
            "http://localhost@evil.example/",
            "http://evil.example#@localhost/",
            "http:evil.example",
        ] {
            assert!(is_plaintext(url), "{url}");
        }
    }

    fn refusals(text: &str) -> String {
        let config = Config::parse(text, |_| Some("hush".into())).unwrap();
        config.problems().iter().map(|problem| problem.to_string() + "\n").collect()
    }

    #[test]
    fn each_secret_is_refused_unless_it_is_allowed() {
        let job = "[connections.app]\nurl = \"sqlite:a\"\n[jobs.A]\nsource.connection = \"app\"\n\
                   source.table = \"t\"\nstep.version = \"v\"\nstep.http = \"http://a.example/\"\n";
        let secret = "secret = \"0123456789abcdef01234567\"\n";
        let roles = "[auth.roles]\na = { may = [] }\n";
        for (before, field, after) in [
            (format!("{job}step.headers = {{ X-Api-Key = \"${{K}}\" }}\n"), "jobs.A.step.http", ""),
            (format!("{job}step.forward_token = true\n"), "jobs.A.step.http", ""),
            (format!("[alerts]\nwebhook = \"http://a.example/\"\n{secret}"), "alerts.webhook", ""),
            ("[auth]\njwks = \"http://a.example/\"\n".to_owned(), "auth.jwks", roles),
        ] {
            let message = refusals(&format!("{before}{after}"));
            assert!(message.contains(field) && message.contains("`https://…`"), "{message}");
            let insecure = if field.starts_with("jobs") { "step.insecure" } else { "insecure" };
            assert!(message.contains(&format!("{insecure} = true")), "{message}");
            assert!(!message.contains("hush") && !message.contains("01234"), "{message}");
            assert_eq!(refusals(&format!("{before}{insecure} = true\n{after}")), "");
            let tls = before.replace("http://", "https://");
            assert_eq!(refusals(&format!("{tls}{after}")), "");
            let local = before.replace("a.example", "127.0.0.1:8080");
            assert_eq!(refusals(&format!("{local}{after}")), "");
        }
        assert_eq!(refusals(job), "", "without a secret");
        let named = job.replace("http://a.example/", "${URL}") + "step.forward_token = true\n";
        let config = Config::parse(&named, |_| Some("http://a.example/".into())).unwrap();
        assert_eq!(config.problems().len(), 1, "the URL is a variable's value");
    }
}
