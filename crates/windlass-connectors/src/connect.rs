//! From a URL to a connection.

use crate::mysql::MysqlData;
use crate::postgres::PostgresData;
use crate::sqlite::SqliteData;
use crate::{Connection, Result};
use std::sync::Arc;
use windlass_drivers::{Class, Error, Mysql, Postgres, Sqlite, Url};

/// Opens the database of a URL. A SQLite file must exist; servers are reached when first needed.
pub async fn connect(url: &str, max_connections: usize) -> Result<Arc<dyn Connection>> {
    Ok(match Url::parse(url)? {
        Url::Postgres(url) => Arc::new(PostgresData::new(Postgres::new(&url, max_connections)?)),
        Url::Mysql(url) => Arc::new(MysqlData::new(Mysql::new(&url, max_connections)?)),
        #[cfg(feature = "dynamodb")]
        Url::Dynamodb(url) => Arc::new(crate::dynamodb::DynamodbData::open(&url).await?),
        #[cfg(not(feature = "dynamodb"))]
        Url::Dynamodb(_) => return Err(without_aws().into()),
        Url::Sqlite(path) => {
            // Opening waits for other processes that have the file.
            let opened = tokio::task::spawn_blocking(move || Sqlite::open(&path)).await;
            let ended = |_| Error::new(Class::Other, "the runtime is shutting down");
            Arc::new(SqliteData::new(opened.map_err(ended)??))
        }
    })
}

#[cfg(not(feature = "dynamodb"))]
fn without_aws() -> Error {
    Error::new(
        Class::Definition,
        "this build of windlass does not speak to DynamoDB; build it with `--features aws`",
    )
}
