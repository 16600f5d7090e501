//! The progress of a job that runs without a store, in two items of the ledger's table.
//!
//! `plan` has the request and the number of items of each segment. The number is assigned, never added, and does not
//! go down, so a segment that is planned twice counts once. `job` has the counters of the outcomes, which
//! `counted.rs` changes in the transaction of their effects, and the total once every segment is planned. It is
//! small, because each of its writes is billed by its size.

use super::expression::{Attributes, Bound};
use super::rows::{Row, int, number, text};
use super::{LEDGER, Records, fence};
use crate::{ConnectorError, Result};
use chrono::{DateTime, Days, Utc};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use windlass_core::problem::Code;
use windlass_core::{JobId, Problem};
use windlass_drivers::dynamodb::sdk::error::ProvideErrorMetadata;
use windlass_drivers::dynamodb::sdk::types::{AttributeValue, ReturnValue};
use windlass_drivers::{Error, ErrorClass};

/// The counters of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobProgress {
    /// The job type.
    pub job_type: String,
    /// When its planning began.
    pub created_at: DateTime<Utc>,
    /// The number of its items; `None` while it is planned.
    pub total: Option<u64>,
    /// Items that were written.
    pub processed: u64,
    /// Items that were skipped.
    pub skipped: u64,
    /// Items that failed for good and were not redriven successfully.
    pub dead: u64,
    /// When the last item ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// Whether the event of its end was sent.
    pub is_announced: bool,
    /// How many rows of outcomes were ever added.
    pub(super) rows_added: i64,
}

impl JobProgress {
    /// The number of items that have ended.
    pub fn done(&self) -> u64 {
        self.processed + self.skipped + self.dead
    }

    /// Whether all items are planned and have ended.
    pub fn is_complete(&self) -> bool {
        self.total.is_some_and(|total| self.done() >= total)
    }
}

/// What a job processes.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPlan {
    /// The request.
    pub request: Json,
    /// The segments by name.
    pub segments: BTreeMap<String, SegmentPlan>,
}

/// A segment of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentPlan {
    /// Items sent to the queue so far.
    pub items: u64,
    /// Whether all its items are sent.
    pub is_done: bool,
}

impl JobPlan {
    /// The number of items sent to the queue so far.
    pub fn items(&self) -> u64 {
        self.segments.values().map(|segment| segment.items).sum()
    }
}

/// How long the rows of a job are kept if the table has a time to live on `expires`. Dead letters live for 14 days.
const KEPT_DAYS: u64 = 90;

/// The attribute with the second since 1970 at which DynamoDB may delete a row.
pub(super) fn expires() -> (String, AttributeValue) {
    let at = Utc::now().checked_add_days(Days::new(KEPT_DAYS)).unwrap_or_default();
    ("expires".to_owned(), number(at.timestamp()))
}

impl Records {
    /// Records a job before its first item is sent. The same request again changes nothing; another request under the
    /// same id is refused.
    pub async fn begin_job(
        &self,
        job: JobId,
        job_type: &str,
        request: &Json,
        segments: &[String],
    ) -> Result<()> {
        let open = AttributeValue::M(segment(SegmentPlan::default()));
        let open = segments.iter().map(|name| (name.clone(), open.clone())).collect();
        let mut plan = Row::Plan(job).key();
        plan.extend([
            ("request".to_owned(), AttributeValue::S(request.to_string())),
            ("segments".to_owned(), AttributeValue::M(open)),
            expires(),
        ]);
        if !self.put_new(plan).await? {
            let known = self.plan(job).await?.map(|plan| plan.request);
            if known.is_some_and(|known| known != *request) {
                let detail = format!("the job {job} was started with another request");
                return Err(Problem::new(Code::IdempotencyKey, detail).into());
            }
        }
        let mut row = Row::Job(job).key();
        let zero = |name: &str| (name.to_owned(), number(0));
        row.extend([
            ("job_type".to_owned(), AttributeValue::S(job_type.to_owned())),
            ("created_at".to_owned(), AttributeValue::S(Utc::now().to_rfc3339())),
            zero("processed"),
            zero("skipped"),
            zero("dead"),
            zero("rows_added"),
            expires(),
        ]);
        self.put_new(row).await.map(drop)
    }

    /// Records how many items of a segment have been sent, and whether that is all. Returns the job's counters when
    /// every segment is planned.
    pub async fn plan_segment(
        &self,
        job: JobId,
        name: &str,
        plan: SegmentPlan,
    ) -> Result<Option<JobProgress>> {
        let mut bound = Bound::default();
        let path = format!("{}.{}", bound.name("segments"), bound.name(name));
        let items = bound.name("items");
        let at_least = bound.value(number(plan.items as i64));
        let value = bound.value(AttributeValue::M(segment(plan)));
        let set = format!("SET {path} = {value}");
        let condition = format!("{path}.{items} <= {at_least}");
        // A later page of the segment may be recorded already: it was planned twice.
        self.update_row(Row::Plan(job), set, Some(condition), &bound).await?;
        let Some(plan) = self.plan(job).await? else { return Ok(None) };
        if !plan.segments.values().all(|segment| segment.is_done) {
            return Ok(None);
        }
        let mut bound = Bound::default();
        let (total, items) = (bound.name("total"), bound.value(number(plan.items() as i64)));
        let set = format!("SET {total} = {items}");
        let condition = format!("attribute_not_exists({total}) OR {total} < {items}");
        self.update_row(Row::Job(job), set, Some(condition), &bound).await?;
        self.progress(job).await
    }

    /// The counters of a job. `None` if the job is not counted.
    pub async fn progress(&self, job: JobId) -> Result<Option<JobProgress>> {
        self.row(Row::Job(job)).await?.map(|row| to_progress(&row)).transpose()
    }

    /// The plan of a job.
    pub async fn plan(&self, job: JobId) -> Result<Option<JobPlan>> {
        self.row(Row::Plan(job)).await?.map(|row| to_plan(&row)).transpose()
    }

    /// Records the end of a job, the first time. Returns its counters.
    pub async fn finish_job(&self, job: JobId) -> Result<Option<JobProgress>> {
        let mut bound = Bound::default();
        let now = bound.value(AttributeValue::S(Utc::now().to_rfc3339()));
        let name = bound.name("finished_at");
        let set = format!("SET {name} = {now}");
        let first = format!("attribute_not_exists({name})");
        self.update_row(Row::Job(job), set, Some(first), &bound).await?;
        self.progress(job).await
    }

    /// Records that the event of a job's end was sent.
    pub async fn announced(&self, job: JobId) -> Result<()> {
        let mut bound = Bound::default();
        let set = format!(
            "SET {} = {}",
            bound.name("announced"),
            bound.value(AttributeValue::Bool(true))
        );
        self.update_row(Row::Job(job), set, None, &bound).await.map(drop)
    }

    /// Puts a row unless it exists. Returns whether it was put.
    async fn put_new(&self, row: Attributes) -> Result<bool> {
        let mut bound = Bound::default();
        let condition = format!("attribute_not_exists({})", bound.name("row"));
        let put = self.0.client.put_item().table_name(LEDGER).set_item(Some(row));
        let put = put.condition_expression(condition);
        let put = put.set_expression_attribute_names(bound.names());
        unless_refused(put.send().await)
    }

    /// Updates a row. Returns whether its condition was met.
    async fn update_row(
        &self,
        row: Row<'_>,
        update: String,
        condition: Option<String>,
        bound: &Bound,
    ) -> Result<bool> {
        let call = self
            .0
            .client
            .update_item()
            .table_name(LEDGER)
            .set_key(Some(row.key()))
            .update_expression(update)
            .set_condition_expression(condition)
            .set_expression_attribute_names(bound.names())
            .set_expression_attribute_values(bound.values())
            .return_values(ReturnValue::None);
        unless_refused(call.send().await)
    }

    async fn row(&self, row: Row<'_>) -> Result<Option<Attributes>> {
        let get = self.0.client.get_item().table_name(LEDGER).set_key(Some(row.key()));
        let found = get.consistent_read(true).send().await;
        Ok(found.map_err(|error| of_ledger(error.into()))?.item)
    }
}

/// Whether a write was done. `false` if its condition was not met.
fn unless_refused<T, E>(sent: std::result::Result<T, E>) -> Result<bool>
where
    E: ProvideErrorMetadata,
    Error: From<E>,
{
    match sent {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(false),
        Err(error) => Err(of_ledger(error.into())),
    }
}

/// Says what to do if the ledger's table is missing.
pub(super) fn of_ledger(error: Error) -> ConnectorError {
    match error.class {
        ErrorClass::Definition | ErrorClass::Permission => fence::missing(&error.to_string()),
        _ => error.into(),
    }
}

fn segment(plan: SegmentPlan) -> Attributes {
    Attributes::from([
        ("items".to_owned(), number(plan.items as i64)),
        ("done".to_owned(), AttributeValue::Bool(plan.is_done)),
    ])
}

fn to_plan(row: &Attributes) -> Result<JobPlan> {
    let request = serde_json::from_str(text(row, "request")?)?;
    let segments = row.get("segments").and_then(|segments| segments.as_m().ok());
    let to_segment = |(name, fields): (&String, &AttributeValue)| {
        let fields = fields.as_m().map_err(|_| ConnectorError::Unreadable(name.clone()))?;
        let is_done = fields.get("done").and_then(|done| done.as_bool().ok());
        let items = int(fields, "items")? as u64;
        Ok((name.clone(), SegmentPlan { items, is_done: is_done.copied().unwrap_or_default() }))
    };
    let segments = segments.into_iter().flatten().map(to_segment).collect::<Result<_>>()?;
    Ok(JobPlan { request, segments })
}

fn to_progress(row: &Attributes) -> Result<JobProgress> {
    let time = |name| {
        let text = text(row, name)?;
        let time = DateTime::parse_from_rfc3339(text).map(|time| time.to_utc());
        time.map_err(|_| ConnectorError::Unreadable(format!("`{name}`: {text}")))
    };
    let count = |name| Ok::<_, ConnectorError>(int(row, name)?.max(0) as u64);
    Ok(JobProgress {
        job_type: text(row, "job_type")?.to_owned(),
        created_at: time("created_at")?,
        total: if row.contains_key("total") { Some(count("total")?) } else { None },
        processed: count("processed")?,
        skipped: count("skipped")?,
        dead: count("dead")?,
        finished_at: if row.contains_key("finished_at") {
            Some(time("finished_at")?)
        } else {
            None
        },
        is_announced: row.contains_key("announced"),
        rows_added: int(row, "rows_added")?,
    })
}
