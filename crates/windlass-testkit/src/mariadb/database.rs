//! One MariaDB database, with the operations that tests need.

use mysql_async::prelude::{FromValue, Queryable as _};
use mysql_async::{Conn, Opts, OptsBuilder, Row, Value};

/// A database for one test.
#[derive(Clone, Debug)]
pub struct MariaDatabase {
    name: String,
    url: String,
}

impl MariaDatabase {
    pub(super) fn new(name: &str, url: String) -> Self {
        Self { name: name.to_owned(), url }
    }

    /// The name of the database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL, including the password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same database with another login.
    pub fn as_user(&self, user: &str, password: &str) -> Self {
        let (_, address) = self.url.rsplit_once('@').expect("the URL has no user");
        let url = format!("mysql://{user}:{}@{address}", password.replace(' ', "%20"));
        Self { name: self.name.clone(), url }
    }

    /// Host and login as options of MariaDB's own programs.
    pub fn server(&self) -> Vec<String> {
        let opts = Opts::from_url(&self.url).expect("the URL is malformed");
        let (user, password) = (opts.user().unwrap_or_default(), opts.pass().unwrap_or_default());
        vec![
            format!("--host={}", opts.ip_or_hostname()),
            format!("--port={}", opts.tcp_port()),
            format!("--user={user}"),
            format!("--password={password}"),
        ]
    }

    /// A new connection with SQL modes for standard SQL: names in double quotes, `||` as concatenation, and no
    /// backslash escapes.
    pub async fn client(&self) -> Conn {
        self.try_client().await.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The same, or the error.
    pub async fn try_client(&self) -> Result<Conn, mysql_async::Error> {
        let opts = Opts::from_url(&self.url).expect("the URL is malformed");
        let modes = "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES')";
        let opts = OptsBuilder::from_opts(opts).prefer_socket(false).init(vec![modes]);
        Conn::new(opts).await
    }

    /// Runs statements and returns an error if one fails.
    pub async fn try_run(&self, sql: &str) -> Result<(), mysql_async::Error> {
        self.try_client().await?.query_drop(sql).await
    }

    /// Runs statements separated by semicolons, on a new connection.
    pub async fn run(&self, sql: &str) {
        let mut conn = self.client().await;
        self.run_on(&mut conn, sql).await;
        let _ = conn.disconnect().await;
    }

    /// Runs statements on an open connection, for example in a transaction.
    pub async fn run_on(&self, conn: &mut Conn, sql: &str) {
        let done = conn.query_drop(sql).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// The value of a query with one row and one column.
    pub async fn one<T: FromValue + Send + 'static>(&self, sql: &str) -> T {
        let mut conn = self.client().await;
        let found = conn.query_first(sql).await;
        let value = found.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let _ = conn.disconnect().await;
        value.unwrap_or_else(|| panic!("{sql}: no row"))
    }

    /// All values of a query as text, `None` for NULL.
    pub async fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        self.try_rows(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"))
    }

    /// The same, or the error.
    pub async fn try_rows(
        &self,
        sql: &str,
    ) -> Result<Vec<Vec<Option<String>>>, mysql_async::Error> {
        let mut conn = self.try_client().await?;
        let rows: Vec<Row> = conn.query(sql).await?;
        let _ = conn.disconnect().await;
        let text = |value: Value| match value {
            Value::NULL => None,
            Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            other => Some(other.as_sql(true)),
        };
        Ok(rows.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect())
    }
}
