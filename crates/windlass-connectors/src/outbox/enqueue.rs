//! The application's side of the outbox.

use futures::future::BoxFuture;
#[cfg(feature = "sqlite")]
use rusqlite::OptionalExtension as _;
use serde_json::json;
#[cfg(feature = "postgres")]
use tokio_postgres::types::Type;
use windlass_core::{Identity, JobId, Problem, Request};

/// Inserts a request into the outbox, in a transaction of the application: it becomes a job if the
/// transaction is committed. Returns the id of the future job, or `None` if the list of items is empty:
/// then there is no job, and the relay logs a warning.
///
/// The identity names the submitter and the claims by which the job type filters.
///
/// # Errors
/// Fails if the request is too large, or if the database refuses the insert.
///
#[cfg_attr(feature = "postgres", doc = "```no_run")]
#[cfg_attr(not(feature = "postgres"), doc = "```ignore")]
/// # async fn example(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::json;
/// use windlass_core::{Identity, Request};
/// use windlass_connectors::outbox;
///
/// let points = vec![json!({"id": 1, "fileId": "a.rs"}), json!({"id": 2, "fileId": "a.rs"})];
/// let request = Request {
///     params: [("fileId".to_owned(), json!("a.rs"))].into(),
///     items: Some(points),
///     ..Request::new("RESOLVE")
/// };
/// let mut transaction = client.transaction().await?;
/// transaction.execute("UPDATE files SET analysed = true WHERE id = 'a.rs'", &[]).await?;
/// let job = outbox::enqueue(&mut transaction, &request, &Identity::default()).await?;
/// transaction.commit().await?;
/// # let _ = job;
/// # Ok(())
/// # }
/// ```
///
/// With `rusqlite` the call is the same without `.await`.
pub fn enqueue<'a, T: Enqueue>(
    transaction: &'a mut T,
    request: &Request,
    identity: &Identity,
) -> T::Enqueued<'a> {
    transaction.put(Entry::new(request, identity))
}

/// A transaction that can insert into the outbox.
pub trait Enqueue {
    /// The result, or a future of it.
    type Enqueued<'a>
    where
        Self: 'a;
    /// Inserts the entry. Called by [`enqueue`].
    fn put(&mut self, entry: Result<Entry, Problem>) -> Self::Enqueued<'_>;
}

/// A request in the format of the outbox.
#[derive(Clone, Debug)]
pub struct Entry {
    job_type: String,
    request: String,
}

/// The error of [`enqueue`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The request is invalid.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// PostgreSQL refused the insert.
    #[cfg(feature = "postgres")]
    #[error("failed to insert the request into the outbox: {0}")]
    Postgres(#[from] tokio_postgres::Error),
    /// SQLite refused the insert.
    #[cfg(feature = "sqlite")]
    #[error("failed to insert the request into the outbox: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl Entry {
    fn new(request: &Request, identity: &Identity) -> Result<Entry, Problem> {
        request.check_size()?;
        let mut json = serde_json::to_value(request).unwrap_or_default();
        if let Some(fields) = json.as_object_mut() {
            fields.remove("jobType");
            if !identity.claims.is_empty() {
                fields.insert("claims".to_owned(), json!(identity.claims));
            }
            if !identity.name.is_empty() {
                fields.insert("submittedBy".to_owned(), json!(identity.name));
            }
        }
        Ok(Entry { job_type: request.job_type.clone(), request: json.to_string() })
    }
}

#[cfg(feature = "postgres")]
impl Enqueue for tokio_postgres::Transaction<'_> {
    type Enqueued<'a>
        = BoxFuture<'a, Result<Option<JobId>, EnqueueError>>
    where
        Self: 'a;

    fn put(&mut self, entry: Result<Entry, Problem>) -> Self::Enqueued<'_> {
        Box::pin(async move {
            let Entry { job_type, request } = entry?;
            let sql = include_str!("../../sql/postgres/enqueue.sql");
            // Given types avoid a prepared statement, which a pooler might lose.
            let rows =
                self.query_typed(sql, &[(&job_type, Type::TEXT), (&request, Type::TEXT)]).await?;
            Ok(rows.first().map(|row| row.try_get(0)).transpose()?.flatten())
        })
    }
}

#[cfg(feature = "sqlite")]
impl Enqueue for rusqlite::Transaction<'_> {
    type Enqueued<'a>
        = Result<Option<JobId>, EnqueueError>
    where
        Self: 'a;

    fn put(&mut self, entry: Result<Entry, Problem>) -> Self::Enqueued<'_> {
        let Entry { job_type, request } = entry?;
        let sql = include_str!("../../sql/sqlite/enqueue.sql");
        let id: Option<String> =
            self.query_row(sql, [job_type, request], |row| row.get(0)).optional()?;
        Ok(id.and_then(|id| id.parse().ok()))
    }
}
