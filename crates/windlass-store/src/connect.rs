//! Opening a store by its URL.

use std::sync::Arc;

use windlass_drivers::{Error, ErrorClass, Url};

#[cfg(feature = "postgres")]
use crate::postgres::PostgresStore;
#[cfg(feature = "sqlite")]
use crate::sqlite::SqliteStore;
use crate::{Result, Store};

/// The maximum number of connections of one process to a store in PostgreSQL.
#[cfg(feature = "postgres")]
const MAX_CONNECTIONS: usize = 10;

/// Opens the store at this URL: `sqlite:FILE`, which is created if it does not exist, or
/// `postgres://…`, to which the first call connects. Does not change the schema;
/// [`SchemaStore::migrate`](crate::SchemaStore::migrate) does that.
///
/// # Errors
/// When the URL is malformed, names a database that cannot contain a store, or the SQLite file cannot
/// be opened.
pub async fn connect(url: &str) -> Result<Arc<dyn Store>> {
    Ok(match Url::parse(url)? {
        #[cfg(feature = "sqlite")]
        Url::Sqlite(path) => Arc::new(SqliteStore::new(windlass_drivers::Sqlite::create(&path)?)),
        #[cfg(not(feature = "sqlite"))]
        Url::Sqlite(_) => return Err(Error::missing_feature("SQLite", "sqlite").into()),
        #[cfg(feature = "postgres")]
        Url::Postgres(url) => {
            Arc::new(PostgresStore::new(windlass_drivers::Postgres::new(&url, MAX_CONNECTIONS)?))
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
