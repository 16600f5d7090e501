//! Candidates and periods in DynamoDB, worked over SQS by the two functions run for real.

mod commands;
mod duplicates;
mod killed;
mod letters;
mod process;
mod scenario;
mod start;
mod worker;
mod world;
mod writer;
