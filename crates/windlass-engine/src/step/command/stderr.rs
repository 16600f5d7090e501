//! Logs what a child process writes to stderr, with the job and chunk it is processing.

use super::super::StepBatch;
use futures::FutureExt;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStderr;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use windlass_core::{ChunkId, JobId};

/// Maximum number of bytes that a child may write to stderr for one batch.
pub(super) const MAX_STDERR_BYTES: usize = 16 << 20;
/// Bytes per batch that are logged.
const MAX_LOGGED_BYTES: usize = 256 << 10;
/// Longer lines are logged in pieces.
const MAX_LINE_BYTES: u64 = 8 << 10;
/// Bytes from the end that are kept for dead letters.
const TAIL_BYTES: usize = 2000;
/// How long to wait for the rest of the output of a child that was killed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads the stderr of a child until it is dropped.
pub(super) struct Stderr {
    capture: Arc<Capture>,
    reader: JoinHandle<()>,
}

/// What the reader shares with the child.
#[derive(Default)]
struct Capture {
    batch: Mutex<BatchOutput>,
    /// Notified when a batch writes more than [`MAX_STDERR_BYTES`].
    overflow: Notify,
}

/// What was written for the current batch.
#[derive(Default)]
struct BatchOutput {
    job: JobId,
    chunk: Option<ChunkId>,
    /// Whether the batch is a half of one that failed: its output was logged before.
    is_half: bool,
    bytes: usize,
    tail: String,
}

impl Stderr {
    pub(super) fn read(pipe: ChildStderr) -> Stderr {
        let capture = Arc::new(Capture::default());
        let reader = tokio::spawn(read(BufReader::new(pipe), capture.clone()));
        Stderr { capture, reader }
    }

    /// Attributes all further output to this batch. The returned future resolves when the batch writes
    /// more than [`MAX_STDERR_BYTES`].
    pub(super) fn begin(&mut self, batch: &StepBatch) -> impl Future<Output = ()> + use<> {
        let (job, chunk, is_half) = (batch.job.id, batch.chunk, batch.halved > 0);
        *self.capture.batch.lock() = BatchOutput { job, chunk, is_half, ..BatchOutput::default() };
        let capture = self.capture.clone();
        // Consume a notification of the previous batch.
        let _ = capture.overflow.notified().now_or_never();
        async move { capture.overflow.notified().await }
    }

    /// The last lines that a child wrote before it was killed.
    pub(super) async fn tail(&mut self) -> String {
        // A process that the child started may still hold the other end of the pipe.
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, &mut self.reader).await;
        self.capture.batch.lock().tail.trim().to_owned()
    }
}

impl Drop for Stderr {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn read(mut pipe: BufReader<ChildStderr>, capture: Arc<Capture>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut pipe).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            _ => return,
        }
        if capture.batch.lock().append(&String::from_utf8_lossy(&line)) > MAX_STDERR_BYTES {
            capture.overflow.notify_one();
        }
    }
}

impl BatchOutput {
    /// Logs a line and appends it to the tail. Returns the bytes written for the batch so far.
    fn append(&mut self, line: &str) -> usize {
        let logged = self.bytes < MAX_LOGGED_BYTES;
        self.bytes += line.len();
        self.tail.push_str(line);
        if self.tail.len() > 2 * TAIL_BYTES {
            let mut cut = self.tail.len() - TAIL_BYTES;
            while !self.tail.is_char_boundary(cut) {
                cut += 1;
            }
            // Cut at a line break, if there is one.
            let kept = &self.tail[cut..];
            let line = kept.find('\n').map_or(0, |end| end + 1);
            cut += if line < kept.len() { line } else { 0 };
            self.tail.drain(..cut);
        }
        let (job, chunk) = (self.job, self.chunk.map(|chunk| chunk.number));
        if logged {
            let line = line.trim_end();
            match self.is_half {
                false => tracing::info!(target: "windlass::stderr", %job, chunk, "{line}"),
                true => tracing::debug!(target: "windlass::stderr", %job, chunk, "{line}"),
            }
            if self.bytes >= MAX_LOGGED_BYTES {
                tracing::warn!(%job, chunk,
                    "stderr of the command exceeds {MAX_LOGGED_BYTES} bytes for this batch; not logging the rest");
            }
        }
        self.bytes
    }
}
