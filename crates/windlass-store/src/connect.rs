//! The way to a store from its URL.

use std::sync::Arc;

use windlass_drivers::{Class, Error, Url};

#[cfg(feature = "postgres")]
use crate::postgres::PostgresStore;
#[cfg(feature = "sqlite")]
use crate::sqlite::SqliteStore;
use crate::{Result, Store};

/// How many connections one process opens to a store in PostgreSQL.
#[cfg(feature = "postgres")]
const CONNECTIONS: usize = 10;

/// Opens the store at this URL: `sqlite:FILE`, made when it is absent, or `postgres://…`, reached
/// with the first call. The schema is not touched; [`Store::migrate`] does that.
pub async fn connect(url: &str) -> Result<Arc<dyn Store>> {
    Ok(match Url::parse(url)? {
        #[cfg(feature = "sqlite")]
        Url::Sqlite(path) => Arc::new(SqliteStore::new(windlass_drivers::Sqlite::create(&path)?)),
        #[cfg(not(feature = "sqlite"))]
        Url::Sqlite(_) => return Err(Error::missing_feature("SQLite", "sqlite").into()),
        #[cfg(feature = "postgres")]
        Url::Postgres(url) => {
            Arc::new(PostgresStore::new(windlass_drivers::Postgres::new(&url, CONNECTIONS)?))
        }
        #[cfg(not(feature = "postgres"))]
        Url::Postgres(_) => return Err(Error::missing_feature("PostgreSQL", "postgres").into()),
        Url::Mysql(_) | Url::Dynamodb(_) => return Err(refused().into()),
    })
}

/// MySQL and DynamoDB serve as the user's database only.
fn refused() -> Error {
    Error::new(
        Class::Definition,
        "the store cannot be in MySQL, MariaDB or DynamoDB, which serve as connections: write \
         sqlite:PATH, or postgres://USER:PASSWORD@HOST:PORT/DATABASE where several machines share the work",
    )
}
