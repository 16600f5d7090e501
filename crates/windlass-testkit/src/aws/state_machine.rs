//! A state machine that moto interprets. Its tasks invoke a real function, and its notices arrive in a queue.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Response;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::Function;
use super::function::Failure;
use super::http::{Served, serve};
use crate::Moto;
use crate::moto::{ask_with, call_service};

/// The account that moto's resources belong to.
const ACCOUNT: &str = "us-east-1:123456789012";

/// A deployed state machine.
pub struct StateMachine {
    addr: SocketAddr,
    arn: String,
    queue: String,
    /// Answers the invocations of the function.
    _served: Served,
}

impl StateMachine {
    /// Creates a state machine. In its definition `${function}` is replaced by the name of the function, and
    /// `${topic}` by a topic whose notices [`StateMachine::notices`] returns.
    pub async fn deploy(moto: &Moto, definition: &str, function: Function) -> StateMachine {
        let served = serve(move |_, event| {
            let function = function.clone();
            async move { invoke(&function, event).await }
        })
        .await;
        let name = format!("m{}", Uuid::now_v7().simple());
        let addr = moto.addr();
        let url = format!("http://{}/", served.addr);
        let answer = moto.ask("POST", "/windlass/functions", &json!({&name: url}).to_string());
        assert!(answer.contains(" 200 "), "{answer}");
        let topic = format!("arn:aws:sns:{ACCOUNT}:{name}");
        let queue = call(addr, "sqs", "AmazonSQS.CreateQueue", json!({"QueueName": name}));
        sns(addr, &format!("Action=CreateTopic&Name={name}"));
        let endpoint = format!("arn:aws:sqs:{ACCOUNT}:{name}");
        sns(addr, &format!("Action=Subscribe&TopicArn={topic}&Protocol=sqs&Endpoint={endpoint}"));
        let definition = definition.replace("${function}", &name).replace("${topic}", &topic);
        let machine = json!({"name": name, "definition": definition,
            "roleArn": "arn:aws:iam::123456789012:role/state-machine"});
        let created = call(addr, "states", "AWSStepFunctions.CreateStateMachine", machine);
        let arn = text(&created["stateMachineArn"]);
        StateMachine { addr, arn, queue: text(&queue["QueueUrl"]), _served: served }
    }

    /// Starts an execution and returns its ARN.
    pub fn start(&self, input: &Json) -> String {
        // AWS chooses a name where none is given; moto needs one.
        let name = Uuid::now_v7().to_string();
        let request =
            json!({"stateMachineArn": self.arn, "name": name, "input": input.to_string()});
        let started = call(self.addr, "states", "AWSStepFunctions.StartExecution", request);
        text(&started["executionArn"])
    }

    /// The execution: its `status`, `output`, `error` and `cause`.
    pub fn execution(&self, arn: &str) -> Json {
        let request = json!({"executionArn": arn});
        call(self.addr, "states", "AWSStepFunctions.DescribeExecution", request)
    }

    /// Waits until the execution has ended, and returns it.
    pub async fn ended(&self, arn: &str) -> Json {
        loop {
            let execution = self.execution(arn);
            if execution["status"] != "RUNNING" {
                return execution;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Subject and message of the notices that were not returned yet.
    pub fn notices(&self) -> Vec<(String, String)> {
        let request = json!({"QueueUrl": self.queue, "MaxNumberOfMessages": 10});
        let received = call(self.addr, "sqs", "AmazonSQS.ReceiveMessage", request);
        let notice = |message: &Json| {
            let body = message["Body"].as_str().expect("a message has a body");
            let notice: Json = serde_json::from_str(body).expect("a notice is JSON");
            (text(&notice["Subject"]), text(&notice["Message"]))
        };
        received["Messages"].as_array().into_iter().flatten().map(notice).collect()
    }
}

/// Invokes the function and answers as Lambda does.
async fn invoke(function: &Function, event: Bytes) -> Response<Body> {
    let event = serde_json::from_slice(&event).expect("the event is not JSON");
    let (failed, body) = match function.invoke(event).await {
        Ok(answer) => (false, answer),
        Err(Failure::Error(error)) => (true, error),
        Err(Failure::Died) => (
            true,
            json!({"errorType": "Runtime.ExitError",
                "errorMessage": "Error: Runtime exited with error: signal: killed"}),
        ),
        Err(Failure::Late) => (
            true,
            json!({"errorType": "Sandbox.Timedout", "errorMessage": "Error: Task timed out"}),
        ),
    };
    let mut response = Response::builder().header("content-type", "application/json");
    if failed {
        response = response.header("x-amz-function-error", "Unhandled");
    }
    response.body(body.to_string().into()).expect("failed to build a response")
}

fn call(addr: SocketAddr, service: &str, target: &str, request: Json) -> Json {
    let headers = format!("X-Amz-Target: {target}\r\nContent-Type: application/x-amz-json-1.0\r\n");
    call_service(addr, (service, "us-east-1"), ("POST", "/"), &headers, &request)
}

/// A request in the form of SNS.
fn sns(addr: SocketAddr, form: &str) {
    let headers = "Content-Type: application/x-www-form-urlencoded\r\nAuthorization: AWS4-HMAC-SHA256 \
                   Credential=windlass/20260101/us-east-1/sns/aws4_request\r\n";
    let answer = ask_with(addr, "POST", "/", headers, form);
    assert!(answer.contains(" 200 "), "{answer}");
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
