//! Decodes the binary format of PostgreSQL's COPY: rows of cells, each with a length and its bytes.

use crate::fan_in::data_error;
use crate::sql::is_array;
use crate::{ConnectorError, Result, array_text};
use std::borrow::Cow;
use uuid::Uuid;
use windlass_core::{Column, ColumnType, Value};
use windlass_drivers::Bytes;
use windlass_export::{Cell, DataType, Field, InvalidValue, RowBuilder};

/// How the cells of a column are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireFormat {
    Bool,
    /// An integer of two, four or eight bytes.
    Int,
    /// A float of four or eight bytes.
    Float,
    /// A decimal as units of this scale.
    Decimal(u32),
    Date,
    Timestamp,
    Uuid,
    Text,
    Bytes,
    /// JSON as text.
    Json,
    /// An array as text, to be read as JSON.
    List,
    /// Any other type as text.
    Rendered,
}

impl WireFormat {
    /// The format of a column for a field of this type. A domain has the format of its base type.
    pub(super) fn of(column: &Column, field: &Field) -> WireFormat {
        match (column.kind, field.data_type()) {
            (ColumnType::Bool, _) => WireFormat::Bool,
            (ColumnType::Int, DataType::Int64) => WireFormat::Int,
            (ColumnType::Float, _) => WireFormat::Float,
            (ColumnType::Numeric, DataType::Decimal128(_, scale)) => {
                u32::try_from(*scale).map_or(WireFormat::Rendered, WireFormat::Decimal)
            }
            (ColumnType::Date, _) => WireFormat::Date,
            (ColumnType::Timestamp, _) => WireFormat::Timestamp,
            (ColumnType::Uuid, _) => WireFormat::Uuid,
            (ColumnType::Text, _) => WireFormat::Text,
            (ColumnType::Bytes, _) => WireFormat::Bytes,
            _ if is_array(Some(column)) => WireFormat::List,
            (ColumnType::Json, _) => WireFormat::Json,
            _ => WireFormat::Rendered,
        }
    }
}

/// Decodes rows from pieces of any size.
pub(super) struct Reader {
    formats: Vec<WireFormat>,
    columns: Vec<Column>,
    /// The cells of the current row. `None` for NULL.
    cells: Vec<Option<std::ops::Range<usize>>>,
    /// The beginning of an incomplete row.
    incomplete: Vec<u8>,
    stage: Stage,
}

#[derive(PartialEq)]
enum Stage {
    Header,
    Rows,
    End,
}

/// Bytes that are being decoded, and the current position.
pub(super) struct Piece {
    bytes: Bytes,
    at: usize,
}

/// The first bytes of the stream.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

impl Reader {
    pub(super) fn new(columns: &[Column], formats: Vec<WireFormat>) -> Reader {
        let columns = columns.to_vec();
        Reader { formats, columns, cells: Vec::new(), incomplete: Vec::new(), stage: Stage::Header }
    }

    /// Starts with the next bytes. The server sends whole rows, so usually nothing is left over.
    pub(super) fn feed(&mut self, piece: Bytes) -> Piece {
        if self.incomplete.is_empty() {
            return Piece { bytes: piece, at: 0 };
        }
        let mut joined = std::mem::take(&mut self.incomplete);
        joined.extend_from_slice(&piece);
        Piece { bytes: joined.into(), at: 0 }
    }

    /// Decodes a row into the builder. Returns whether there was a complete one.
    pub(super) fn next(&mut self, piece: &mut Piece, builder: &mut RowBuilder) -> Result<bool> {
        if self.stage == Stage::Header && !self.header(piece)? {
            return Ok(self.keep(piece));
        }
        if self.stage != Stage::Rows || piece.at == piece.bytes.len() {
            return Ok(false);
        }
        let bytes = &piece.bytes;
        let mut at = piece.at;
        match take::<2>(bytes, &mut at).map(i16::from_be_bytes) {
            None => return Ok(self.keep(piece)),
            Some(-1) => {
                self.stage = Stage::End;
                return Ok(false);
            }
            Some(count) if usize::try_from(count) == Ok(self.formats.len()) => {}
            Some(count) => return Err(broken(&format!("a row has {count} columns"))),
        }
        self.cells.clear();
        for _ in 0..self.formats.len() {
            let Some(length) = take::<4>(bytes, &mut at).map(i32::from_be_bytes) else {
                return Ok(self.keep(piece));
            };
            let Ok(length) = usize::try_from(length) else {
                self.cells.push(None);
                continue;
            };
            if bytes.len() - at < length {
                return Ok(self.keep(piece));
            }
            self.cells.push(Some(at..at + length));
            at += length;
        }
        let cell = |index: usize| match &self.cells[index] {
            None => Ok(Cell::Null),
            Some(range) => self.formats[index].read(&bytes[range.clone()], &self.columns[index]),
        };
        builder.push_with(cell).map_err(data_error)?;
        piece.at = at;
        Ok(true)
    }

    /// Fails if the stream was not complete.
    pub(super) fn end(&self) -> Result<()> {
        match self.stage {
            Stage::End => Ok(()),
            _ => Err(broken("it ends early")),
        }
    }

    fn header(&mut self, piece: &mut Piece) -> Result<bool> {
        let fixed = SIGNATURE.len() + 8;
        let Some(header) = piece.bytes.get(..fixed) else { return Ok(false) };
        let mut at = fixed - 4;
        let extension = take::<4>(&piece.bytes, &mut at).map_or(-1, i32::from_be_bytes);
        let end = usize::try_from(extension).ok().and_then(|length| fixed.checked_add(length));
        match end {
            Some(end) if header.starts_with(SIGNATURE) => {
                if piece.bytes.len() < end {
                    return Ok(false);
                }
                piece.at = end;
                self.stage = Stage::Rows;
                Ok(true)
            }
            _ => Err(broken("its header is unknown")),
        }
    }

    /// Keeps the beginning of a row until the rest of it arrives.
    fn keep(&mut self, piece: &mut Piece) -> bool {
        self.incomplete.extend_from_slice(&piece.bytes[piece.at..]);
        piece.at = piece.bytes.len();
        false
    }
}

fn broken(why: &str) -> ConnectorError {
    ConnectorError::Unreadable(format!("the answer to COPY: {why}"))
}

fn take<const N: usize>(bytes: &[u8], at: &mut usize) -> Option<[u8; N]> {
    let taken = bytes.get(*at..*at + N)?.try_into().ok()?;
    *at += N;
    Some(taken)
}

/// The days from 1970, the epoch of Arrow, to 2000, the epoch of PostgreSQL.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400 * 1_000_000;

impl WireFormat {
    fn read<'b>(
        self,
        bytes: &'b [u8],
        column: &Column,
    ) -> std::result::Result<Cell<'b>, InvalidValue> {
        Ok(match self {
            WireFormat::Bool => Cell::Bool(u8::from_be_bytes(exactly(bytes)?) != 0),
            WireFormat::Int => Cell::Int(match bytes.len() {
                2 => i16::from_be_bytes(exactly(bytes)?).into(),
                4 => i32::from_be_bytes(exactly(bytes)?).into(),
                _ => i64::from_be_bytes(exactly(bytes)?),
            }),
            WireFormat::Float => Cell::Float(match bytes.len() {
                4 => single(f32::from_be_bytes(exactly(bytes)?)),
                _ => f64::from_be_bytes(exactly(bytes)?),
            }),
            WireFormat::Decimal(scale) => Cell::Units(super::numeric::units(bytes, scale)?),
            WireFormat::Date => match i32::from_be_bytes(exactly(bytes)?) {
                i32::MAX => return Err(unread("infinity", "a date must be finite")),
                i32::MIN => return Err(unread("-infinity", "a date must be finite")),
                days => Cell::Days(days.checked_add(EPOCH_DAYS).ok_or_else(too_far)?),
            },
            WireFormat::Timestamp => match i64::from_be_bytes(exactly(bytes)?) {
                i64::MAX => return Err(unread("infinity", "a timestamp must be finite")),
                i64::MIN => return Err(unread("-infinity", "a timestamp must be finite")),
                micros => Cell::Micros(micros.checked_add(EPOCH_MICROS).ok_or_else(too_far)?),
            },
            WireFormat::Uuid => {
                let uuid = Uuid::from_bytes(exactly(bytes)?);
                Cell::Value(Cow::Owned(Value::Text(uuid.to_string())))
            }
            WireFormat::Text => Cell::Text(text(bytes)?),
            WireFormat::Bytes => Cell::Bytes(bytes),
            WireFormat::List => {
                let text = text(bytes)?;
                let list = array_text::to_list(text, column);
                let list = list.ok_or_else(|| unread(text, "JSON has no form for this array"))?;
                Cell::Value(Cow::Owned(Value::Json(list)))
            }
            // The builder checks that it is JSON, and keeps the text.
            WireFormat::Json | WireFormat::Rendered => Cell::Text(text(bytes)?),
        })
    }
}

/// A float of 32 bits as it prints.
fn single(value: f32) -> f64 {
    match Value::from_f32(value) {
        Value::Float(value) => value,
        _ => value.into(),
    }
}

/// A cell that cannot be read.
pub(super) fn unread(value: &str, why: &str) -> InvalidValue {
    InvalidValue { value: value.to_owned(), why: why.to_owned() }
}

fn too_far() -> InvalidValue {
    unread("a time", "it is outside the range of the format")
}

fn exactly<const N: usize>(bytes: &[u8]) -> std::result::Result<[u8; N], InvalidValue> {
    let length = || unread(&hex::encode(bytes), "its length does not match its type");
    bytes.try_into().map_err(|_| length())
}

fn text(bytes: &[u8]) -> std::result::Result<&str, InvalidValue> {
    std::str::from_utf8(bytes).map_err(|_| unread(&hex::encode(bytes), "it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(name: &str, kind: ColumnType) -> Column {
        Column { name: name.into(), kind, sql_type: String::new(), nullable: true }
    }

    /// Two rows of a number and a text, the second text null.
    fn stream() -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 2, 0xAA, 0xBB]);
        bytes.extend([0, 2, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 2, b'h', b'i']);
        bytes.extend([0, 2, 0, 0, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
        bytes.extend([0xFF, 0xFF]);
        bytes
    }

    fn read(bytes: &[u8], pieces: usize) -> Result<windlass_export::RecordBatch> {
        let columns = [column("n", ColumnType::Int), column("t", ColumnType::Text)];
        let schema = windlass_export::schema(&columns);
        let wire =
            |(column, field): (&Column, &std::sync::Arc<Field>)| WireFormat::of(column, field);
        let formats = columns.iter().zip(schema.fields()).map(wire).collect();
        let mut reader = Reader::new(&columns, formats);
        let mut builder = RowBuilder::new(schema).map_err(data_error)?;
        for piece in bytes.chunks(pieces) {
            let mut piece = reader.feed(Bytes::copy_from_slice(piece));
            while reader.next(&mut piece, &mut builder)? {}
        }
        reader.end()?;
        builder.finish().map_err(data_error)
    }

    #[test]
    fn pieces_may_end_anywhere() {
        let whole = read(&stream(), usize::MAX).unwrap();
        assert_eq!(whole.num_rows(), 2);
        for size in 1..stream().len() {
            assert_eq!(read(&stream(), size).unwrap(), whole, "pieces of {size}");
        }
    }

    #[test]
    fn what_is_cut_short_or_another_format_is_refused() {
        for length in 0..stream().len() {
            assert!(read(&stream()[..length], usize::MAX).is_err(), "{length} bytes");
        }
        let text = b"7\thi\n-1\t\\N\nand some more of it that is text";
        assert!(read(text, usize::MAX).unwrap_err().to_string().contains("header"));
        let mut three = stream();
        three[SIGNATURE.len() + 11] = 3;
        assert!(read(&three, usize::MAX).unwrap_err().to_string().contains("3 columns"));
    }

    proptest! {
        /// Damaged streams are refused or read, the same in pieces of any size.
        #[test]
        fn damaged_streams_are_read_alike_in_any_pieces(
            damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
            length in any::<proptest::sample::Index>(),
            size in 1_usize..40,
        ) {
            let mut bytes = stream();
            for (place, byte) in damage {
                *place.get_mut(&mut bytes) = byte;
            }
            bytes.truncate(length.index(bytes.len() + 1));
            let (whole, pieces) = (read(&bytes, usize::MAX).ok(), read(&bytes, size).ok());
            prop_assert_eq!(whole, pieces);
        }
    }
}
