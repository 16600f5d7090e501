//! Divides rows into batches independently of the batches in which they arrive, so that the same rows give the same
//! bytes.

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType};
use arrow_select::concat::concat_batches;

/// The most rows of a batch.
const MAX_ROWS: usize = 8 * 1024;
/// The most bytes of values with a variable length in a batch, which limits memory for wide rows.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Collects rows until they fill a batch.
#[derive(Default)]
pub(crate) struct Rebatcher {
    pending: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl Rebatcher {
    /// Adds rows and returns the complete batches.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<Vec<RecordBatch>, ArrowError> {
        let (mut complete, mut start) = (Vec::new(), 0);
        let offsets = offsets(batch);
        while start < batch.num_rows() {
            let (length, is_full) = self.fit(&offsets, start, batch.num_rows());
            self.pending.push(batch.slice(start, length));
            start += length;
            if is_full {
                complete.extend(self.finish()?);
            }
        }
        Ok(complete)
    }

    /// The last batch, which is not full.
    pub(crate) fn finish(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        (self.rows, self.bytes) = (0, 0);
        let pending = std::mem::take(&mut self.pending);
        match pending.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            [first, ..] => concat_batches(&first.schema(), &pending).map(Some),
        }
    }

    /// The number of rows from `start` on that fit into the current batch, and whether it is full then.
    fn fit(&mut self, offsets: &[&[i32]], start: usize, end: usize) -> (usize, bool) {
        for row in start..end {
            self.rows += 1;
            let sizes = offsets.iter().map(|ends| ends[row + 1] - ends[row]);
            self.bytes += sizes.map(|size| usize::try_from(size).unwrap_or(0)).sum::<usize>();
            if self.rows == MAX_ROWS || self.bytes >= MAX_BYTES {
                return (row + 1 - start, true);
            }
        }
        (end - start, false)
    }
}

/// The offsets of the columns with a variable length.
fn offsets(batch: &RecordBatch) -> Vec<&[i32]> {
    let columns = batch.columns().iter().filter_map(|column| match column.data_type() {
        DataType::Utf8 => Some(&**column.as_string::<i32>().offsets()),
        DataType::Binary => Some(&**column.as_binary::<i32>().offsets()),
        _ => None,
    });
    columns.collect()
}
