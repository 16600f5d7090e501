//! Two tables, a work queue with a dead-letter queue, an event bus, and the two functions.

use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;
use windlass_aws::{Config, JOBS, Queue};
use windlass_drivers::dynamodb::sdk::Client as Dynamo;
use windlass_drivers::dynamodb::sdk::error::ProvideErrorMetadata;
use windlass_drivers::dynamodb::sdk::types::{
    AttributeDefinition, AttributeValue, BillingMode, GlobalSecondaryIndex, KeySchemaElement,
    KeyType, Projection, ProjectionType, PutRequest, ScalarAttributeType, WriteRequest,
};
use windlass_drivers::dynamodb::{SdkConfig, settings};
use windlass_testkit::Moto;
use windlass_testkit::aws::{EventBus, EventSourceMapping, Function, Gateway};

/// The resources of one test, with unique names.
pub(crate) struct CandidatesFixture {
    pub(crate) gateway: Gateway,
    pub(crate) bus: EventBus,
    pub(crate) start: Function,
    pub(crate) process: Function,
    pub(crate) work: String,
    pub(crate) dead: String,
    pub(crate) dynamo: Dynamo,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) settings: SdkConfig,
    pub(crate) candidates: String,
    pub(crate) periods: String,
    environment: Vec<(String, String)>,
    folder: TempDir,
}

/// The URL of moto for a connection.
fn url(moto: &Moto) -> String {
    format!("dynamodb://windlass:windlass@us-east-1?endpoint=http://{}", moto.addr())
}

/// The settings of a fixture.
#[derive(Default)]
pub(crate) struct Plan {
    /// More lines for `[jobs.REFRESH_CANDIDATES]`.
    pub(crate) refresh: &'static str,
    /// More lines for `[jobs.MIGRATE_CANDIDATES]`.
    pub(crate) migrate: &'static str,
    /// The timeout of *process*; zero means one minute.
    pub(crate) seconds: u64,
}

/// The program of `MIGRATE_CANDIDATES`. It changes a field of the record.
const MIGRATE: &str = r#"
import json, sys
for line in sys.stdin:
    results = []
    for item in json.loads(line)["items"]:
        record = item["record"]
        if "poison" in record:
            results.append({"key": item["key"], "error": "this one is bad"})
        elif "skip" in record:
            results.append({"key": item["key"], "skip": True})
        elif record.get("slow"):
            import time; time.sleep(record["slow"])
            results.append({"key": item["key"], "update": {"title": "late"}})
        else:
            results.append({"key": item["key"], "update": {"title": record["title"].upper()}})
    print(json.dumps({"results": results}), flush=True)
"#;

impl CandidatesFixture {
    pub(crate) async fn new() -> CandidatesFixture {
        CandidatesFixture::with(Moto::shared(), Plan::default()).await
    }

    pub(crate) async fn with(moto: &Moto, plan: Plan) -> CandidatesFixture {
        let settings = settings(&url(moto)).await.unwrap();
        let dynamo = Dynamo::new(&settings);
        let sqs = aws_sdk_sqs::Client::new(&settings);
        let own = Uuid::now_v7().simple().to_string();
        let (candidates, periods) = (format!("candidates-{own}"), format!("periods-{own}"));
        table(&dynamo, &candidates, "identifier", Some("reportingYear")).await;
        table(&dynamo, &periods, "year", None).await;
        ledger(&dynamo).await;
        let (dead, dead_arn) = queue(&sqs, &format!("dead-{own}"), None).await;
        let (work, _) = queue(&sqs, &format!("work-{own}"), Some(&dead_arn)).await;
        let gateway = Gateway::start(moto.addr()).await;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("migrate.py"), MIGRATE).unwrap();
        let config = toml(&candidates, &periods, &plan);
        std::fs::write(folder.path().join("windlass.toml"), config).unwrap();
        let mut environment = moto.environment();
        environment.retain(|(name, _)| name != "AWS_ENDPOINT_URL");
        environment.extend([
            ("AWS_ENDPOINT_URL".to_owned(), gateway.url()),
            ("BATCH_JOB_QUEUE_URL".to_owned(), work.clone()),
            ("EVENT_BUS_NAME".to_owned(), "bus".to_owned()),
            ("PROCESSING_ENABLED".to_owned(), "true".to_owned()),
        ]);
        let function = |binary: &str, seconds, at_once| {
            let time = Duration::from_secs(seconds);
            Function::new(binary, folder.path(), &environment, time, at_once)
        };
        let start = function(env!("CARGO_BIN_EXE_windlass-start"), 900, 4);
        let seconds = if plan.seconds == 0 { 60 } else { plan.seconds };
        let process = function(env!("CARGO_BIN_EXE_windlass-process"), seconds, 4);
        let (source, kind) = (windlass_aws::SOURCE, windlass_aws::DETAIL_TYPE);
        let bus = EventBus::start(start.clone(), source, kind).await;
        start.set("AWS_ENDPOINT_URL_EVENTBRIDGE", &bus.url());
        process.set("AWS_ENDPOINT_URL_EVENTBRIDGE", &bus.url());
        environment.push(("AWS_ENDPOINT_URL_EVENTBRIDGE".to_owned(), bus.url()));
        CandidatesFixture {
            gateway,
            bus,
            start,
            process,
            work,
            dead,
            dynamo,
            sqs,
            settings,
            candidates,
            periods,
            environment,
            folder,
        }
    }

    /// The folder with windlass.toml.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The environment variables for all of these resources.
    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Sets the visibility timeout of a queue in seconds.
    pub(crate) async fn hide_for(&self, url: &str, seconds: u32) {
        let name = QueueAttributeName::VisibilityTimeout;
        let set = self.sqs.set_queue_attributes().queue_url(url);
        set.attributes(name, seconds.to_string()).send().await.unwrap();
    }

    /// The configuration for use in this process.
    pub(crate) fn config(&self, moto: &Moto) -> Config {
        let text = std::fs::read_to_string(self.folder.path().join("windlass.toml")).unwrap();
        let text = text.replace("dynamodb://", &url(moto));
        let migrate = self.folder.path().join("migrate.py");
        Config::parse(&text.replace("migrate.py", &migrate.display().to_string()), |_| None)
            .unwrap()
    }

    /// Starts a job and waits until it is enqueued. Returns its id.
    pub(crate) async fn start_job(&self, request: Json) -> String {
        let answer = self.start.invoke(request).await.unwrap();
        self.bus.idle().await;
        answer["jobId"].as_str().unwrap().to_owned()
    }

    /// The event source mapping of *process*.
    pub(crate) fn mapping(&self) -> EventSourceMapping {
        EventSourceMapping::new(self.sqs.clone(), &self.work, self.process.clone())
    }

    /// Works all messages of the queue.
    pub(crate) async fn drain(&self) {
        self.mapping().drain().await;
    }

    /// A queue in the library's type.
    pub(crate) async fn queue(&self, url: &str) -> Queue {
        Queue::open(&self.settings, url).await.unwrap()
    }

    /// Removes all messages from a queue. Returns their bodies, sorted.
    pub(crate) async fn bodies(&self, url: &str) -> Vec<Json> {
        let queue = self.queue(url).await;
        let mut bodies = Vec::new();
        loop {
            let received = queue.receive(Duration::ZERO, None).await.unwrap();
            if received.is_empty() {
                break;
            }
            bodies.extend(received.iter().map(|one| one.delivery.body.clone()));
            queue.delete(&received).await.unwrap();
        }
        bodies.sort();
        bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
    }

    /// Creates the candidates `c0`, `c1`, … in the years 2023 to 2025, each with version 1.
    pub(crate) async fn candidates(&self, count: usize) {
        let year = |n: usize| ["2023", "2024", "2025"][n % 3];
        let items = (0..count)
            .map(|n| item(&format!("c{n}"), &[("reportingYear", year(n)), ("title", "a title")]));
        self.put(&self.candidates, items.collect()).await;
    }

    pub(crate) async fn put_candidate(&self, id: &str, more: &[(&str, &str)]) {
        let mut fields = vec![("reportingYear", "2024"), ("title", "a title")];
        fields.extend(more);
        self.put(&self.candidates, vec![item(id, &fields)]).await;
    }

    pub(crate) async fn periods(&self, years: &[&str]) {
        let items = years.iter().map(|year| {
            HashMap::from([
                ("year".to_owned(), AttributeValue::S((*year).to_owned())),
                ("version".to_owned(), AttributeValue::N("1".to_owned())),
            ])
        });
        self.put(&self.periods, items.collect()).await;
    }

    async fn put(&self, table: &str, items: Vec<HashMap<String, AttributeValue>>) {
        for some in items.chunks(25) {
            let request = |item: &HashMap<String, AttributeValue>| {
                let put = PutRequest::builder().set_item(Some(item.clone())).build().unwrap();
                WriteRequest::builder().put_request(put).build()
            };
            let requests = some.iter().map(request).collect();
            self.dynamo.batch_write_item().request_items(table, requests).send().await.unwrap();
        }
    }

    /// All records of a table by key.
    pub(crate) async fn all(&self, table: &str, key: &str) -> BTreeMap<String, Record> {
        let mut all = BTreeMap::new();
        let mut pages = self.dynamo.scan().table_name(table).into_paginator().items().send();
        while let Some(item) = pages.next().await {
            let item = item.unwrap();
            all.insert(item[key].as_s().unwrap().clone(), Record(item));
        }
        all
    }

    /// All candidates by id.
    pub(crate) async fn all_candidates(&self) -> BTreeMap<String, Record> {
        self.all(&self.candidates, "identifier").await
    }

    pub(crate) async fn candidate(&self, id: &str) -> Record {
        self.all_candidates().await.remove(id).unwrap()
    }
}

/// A record of DynamoDB.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record(pub(crate) HashMap<String, AttributeValue>);

impl Record {
    pub(crate) fn version(&self) -> i64 {
        self.0["version"].as_n().unwrap().parse().unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.0[name].as_s().unwrap()
    }

    /// The jobs that it stores.
    pub(crate) fn jobs(&self) -> Vec<String> {
        let Some(jobs) = self.0.get(JOBS) else { return Vec::new() };
        jobs.as_l().unwrap().iter().map(|job| job.as_s().unwrap().clone()).collect()
    }
}

/// An event for *process* with these messages.
pub(crate) fn event(messages: &[(&str, Json)]) -> Json {
    let record = |(id, body): &(&str, Json)| {
        json!({"messageId": id, "receiptHandle": "h", "body": body.to_string(),
               "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "0"},
               "messageAttributes": {"jobId": {"stringValue": JOB, "dataType": "String",
                                               "stringListValues": [], "binaryListValues": []}},
               "eventSource": "aws:sqs", "awsRegion": "us-east-1"})
    };
    json!({"Records": messages.iter().map(record).collect::<Vec<_>>()})
}

/// The job of [`event`].
pub(crate) const JOB: &str = "0197c3a2-8f7e-7abc-8def-0123456789ab";

pub(crate) fn refresh(id: &str) -> Json {
    json!({"type": "REFRESH_CANDIDATE", "identifier": id})
}

pub(crate) fn migrate(id: &str) -> Json {
    json!({"type": "MIGRATE_CANDIDATE", "identifier": id})
}

/// The message ids in an answer of *process*.
pub(crate) fn failures(answer: &Json) -> Vec<&str> {
    let failures = answer["batchItemFailures"].as_array().unwrap();
    failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap()).collect()
}

fn item(id: &str, fields: &[(&str, &str)]) -> HashMap<String, AttributeValue> {
    let mut item: HashMap<String, AttributeValue> = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), AttributeValue::S((*value).to_owned())))
        .collect();
    item.insert("identifier".to_owned(), AttributeValue::S(id.to_owned()));
    item.insert("version".to_owned(), AttributeValue::N("1".to_owned()));
    item
}

fn toml(candidates: &str, periods: &str, plan: &Plan) -> String {
    let Plan { refresh, migrate, .. } = plan;
    format!(
        r#"
[connections.app]
url = "dynamodb://"

[jobs.REFRESH_CANDIDATES]
source.connection = "app"
source.table = "{candidates}"
source.key = ["identifier"]
source.filters = {{ reportingYears = "reportingYear" }}
step.refresh = true
step.version = "version"
queue.message = "REFRESH_CANDIDATE"
{refresh}

[jobs.MIGRATE_CANDIDATES]
source.connection = "app"
source.table = "{candidates}"
source.filters = {{ reportingYears = "reportingYear" }}
step.command = ["python3", "migrate.py"]
step.version = "version"
queue.message = "MIGRATE_CANDIDATE"
queue.field = "identifier"
{migrate}

[jobs.REFRESH_PERIODS]
source.connection = "app"
source.table = "{periods}"
source.key = ["year"]
source.filters = {{ reportingYears = "year" }}
step.refresh = true
step.version = "version"
queue.message = "REFRESH_PERIOD"
"#
    )
}

async fn table(dynamo: &Dynamo, name: &str, key: &str, index: Option<&str>) {
    let schema = |name: &str, kind| {
        KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap()
    };
    let text = |name: &str| {
        let kind = ScalarAttributeType::S;
        AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build().unwrap()
    };
    let mut table = dynamo
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(text(key))
        .key_schema(schema(key, KeyType::Hash));
    if let Some(index) = index {
        let projection = Projection::builder().projection_type(ProjectionType::Include);
        let projection = projection.non_key_attributes("kind").build();
        let by = GlobalSecondaryIndex::builder()
            .index_name(format!("by-{index}"))
            .key_schema(schema(index, KeyType::Hash))
            .key_schema(schema(key, KeyType::Range))
            .projection(projection)
            .build()
            .unwrap();
        table = table.attribute_definitions(text(index)).global_secondary_indexes(by);
    }
    table.send().await.unwrap();
}

/// The ledger's table, which all tests of a process share.
async fn ledger(dynamo: &Dynamo) {
    let mut table = dynamo
        .create_table()
        .table_name("windlass_ledger")
        .billing_mode(BillingMode::PayPerRequest);
    for (name, kind) in [("job", KeyType::Hash), ("row", KeyType::Range)] {
        let text = AttributeDefinition::builder().attribute_name(name);
        let text = text.attribute_type(ScalarAttributeType::S).build().unwrap();
        let key = KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
        table = table.attribute_definitions(text).key_schema(key);
    }
    if let Err(error) = table.send().await {
        assert_eq!(error.code(), Some("ResourceInUseException"), "{error:?}");
    }
}

/// A queue with the documented settings. Returns its URL and its ARN.
async fn queue(sqs: &aws_sdk_sqs::Client, name: &str, dead: Option<&str>) -> (String, String) {
    let mut queue = sqs.create_queue().queue_name(name);
    if let Some(dead) = dead {
        let policy = json!({"deadLetterTargetArn": dead, "maxReceiveCount": 3}).to_string();
        queue = queue
            .attributes(QueueAttributeName::VisibilityTimeout, "300")
            .attributes(QueueAttributeName::MessageRetentionPeriod, "86400")
            .attributes(QueueAttributeName::RedrivePolicy, policy);
    }
    let url = queue.send().await.unwrap().queue_url.unwrap();
    let attributes = sqs
        .get_queue_attributes()
        .queue_url(&url)
        .attribute_names(QueueAttributeName::QueueArn)
        .send()
        .await
        .unwrap();
    let arn = attributes.attributes.unwrap()[&QueueAttributeName::QueueArn].clone();
    (url, arn)
}

/// The longest wait for a condition. Generous, for machines under load.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
