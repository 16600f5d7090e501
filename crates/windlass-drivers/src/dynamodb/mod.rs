//! DynamoDB: how to reach it, and what every other client of AWS is built from.

mod settings;

pub use self::settings::settings;
pub use aws_config::SdkConfig;
pub use aws_sdk_dynamodb as sdk;
