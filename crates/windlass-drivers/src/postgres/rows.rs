//! A stream of rows.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::Stream;
use tokio_postgres::{Row, RowStream};

use crate::Error;

/// The rows of [`Transaction::stream`](super::Transaction::stream).
///
/// If it is dropped early, the connection skips the rest before its next statement.
pub struct Rows {
    rows: Pin<Box<RowStream>>,
}

impl Rows {
    pub(super) fn new(rows: RowStream) -> Self {
        Rows { rows: Box::pin(rows) }
    }
}

impl Stream for Rows {
    type Item = Result<Row, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.rows.as_mut().poll_next(cx));
        Poll::Ready(next.map(|row| row.map_err(Error::from)))
    }
}
