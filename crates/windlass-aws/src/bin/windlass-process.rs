//! The Lambda function that works the queue's messages. One with handlers in Rust is this much, with
//! `Steps::default().handler("name", function)`.

use windlass_engine::Steps;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    windlass_aws::lambda::process(Steps::default()).await
}
