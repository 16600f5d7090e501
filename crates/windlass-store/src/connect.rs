//! Opening a store by its URL.

use std::sync::Arc;

use windlass_drivers::{Class, Error, Postgres, Sqlite, Url};

use crate::postgres::PostgresStore;
use crate::sqlite::SqliteStore;
use crate::{Result, Store};

/// The maximum number of connections of one process to a store in PostgreSQL.
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
        Url::Sqlite(path) => Arc::new(SqliteStore::new(Sqlite::create(&path)?)),
        Url::Postgres(url) => Arc::new(PostgresStore::new(Postgres::new(&url, MAX_CONNECTIONS)?)),
        Url::Mysql(_) | Url::Dynamodb(_) => return Err(unsupported().into()),
    })
}

/// MySQL and DynamoDB can only be connections.
fn unsupported() -> Error {
    Error::new(
        Class::Definition,
        "the store cannot be in MySQL, MariaDB or DynamoDB, which serve as connections: write \
         sqlite:PATH, or postgres://USER:PASSWORD@HOST:PORT/DATABASE where several machines share the work",
    )
}
