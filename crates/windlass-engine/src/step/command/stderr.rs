//! What a child writes to its standard error: into the log, with the job and chunk it works on.

use super::super::StepBatch;
use futures::FutureExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStderr;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use windlass_core::{ChunkId, JobId};

/// Bytes that a child may write for one batch.
pub(super) const MOST_BYTES: usize = 16 << 20;
/// Bytes of them that are logged.
const MOST_LOGGED: usize = 256 << 10;
/// A longer line is logged in pieces.
const LONGEST_LINE: u64 = 8 << 10;
/// Bytes of the end that go into a dead letter.
const LAST_WORDS: usize = 2000;

/// Reads a child's standard error for as long as it lives.
pub(super) struct Stderr {
    heard: Arc<Heard>,
    reader: JoinHandle<()>,
}

#[derive(Default)]
struct Heard {
    batch: Mutex<Batch>,
    loud: Notify,
}

/// What was written for the batch at work.
#[derive(Default)]
struct Batch {
    job: JobId,
    chunk: Option<ChunkId>,
    /// A part of a batch that has said the same as a whole.
    again: bool,
    bytes: usize,
    end: String,
}

impl Stderr {
    pub(super) fn read(pipe: ChildStderr) -> Stderr {
        let heard = Arc::new(Heard::default());
        let reader = tokio::spawn(read(BufReader::new(pipe), heard.clone()));
        Stderr { heard, reader }
    }

    /// What comes from now on belongs to this batch. Ends when that is too much.
    pub(super) fn begin(&mut self, batch: &StepBatch) -> impl Future<Output = ()> + use<> {
        let (job, chunk, again) = (batch.job.id, batch.chunk, batch.halved > 0);
        *self.heard.batch() = Batch { job, chunk, again, ..Batch::default() };
        let heard = self.heard.clone();
        // What was too much of the batch before is not held against this one.
        let _ = heard.loud.notified().now_or_never();
        async move { heard.loud.notified().await }
    }

    /// The end of what a child wrote that is dead now.
    pub(super) async fn stderr_tail(&mut self) -> String {
        // Somebody it started may have escaped with the other end of the pipe.
        let _ = tokio::time::timeout(Duration::from_secs(1), &mut self.reader).await;
        self.heard.batch().end.trim().to_owned()
    }
}

impl Drop for Stderr {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Heard {
    /// Plain values, which a panic elsewhere cannot leave half changed.
    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read(mut pipe: BufReader<ChildStderr>, heard: Arc<Heard>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut pipe).take(LONGEST_LINE).read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            _ => return,
        }
        if heard.batch().hear(&String::from_utf8_lossy(&line)) > MOST_BYTES {
            heard.loud.notify_one();
        }
    }
}

impl Batch {
    /// Logs a line and remembers it; says how much there was so far.
    fn hear(&mut self, line: &str) -> usize {
        let logged = self.bytes < MOST_LOGGED;
        self.bytes += line.len();
        self.end.push_str(line);
        if self.end.len() > 2 * LAST_WORDS {
            let mut cut = self.end.len() - LAST_WORDS;
            while !self.end.is_char_boundary(cut) {
                cut += 1;
            }
            // Whole lines only, where there are any: half a word cannot be recognised.
            let rest = &self.end[cut..];
            let line = rest.find('\n').map_or(0, |end| end + 1);
            cut += if line < rest.len() { line } else { 0 };
            self.end.drain(..cut);
        }
        let (job, chunk) = (self.job, self.chunk.map(|chunk| chunk.number));
        if logged {
            let line = line.trim_end();
            match self.again {
                false => tracing::info!(target: "windlass::stderr", %job, chunk, "{line}"),
                true => tracing::debug!(target: "windlass::stderr", %job, chunk, "{line}"),
            }
            if self.bytes >= MOST_LOGGED {
                tracing::warn!(%job, chunk, "the rest of what the command writes for this batch is not logged");
            }
        }
        self.bytes
    }
}
