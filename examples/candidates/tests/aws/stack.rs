//! The deployed example: tables, bucket and queues from the templates, the two functions as Lambda runs them, and
//! the services between them.

use crate::table::Table;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use windlass_aws::{DETAIL_TYPE, Queue, SOURCE};
use windlass_drivers::dynamodb::{SdkConfig, settings};
use windlass_testkit::aws::{
    DeployedTrigger, EventBus, EventSourceMapping, Function, Gateway, SearchEngine, StreamMapping,
};
use windlass_testkit::{Moto, Output, Running, Windlass, built_program, python_program};

/// The example with its own tables and queues.
pub(crate) struct Stack {
    pub(crate) start: Function,
    pub(crate) process: Function,
    pub(crate) bus: EventBus,
    pub(crate) trigger: EventSourceMapping,
    /// The stream of the table, which invokes the function that indexes candidates.
    pub(crate) indexer: StreamMapping,
    pub(crate) search: SearchEngine,
    pub(crate) candidates: Table,
    pub(crate) periods: Table,
    pub(crate) dead: Queue,
    pub(crate) work: Queue,
    /// The requests of *start* and of *process*.
    pub(crate) gateways: [Gateway; 2],
    /// The types of the template's resources by logical name, as they were created.
    pub(crate) resources: Json,
    /// The roles that the functions run with: `Name`, and its policy, `Policy` and `Document`.
    pub(crate) roles: Json,
    environment: Vec<(String, String)>,
    /// The working folder of the functions.
    package: TempDir,
}

/// Candidates without an original.
pub(crate) const MISSING: usize = 3;

impl Stack {
    /// Deploys the example with this number of candidates.
    pub(crate) async fn with(candidates: usize) -> Stack {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let moto = Moto::shared();
        let mut environment = moto.environment();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aws/deploy.py");
        let words = [script.display().to_string(), folder("aws").display().to_string()];
        let words = words.into_iter().chain([format!("candidates-{number}")]);
        let deployed = python(&environment, words).await.ok();
        let outputs: Json = serde_json::from_str(&deployed.stdout).unwrap();
        let output = |name: &str| outputs[name].as_str().unwrap_or_else(|| panic!("{outputs:#}"));
        let originals = format!("s3://{}/originals/", output("OriginalsBucket"));
        for (name, value) in [("NVI_TABLE_NAME", output("NviTable")), ("ORIGINALS", &originals)] {
            environment.push((name.to_owned(), value.to_owned()));
        }

        let package = TempDir::new().unwrap();
        std::fs::copy(folder("aws/windlass.toml"), package.path().join("windlass.toml")).unwrap();
        let handler = package.path().join("candidates-migrate");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_candidates-migrate"), handler).unwrap();
        let gateways = [Gateway::start(moto.addr()).await, Gateway::start(moto.addr()).await];
        let function = |name: &str, role: &str, gateway: &Gateway, time, concurrency| {
            let binary = built_program("windlass-aws", name);
            let time = Duration::from_secs(time);
            let function = Function::new(binary, package.path(), &environment, time, concurrency);
            function.set("AWS_ENDPOINT_URL", &gateway.url());
            let credentials = outputs["Roles"][role]["Environment"].as_object().unwrap();
            for (name, value) in credentials {
                function.set(name, value.as_str().unwrap());
            }
            function
        };
        let start = function("windlass-start", "StartRole", &gateways[0], 900, 4);
        let process = function("windlass-process", "ProcessRole", &gateways[1], 60, 10);
        let bus = EventBus::start(start.clone(), SOURCE, DETAIL_TYPE).await;
        start.set("AWS_ENDPOINT_URL_EVENTBRIDGE", &bus.url());
        start.set("BATCH_JOB_QUEUE_URL", output("WorkQueueUrl"));
        start.set("EVENT_BUS_NAME", "candidates");
        start.set("PROCESSING_ENABLED", "true");
        process.set("AWS_ENDPOINT_URL_EVENTBRIDGE", &bus.url());
        process.set("BATCH_JOB_QUEUE_URL", output("WorkQueueUrl"));
        process.set("EVENT_BUS_NAME", "candidates");

        let search = SearchEngine::start().await;
        let index = env!("CARGO_BIN_EXE_candidates-index");
        let minute = Duration::from_secs(60);
        let index = Function::new(index, package.path(), &environment, minute, 1);
        index.set("SEARCH_URL", &search.url());

        let settings = at(moto).await;
        let queues = aws_sdk_sqs::Client::new(&settings);
        let mut trigger = EventSourceMapping::new(queues, output("WorkQueueUrl"), process.clone());
        let [mapping, name] = ["Trigger", "ProcessFunction"].map(output);
        trigger.deployed = Some(DeployedTrigger::new(moto.addr(), "us-east-1", mapping, name));
        // The changes after the candidates are generated.
        generate(&environment, &format!("--candidates {candidates} --missing {MISSING}")).await;
        let indexer = StreamMapping::new(moto.addr(), "us-east-1", output("NviTable"), index);
        Stack {
            start,
            process,
            bus,
            trigger,
            indexer,
            search,
            candidates: Table::new(&settings, output("NviTable"), "CANDIDATE"),
            periods: Table::new(&settings, output("NviTable"), "PERIOD"),
            dead: Queue::open(&settings, output("DeadLetterQueueUrl")).await.unwrap(),
            work: Queue::open(&settings, output("WorkQueueUrl")).await.unwrap(),
            gateways,
            resources: outputs["Resources"].clone(),
            roles: outputs["Roles"].clone(),
            environment,
            package,
        }
    }

    /// Runs the generator.
    pub(crate) async fn generate(&self, flags: &str) {
        generate(&self.environment, flags).await;
    }

    /// Invokes *start* as the console does and waits until everything is enqueued. Returns the answer.
    pub(crate) async fn load(&self, request: &str) -> Json {
        let request = serde_json::from_str(request).unwrap();
        let answer = self.start.invoke(request).await.unwrap();
        self.bus.idle().await;
        answer
    }

    /// Enqueues a request and works the queue until it is empty. Returns the states of its segments.
    pub(crate) async fn run(&self, request: &str) -> Vec<Json> {
        let before = self.bus.details().len();
        self.load(request).await;
        self.trigger.drain().await;
        let details = self.bus.details().into_iter().skip(before);
        details.map(|mut detail| detail["paginationState"].take()).collect()
    }

    /// Replaces the policy of one of the roles.
    pub(crate) async fn set_policy(&self, role: &str, document: &Json) {
        let role = &self.roles[role];
        let script = folder("tests/aws/policy.py").display().to_string();
        let names = ["Name", "Policy"].map(|name| role[name].as_str().unwrap().to_owned());
        let words = [script].into_iter().chain(names).chain([document.to_string()]);
        python(&self.environment, words).await.ok();
    }

    /// Writes a file into the folder of windlass.toml.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.package.path().join(name), text).unwrap();
    }

    /// Runs a windlass command, with arguments separated by spaces, and waits for its exit.
    pub(crate) async fn windlass(&self, command: &str) -> Output {
        self.spawn(command).wait().await
    }

    /// Starts a windlass command.
    pub(crate) fn spawn(&self, command: &str) -> Running {
        let windlass = Windlass::new(self.package.path());
        let variables = self.environment.iter();
        let windlass =
            variables.fold(windlass, |windlass, (name, value)| windlass.env(name, value));
        windlass.spawn(command.split_whitespace())
    }

    /// The number of dead letters.
    pub(crate) async fn letters(&self) -> usize {
        let which = windlass_aws::dead_letters::Which::default();
        windlass_aws::dead_letters::list(&self.dead, &which, 1000).await.unwrap().len()
    }
}

async fn generate(environment: &[(String, String)], flags: &str) {
    let script = folder("generate.py").display().to_string();
    let words = flags.split_whitespace().map(str::to_owned);
    python(environment, [script].into_iter().chain(words)).await.ok();
}

/// A file or folder of the example.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Runs Python with the packages of the tests.
pub(crate) async fn python(
    environment: &[(String, String)],
    words: impl Iterator<Item = String>,
) -> Output {
    let here = TempDir::new().unwrap();
    let python = Windlass::new(here.path()).binary(python_program("python"));
    let python = python.env("AWS_DEFAULT_REGION", "us-east-1");
    let python = environment.iter().fold(python, |python, (name, value)| python.env(name, value));
    python.run(words).await
}

async fn at(moto: &Moto) -> SdkConfig {
    let url = format!("dynamodb://windlass:windlass@us-east-1?endpoint=http://{}", moto.addr());
    settings(&url).await.unwrap()
}
