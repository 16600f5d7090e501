//! The content hash of rows. It depends only on the rows and their order, not on the format, the compression or the
//! batches.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Decimal256Type, Float64Type, Int64Type,
    TimestampMicrosecondType, UInt64Type,
};
use arrow_array::{Array, PrimitiveArray, RecordBatch};
use arrow_buffer::{ArrowNativeType, NullBuffer, ToByteSlice};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use ring::digest::{Context, SHA256};

use crate::{Error, Result, type_name};

/// SHA-256 over the names and types of the columns, the number of rows, and three hashes per column: of the null flags
/// (one byte each), of the lengths of values with a variable length (four bytes each), and of the values that are
/// not null. Hashing column by column is fast, since it reads contiguous memory.
pub(crate) struct Content {
    schema: SchemaRef,
    rows: u64,
    columns: Vec<Column>,
}

struct Column {
    nulls: Context,
    lengths: Context,
    values: Context,
}

impl Content {
    pub(crate) fn new(schema: SchemaRef) -> Content {
        let new = || Context::new(&SHA256);
        let column = |_| Column { nulls: new(), lengths: new(), values: new() };
        let columns = schema.fields().iter().map(column).collect();
        Content { schema, rows: 0, columns }
    }

    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        for (column, array) in self.columns.iter_mut().zip(batch.columns()) {
            column.add(array.as_ref())?;
        }
        Ok(())
    }

    /// The hash, in hex.
    pub(crate) fn finish(self) -> String {
        let mut all = Context::new(&SHA256);
        all.update(b"windlass rows 1\n");
        all.update(&self.rows.to_le_bytes());
        for (field, column) in self.schema.fields().iter().zip(self.columns) {
            for text in [field.name(), &type_name(field)] {
                all.update(&(text.len() as u64).to_le_bytes());
                all.update(text.as_bytes());
            }
            for part in [column.nulls, column.lengths, column.values] {
                all.update(part.finish().as_ref());
            }
        }
        hex::encode(all.finish())
    }
}

impl Column {
    fn add(&mut self, array: &dyn Array) -> Result<()> {
        self.add_nulls(array.nulls(), array.len());
        match array.data_type() {
            DataType::Int64 => self.add_numbers::<Int64Type>(array.as_primitive()),
            DataType::UInt64 => self.add_numbers::<UInt64Type>(array.as_primitive()),
            DataType::Float64 => self.add_numbers::<Float64Type>(array.as_primitive()),
            DataType::Date32 => self.add_numbers::<Date32Type>(array.as_primitive()),
            DataType::Decimal128(..) => self.add_numbers::<Decimal128Type>(array.as_primitive()),
            DataType::Decimal256(..) => self.add_numbers::<Decimal256Type>(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                self.add_numbers::<TimestampMicrosecondType>(array.as_primitive());
            }
            DataType::Boolean => {
                let values: Vec<u8> = array.as_boolean().iter().flatten().map(u8::from).collect();
                self.values.update(&values);
            }
            DataType::Utf8 => {
                let text = array.as_string::<i32>();
                self.add_strings(text.offsets(), text.values(), text.nulls());
            }
            DataType::Binary => {
                let bytes = array.as_binary::<i32>();
                self.add_strings(bytes.offsets(), bytes.values(), bytes.nulls());
            }
            other => return Err(Error::Encoding(format!("columns of {other} are not supported"))),
        }
        Ok(())
    }

    fn add_nulls(&mut self, nulls: Option<&NullBuffer>, rows: usize) {
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => self.nulls.update(&nulls.iter().map(u8::from).collect::<Vec<_>>()),
            None => {
                const VALID: [u8; 1024] = [1; 1024];
                for start in (0..rows).step_by(VALID.len()) {
                    self.nulls.update(&VALID[..VALID.len().min(rows - start)]);
                }
            }
        }
    }

    /// Hashes numbers in their memory representation, which is little-endian.
    fn add_numbers<T: ArrowPrimitiveType>(&mut self, array: &PrimitiveArray<T>) {
        const { assert!(cfg!(target_endian = "little"), "the hash depends on the byte order") };
        if array.null_count() == 0 {
            return self.values.update(array.values().to_byte_slice());
        }
        let values: Vec<T::Native> = array.iter().flatten().collect();
        self.values.update(values.to_byte_slice());
    }

    fn add_strings(&mut self, offsets: &[i32], bytes: &[u8], nulls: Option<&NullBuffer>) {
        let is_valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
        let lengths: Vec<i32> = (offsets.windows(2).enumerate())
            .filter(|(row, _)| is_valid(*row))
            .map(|(_, ends)| ends[1] - ends[0])
            .collect();
        self.lengths.update(lengths.to_byte_slice());
        if nulls.is_none_or(|nulls| nulls.null_count() == 0) {
            let (start, end) = (offsets.first(), offsets.last());
            let (start, end) =
                (start.map_or(0, |at| at.as_usize()), end.map_or(0, |at| at.as_usize()));
            return self.values.update(&bytes[start..end]);
        }
        for (_, ends) in offsets.windows(2).enumerate().filter(|(row, _)| is_valid(*row)) {
            self.values.update(&bytes[ends[0].as_usize()..ends[1].as_usize()]);
        }
    }
}
