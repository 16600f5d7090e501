//! The request: what the command line, the API, schedules, dependencies and the outbox submit.

use crate::problem::{Code, Problem};
use crate::{ColumnType, Identity, JobId, JobType, OnFailed, Table, claims, config, inline_items};
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A request for one job. Only `jobType` is required.
///
/// ```
/// use windlass_core::Request;
///
/// let request = Request::new("REPORT").with_param("month", "2025-01").with_priority(8);
/// assert_eq!(request.job_type, "REPORT");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// The job type.
    pub job_type: String,
    /// Values by filter; missing, null and empty lists mean all. At most 10,000 values per filter, each of
    /// at most 4096 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<BTreeMap<String, Option<Vec<Json>>>>,
    /// The number of segments planned in parallel; chosen by the size of the table by default.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
    pub parallel_segments: Option<u32>,
    /// A segment stops after this many items.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub max_items_per_segment: Option<u64>,
    /// Values for `:name` in statements, and for handlers. At most 100, each of at most 65,536 bytes as
    /// JSON; a name has at most 200 bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Json>,
    /// 0 to 9; higher runs first; 5 when absent. The highest priority that a caller may request is the
    /// `max_priority` of their roles: by default 7, or 9 for roles that may administer.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9))]
    pub priority: Option<u8>,
    /// Submitting the same request with the same key again returns the existing job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 255))]
    pub idempotency_key: Option<String>,
    /// Run after these jobs have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000, value_type = Option<Vec<Uuid>>))]
    pub after: Option<Vec<JobId>>,
    /// What happens if one of them failed or was cancelled; `block` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failed: Option<OnFailed>,
    /// Only these keys, each of at most 4096 bytes; a key of several columns is a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 500000))]
    pub ids: Option<Vec<Json>>,
    /// The records, for job types with `source.items`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub items: Option<Vec<Json>>,
}

/// The most bytes of a param as JSON.
pub const MAX_PARAM_BYTES: usize = 64 << 10;
/// The most params of a request.
pub const MAX_PARAMS: usize = 100;
/// The most bytes of the name of a param or filter.
pub const MAX_NAME_BYTES: usize = 200;
/// The most values of one filter.
pub const MAX_FILTER_VALUES: usize = 10_000;
/// The most keys in `ids`.
pub const MAX_IDS: usize = 500_000;
/// The most bytes of a filter's value, or of a key in `ids`, as JSON.
pub const MAX_VALUE_BYTES: usize = 4 << 10;
/// The most bytes of an idempotency key.
pub const MAX_IDEMPOTENCY_KEY_BYTES: usize = 255;
/// The most bytes of a submitter's name.
pub const MAX_SUBMITTER_BYTES: usize = 255;
/// Submitters that Windlass uses itself: a schedule, an outbox, a dependency, this machine. No token may
/// have these names.
pub const RESERVED_SUBMITTERS: [&str; 4] = ["schedule", "outbox", "rule", "local"];
/// The most bytes of a value that listings show.
const LISTED_VALUE_BYTES: usize = 256;
/// The most entries of a list that listings show.
const LISTED_ENTRIES: usize = 20;

/// The default number of segments.
pub const DEFAULT_SEGMENTS: u32 = 10;
/// The most segments of a request.
pub const MAX_SEGMENTS: u32 = 1000;
/// The most parents of a request.
pub const MAX_PARENTS: usize = 1000;
/// The default priority.
pub const DEFAULT_PRIORITY: u8 = 5;

impl Request {
    /// The most bytes of a request as JSON: it is stored with its job, and read as a whole.
    pub const MAX_BYTES: usize = 8 << 20;

    /// A request for the whole source of a job type.
    pub fn new(job_type: impl Into<String>) -> Request {
        Request { job_type: job_type.into(), ..Request::default() }
    }

    /// Adds a param.
    ///
    /// ```
    /// use windlass_core::Request;
    ///
    /// let request = Request::new("REPORT")
    ///     .with_param("month", "2025-01")
    ///     .with_filter("region", ["north", "south"])
    ///     .with_priority(8);
    /// assert_eq!(request.params["month"], "2025-01");
    /// ```
    pub fn with_param(mut self, name: impl Into<String>, value: impl Into<Json>) -> Request {
        self.params.insert(name.into(), value.into());
        self
    }

    /// Restricts the request to records with one of these values.
    pub fn with_filter<V: Into<Json>>(
        mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Request {
        let values = values.into_iter().map(Into::into).collect();
        self.filter.get_or_insert_default().insert(name.into(), Some(values));
        self
    }

    /// Restricts the request to these keys; a key of several columns is a list.
    pub fn with_ids<V: Into<Json>>(mut self, ids: impl IntoIterator<Item = V>) -> Request {
        self.ids = Some(ids.into_iter().map(Into::into).collect());
        self
    }

    /// Carries the records in the request, for job types with `source.items`.
    pub fn with_items<V: Into<Json>>(mut self, items: impl IntoIterator<Item = V>) -> Request {
        self.items = Some(items.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the priority, 0 to 9; higher runs first.
    pub fn with_priority(self, priority: u8) -> Request {
        Request { priority: Some(priority), ..self }
    }

    /// Makes the submission idempotent: the same request under the same key is the same job.
    pub fn with_idempotency_key(self, key: impl Into<String>) -> Request {
        Request { idempotency_key: Some(key.into()), ..self }
    }

    /// Runs the job after these jobs have ended.
    pub fn with_parents(self, parents: impl IntoIterator<Item = JobId>) -> Request {
        Request { after: Some(parents.into_iter().collect()), ..self }
    }

    /// The filters with at least one value.
    pub fn filters(&self) -> impl Iterator<Item = (&str, &[Json])> {
        let all = self.filter.iter().flatten();
        all.filter_map(|(name, values)| match values.as_deref() {
            Some(values) if !values.is_empty() => Some((name.as_str(), values)),
            _ => None,
        })
    }

    /// The priority, with its default.
    pub fn priority(&self) -> u8 {
        self.priority.unwrap_or(DEFAULT_PRIORITY)
    }

    /// The jobs it runs after, without duplicates.
    pub fn parents(&self) -> Vec<JobId> {
        let mut parents = self.after.clone().unwrap_or_default();
        parents.sort();
        parents.dedup();
        parents
    }

    /// Refuses a request with more in it than is allowed, before anything is looked up.
    ///
    /// # Errors
    /// The first field that has too many entries or too many bytes.
    pub fn check_limits(&self) -> Result<(), Problem> {
        let refuse = |field: String, got: usize, most: usize, unit: &str| {
            let detail = format!("has {got} {unit}; at most {most}");
            Err(Problem::field(Code::Request, field, detail))
        };
        let named = |of: &str, name: &str| {
            // A name that is too long is not repeated.
            match name.len() {
                0..=MAX_NAME_BYTES => Ok(format!("{of}.{name}")),
                bytes => refuse(of.to_owned(), bytes, MAX_NAME_BYTES, "bytes in a name")
                    .map(|()| String::new()),
            }
        };
        let after = self.after.as_ref().map_or(0, Vec::len);
        if after > MAX_PARENTS {
            return refuse("after".to_owned(), after, MAX_PARENTS, "jobs");
        }
        if let Some(key) = &self.idempotency_key
            && key.len() > MAX_IDEMPOTENCY_KEY_BYTES
        {
            let most = MAX_IDEMPOTENCY_KEY_BYTES;
            return refuse("idempotencyKey".to_owned(), key.len(), most, "bytes");
        }
        if self.params.len() > MAX_PARAMS {
            return refuse("params".to_owned(), self.params.len(), MAX_PARAMS, "entries");
        }
        for (name, value) in &self.params {
            let (field, bytes) = (named("params", name)?, bytes(value));
            if bytes > MAX_PARAM_BYTES {
                return refuse(field, bytes, MAX_PARAM_BYTES, "bytes as JSON");
            }
        }
        for (name, values) in self.filter.iter().flatten() {
            let (field, values) = (named("filter", name)?, values.as_deref().unwrap_or_default());
            if values.len() > MAX_FILTER_VALUES {
                return refuse(field, values.len(), MAX_FILTER_VALUES, "values");
            }
            if let Some(bytes) = values.iter().map(bytes).find(|bytes| *bytes > MAX_VALUE_BYTES) {
                return refuse(field, bytes, MAX_VALUE_BYTES, "bytes in a value");
            }
        }
        let ids = self.ids.as_deref().unwrap_or_default();
        if ids.len() > MAX_IDS {
            return refuse("ids".to_owned(), ids.len(), MAX_IDS, "keys");
        }
        for (place, id) in ids.iter().enumerate() {
            let bytes = bytes(id);
            if bytes > MAX_VALUE_BYTES {
                return refuse(format!("ids[{place}]"), bytes, MAX_VALUE_BYTES, "bytes");
            }
        }
        Ok(())
    }

    /// The request as listings show it, and what they omit, with the number of entries or bytes.
    pub fn summary(&self) -> (Request, BTreeMap<String, u64>) {
        let mut omitted = BTreeMap::new();
        let (ids, items) = (self.ids.as_ref().map(Vec::len), self.items.as_ref().map(Vec::len));
        for (name, entries) in [("ids", ids), ("items", items)] {
            omitted.extend(entries.map(|entries| (name.to_owned(), entries as u64)));
        }
        let mut params = BTreeMap::new();
        for (name, value) in &self.params {
            match bytes(value) {
                0..=LISTED_VALUE_BYTES => drop(params.insert(name.clone(), value.clone())),
                bytes => drop(omitted.insert(format!("params.{name}"), bytes as u64)),
            }
        }
        let filter = self.filter.as_ref().map(|all| {
            let mut filter = BTreeMap::new();
            for (name, values) in all {
                let listed = values.as_deref().unwrap_or_default();
                if listed.len() > LISTED_ENTRIES
                    || listed.iter().any(|value| bytes(value) > LISTED_VALUE_BYTES)
                {
                    omitted.insert(format!("filter.{name}"), listed.len() as u64);
                } else {
                    filter.insert(name.clone(), values.clone());
                }
            }
            filter
        });
        let after = self.after.clone().filter(|after| after.len() <= LISTED_ENTRIES);
        if let (Some(all), None) = (&self.after, &after) {
            omitted.insert("after".to_owned(), all.len() as u64);
        }
        let shown = Request {
            job_type: self.job_type.clone(),
            filter,
            parallel_segments: self.parallel_segments,
            max_items_per_segment: self.max_items_per_segment,
            params,
            priority: self.priority,
            idempotency_key: self.idempotency_key.clone(),
            after,
            on_failed: self.on_failed,
            ids: None,
            items: None,
        };
        (shown, omitted)
    }

    /// Refuses a request that is too large.
    ///
    /// # Errors
    /// It has more than [`Request::MAX_BYTES`] as JSON.
    pub fn check_size(&self) -> Result<(), Problem> {
        let (bytes, most) = (bytes(self), Request::MAX_BYTES);
        if bytes <= most {
            return Ok(());
        }
        let field = if self.items.is_some() { "items" } else { "request" };
        let detail = format!(
            "the request has {bytes} bytes as JSON, more than the limit of {most}; split it, or store \
             large values where the step can read them"
        );
        Err(Problem::field(Code::Request, field, detail))
    }

    /// Refuses a request that does not fit the job type, before anything is written.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn check(
        &self,
        job_type: &JobType,
        identity: &Identity,
        table: &Table,
    ) -> Result<(), Problem> {
        let refuse =
            |field: &str, detail: String| Err(Problem::field(Code::Request, field, detail));
        inline_items::check(self, job_type)?;
        if let Some(segments) = self.parallel_segments
            && !(1..=MAX_SEGMENTS).contains(&segments)
        {
            let detail = format!("must be 1 to {MAX_SEGMENTS}, got {segments}");
            return refuse("parallelSegments", detail);
        }
        if self.max_items_per_segment == Some(0) {
            return refuse(
                "maxItemsPerSegment",
                "must be at least 1, got 0; omit it for no limit".into(),
            );
        }
        if self.priority() > 9 {
            return refuse("priority", format!("must be 0 to 9, got {}", self.priority()));
        }
        if self.parents().len() > MAX_PARENTS {
            return refuse("after", format!("names more than {MAX_PARENTS} jobs"));
        }
        if self.on_failed.is_some() && self.parents().is_empty() {
            return refuse("onFailed", "requires `after`".into());
        }
        for (name, values) in self.filters() {
            let field = format!("filter.{name}");
            let Some(column) = job_type.source.filters.get(name) else {
                let known = config::names(job_type.source.filters.keys());
                let detail =
                    format!("`{}` has no such filter; known filters are {known}", job_type.name);
                return refuse(&field, detail);
            };
            let column = table.column(column);
            for value in values {
                column
                    .map_or_else(|| crate::ColumnType::Other.read(value), |c| c.read(value))
                    .or_else(|detail| refuse(&field, detail).map(|()| crate::Value::Null))?;
            }
        }
        for (place, id) in self.ids.iter().flatten().enumerate() {
            check_id(&job_type.source.key, id, table)
                .or_else(|detail| refuse(&format!("ids[{place}]"), detail))?;
        }
        if self.ids.as_ref().is_some_and(Vec::is_empty) {
            return refuse("ids", "is empty; omit it for the whole source".into());
        }
        self.check_params(job_type)?;
        for (claim, column) in &job_type.source.claims {
            let field = format!("claims.{claim}");
            let values = identity.claims.get(claim).map(Vec::as_slice).unwrap_or_default();
            if values.is_empty() {
                let detail = format!(
                    "`{}` is filtered by this claim, which the submitter does not have",
                    job_type.name
                );
                return refuse(&field, detail);
            }
            if claims::is_unrestricted(values) {
                continue;
            }
            if values.contains(&crate::Value::from(claims::UNRESTRICTED)) {
                return refuse(&field, "`*` must be the only value".into());
            }
            // Databases convert a value of another type by their own rules: MySQL compares the text `x`
            // as the number 0.
            let column = table.column(column);
            for value in values {
                let json = value.to_json();
                column
                    .map_or_else(|| ColumnType::Other.read(&json), |c| c.read(&json))
                    .or_else(|detail| refuse(&field, detail).map(|()| crate::Value::Null))?;
            }
        }
        Ok(())
    }
}

/// The bytes of a value as JSON.
fn bytes(value: &impl Serialize) -> usize {
    let mut counted = Counted(0);
    // Plain values can always be written.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

/// Counts what is written to it.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Reads a whole number as JSON Schema understands one: `3.0` is `3`.
pub fn whole<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0);
    // Beyond 2^53 a float says no more which number is meant.
    let exact = || float().filter(|float| *float < 9e15).map(|float| float as u64);
    let whole = number.as_u64().or_else(exact).and_then(|whole| T::try_from(whole).ok());
    whole.map(Some).ok_or_else(|| D::Error::custom(format!("{number} is not a number that fits")))
}

fn check_id(key: &[String], id: &Json, table: &Table) -> Result<(), String> {
    let parts: Vec<&Json> = match id {
        Json::Array(parts) => parts.iter().collect(),
        single => vec![single],
    };
    if parts.len() != key.len() {
        let columns = key.join(", ");
        return Err(format!("{id} has {} values; the key is ({columns})", parts.len()));
    }
    for (name, part) in key.iter().zip(parts) {
        match table.column(name) {
            // SQLite may hold another type in such a column all the same. What a person writes is taken
            // for a mistake; the keys of dead letters are as they were read, and not checked here.
            Some(column) if !matches!(column.kind, ColumnType::Other | ColumnType::Bytes) => {
                column.read(part)?;
            }
            _ => drop(table.read_key(name, part)?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
