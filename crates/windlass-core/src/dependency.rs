//! Dependencies: which job types run after which, and when all parents have ended.

use crate::problem::{Code, Problem};
use crate::{Claims, JobId, JobStatus, JobType, Request, config};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// One rule of `[[dependencies]]`: the job that is submitted when its parents have ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Dependency {
    /// The line of the file it begins at; 0 if it was defined in code.
    #[serde(skip)]
    pub line: usize,
    /// The job type that is submitted.
    pub job: String,
    /// Its parents; all of them must have ended.
    pub after: Vec<String>,
    /// Params that must be equal in all parents.
    #[serde(default, rename = "match")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub matched: Vec<String>,
    /// What happens when a parent failed or was cancelled.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub on_failed: OnFailed,
}

/// What happens to a job when a parent failed or was cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnFailed {
    /// It keeps waiting: the parent may be retried.
    #[default]
    Block,
    /// It runs anyway.
    Run,
    /// It is cancelled.
    Cancel,
}

impl OnFailed {
    /// Its name in requests and rows.
    pub fn as_str(self) -> &'static str {
        match self {
            OnFailed::Block => "block",
            OnFailed::Run => "run",
            OnFailed::Cancel => "cancel",
        }
    }

    /// The consequence of a parent in this status.
    pub fn judge(self, parent: JobStatus) -> Verdict {
        match (parent, self) {
            (JobStatus::Completed, _) => Verdict::Go,
            (JobStatus::Failed | JobStatus::Cancelled, OnFailed::Run) => Verdict::Go,
            (JobStatus::Failed | JobStatus::Cancelled, OnFailed::Cancel) => Verdict::Cancel,
            _ => Verdict::Wait,
        }
    }
}

/// The consequence of a parent's status for a job that depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does not wait for this parent any longer.
    Go,
    /// It waits.
    Wait,
    /// It will never run.
    Cancel,
}

/// A parent that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct JoinArrival {
    /// The job.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub job: JobId,
    /// How it ended.
    pub status: JobStatus,
    /// Its params.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub params: BTreeMap<String, Json>,
    /// Its priority.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9))]
    pub priority: u8,
}

/// The parents that have ended since a rule last fired for some values, by job type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JoinPoint {
    arrived: BTreeMap<String, JoinArrival>,
}

impl JoinPoint {
    /// Records a parent that has ended. Of several jobs of one type the last counts.
    pub fn arrive(&mut self, job_type: &str, arrival: JoinArrival) {
        self.arrived.insert(job_type.to_owned(), arrival);
    }

    /// The request that a rule makes when all its parents have ended; none while one is missing or blocks
    /// because it failed.
    pub fn fire(&self, rule: &Dependency) -> Option<Request> {
        let parents = rule.after.iter().map(|job_type| self.arrived.get(job_type));
        let parents = parents.collect::<Option<Vec<_>>>()?;
        if parents.iter().any(|parent| rule.on_failed.judge(parent.status) == Verdict::Wait) {
            return None;
        }
        Some(Request {
            params: agreed(&parents),
            priority: parents.iter().map(|parent| parent.priority).max(),
            after: Some(parents.iter().map(|parent| parent.job).collect()),
            on_failed: (rule.on_failed != OnFailed::Block).then_some(rule.on_failed),
            ..Request::new(&rule.job)
        })
    }

    /// The parents that have ended, by job type.
    pub fn arrived(&self) -> &BTreeMap<String, JoinArrival> {
        &self.arrived
    }
}

/// The params whose values do not differ between parents.
fn agreed(parents: &[&JoinArrival]) -> BTreeMap<String, Json> {
    let all = parents.iter().flat_map(|parent| &parent.params);
    let same = |name: &str, value: &Json| {
        parents.iter().all(|parent| parent.params.get(name).is_none_or(|other| other == value))
    };
    all.filter(|(name, value)| same(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

impl Dependency {
    /// The values that must be equal in all parents of one firing: the params in `match`, and the
    /// submitters' claims. A missing param is null.
    pub fn values(&self, params: &BTreeMap<String, Json>, claims: &Claims) -> Json {
        let value = |name: &String| params.get(name).cloned().unwrap_or_default();
        let matched: BTreeMap<_, _> = self.matched.iter().map(|name| (name, value(name))).collect();
        // A claim with several values means any of them, in any order.
        let any = |values: &Vec<crate::Value>| {
            values
                .iter()
                .map(crate::Value::to_json)
                .map(|value| (value.to_string(), value))
                .collect::<BTreeMap<_, _>>()
                .into_values()
                .collect::<Vec<_>>()
        };
        let claims: BTreeMap<_, _> =
            claims.iter().map(|(name, values)| (name, any(values))).collect();
        serde_json::json!({ "match": matched, "claims": claims })
    }

    /// All problems of the rules of a file.
    pub fn problems(rules: &[Dependency], jobs: &BTreeMap<String, JobType>) -> Vec<Problem> {
        let mut problems = Vec::new();
        for rule in rules {
            let mut refuse = |field: &str, detail: String| {
                let problem =
                    Problem::field(Code::Configuration, format!("dependencies.{field}"), detail);
                problems.push(problem.at_line(rule.line));
            };
            let named = rule.after.iter().map(|name| ("after", name)).chain([("job", &rule.job)]);
            for (field, name) in named.filter(|(_, name)| !jobs.contains_key(*name)) {
                let known = config::names(jobs.keys());
                refuse(field, format!("unknown job type `{name}`; known job types are {known}"));
            }
            if rule.after.is_empty() {
                refuse("after", "is empty; name at least one parent job type".into());
            }
            let mut seen = BTreeSet::new();
            if let Some(twice) = rule.after.iter().find(|name| !seen.insert(*name)) {
                refuse("after", format!("names `{twice}` twice"));
            }
            if let Some(path) = cycle(rules, rule) {
                refuse("after", format!("is a cycle: {}", path.join(" → ")));
            }
        }
        problems
    }
}

/// The path from a rule's job back to itself, if there is one.
fn cycle(rules: &[Dependency], from: &Dependency) -> Option<Vec<String>> {
    let mut paths = vec![vec![from.job.clone()]];
    let mut seen = BTreeSet::new();
    while let Some(path) = paths.pop() {
        let last = path.last()?;
        for rule in rules.iter().filter(|rule| rule.after.contains(last)) {
            let longer = [path.as_slice(), std::slice::from_ref(&rule.job)].concat();
            if rule.job == from.job {
                return Some(longer);
            }
            if seen.insert(&rule.job) {
                paths.push(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(job: &str, after: &[&str], on_failed: OnFailed) -> Dependency {
        let after = after.iter().map(|name| (*name).to_owned()).collect();
        Dependency { line: 1, job: job.into(), after, matched: vec!["month".into()], on_failed }
    }

    fn arrival(status: JobStatus, params: Json) -> JoinArrival {
        let params = serde_json::from_value(params).unwrap();
        JoinArrival { job: JobId::now_v7(), status, params, priority: 5 }
    }

    #[test]
    fn fires_when_the_last_parent_is_here() {
        let rule = rule("SUMMARY", &["A", "B"], OnFailed::Block);
        let mut join_point = JoinPoint::default();
        let done = |params| arrival(JobStatus::Completed, params);
        join_point.arrive("A", done(json!({"month": "1", "a": 1, "x": 1})));
        assert_eq!(join_point.fire(&rule), None);
        join_point.arrive("B", done(json!({"month": "1", "b": 2, "x": 2})));
        let request = join_point.fire(&rule).unwrap();
        assert_eq!(json!(request.params), json!({"month": "1", "a": 1, "b": 2}));
        assert_eq!(request.after.unwrap().len(), 2);
    }

    #[test]
    fn a_parent_that_failed_does_what_the_rule_says() {
        for (on_failed, fires) in
            [(OnFailed::Block, false), (OnFailed::Run, true), (OnFailed::Cancel, true)]
        {
            for status in [JobStatus::Failed, JobStatus::Cancelled] {
                let rule = rule("C", &["P"], on_failed);
                let mut join_point = JoinPoint::default();
                join_point.arrive("P", arrival(status, json!({})));
                assert_eq!(join_point.fire(&rule).is_some(), fires, "{on_failed:?} {status}");
                join_point.arrive("P", arrival(JobStatus::Completed, json!({})));
                assert!(join_point.fire(&rule).is_some());
            }
        }
    }

    #[test]
    fn values_are_those_of_the_matched_params_and_the_claims() {
        let rule = rule("C", &["P"], OnFailed::Block);
        let params = |text: Json| serde_json::from_value(text).unwrap();
        let (none, north) =
            (Claims::new(), Claims::from([("county".to_owned(), vec!["north".into()])]));
        let january = rule.values(&params(json!({"month": 1, "other": 2})), &none);
        assert_eq!(january, rule.values(&params(json!({"month": 1})), &none));
        assert_ne!(january, rule.values(&params(json!({"month": 2})), &none));
        assert_ne!(january, rule.values(&params(json!({"month": 1})), &north));
        let counties = |names: [&str; 2]| {
            let values = names.map(Into::into).to_vec();
            rule.values(&params(json!({})), &Claims::from([("county".to_owned(), values)]))
        };
        assert_eq!(counties(["north", "south"]), counties(["south", "north"]));
        assert_ne!(counties(["north", "south"]), counties(["north", "west"]));
        let missing = rule.values(&params(json!({})), &none);
        assert_eq!(missing, rule.values(&params(json!({"month": null})), &none));
    }

    #[test]
    fn cycles_are_found_and_shown() {
        let rules = [
            rule("B", &["A"], OnFailed::Block),
            rule("C", &["B", "X"], OnFailed::Block),
            rule("A", &["C"], OnFailed::Block),
        ];
        assert_eq!(cycle(&rules, &rules[0]).unwrap(), ["B", "C", "A", "B"]);
        assert_eq!(cycle(&rules[..2], &rules[0]), None);
        let own = [rule("A", &["A"], OnFailed::Block)];
        assert_eq!(cycle(&own, &own[0]).unwrap(), ["A", "A"]);
    }
}
