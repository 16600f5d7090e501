//! Reads the first batch of a chunk while the chunk waits for a slot, so that its step can begin at once.

use crate::execute::chunk_runner::ChunkRunner;
use crate::execute::per_item::MAX_BATCH_BYTES;
use crate::execute::poison;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use windlass_connectors::{Batch, ReadLimits};
use windlass_core::{KeySet, Keys};

/// A batch that is being read, or was read.
pub(crate) struct ReadAhead {
    key_set: KeySet,
    limit: u32,
    /// The batch, and when it had been read.
    reading: JoinHandle<Option<(Batch, Instant)>>,
}

/// Records that were read longer ago are read again: the longer ago, the more of them have changed.
const MAX_AGE: Duration = Duration::from_secs(1);

impl ChunkRunner {
    /// Begins to read the first batch, if its step has an outcome per item and nothing limits when it may start.
    pub(crate) fn read_ahead(&mut self) {
        if self.ahead.is_some() || !self.may_read_ahead() {
            return;
        }
        let Some(key_set) = self.remaining().filter(|rest| matches!(rest.keys, Keys::Range(_)))
        else {
            return;
        };
        let (job, rest, limit) = (self.job.clone(), key_set.clone(), self.batch_size);
        let reading = tokio::spawn(async move {
            let limits = ReadLimits::new(limit, MAX_BATCH_BYTES);
            // After an error the chunk reads again in its slot, where an error is handled.
            let batch = job.source.read(&job.scope, &rest, limits).await.ok()?;
            Some((batch, Instant::now()))
        });
        self.ahead = Some(ReadAhead { key_set, limit, reading });
    }

    fn may_read_ahead(&self) -> bool {
        let job = &self.job;
        job.step.is_some()
            && job.throttle.delay_time().is_zero()
            && job.controls.rate(&job.snapshot).is_none()
            && job.availability.outage().is_none()
            && !job.is_stopped()
            && !poison::is_suspected(self)
    }

    /// The batch that was read ahead, if it is the next one. Waits if it is still being read.
    pub(crate) async fn take_ahead(&mut self, key_set: &KeySet, limit: u32) -> Option<Batch> {
        let mut ahead = self.ahead.take()?;
        if ahead.key_set != *key_set || ahead.limit > limit {
            return None;
        }
        let (batch, read_at) = (&mut ahead.reading).await.ok().flatten()?;
        (read_at.elapsed() <= MAX_AGE).then_some(batch)
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
