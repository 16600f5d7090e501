//! What *start* is invoked with: a request, from the console or in an event, or its own next state.

use crate::State;
use crate::message::job_id;
use serde_json::{Map, Value as Json};
use windlass_core::problem::Code;
use windlass_core::{JobId, PaginationState, Problem, Request};

/// An invocation of *start*.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// What was asked for.
    pub request: Request,
    /// The job it is, over all invocations.
    pub job: JobId,
    /// Where one of its loads stands; none at first.
    pub state: Option<State>,
}

const STATE: &str = "paginationState";
const JOB: &str = "jobId";

impl Invocation {
    /// Reads a request that came plain or as the `detail` of an event. A job is named by the
    /// `jobId` of the request, its `idempotencyKey`, the event, or else by the invocation itself:
    /// whatever is delivered twice is one job.
    pub fn read(event: Json, invocation: &str) -> Result<Invocation, Problem> {
        let Json::Object(mut fields) = event else {
            return Err(wrong("the request", "is no JSON object, such as {\"jobType\": …}"));
        };
        let mut name = invocation.to_owned();
        if fields.contains_key("detail-type") {
            if let Some(Json::String(id)) = fields.remove("id") {
                name = id;
            }
            let Some(Json::Object(detail)) = fields.remove("detail") else {
                return Err(wrong("detail", "is missing; the request would be right"));
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
                return Err(wrong(field, "needs a store, which the form on AWS does not have"));
            }
        }
        if let Some(State(PaginationState::Plan | PaginationState::Merge)) = state {
            return Err(wrong(STATE, "`TABLE_SCAN`, `YEAR_QUERY` or `INDEX_QUERY` would be right"));
        }
        let keyed = request.idempotency_key.as_ref();
        let keyed = keyed.map(|key| job_id(&format!("{} {key}", request.job_type)));
        let job = given.or(keyed).unwrap_or_else(|| job_id(&name));
        Ok(Invocation { request, job, state })
    }

    /// The same job, to go on from another state.
    pub fn at(&self, state: State) -> Invocation {
        Invocation { state: Some(state), ..self.clone() }
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

/// Takes a field that people do not write; null is none.
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

    /// Every request that the document writes.
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
    fn the_documents_requests_are_read_and_round_trip_with_their_state() {
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
    fn a_filter_without_values_is_none() {
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
    fn what_is_wrong_is_named() {
        for (request, expected) in [
            (json!("x"), "no JSON object"),
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
