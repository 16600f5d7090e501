//! Database drivers: connections, transactions, notifications and the classification of errors.
//!
//! `windlass-store` (the engine's state) and `windlass-connectors` (the user's data) are built on this crate. It
//! contains no SQL of the engine.

mod call_groups;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
mod error;
mod gate;
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
pub use crate::postgres::{
    ChannelListener, DURABLE, IN_TRANSACTION, Listener, Param, Postgres, Redshift,
    RedshiftTransaction, Rows, TextRow, Transaction,
};
#[cfg(feature = "sqlite")]
pub use crate::sqlite::{Call, Caller, Intercepted, Interceptor, MemoryDatabase, Sqlite};
pub use crate::{
    call_groups::{CallGroups, WaitingCall},
    error::{Error, ErrorClass},
    gate::ConnectionGate,
    url::{Url, redact},
};
