//! Opens connections.

use crate::mysql::MysqlConnection;
use crate::postgres::PostgresConnection;
use crate::sqlite::SqliteConnection;
use crate::{Connection, Result};
use std::sync::Arc;
use windlass_drivers::{Error, ErrorClass, Mysql, Postgres, Sqlite, Url};

/// Opens the database of a URL. A SQLite file must exist. Servers are contacted with the first query.
pub async fn connect(url: &str, max_connections: usize) -> Result<Arc<dyn Connection>> {
    Ok(match Url::parse(url)? {
        Url::Postgres(url) => {
            Arc::new(PostgresConnection::new(Postgres::new(&url, max_connections)?))
        }
        Url::Mysql(url) => Arc::new(MysqlConnection::new(Mysql::new(&url, max_connections)?)),
        #[cfg(feature = "dynamodb")]
        Url::Dynamodb(url) => Arc::new(crate::dynamodb::DynamodbConnection::open(&url).await?),
        #[cfg(not(feature = "dynamodb"))]
        Url::Dynamodb(_) => return Err(dynamodb_disabled().into()),
        Url::Sqlite(path) => {
            // Opening may wait for other processes that have locked the file.
            let opened = tokio::task::spawn_blocking(move || Sqlite::open(&path)).await;
            let ended = |_| Error::new(ErrorClass::Other, "the runtime is shutting down");
            Arc::new(SqliteConnection::new(opened.map_err(ended)??))
        }
    })
}

#[cfg(not(feature = "dynamodb"))]
fn dynamodb_disabled() -> Error {
    Error::new(
        ErrorClass::Definition,
        "this build of windlass does not support DynamoDB; build it with `--features aws`",
    )
}
