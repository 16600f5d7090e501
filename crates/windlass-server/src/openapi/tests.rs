//! The derived schemas describe the JSON that is sent, also where a field's schema is written by hand.

use chrono::Utc;
use serde::Serialize;
use serde_json::{Value as Json, json};
use uuid::Uuid;
use windlass_core as core;
use windlass_store as store;

struct Schemas(Json);

impl Schemas {
    fn new() -> Schemas {
        let document = crate::routes::all(true).into_openapi();
        Schemas(serde_json::to_value(document).unwrap()["components"]["schemas"].clone())
    }

    /// Asserts that the JSON of `value` has the documented form.
    #[track_caller]
    fn describe(&self, name: &str, value: &impl Serialize) {
        let schema = &self.0[name];
        assert!(schema.is_object(), "no schema {name}");
        let value = serde_json::to_value(value).unwrap();
        if let Err(error) = self.check(schema, &value) {
            panic!("{name}: {error}\nschema: {schema:#}\nvalue: {value:#}");
        }
    }

    fn check(&self, schema: &Json, value: &Json) -> Result<(), String> {
        if let Some(reference) = schema["$ref"].as_str() {
            return self.check(&self.0[reference.rsplit('/').next().unwrap()], value);
        }
        if let Some(choices) = schema["oneOf"].as_array() {
            let fits = choices.iter().filter(|choice| self.check(choice, value).is_ok()).count();
            return (fits == 1).then_some(()).ok_or_else(|| format!("{value} fits {fits} choices"));
        }
        let allowed: Vec<&str> = match &schema["type"] {
            Json::String(only) => vec![only],
            Json::Array(several) => several.iter().filter_map(Json::as_str).collect(),
            _ => return Ok(()),
        };
        let actual = match value {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "integer",
            Json::String(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        };
        if !allowed.contains(&actual) {
            return Err(format!("{value} is not {allowed:?}"));
        }
        if let Some(known) = schema["enum"].as_array().filter(|known| !known.contains(value)) {
            return Err(format!("{value} is not one of {known:?}"));
        }
        for item in value.as_array().into_iter().flatten() {
            self.check(&schema["items"], item)?;
        }
        value.as_object().map_or(Ok(()), |fields| self.check_fields(schema, fields))
    }

    fn check_fields(
        &self,
        schema: &Json,
        fields: &serde_json::Map<String, Json>,
    ) -> Result<(), String> {
        let required = schema["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Json::as_str) {
            fields.get(name).ok_or_else(|| format!("`{name}` is missing"))?;
        }
        for (name, value) in fields {
            match (&schema["properties"][name], &schema["additionalProperties"]) {
                (Json::Null, Json::Bool(false)) => return Err(format!("`{name}` is not known")),
                (Json::Null, others) => self.check(others, value)?,
                (property, _) => {
                    self.check(property, value).map_err(|error| format!("{name}: {error}"))?;
                }
            }
        }
        Ok(())
    }
}

#[test]
fn every_response_type_has_the_documented_fields() {
    let schemas = Schemas::new();
    let (id, now) = (Uuid::now_v7(), Utc::now());
    let request = core::Request {
        filter: Some([("years".to_owned(), Some(vec![Json::from(1)]))].into()),
        parallel_segments: Some(1),
        max_items_per_segment: Some(1),
        params: [("a".to_owned(), Json::from(1))].into(),
        priority: Some(1),
        idempotency_key: Some("k".to_owned()),
        after: Some(vec![id]),
        on_failed: Some(core::OnFailed::Run),
        ids: Some(vec![Json::from(1)]),
        ..core::Request::new("J")
    };
    schemas.describe("Request", &request);
    let counts = json!({"total": 1, "processed": 1, "skipped": 0, "dead": 0, "conflicts": 0});
    let job = json!({
        "id": id, "jobType": "J", "status": "PROCESSING", "phase": "working", "priority": 5,
        "request": request, "omitted": {"ids": 7}, "submittedBy": "me", "createdAt": now,
        "startedAt": now, "items": counts, "chunks": core::ChunkCounts::default(),
    });
    schemas.describe("Job", &serde_json::from_value::<core::Job>(job).unwrap());
    let alert = store::Alert {
        id,
        kind: core::AlertKind::JobFailed,
        job_type: "J".to_owned(),
        job_id: Some(id),
        message: "m".to_owned(),
        details: json!({"a": 1}),
        at: now,
        cleared_at: None,
        cleared_reason: None,
        acknowledged_at: None,
        acknowledged_by: None,
        delivery: core::Delivery::Pending,
        attempts: 1,
        next_at: Some(now),
        delivered_at: None,
        error: None,
    };
    schemas.describe("Alert", &alert);
    let key = core::Key(vec![core::Value::Int(1)]);
    for (key_set, cursor) in [
        (core::KeySet::range(None, Some(key.clone())), core::Cursor::Start),
        (core::KeySet::keys(vec![key.clone()]), core::Cursor::Index(1)),
        (core::KeySet::range(None, None), core::Cursor::End),
    ] {
        let chunk = store::ChunkRow {
            job_id: id,
            chunk: 0,
            segment: 1,
            status: core::ChunkStatus::Pending,
            epoch: 0,
            key_set,
            items: 1,
            cursor,
            counts: core::Counts::default(),
            rows_marked: None,
            rows_updated: None,
            message: None,
            attempts: 0,
            losses: 0,
            worker: None,
            started_at: None,
            finished_at: None,
            error: None,
        };
        schemas.describe("Chunk", &chunk);
    }
    let segment = store::SegmentRow {
        segment: 0,
        status: core::ChunkStatus::Completed,
        state: core::PaginationState::Plan,
        range: core::KeyRange::ALL,
        error: None,
    };
    schemas.describe("Segment", &segment);
    let letter = store::DeadLetter {
        id,
        job_id: id,
        job_type: "J".to_owned(),
        chunk: 0,
        key: Json::from(1),
        record: Json::Null,
        error: "e".to_owned(),
        fingerprint: "e".to_owned(),
        context: Json::Null,
        attempts: 1,
        status: core::DeadLetterStatus::New,
        redrive_job: Some(id),
        created_at: now,
        updated_at: now,
    };
    schemas.describe("DeadLetter", &letter);
    let redriven = windlass_engine::Redriven { job_id: id, original_job: id, letters: 1 };
    schemas.describe("Redriven", &redriven);
    let control = store::Control {
        subject: "*".to_owned(),
        stopped: false,
        suspended: None,
        concurrency: None,
        rate: Some(1),
    };
    schemas.describe("Control", &control);
    let worker = store::WorkerRow {
        name: "w".to_owned(),
        slots: 1,
        chunks: 0,
        job_types: None,
        started_at: now,
        seen_at: now,
        vanished: false,
    };
    schemas.describe("Worker", &worker);
    let schedule = json!({"cron": "0 3 * * *", "deadline": "3h", "params": {"day": "{date}"},
        "claims": {"county": "all"}});
    let scheduled = windlass_engine::Scheduled {
        row: store::ScheduleRow {
            job_type: "J".to_owned(),
            spec: "s".to_owned(),
            next_at: Some(now),
            paused: false,
            last_at: None,
            last_job: Some(id),
            error: None,
            now,
        },
        schedule: serde_json::from_value(schedule).unwrap(),
        next_times: vec![now],
    };
    schemas.describe("Schedule", &scheduled);
    let rule = core::Dependency {
        line: 1,
        job: "J".to_owned(),
        after: vec!["A".to_owned()],
        matched: Vec::new(),
        on_failed: core::OnFailed::Block,
    };
    let mut arrived = core::JoinPoint::default();
    let (status, params) = (core::JobStatus::Completed, [("a".to_owned(), json!(1))].into());
    arrived.arrive("A", core::JoinArrival { job: id, status, params, priority: 5 });
    let waiting = vec![store::JoinPointRow {
        rule: rule.clone(),
        agreed: json!({"match": {"a": 1}}),
        arrived,
        updated_at: now,
    }];
    let due = vec![windlass_engine::DueJob { id, request: core::Request::new("J"), error: None }];
    let dependencies = windlass_engine::Dependencies { rules: vec![rule], waiting, due };
    schemas.describe("Dependencies", &dependencies);
    let linked = store::LinkedJob {
        id,
        job_type: "J".to_owned(),
        status: core::JobStatus::Queued,
        submitted_by: "me".to_owned(),
        after: vec![id],
    };
    schemas.describe("LinkedJob", &linked);
}

#[test]
fn every_status_is_documented() {
    let schemas = Schemas::new();
    core::JobStatus::ALL.iter().for_each(|status| schemas.describe("JobStatus", status));
    core::Phase::ALL.iter().for_each(|phase| schemas.describe("Phase", phase));
    core::ChunkStatus::ALL.iter().for_each(|status| schemas.describe("ChunkStatus", status));
    core::AlertKind::ALL.iter().for_each(|kind| schemas.describe("AlertKind", kind));
    core::Delivery::ALL.iter().for_each(|delivery| schemas.describe("Delivery", delivery));
    let letters = core::DeadLetterStatus::ALL.iter();
    letters.for_each(|status| schemas.describe("DeadLetterStatus", status));
    let missed = [core::Missed::Skip, core::Missed::RunOnce, core::Missed::RunAll];
    missed.iter().for_each(|missed| schemas.describe("Missed", missed));
    let overlap = [core::Overlap::Skip, core::Overlap::Queue, core::Overlap::CancelRunning];
    overlap.iter().for_each(|overlap| schemas.describe("Overlap", overlap));
}
