//! One PostgreSQL database, with the operations that tests need.

use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, NoTls};

/// A database for one test.
#[derive(Clone, Debug)]
pub struct Database {
    name: String,
    url: String,
}

impl Database {
    pub(super) fn new(name: &str, url: String) -> Self {
        Self { name: name.to_owned(), url }
    }

    /// The name of the database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL. It has no password because the server asks for none.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same database with another role.
    pub fn as_role(&self, role: &str) -> Self {
        let url = self.url.replacen(&format!("//{}@", super::USER), &format!("//{role}@"), 1);
        Self { name: self.name.clone(), url }
    }

    /// A new connection, or the error.
    pub async fn try_client(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// A new connection.
    pub async fn client(&self) -> Client {
        let connected = tokio_postgres::connect(&self.url, NoTls).await;
        let (client, connection) =
            connected.unwrap_or_else(|error| panic!("{}: {error}", self.url));
        // An error of the connection is returned by the client's next call.
        tokio::spawn(connection);
        client
    }

    /// Runs statements separated by semicolons, on a new connection.
    pub async fn run(&self, sql: &str) {
        let done = self.client().await.batch_execute(sql).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// The value of a query with one row and one column.
    pub async fn one<T: for<'a> FromSql<'a>>(&self, sql: &str) -> T {
        let row = self.client().await.query_one(sql, &[]).await;
        row.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }
}
