//! The application's side of the outbox, in Rust.

use futures::future::BoxFuture;
#[cfg(feature = "sqlite")]
use rusqlite::OptionalExtension as _;
use serde_json::json;
#[cfg(feature = "postgres")]
use tokio_postgres::types::Type;
use windlass_core::{Identity, JobId, Problem, Request};

/// Puts a request into the outbox, in a transaction of the application's own: with its commit the
/// request becomes a job, and without it nothing happens. Gives the id that the job will have, and
/// none where the list of items is empty, which makes no job.
///
/// The identity is who submits, and the claims that the job type filters by.
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
/// With `rusqlite` it is the same without `.await`.
pub fn enqueue<'a, T: Enqueue>(
    transaction: &'a mut T,
    request: &Request,
    identity: &Identity,
) -> T::Enqueued<'a> {
    transaction.put(Entry::of(request, identity))
}

/// A transaction that a request can be put into the outbox with.
pub trait Enqueue {
    /// What comes of it, at once or awaited.
    type Enqueued<'a>
    where
        Self: 'a;
    /// Puts the entry there; [`enqueue`] calls it.
    fn put(&mut self, entry: Result<Option<Entry>, Problem>) -> Self::Enqueued<'_>;
}

/// A request as the outbox keeps it.
#[derive(Clone, Debug)]
pub struct Entry {
    job_type: String,
    request: String,
}

/// Why a request could not be put into the outbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// It would be refused.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// PostgreSQL did not take it.
    #[cfg(feature = "postgres")]
    #[error("the outbox did not take the request: {0}")]
    Postgres(#[from] tokio_postgres::Error),
    /// SQLite did not take it.
    #[cfg(feature = "sqlite")]
    #[error("the outbox did not take the request: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl Entry {
    /// None where there is nothing to do.
    fn of(request: &Request, identity: &Identity) -> Result<Option<Entry>, Problem> {
        if request.items.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
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
        Ok(Some(Entry { job_type: request.job_type.clone(), request: json.to_string() }))
    }
}

#[cfg(feature = "postgres")]
impl Enqueue for tokio_postgres::Transaction<'_> {
    type Enqueued<'a>
        = BoxFuture<'a, Result<Option<JobId>, EnqueueError>>
    where
        Self: 'a;

    fn put(&mut self, entry: Result<Option<Entry>, Problem>) -> Self::Enqueued<'_> {
        Box::pin(async move {
            let Some(Entry { job_type, request }) = entry? else { return Ok(None) };
            let sql = include_str!("../../sql/postgres/enqueue.sql");
            // With the types given, so that no statement is left behind for a pooler to lose.
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

    fn put(&mut self, entry: Result<Option<Entry>, Problem>) -> Self::Enqueued<'_> {
        let Some(Entry { job_type, request }) = entry? else { return Ok(None) };
        let sql = include_str!("../../sql/sqlite/enqueue.sql");
        let id: Option<String> =
            self.query_row(sql, [job_type, request], |row| row.get(0)).optional()?;
        Ok(id.and_then(|id| id.parse().ok()))
    }
}
