//! A job's output as bytes: a line of JSON per emitted row, read a page at a time.

use bytes::Bytes;
use futures::stream::{self, Stream, TryStreamExt};
use std::ops::Range;
use windlass_core::JobId;
use windlass_data::FIRST;
use windlass_engine::{Engine, Result};

/// Rows fetched at once, so that memory stays flat.
const PAGE: u32 = 1000;

/// The whole output.
pub(crate) fn all(engine: Engine, job: JobId) -> impl Stream<Item = Result<Bytes>> {
    stream::try_unfold((engine, FIRST), move |(engine, after)| async move {
        let page = engine.output(job, &after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        let after = last.place.clone();
        let mut lines = String::new();
        for row in &page {
            lines.push_str(&row.fields);
            lines.push('\n');
        }
        Ok(Some((Bytes::from(lines), (engine, after))))
    })
}

/// How many bytes it has.
pub(crate) async fn length(engine: Engine, job: JobId) -> Result<u64> {
    all(engine, job).try_fold(0, |sum, page| async move { Ok(sum + page.len() as u64) }).await
}

/// Some of its bytes.
pub(crate) fn part(
    engine: Engine,
    job: JobId,
    range: Range<u64>,
) -> impl Stream<Item = Result<Bytes>> {
    let begin = (Box::pin(all(engine, job)), 0);
    stream::try_unfold(begin, move |(mut pages, mut at)| {
        let range = range.clone();
        async move {
            while at < range.end
                && let Some(page) = pages.try_next().await?
            {
                let from = range.start.saturating_sub(at).min(page.len() as u64) as usize;
                let to = (range.end - at).min(page.len() as u64) as usize;
                at += page.len() as u64;
                if from < to {
                    return Ok(Some((page.slice(from..to), (pages, at))));
                }
            }
            Ok(None)
        }
    })
}
