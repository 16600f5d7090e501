//! Opening a store by its URL.

use std::sync::Arc;

use windlass_core::config::{self, Dialect};
use windlass_drivers::{Error, ErrorClass, Url};

#[cfg(feature = "postgres")]
use crate::postgres::PostgresStore;
#[cfg(feature = "sqlite")]
use crate::sqlite::SqliteStore;
use crate::{Result, Store};

/// Opens the store at this URL with the default settings; see [`connect_with`].
///
/// # Errors
/// Those of [`connect_with`].
pub async fn connect(url: &str) -> Result<Arc<dyn Store>> {
    connect_with(&config::Store::new(url)).await
}

/// Opens the store at the URL of these settings: `sqlite:FILE`, which is created if it does not exist, or
/// `postgres://…`, to which the first call connects. Unless the dialect is `strict`, one more connection listens
/// for changes. Does not change the schema; [`SchemaStore::migrate`](crate::SchemaStore::migrate) does that.
///
/// # Errors
/// When the URL is malformed, names a database that cannot contain a store or does not have the dialect, or the
/// SQLite file cannot be opened.
pub async fn connect_with(settings: &config::Store) -> Result<Arc<dyn Store>> {
    let url = Url::parse(&settings.url)?;
    if settings.dialect == Dialect::Strict && !matches!(url, Url::Postgres(_)) {
        return Err(Error::new(ErrorClass::Definition, Dialect::STRICT_NEEDS_POSTGRES).into());
    }
    Ok(match url {
        #[cfg(feature = "sqlite")]
        Url::Sqlite(path) => Arc::new(SqliteStore::new(windlass_drivers::Sqlite::create(&path)?)),
        #[cfg(not(feature = "sqlite"))]
        Url::Sqlite(_) => return Err(Error::missing_feature("SQLite", "sqlite").into()),
        #[cfg(feature = "postgres")]
        Url::Postgres(url) => {
            let database = windlass_drivers::Postgres::new(&url, settings.max_connections)?;
            Arc::new(PostgresStore::new(database, settings.dialect))
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
