//! The settings of a deployed event source mapping and its function, which an operator changes while it runs.

use std::net::SocketAddr;

use serde_json::{Value as Json, json};

use crate::moto::call_service;

/// An event source mapping and its function, as they are deployed at moto.
#[derive(Clone, Debug)]
pub struct DeployedTrigger {
    addr: SocketAddr,
    region: String,
    /// The path of the mapping.
    mapping: String,
    /// The path of the function.
    function: String,
}

impl DeployedTrigger {
    /// The mapping with this id, and the function with this name.
    pub fn new(addr: SocketAddr, region: &str, mapping: &str, function: &str) -> DeployedTrigger {
        DeployedTrigger {
            addr,
            region: region.to_owned(),
            mapping: format!("/2015-03-31/event-source-mappings/{mapping}"),
            function: format!("functions/{function}/concurrency"),
        }
    }

    /// The messages per invocation and the concurrent invocations that are allowed now: the lower of the mapping's
    /// maximum and of what is reserved for the function.
    pub fn settings(&self) -> (i32, usize) {
        let mapping = self.call("GET", &self.mapping, &json!({}));
        let function = self.call("GET", &format!("/2019-09-30/{}", self.function), &json!({}));
        let maximum = number(&mapping["ScalingConfig"]["MaximumConcurrency"]);
        let reserved = number(&function["ReservedConcurrentExecutions"]);
        let allowed = maximum.into_iter().chain(reserved).min();
        let size = number(&mapping["BatchSize"]).expect("the mapping has no batch size");
        (size as i32, allowed.expect("the mapping has no maximum of invocations"))
    }

    /// Sets the messages per invocation, as `aws lambda update-event-source-mapping --batch-size` does.
    pub fn set_batch_size(&self, messages: usize) {
        self.call("PUT", &self.mapping, &json!({"BatchSize": messages}));
    }

    /// Sets the mapping's maximum of concurrent invocations.
    pub fn set_maximum(&self, invocations: usize) {
        let scaling = json!({"MaximumConcurrency": invocations});
        self.call("PUT", &self.mapping, &json!({"ScalingConfig": scaling}));
    }

    /// Reserves concurrent invocations, as `aws lambda put-function-concurrency` does.
    pub fn reserve(&self, invocations: usize) {
        let path = format!("/2017-10-31/{}", self.function);
        self.call("PUT", &path, &json!({"ReservedConcurrentExecutions": invocations}));
    }

    fn call(&self, method: &str, path: &str, request: &Json) -> Json {
        let headers = "Content-Type: application/json\r\n";
        call_service(self.addr, ("lambda", &self.region), (method, path), headers, request)
    }
}

/// A number, which moto keeps as text where a template gave it as text.
fn number(value: &Json) -> Option<usize> {
    let text = value.as_str().and_then(|text| text.parse().ok());
    text.or_else(|| value.as_u64().map(|number| number as usize))
}
