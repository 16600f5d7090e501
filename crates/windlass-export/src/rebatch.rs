//! Rows cut into batches by the rows alone: however they arrive, the same rows are encoded by the
//! same steps, so that the same rows give the same bytes.

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType};
use arrow_select::concat::concat_batches;

/// Rows in a batch, unless they are wide.
const ROWS: usize = 8 * 1024;
/// Bytes of text and the like in a batch, so that wide rows do not fill the memory.
const BYTES: usize = 4 * 1024 * 1024;

/// What was not enough for a batch yet.
#[derive(Default)]
pub(crate) struct Cut {
    pending: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl Cut {
    /// Takes rows in and gives the batches that are complete.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<Vec<RecordBatch>, ArrowError> {
        let (mut complete, mut start) = (Vec::new(), 0);
        let offsets = offsets(batch);
        while start < batch.num_rows() {
            let (length, is_full) = self.fitting(&offsets, start, batch.num_rows());
            self.pending.push(batch.slice(start, length));
            start += length;
            if is_full {
                complete.extend(self.rest()?);
            }
        }
        Ok(complete)
    }

    /// What is left.
    pub(crate) fn rest(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        (self.rows, self.bytes) = (0, 0);
        let pending = std::mem::take(&mut self.pending);
        match pending.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            [first, ..] => concat_batches(&first.schema(), &pending).map(Some),
        }
    }

    /// How many rows from `start` on belong to the batch in the making, and whether it is full then.
    fn fitting(&mut self, offsets: &[&[i32]], start: usize, end: usize) -> (usize, bool) {
        for row in start..end {
            self.rows += 1;
            let sizes = offsets.iter().map(|ends| ends[row + 1] - ends[row]);
            self.bytes += sizes.map(|size| usize::try_from(size).unwrap_or(0)).sum::<usize>();
            if self.rows == ROWS || self.bytes >= BYTES {
                return (row + 1 - start, true);
            }
        }
        (end - start, false)
    }
}

/// Where the values of the columns without a fixed width end. Other columns do not matter.
fn offsets(batch: &RecordBatch) -> Vec<&[i32]> {
    let columns = batch.columns().iter().filter_map(|column| match column.data_type() {
        DataType::Utf8 => Some(&**column.as_string::<i32>().offsets()),
        DataType::Binary => Some(&**column.as_binary::<i32>().offsets()),
        _ => None,
    });
    columns.collect()
}
