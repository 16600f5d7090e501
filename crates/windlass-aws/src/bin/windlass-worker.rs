//! The Lambda function that works chunks of jobs with a store. A function with handlers in Rust looks the same, with
//! `Steps::default().handler("name", function)`.

use windlass_engine::Steps;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    windlass_aws::lambda::worker(Steps::default()).await
}
