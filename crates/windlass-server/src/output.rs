//! A job's output as bytes: a line of JSON per row, read a piece at a time.

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_connectors::EmittedCursor;
use windlass_core::JobId;
use windlass_engine::{Engine, JobResult, Result};

/// The output of a job.
pub(crate) enum Output {
    /// Its result, of which each piece can be read by itself.
    Result(Arc<JobResult>),
    /// The rows that its items emitted, which are read in order.
    Emitted(Engine, JobId),
}

/// How many bytes the emitted rows of ended jobs have, by version. Counting them reads them all.
#[derive(Default)]
pub(crate) struct Lengths(Mutex<HashMap<String, u64>>);

/// Versions that are remembered; they cost little and are counted anew.
const MOST_LENGTHS: usize = 1000;
/// Rows fetched at once, so that memory stays flat.
const PAGE: u32 = 1000;

type Pieces = BoxStream<'static, Result<Bytes>>;

impl Output {
    pub(crate) async fn open(engine: &Engine, job: JobId) -> Result<Output> {
        Ok(match engine.result(job).await? {
            Some(result) => Output::Result(Arc::new(result)),
            None => Output::Emitted(engine.clone(), job),
        })
    }

    /// How many bytes this version of it has.
    pub(crate) async fn length(&self, lengths: &Lengths, version: &str) -> Result<u64> {
        if let Output::Result(result) = self {
            return Ok(result.bytes());
        }
        let lock = || lengths.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(version).copied() {
            return Ok(known);
        }
        let counted =
            self.all().try_fold(0, |sum, piece| async move { Ok(sum + piece.len() as u64) });
        let counted = counted.await?;
        let mut lengths = lock();
        if lengths.len() >= MOST_LENGTHS {
            lengths.clear();
        }
        lengths.insert(version.to_owned(), counted);
        Ok(counted)
    }

    /// The whole output.
    pub(crate) fn all(&self) -> Pieces {
        match self {
            Output::Result(result) => frames(result.clone(), 0..result.frames()),
            Output::Emitted(engine, job) => emitted(engine.clone(), *job),
        }
    }

    /// Some of its bytes.
    pub(crate) fn part(&self, range: Range<u64>) -> Pieces {
        match self {
            Output::Result(result) => {
                let first = result.frame_of_byte(range.start);
                let last = result.frame_of_byte(range.end.saturating_sub(1));
                let start = result.frame_start(first);
                cut(frames(result.clone(), first..last + 1), start, range)
            }
            Output::Emitted(engine, job) => cut(emitted(engine.clone(), *job), 0, range),
        }
    }
}

/// The frames of a result, each decoded when its turn comes.
fn frames(result: Arc<JobResult>, frames: Range<usize>) -> Pieces {
    stream::iter(frames).map(move |frame| Ok(Bytes::from(result.lines(frame)?))).boxed()
}

fn emitted(engine: Engine, job: JobId) -> Pieces {
    let start = (engine, EmittedCursor::default());
    let pages = stream::try_unfold(start, move |(engine, after)| async move {
        let page = engine.output(job, &after, PAGE).await?;
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

/// Those bytes of pieces that lie in a range; the first piece begins at `at`.
fn cut(pieces: Pieces, at: u64, range: Range<u64>) -> Pieces {
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
