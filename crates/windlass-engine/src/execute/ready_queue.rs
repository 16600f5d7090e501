//! Chunks that are leased and wait for a slot of this worker, the most urgent first.

use crate::execute::chunk_runner::ChunkRunner;
use crate::job_context::JobContext;
use std::collections::VecDeque;
use windlass_core::JobId;

/// The chunks in reserve. Among jobs of equal priority, the one with the fewest chunks in slots comes
/// first.
#[derive(Default)]
pub(crate) struct ReadyQueue {
    /// By priority, then in the order in which they arrived.
    chunks: VecDeque<ChunkRunner>,
}

impl ReadyQueue {
    /// Adds a chunk that was acquired, behind those that are as urgent.
    pub(crate) fn push(&mut self, chunk: ChunkRunner) {
        let index = self.chunks.partition_point(|other| other.priority() >= chunk.priority());
        self.chunks.insert(index, chunk);
    }

    /// Adds a chunk that was in a slot before, in front of those that are as urgent.
    pub(crate) fn push_front(&mut self, chunk: ChunkRunner) {
        let index = self.chunks.partition_point(|other| other.priority() > chunk.priority());
        self.chunks.insert(index, chunk);
    }

    /// Takes the next chunk: of the highest priority, and of the job with the fewest chunks in slots. With
    /// `above`, only a chunk of a higher priority.
    pub(crate) fn pop(
        &mut self,
        above: Option<u8>,
        in_slots: impl Fn(JobId) -> usize,
    ) -> Option<ChunkRunner> {
        let highest = self.chunks.front()?.priority();
        if above.is_some_and(|above| highest <= above) {
            return None;
        }
        let peers = self.chunks.iter().take_while(|chunk| chunk.priority() == highest);
        let peers = peers.map(|chunk| in_slots(chunk.lease().chunk.job)).enumerate();
        let (index, _) = peers.min_by_key(|(_, in_slots)| *in_slots)?;
        self.chunks.remove(index)
    }

    /// Begins to read the first batches of the next chunks, as many as there are slots.
    pub(crate) fn read_ahead(&mut self, slots: usize) {
        self.chunks.iter_mut().take(slots).for_each(ChunkRunner::read_ahead);
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// The lowest priority of a chunk in the queue; the highest possible one if it is empty.
    pub(crate) fn lowest_priority(&self) -> u8 {
        self.chunks.back().map_or(u8::MAX, ChunkRunner::priority)
    }

    /// The number of chunks above the lowest priority.
    pub(crate) fn urgent(&self) -> usize {
        let lowest = self.lowest_priority();
        self.chunks.iter().take_while(|chunk| chunk.priority() > lowest).count()
    }

    pub(crate) fn jobs(&self) -> impl Iterator<Item = &JobContext> {
        self.chunks.iter().map(|chunk| chunk.job.as_ref())
    }

    pub(crate) fn into_chunks(self) -> impl Iterator<Item = ChunkRunner> {
        self.chunks.into_iter()
    }
}
