//! Opening a store by its URL.

use std::sync::Arc;

use windlass_drivers::{Error, ErrorClass, Url};

#[cfg(feature = "postgres")]
use crate::postgres::PostgresStore;
#[cfg(feature = "sqlite")]
use crate::sqlite::SqliteStore;
use crate::{Result, Store};

/// The default of the most connections of one process to a store in PostgreSQL.
const MAX_CONNECTIONS: usize = 10;

/// Opens the store at this URL with at most 10 connections; see [`connect_with`].
///
/// # Errors
/// Those of [`connect_with`].
pub async fn connect(url: &str) -> Result<Arc<dyn Store>> {
    connect_with(url, MAX_CONNECTIONS).await
}

/// Opens the store at this URL: `sqlite:FILE`, which is created if it does not exist, or
/// `postgres://…`, to which the first call connects. One more connection listens for changes. Does not change the schema;
/// [`SchemaStore::migrate`](crate::SchemaStore::migrate) does that.
///
/// # Errors
/// When the URL is malformed, names a database that cannot contain a store, or the SQLite file cannot
/// be opened.
pub async fn connect_with(url: &str, max_connections: usize) -> Result<Arc<dyn Store>> {
    #[cfg(not(feature = "postgres"))]
    let _ = max_connections;
    Ok(match Url::parse(url)? {
        #[cfg(feature = "sqlite")]
        Url::Sqlite(path) => Arc::new(SqliteStore::new(windlass_drivers::Sqlite::create(&path)?)),
        #[cfg(not(feature = "sqlite"))]
        Url::Sqlite(_) => return Err(Error::missing_feature("SQLite", "sqlite").into()),
        #[cfg(feature = "postgres")]
        Url::Postgres(url) => {
            Arc::new(PostgresStore::new(windlass_drivers::Postgres::new(&url, max_connections)?))
        }
        #[cfg(not(feature = "postgres"))]
        Url::Postgres(_) => return Err(Error::missing_feature("PostgreSQL", "postgres").into()),
        Url::Mysql(_) | Url::Dynamodb(_) | Url::Redshift(_) => return Err(unsupported().into()),
    })
}

/// MySQL, DynamoDB and Redshift can only be connections.
fn unsupported() -> Error {
    Error::new(
        ErrorClass::Definition,
        "the store cannot be in MySQL, MariaDB, DynamoDB or Redshift, which serve as connections: write \
         sqlite:PATH, or postgres://USER:PASSWORD@HOST:PORT/DATABASE where several machines share the work",
    )
}
