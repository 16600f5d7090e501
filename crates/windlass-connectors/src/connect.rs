//! From a URL to a connection.

use crate::{Connection, Result};
use std::sync::Arc;
use windlass_drivers::{Class, Error, Url};

/// Opens the database of a URL. A SQLite file must exist; servers are reached when first needed.
pub async fn connect(url: &str, max_connections: usize) -> Result<Arc<dyn Connection>> {
    Ok(match Url::parse(url)? {
        #[cfg(feature = "postgres")]
        Url::Postgres(url) => {
            let pool = windlass_drivers::Postgres::new(&url, max_connections)?;
            Arc::new(crate::postgres::PostgresData::new(pool))
        }
        #[cfg(not(feature = "postgres"))]
        Url::Postgres(_) => return Err(Error::missing_feature("PostgreSQL", "postgres").into()),
        #[cfg(feature = "mysql")]
        Url::Mysql(url) => {
            let pool = windlass_drivers::Mysql::new(&url, max_connections)?;
            Arc::new(crate::mysql::MysqlData::new(pool))
        }
        #[cfg(not(feature = "mysql"))]
        Url::Mysql(_) => return Err(Error::missing_feature("MySQL and MariaDB", "mysql").into()),
        #[cfg(feature = "dynamodb")]
        Url::Dynamodb(url) => Arc::new(crate::dynamodb::DynamodbData::open(&url).await?),
        #[cfg(not(feature = "dynamodb"))]
        Url::Dynamodb(_) => return Err(Error::missing_feature("DynamoDB", "aws").into()),
        #[cfg(feature = "sqlite")]
        Url::Sqlite(path) => {
            // Opening waits for other processes that have the file.
            let open = move || windlass_drivers::Sqlite::open(&path);
            let ended = |_| Error::new(Class::Other, "the runtime is shutting down");
            let opened = tokio::task::spawn_blocking(open).await.map_err(ended)?;
            Arc::new(crate::sqlite::SqliteData::new(opened?))
        }
        #[cfg(not(feature = "sqlite"))]
        Url::Sqlite(_) => return Err(Error::missing_feature("SQLite", "sqlite").into()),
    })
}
