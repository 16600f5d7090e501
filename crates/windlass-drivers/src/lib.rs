//! How to reach a database: connections, transactions and what their errors mean.
//!
//! `windlass-store` (our own state) and `windlass-connectors` (the user's rows) both stand on this crate.
//! It holds no SQL of the product: it knows how to open, begin, bind, commit and listen, and nothing
//! of what is said in between.

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
    error::{Class, Error},
    mysql::Mysql,
    postgres::{DURABLE, Listener, Param, Postgres, Rows, Transaction},
    sqlite::Sqlite,
    url::{Url, redact},
};
