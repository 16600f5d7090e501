//! DynamoDB: scans and key lists instead of ranges, transactions of a hundred actions.

pub mod value;
