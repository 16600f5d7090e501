//! DynamoDB: settings for its client and for other clients of AWS.

mod settings;

pub use self::settings::settings;
pub use aws_config::SdkConfig;
pub use aws_sdk_dynamodb as sdk;
