//! The Lambda function that works the messages of the queue. A function with handlers in Rust looks the same, with
//! `Steps::default().handler("name", function)`.

use windlass_engine::Steps;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    windlass_aws::lambda::process(Steps::default()).await
}
