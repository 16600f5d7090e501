//! The params of a job type: their declaration, the places that use them, and the job's date.

use crate::problem::{Code, Problem};
use crate::{Config, JobId, JobType, Request, StepKind, Template};
use chrono::{DateTime, NaiveDate};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// The param that is the job's date: what `{date}` stands for, everywhere in the job.
pub const DATE: &str = "date";

/// `params = { factor = { type = "number", default = 1.0 } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Param {
    /// The type of its values.
    #[serde(rename = "type", default)]
    pub kind: ParamType,
    /// The value of a request that has none. In a text, `{date}` is the job's date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Json>,
    /// Whether a request without a value is refused, if there is no default.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub required: bool,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl Param {
    /// A param of this type, which every request must have.
    ///
    /// ```
    /// use windlass_core::{Param, ParamType};
    ///
    /// let factor = Param::new(ParamType::Number).with_default(1.0);
    /// assert_eq!(factor.default.unwrap(), 1.0);
    /// ```
    pub fn new(kind: ParamType) -> Param {
        Param { kind, default: None, required: true, description: String::new() }
    }

    /// Gives it a value for requests that have none.
    pub fn with_default(self, value: impl Into<Json>) -> Param {
        Param { default: Some(value.into()), ..self }
    }
}

fn yes() -> bool {
    true
}

fn is_true(flag: &bool) -> bool {
    *flag
}

/// The type of a param.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamType {
    /// Any text.
    #[default]
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A day as `YYYY-MM-DD`.
    Date,
    /// Any JSON value, for handlers.
    Json,
}

impl ParamType {
    /// Its name in windlass.toml.
    pub fn as_str(self) -> &'static str {
        match self {
            ParamType::Text => "text",
            ParamType::Integer => "integer",
            ParamType::Number => "number",
            ParamType::Boolean => "boolean",
            ParamType::Date => "date",
            ParamType::Json => "json",
        }
    }

    /// Reads a value. A text that reads as a value of the type is one, because command lines and forms
    /// have only text.
    ///
    /// # Errors
    /// It is not a value of this type.
    pub fn read(self, value: &Json) -> Result<Json, String> {
        let parsed = |text: &str| serde_json::from_str(text.trim()).ok();
        let typed = match (self, value) {
            (ParamType::Json, value) => Some(value.clone()),
            (ParamType::Text, Json::Number(_) | Json::Bool(_)) => Some(value.to_string().into()),
            (ParamType::Text, Json::String(_)) => Some(value.clone()),
            (ParamType::Date, Json::String(text)) => day(text).map(|day| day.to_string().into()),
            (ParamType::Integer | ParamType::Number | ParamType::Boolean, Json::String(text)) => {
                parsed(text)
            }
            (_, value) => Some(value.clone()),
        };
        typed.filter(|typed| self.holds(typed)).ok_or_else(|| match self {
            ParamType::Date => format!("must be a date such as 2026-01-31, got {value}"),
            _ => format!("must be of type `{}`, got {value}", self.as_str()),
        })
    }

    fn holds(self, value: &Json) -> bool {
        match self {
            ParamType::Text | ParamType::Date => value.is_string(),
            ParamType::Integer => value.is_i64() || value.is_u64(),
            ParamType::Number => value.is_number(),
            ParamType::Boolean => value.is_boolean(),
            ParamType::Json => true,
        }
    }
}

fn day(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text.trim(), "%Y-%m-%d").ok()
}

impl JobType {
    /// The time zone of the job's date: `timezone`, or else the schedule's, or else UTC.
    pub fn date_zone(&self) -> Tz {
        let of_schedule = || self.schedule.as_ref().map(|schedule| schedule.timezone);
        self.timezone.or_else(of_schedule).unwrap_or(Tz::UTC)
    }

    /// The job's date: the param `date`, which a schedule sets to the date of the firing, or else the day of
    /// the submit, which is part of its id.
    pub fn date_of(&self, params: &BTreeMap<String, Json>, id: JobId) -> NaiveDate {
        let given = params.get(DATE).and_then(Json::as_str).and_then(day);
        let submitted = id.get_timestamp().map_or(0, |time| time.to_unix().0);
        let submitted = DateTime::from_timestamp(submitted as i64, 0).unwrap_or_default();
        given.unwrap_or_else(|| submitted.with_timezone(&self.date_zone()).date_naive())
    }

    /// The params that the definition uses, each with the field that uses it.
    pub fn used_params(&self) -> BTreeMap<String, &'static str> {
        let mut used = BTreeMap::new();
        let mut add = |name: &str, field| {
            used.entry(name.to_owned()).or_insert(field);
        };
        if let (StepKind::Sql(sql) | StepKind::Map(sql), field) =
            (&self.step.kind, self.step.kind.field())
        {
            let template = Template::parse(sql);
            template.iter().flat_map(Template::params).for_each(|name| add(name, field));
        }
        let reduction = self.reduce.as_deref().map(Template::parse);
        let reduction = reduction.iter().flatten();
        reduction.flat_map(Template::params).for_each(|name| add(name, "reduce"));
        let report = self.report.as_ref().map(|report| ("report.to", &report.to));
        let export = match &self.step.kind {
            StepKind::Export(export) => Some(("step.export.to", &export.to)),
            _ => None,
        };
        for (field, to) in report.into_iter().chain(export) {
            path_params(to).for_each(|name| add(name, field));
        }
        let replaced = self.load.iter().flat_map(|load| &load.replace);
        replaced.filter(|name| self.lacks_column(name)).for_each(|name| add(name, "load.replace"));
        used
    }

    /// Whether the result visibly has no such column, so that the param of the same name is meant.
    fn lacks_column(&self, name: &str) -> bool {
        let select = match (&self.reduce, &self.step.kind) {
            (Some(reduce), _) => reduce,
            (None, StepKind::Map(map)) => map,
            _ => return false,
        };
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let mut words = select.split(|c| !is_part(c));
        let all = select.replace("(*)", "").contains('*');
        !all && !words.any(|word| word.eq_ignore_ascii_case(name))
    }

    /// Whether `{date}` or the param `date` has a meaning in the definition.
    pub fn uses_date(&self) -> bool {
        self.params.contains_key(DATE) || self.used_params().contains_key(DATE)
    }

    /// All problems of the declared params, and of a schedule that does not give them.
    pub(crate) fn param_problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        for (name, param) in &self.params {
            let field = format!("params.{name}");
            if let Some(Err(detail)) = param.default.as_ref().map(|default| match default {
                Json::String(text) if text.contains("{date}") => Ok(Json::Null),
                default => param.kind.read(default),
            }) {
                problems.push((format!("{field}.default"), detail));
            }
            if name == DATE && param.kind != ParamType::Date {
                let detail =
                    "is the job's date, which `{date}` stands for; its type must be `date`";
                problems.push((field, detail.to_owned()));
            }
        }
        if !self.params.is_empty() {
            let given = self.schedule.iter().flat_map(|schedule| schedule.params.keys());
            let given = given.map(|name| (name.clone(), "schedule.params"));
            let undeclared = self.used_params().into_iter().chain(given);
            for (name, field) in undeclared.filter(|(name, _)| !self.declares(name)) {
                let detail = format!(
                    "is used by {field} and not declared; add `params.{name} = {{ type = \"text\" }}`"
                );
                problems.push((format!("params.{name}"), detail));
            }
        }
        if let Some(schedule) = &self.schedule {
            for (name, why) in self.required_params() {
                if !schedule.params.contains_key(&name) {
                    let detail = format!("lacks `{name}`; {why}, and a firing has no other value");
                    problems.push(("schedule.params".to_owned(), detail));
                }
            }
        }
        problems
    }

    fn declares(&self, name: &str) -> bool {
        name == DATE || self.params.contains_key(name)
    }

    /// The params without which a request is refused, each with the reason.
    fn required_params(&self) -> BTreeMap<String, String> {
        let mut required = BTreeMap::new();
        for (name, field) in self.used_params() {
            let of_step = matches!(field, "step.sql" | "step.map");
            let user = if of_step { "the step" } else { field };
            required.insert(name, format!("{user} uses it"));
        }
        for (name, param) in &self.params {
            if param.default.is_some() || !param.required {
                required.remove(name);
            } else {
                let declared = || format!("`{}` declares it without a default", self.name);
                required.entry(name.clone()).or_insert_with(declared);
            }
        }
        required.remove(DATE);
        required
    }
}

/// The params in a path template.
fn path_params(path: &str) -> impl Iterator<Item = &str> {
    let names = path.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    names.filter(|name| !matches!(*name, "job_id" | "job_type") && !name.starts_with("claim:"))
}

impl Config {
    /// The params that a request for this job type may have; none if any, because its handler receives
    /// them and none is declared. A job type also takes the params that its dependents use.
    pub fn known_params(&self, job_type: &JobType) -> Option<BTreeSet<String>> {
        let mut known = BTreeSet::from([DATE.to_owned()]);
        let (mut seen, mut next) = (BTreeSet::new(), vec![job_type]);
        while let Some(job_type) = next.pop() {
            if !seen.insert(&job_type.name) {
                continue;
            }
            known.extend(job_type.params.keys().cloned());
            if !job_type.params.is_empty() {
                continue;
            }
            if job_type.step.kind.is_handler() {
                return None;
            }
            known.extend(job_type.used_params().into_keys());
            let replaced = job_type.load.iter().flat_map(|load| &load.replace);
            known.extend(replaced.chain(&job_type.source.unit).cloned());
            let scheduled = job_type.schedule.iter().flat_map(|schedule| schedule.params.keys());
            known.extend(scheduled.cloned());
            for rule in &self.dependencies {
                let is_parent = rule.after.contains(&job_type.name);
                if is_parent || rule.job == job_type.name {
                    known.extend(rule.matched.iter().cloned());
                }
                next.extend(self.jobs.get(&rule.job).filter(|_| is_parent));
            }
        }
        Some(known)
    }
}

impl Request {
    /// Refuses params that are missing or have the wrong type.
    ///
    /// # Errors
    /// The first param that is wrong.
    pub fn check_params(&self, job_type: &JobType) -> Result<(), Problem> {
        let refuse = |name: &str, detail: String| {
            Err(Problem::field(Code::Request, format!("params.{name}"), detail))
        };
        for (name, why) in job_type.required_params() {
            if !self.params.contains_key(&name) {
                return refuse(&name, format!("is missing; {why}"));
            }
        }
        for (name, param) in &job_type.params {
            let value = self.params.get(name).filter(|value| !value.is_null() || param.required);
            if let Some(Err(detail)) = value.map(|value| param.kind.read(value)) {
                return refuse(name, detail);
            }
        }
        let used = job_type.used_params();
        for name in used.keys() {
            if let Some(Json::Array(_) | Json::Object(_)) = self.params.get(name) {
                return refuse(name, "must be a single value".to_owned());
            }
        }
        match self.params.get(DATE) {
            Some(given) if used.contains_key(DATE) => {
                ParamType::Date.read(given).map(drop).or_else(|detail| refuse(DATE, detail))
            }
            _ => Ok(()),
        }
    }

    /// Refuses params that the job type does not know.
    ///
    /// # Errors
    /// The first unknown param.
    pub fn check_known_params(&self, config: &Config, job_type: &JobType) -> Result<(), Problem> {
        let Some(known) = config.known_params(job_type) else { return Ok(()) };
        let Some(unknown) = self.params.keys().find(|name| !known.contains(*name)) else {
            return Ok(());
        };
        let known = crate::config::names(known.iter());
        let detail = format!("`{}` has no such param; known params are {known}", job_type.name);
        Err(Problem::field(Code::Request, format!("params.{unknown}"), detail))
    }

    /// Completes the params of a job: declared types, defaults, and the job's date where the definition
    /// uses it.
    pub fn resolve(mut self, job_type: &JobType, id: JobId) -> Request {
        let date = job_type.date_of(&self.params, id).to_string();
        for (name, param) in &job_type.params {
            let default = || match param.default.clone()? {
                Json::String(text) => Some(text.replace("{date}", &date).into()),
                other => Some(other),
            };
            let value = self.params.get(name).cloned().or_else(default);
            let typed = value.map(|value| param.kind.read(&value).unwrap_or(value));
            self.params.extend(typed.map(|value| (name.clone(), value)));
        }
        if job_type.uses_date() {
            self.params.entry(DATE.to_owned()).or_insert_with(|| date.into());
        }
        self
    }
}

#[cfg(test)]
mod tests;
