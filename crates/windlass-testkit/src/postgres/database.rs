//! One database of a server, and the few ways in which tests talk to it.

use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, NoTls};

/// An own database for one test.
#[derive(Clone, Debug)]
pub struct Database {
    name: String,
    url: String,
}

impl Database {
    pub(super) fn new(name: &str, url: String) -> Self {
        Self { name: name.to_owned(), url }
    }

    /// Its name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its URL, without a password because none is asked.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same database, logged in to as another role.
    pub fn as_role(&self, role: &str) -> Self {
        let url = self.url.replacen(&format!("//{}@", super::USER), &format!("//{role}@"), 1);
        Self { name: self.name.clone(), url }
    }

    /// A new connection that may be refused.
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
        // A connection that breaks tells it to the client's next call.
        tokio::spawn(connection);
        client
    }

    /// Runs statements separated by semicolons, on a connection of their own.
    pub async fn run(&self, sql: &str) {
        let done = self.client().await.batch_execute(sql).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// The single value of a query that returns one row of one column.
    pub async fn one<T: for<'a> FromSql<'a>>(&self, sql: &str) -> T {
        let row = self.client().await.query_one(sql, &[]).await;
        row.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }
}
