//! Database drivers: connections, transactions, notifications and the classification of errors.
//!
//! `windlass-store` (the engine's state) and `windlass-connectors` (the user's data) are built on this crate. It
//! contains no SQL of the engine.

#[cfg(feature = "dynamodb")]
pub mod dynamodb;
mod error;
pub mod mysql;
mod postgres;
mod security;
mod sqlite;
mod url;

pub use bytes::Bytes;
pub use rusqlite;
pub use tokio_postgres::{CopyInSink, CopyOutStream, Row, types};

pub use crate::{
    error::{Error, ErrorClass},
    mysql::Mysql,
    postgres::{ChannelListener, DURABLE, Listener, Param, Postgres, Rows, Transaction},
    sqlite::Sqlite,
    url::{Url, redact},
};
