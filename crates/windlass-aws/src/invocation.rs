//! The input of *start*: a request, plain or in an event, or its own state to continue from.

use crate::State;
use crate::message::job_id;
use serde_json::{Map, Value as Json};
use windlass_core::problem::Code;
use windlass_core::{JobId, JobType, PaginationState, Problem, Request};

/// An invocation of *start*.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// The request.
    pub request: Request,
    /// The id of the job, the same in all invocations.
    pub job: JobId,
    /// The state of one of its segments; `None` at first.
    pub state: Option<State>,
}

const STATE: &str = "paginationState";
const JOB: &str = "jobId";

impl Invocation {
    /// Reads a request, plain or as the `detail` of an event. The job's id comes from the request's `jobId`, its
    /// `idempotencyKey`, the event's id, or the invocation's id, in this order. So a request that is delivered
    /// twice is one job.
    pub fn read(event: Json, invocation: &str) -> Result<Invocation, Problem> {
        let Json::Object(mut fields) = event else {
            return Err(wrong("the request", "must be a JSON object, such as {\"jobType\": …}"));
        };
        let mut name = invocation.to_owned();
        if fields.contains_key("detail-type") {
            if let Some(Json::String(id)) = fields.remove("id") {
                name = id;
            }
            let Some(Json::Object(detail)) = fields.remove("detail") else {
                return Err(wrong("detail", "is missing; it must be a request"));
            };
            fields = detail;
        }
        let state = take::<State>(&mut fields, STATE)?;
        let given = take::<JobId>(&mut fields, JOB)?;
        let request: Request = serde_json::from_value(Json::Object(fields))
            .map_err(|error| Problem::new(Code::Request, error.to_string()))?;
        for (field, is_given) in [
            ("items", request.items.is_some()),
            ("after", request.after.is_some()),
            ("onFailed", request.on_failed.is_some()),
            ("priority", request.priority.is_some()),
        ] {
            if is_given {
                return Err(wrong(field, "needs a store; the AWS functions have none"));
            }
        }
        if let Some(State(PaginationState::Plan | PaginationState::Merge)) = state {
            return Err(wrong(STATE, "type must be `TABLE_SCAN`, `YEAR_QUERY` or `INDEX_QUERY`"));
        }
        let keyed = request.idempotency_key.as_ref();
        let keyed = keyed.map(|key| job_id(&format!("{} {key}", request.job_type)));
        let job = given.or(keyed).unwrap_or_else(|| job_id(&name));
        Ok(Invocation { request, job, state })
    }

    /// The same job with another state.
    pub fn at(&self, state: State) -> Invocation {
        Invocation { state: Some(state), ..self.clone() }
    }

    /// The request with the keys of the table as `ids`. It names them as messages do, by `queue.key`.
    pub(crate) fn with_table_keys(&self, job_type: &JobType) -> Result<Request, Problem> {
        let mut request = self.request.clone();
        for (place, id) in request.ids.iter_mut().flatten().enumerate() {
            let key = job_type.message_key(id.take());
            *id = key.map_err(|detail| wrong(&format!("ids[{place}]"), &detail))?.to_id();
        }
        Ok(request)
    }

    /// The request as [`Invocation::read`] reads it.
    pub fn to_json(&self) -> Json {
        let mut json = serde_json::to_value(&self.request).unwrap_or_default();
        if let Json::Object(fields) = &mut json {
            fields.insert(JOB.to_owned(), self.job.to_string().into());
            let state = serde_json::to_value(&self.state).unwrap_or_default();
            fields.insert(STATE.to_owned(), state);
        }
        json
    }
}

/// Removes a field that users do not set. Null counts as missing.
fn take<T: serde::de::DeserializeOwned>(
    fields: &mut Map<String, Json>,
    name: &str,
) -> Result<Option<T>, Problem> {
    let Some(json) = fields.remove(name) else { return Ok(None) };
    serde_json::from_value(json).map_err(|error| wrong(name, error.to_string()))
}

fn wrong(field: &str, detail: impl Into<String>) -> Problem {
    Problem::field(Code::Request, field, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const EVENT: &str = "6a7e8feb-b491-4cf7-a9f1-bf3703467718";

    /// All requests of the documentation.
    fn requests() -> [Json; 6] {
        [
            json!({"jobType": "REFRESH_CANDIDATES", "filter": {"reportingYears": ["2024", "2025"]}}),
            json!({"jobType": "REFRESH_CANDIDATES", "filter": {"reportingYears": ["2024"]},
                   "parallelSegments": 1, "maxItemsPerSegment": 10}),
            json!({"jobType": "REFRESH_CANDIDATES", "parallelSegments": 20,
                   "maxItemsPerSegment": 100}),
            json!({"jobType": "MIGRATE_CANDIDATES", "filter": {"reportingYears": ["2024"]}}),
            json!({"jobType": "REFRESH_PERIODS", "filter": {"reportingYears": []}}),
            json!({"jobType": "REFRESH_PERIODS", "filter": null, "maxItemsPerSegment": null,
                   "parallelSegments": null, "paginationState": null}),
        ]
    }

    #[test]
    fn the_requests_of_the_documentation_are_read_and_round_trip_with_their_state() {
        for request in requests() {
            let read = Invocation::read(request.clone(), "a request").unwrap();
            assert_eq!(read.state, None);
            assert_eq!(read.request.job_type, request["jobType"]);
            let state = json!({"type": "YEAR_QUERY", "remainingYears": ["2024"],
                               "lastEvaluatedKey": {"identifier": "a"}, "itemsEnqueued": 7});
            let next = read.at(serde_json::from_value(state.clone()).unwrap());
            assert_eq!(next.to_json()[STATE], state);
            assert_eq!(Invocation::read(next.to_json(), "another"), Ok(next));
        }
    }

    #[test]
    fn a_filter_without_values_counts_as_missing() {
        for request in &requests()[4..] {
            let read = Invocation::read(request.clone(), "").unwrap();
            assert_eq!(read.request.filters().count(), 0);
        }
    }

    #[test]
    fn an_event_delivered_twice_is_one_job() {
        let event = |id: &str| {
            json!({"version": "0", "id": id, "detail-type": "StartBatchJob", "source": "windlass",
                   "account": "123456789012", "time": "2025-01-01T00:00:00Z", "region": "eu-west-1",
                   "resources": [], "detail": {"jobType": "A"}})
        };
        let first = Invocation::read(event(EVENT), "one").unwrap();
        assert_eq!(first.job.to_string(), EVENT);
        assert_eq!(Invocation::read(event(EVENT), "two").unwrap(), first);
        let plain = Invocation::read(json!({"jobType": "A"}), EVENT).unwrap();
        assert_eq!(plain, first);
        let keyed = |key: &str, invocation| {
            Invocation::read(json!({"jobType": "A", "idempotencyKey": key}), invocation)
                .unwrap()
                .job
        };
        assert_eq!(keyed("k", "one"), keyed("k", "two"));
        assert_ne!(keyed("k", "one"), keyed("l", "one"));
    }

    #[test]
    fn an_invalid_field_is_named() {
        for (request, expected) in [
            (json!("x"), "must be a JSON object"),
            (json!({}), "jobType"),
            (json!({"jobType": "A", "filters": {}}), "filters"),
            (json!({"jobType": "A", "priority": 9}), "priority: needs a store"),
            (json!({"jobType": "A", "items": []}), "items: needs a store"),
            (json!({"jobType": "A", "paginationState": {"type": "MERGE"}}), "YEAR_QUERY"),
            (json!({"jobType": "A", "paginationState": {"type": "TABLE"}}), "paginationState"),
            (json!({"detail-type": "StartBatchJob", "detail": 5}), "detail: is missing"),
        ] {
            let message = Invocation::read(request.clone(), "").unwrap_err().to_string();
            assert!(message.contains(expected), "{request}: {message}");
        }
    }
}
