//! Opens connections.

use crate::{Connection, Result};
use std::sync::Arc;
use windlass_drivers::{ConnectionGate, Error, Url};

/// Opens the database of a URL. A SQLite file must exist. Servers are contacted with the first query.
pub async fn connect(url: &str, max_connections: usize) -> Result<Arc<dyn Connection>> {
    connect_gated(url, max_connections, None).await
}

/// [`connect`], to a server that is contacted when the gate is open.
pub async fn connect_gated(
    url: &str,
    max_connections: usize,
    gate: Option<Arc<dyn ConnectionGate>>,
) -> Result<Arc<dyn Connection>> {
    Ok(match Url::parse(url)? {
        #[cfg(feature = "postgres")]
        Url::Postgres(url) => {
            let pool = windlass_drivers::Postgres::new(&url, max_connections)?.with_gate(gate);
            Arc::new(crate::postgres::PostgresConnection::new(pool))
        }
        #[cfg(not(feature = "postgres"))]
        Url::Postgres(_) => return Err(Error::missing_feature("PostgreSQL", "postgres").into()),
        #[cfg(feature = "postgres")]
        Url::Redshift(url) => {
            let pool = windlass_drivers::Redshift::new(&url, max_connections)?;
            Arc::new(crate::redshift::RedshiftConnection::new(pool))
        }
        #[cfg(not(feature = "postgres"))]
        Url::Redshift(_) => return Err(Error::missing_feature("Redshift", "postgres").into()),
        #[cfg(feature = "mysql")]
        Url::Mysql(url) => {
            let pool = windlass_drivers::Mysql::new(&url, max_connections)?.with_gate(gate);
            Arc::new(crate::mysql::MysqlConnection::new(pool))
        }
        #[cfg(not(feature = "mysql"))]
        Url::Mysql(_) => return Err(Error::missing_feature("MySQL and MariaDB", "mysql").into()),
        #[cfg(feature = "dynamodb")]
        Url::Dynamodb(url) => Arc::new(crate::dynamodb::DynamodbConnection::open(&url).await?),
        #[cfg(not(feature = "dynamodb"))]
        Url::Dynamodb(_) => return Err(Error::missing_feature("DynamoDB", "aws").into()),
        #[cfg(feature = "sqlite")]
        Url::Sqlite(path) => {
            if let Some(memory) = windlass_drivers::Sqlite::in_memory(&path) {
                return Ok(Arc::new(crate::sqlite::SqliteConnection::new(memory)));
            }
            // Opening may wait for other processes that have locked the file.
            let open = move || windlass_drivers::Sqlite::open(&path);
            let ended =
                |_| Error::new(windlass_drivers::ErrorClass::Other, "the runtime is shutting down");
            let opened = tokio::task::spawn_blocking(open).await.map_err(ended)?;
            Arc::new(crate::sqlite::SqliteConnection::new(opened?))
        }
        #[cfg(not(feature = "sqlite"))]
        Url::Sqlite(_) => return Err(Error::missing_feature("SQLite", "sqlite").into()),
    })
}
