//! The Lambda function that fills the work queue.

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    windlass_aws::lambda::start().await
}
