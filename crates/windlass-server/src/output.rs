//! A job's output as JSON lines or CSV, read in pieces so that memory stays bounded.

use crate::csv;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use moka::sync::Cache;
use std::ops::Range;
use std::sync::Arc;
use windlass_connectors::{ConnectorError, EmittedCursor};
use windlass_core::JobId;
use windlass_engine::{Engine, EngineError, JobResult, Result};

/// The output of a job.
pub(crate) enum Output {
    /// The reduced result, whose frames can be read independently.
    Result(Arc<JobResult>),
    /// The rows that its items emitted, which can only be read in order.
    Emitted(Engine, JobId),
}

/// The size of emitted rows by the entity tag of the output. Computing a size reads all rows.
pub(crate) struct LengthCache(Cache<String, u64>);

/// The maximum number of cached sizes.
const MAX_CACHED_LENGTHS: u64 = 1000;
/// Rows fetched at once.
const PAGE_ROWS: u32 = 1000;

type Pieces = BoxStream<'static, Result<Bytes>>;

impl Default for LengthCache {
    fn default() -> LengthCache {
        LengthCache(Cache::new(MAX_CACHED_LENGTHS))
    }
}

impl Output {
    pub(crate) async fn open(engine: &Engine, job: JobId) -> Result<Output> {
        Ok(match engine.result(job).await? {
            Some(result) => Output::Result(Arc::new(result)),
            None => Output::Emitted(engine.clone(), job),
        })
    }

    /// The size in bytes of the version with this entity tag.
    pub(crate) async fn length(&self, lengths: &LengthCache, tag: &str) -> Result<u64> {
        if let Output::Result(result) = self {
            return Ok(result.bytes());
        }
        if let Some(length) = lengths.0.get(tag) {
            return Ok(length);
        }
        let sizes = self.stream().map_ok(|piece| piece.len() as u64);
        let length = sizes.try_fold(0, async |sum, size| Ok(sum + size)).await?;
        lengths.0.insert(tag.to_owned(), length);
        Ok(length)
    }

    /// The whole output.
    pub(crate) fn stream(&self) -> Pieces {
        match self {
            Output::Result(result) => frames(result.clone(), 0..result.frames()),
            Output::Emitted(engine, job) => emitted(engine.clone(), *job),
        }
    }

    /// The whole output as CSV. The columns of emitted rows are those of all rows, so these are read twice.
    pub(crate) async fn stream_csv(&self) -> Result<Pieces> {
        let columns = match self {
            Output::Result(result) => result.names().to_vec(),
            Output::Emitted(..) => {
                let mut columns = Vec::new();
                let mut pieces = self.stream();
                while let Some(piece) = pieces.try_next().await? {
                    csv::add_columns(&piece, &mut columns).map_err(unreadable)?;
                }
                columns
            }
        };
        let header = stream::once(std::future::ready(Ok(csv::header(&columns))));
        let lines =
            self.stream().map(move |piece| csv::convert(&piece?, &columns).map_err(unreadable));
        Ok(header.chain(lines).boxed())
    }

    /// A range of its bytes.
    pub(crate) fn stream_range(&self, range: Range<u64>) -> Pieces {
        match self {
            Output::Result(result) => {
                let first = result.frame_of_byte(range.start);
                let last = result.frame_of_byte(range.end.saturating_sub(1));
                let start = result.frame_start(first);
                slice(frames(result.clone(), first..last + 1), start, range)
            }
            Output::Emitted(engine, job) => slice(emitted(engine.clone(), *job), 0, range),
        }
    }
}

fn unreadable(error: serde_json::Error) -> EngineError {
    ConnectorError::Unreadable(format!("an output row: {error}")).into()
}

/// The frames of a result, each decoded when it is needed.
fn frames(result: Arc<JobResult>, frames: Range<usize>) -> Pieces {
    stream::iter(frames).map(move |frame| Ok(Bytes::from(result.lines(frame)?))).boxed()
}

fn emitted(engine: Engine, job: JobId) -> Pieces {
    let start = (engine, EmittedCursor::default());
    let pages = stream::try_unfold(start, move |(engine, after)| async move {
        let page = engine.output(job, &after, PAGE_ROWS).await?;
        let Some(last) = page.last() else { return Ok(None) };
        let after = last.cursor.clone();
        let mut lines = String::new();
        for row in &page {
            lines.push_str(&row.fields);
            lines.push('\n');
        }
        Ok(Some((Bytes::from(lines), (engine, after))))
    });
    pages.boxed()
}

/// The bytes of a stream that lie in a range; the first piece starts at offset `at`.
fn slice(pieces: Pieces, at: u64, range: Range<u64>) -> Pieces {
    let parts = stream::try_unfold((pieces, at), move |(mut pieces, mut at)| {
        let range = range.clone();
        async move {
            while at < range.end
                && let Some(page) = pieces.try_next().await?
            {
                let from = range.start.saturating_sub(at).min(page.len() as u64) as usize;
                let to = (range.end - at).min(page.len() as u64) as usize;
                at += page.len() as u64;
                if from < to {
                    return Ok(Some((page.slice(from..to), (pieces, at))));
                }
            }
            Ok(None)
        }
    });
    parts.boxed()
}
