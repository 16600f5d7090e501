//! `examples/candidates` keeps every promise of its README, with its own configuration, handler and
//! data, on PostgreSQL with a folder or an S3 endpoint for the originals.

mod fixture;
mod further;
mod letters;
mod migrate;
mod refresh;
mod requests;
mod service;
mod steering;
mod told;
mod writer;
