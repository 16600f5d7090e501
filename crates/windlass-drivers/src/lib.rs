//! How to reach a database: connections, transactions and what their errors mean.
//!
//! `windlass-store` (our own state) and `windlass-connectors` (the user's rows) both stand on this crate.
//! It holds no SQL of the product: it knows how to open, begin, bind, commit and listen, and nothing
//! of what is said in between.

#[cfg(feature = "dynamodb")]
pub mod dynamodb;
mod error;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod security;
#[cfg(feature = "sqlite")]
mod sqlite;
mod url;

#[cfg(feature = "postgres")]
pub use bytes::Bytes;
#[cfg(feature = "sqlite")]
pub use rusqlite;
#[cfg(feature = "postgres")]
pub use tokio_postgres::{CopyInSink, CopyOutStream, Row, types};

#[cfg(feature = "mysql")]
pub use crate::mysql::Mysql;
#[cfg(feature = "postgres")]
pub use crate::postgres::{DURABLE, Listener, Param, Postgres, Rows, Transaction};
#[cfg(feature = "sqlite")]
pub use crate::sqlite::Sqlite;
pub use crate::{
    error::{Class, Error},
    url::{Url, redact},
};
