//! The way to a store from its URL.

use std::sync::Arc;

use windlass_drivers::{Error, ErrorClass, Postgres, Sqlite, Url};

use crate::postgres::PostgresStore;
use crate::sqlite::SqliteStore;
use crate::{Result, Store};

/// How many connections one process opens to a store in PostgreSQL.
const CONNECTIONS: usize = 10;

/// Opens the store at this URL: `sqlite:FILE`, made when it is absent, or `postgres://…`, reached
/// with the first call. The schema is not touched; [`Store::migrate`] does that.
pub async fn connect(url: &str) -> Result<Arc<dyn Store>> {
    Ok(match Url::parse(url)? {
        Url::Sqlite(path) => Arc::new(SqliteStore::new(Sqlite::create(&path)?)),
        Url::Postgres(url) => Arc::new(PostgresStore::new(Postgres::new(&url, CONNECTIONS)?)),
        Url::Mysql(_) | Url::Dynamodb(_) => return Err(refused().into()),
    })
}

/// MySQL and DynamoDB serve as the user's database only.
fn refused() -> Error {
    Error::new(
        ErrorClass::Definition,
        "the store cannot be in MySQL, MariaDB or DynamoDB, which serve as connections: write \
         sqlite:PATH, or postgres://USER:PASSWORD@HOST:PORT/DATABASE where several machines share the work",
    )
}
