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
use std::ops::Range;

use crate::{Error, Result, type_name};

/// SHA-256 over the names and types of the columns, the number of rows, and three hashes per column: of the null flags
/// (one byte each), of the lengths of values with a variable length (four bytes each), and of the values that are
/// not null. The elements of lists are a column of their own. Hashing column by column is fast, since it reads contiguous memory.
pub(crate) struct Content {
    schema: SchemaRef,
    rows: u64,
    columns: Vec<Column>,
}

struct Column {
    nulls: Context,
    lengths: Context,
    values: Context,
    /// The elements of a column of lists.
    elements: Option<Box<Column>>,
}

impl Content {
    pub(crate) fn new(schema: SchemaRef) -> Content {
        let columns = schema.fields().iter().map(|field| Column::new(field.data_type())).collect();
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
            column.finish(&mut all);
        }
        hex::encode(all.finish())
    }
}

impl Column {
    fn new(data_type: &DataType) -> Column {
        let new = || Context::new(&SHA256);
        let elements = match data_type {
            DataType::List(field) => Some(Box::new(Column::new(field.data_type()))),
            _ => None,
        };
        Column { nulls: new(), lengths: new(), values: new(), elements }
    }

    fn finish(self, all: &mut Context) {
        for part in [self.nulls, self.lengths, self.values] {
            all.update(part.finish().as_ref());
        }
        if let Some(elements) = self.elements {
            elements.finish(all);
        }
    }

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
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                self.add_lengths(list.offsets(), list.nulls());
                let range = whole_range(list.offsets());
                let elements = list.values().slice(range.start, range.len());
                self.elements.iter_mut().try_for_each(|column| column.add(elements.as_ref()))?;
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
        self.add_lengths(offsets, nulls);
        if nulls.is_none_or(|nulls| nulls.null_count() == 0) {
            return self.values.update(&bytes[whole_range(offsets)]);
        }
        for ends in valid(offsets, nulls) {
            self.values.update(&bytes[ends[0].as_usize()..ends[1].as_usize()]);
        }
    }

    fn add_lengths(&mut self, offsets: &[i32], nulls: Option<&NullBuffer>) {
        let lengths: Vec<i32> = valid(offsets, nulls).map(|ends| ends[1] - ends[0]).collect();
        self.lengths.update(lengths.to_byte_slice());
    }
}

/// The begin and end of each value that is not null.
fn valid<'a>(offsets: &'a [i32], nulls: Option<&'a NullBuffer>) -> impl Iterator<Item = &'a [i32]> {
    let is_valid = move |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    let values = offsets.windows(2).enumerate();
    values.filter(move |(row, _)| is_valid(*row)).map(|(_, ends)| ends)
}

/// The range from the first value to the last.
fn whole_range(offsets: &[i32]) -> Range<usize> {
    let at = |offset: Option<&i32>| offset.map_or(0, |at| at.as_usize());
    at(offsets.first())..at(offsets.last())
}
