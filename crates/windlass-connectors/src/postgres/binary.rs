//! What PostgreSQL's COPY writes in binary: rows of cells, each a length and its bytes.

use crate::fan_in::misfit;
use crate::{DataError, Result};
use std::borrow::Cow;
use uuid::Uuid;
use windlass_core::{Column, ColumnType, Value};
use windlass_drivers::Bytes;
use windlass_export::{Cell, DataType, Field, RowBuilder, Unread};

/// How the cells of a column are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Bool,
    /// Of two, four or eight bytes.
    Int,
    /// Of four or eight bytes.
    Float,
    /// As units of this scale.
    Decimal(u32),
    Date,
    Timestamp,
    Uuid,
    Text,
    Bytes,
    /// The text of JSON.
    Json,
    /// The text of anything else, read by what its column is.
    Written,
}

impl Wire {
    /// How this column comes, for a field of this type. Types that PostgreSQL makes of others
    /// (domains) write what those do.
    pub(super) fn of(column: &Column, field: &Field) -> Wire {
        match (column.kind, field.data_type()) {
            (ColumnType::Bool, _) => Wire::Bool,
            (ColumnType::Int, DataType::Int64) => Wire::Int,
            (ColumnType::Float, _) => Wire::Float,
            (ColumnType::Numeric, DataType::Decimal128(_, scale)) => {
                u32::try_from(*scale).map_or(Wire::Written, Wire::Decimal)
            }
            (ColumnType::Date, _) => Wire::Date,
            (ColumnType::Timestamp, _) => Wire::Timestamp,
            (ColumnType::Uuid, _) => Wire::Uuid,
            (ColumnType::Text, _) => Wire::Text,
            (ColumnType::Bytes, _) => Wire::Bytes,
            (ColumnType::Json, _) => Wire::Json,
            _ => Wire::Written,
        }
    }
}

/// Takes rows apart as their bytes arrive, in pieces of whatever size.
pub(super) struct Reader {
    wires: Vec<Wire>,
    /// Where the cells of the row at hand are; empty for a null.
    cells: Vec<Option<std::ops::Range<usize>>>,
    /// The beginning of what is not whole yet.
    rest: Vec<u8>,
    stage: Stage,
}

#[derive(PartialEq)]
enum Stage {
    Header,
    Rows,
    End,
}

/// Bytes that are being taken apart, and how far that is.
pub(super) struct Piece {
    bytes: Bytes,
    at: usize,
}

/// What every such stream begins with.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

impl Reader {
    pub(super) fn new(wires: Vec<Wire>) -> Reader {
        Reader { wires, cells: Vec::new(), rest: Vec::new(), stage: Stage::Header }
    }

    /// The bytes to read from now on. The server sends a row at a time, so that mostly nothing
    /// is left from before.
    pub(super) fn feed(&mut self, piece: Bytes) -> Piece {
        if self.rest.is_empty() {
            return Piece { bytes: piece, at: 0 };
        }
        let mut joined = std::mem::take(&mut self.rest);
        joined.extend_from_slice(&piece);
        Piece { bytes: joined.into(), at: 0 }
    }

    /// Reads a row into the builder; whether there was a whole one.
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
            Some(count) if usize::try_from(count) == Ok(self.wires.len()) => {}
            Some(count) => return Err(broken(&format!("a row has {count} columns"))),
        }
        self.cells.clear();
        for _ in 0..self.wires.len() {
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
        let cell = |place: usize| match &self.cells[place] {
            None => Ok(Cell::Null),
            Some(range) => self.wires[place].read(&bytes[range.clone()]),
        };
        builder.push_with(cell).map_err(misfit)?;
        piece.at = at;
        Ok(true)
    }

    /// Whether everything was read that there is.
    pub(super) fn end(&self) -> Result<()> {
        match self.stage {
            Stage::End => Ok(()),
            _ => Err(broken("it ends in the middle")),
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

    /// Keeps the beginning of something until the rest of it comes.
    fn keep(&mut self, piece: &mut Piece) -> bool {
        self.rest.extend_from_slice(&piece.bytes[piece.at..]);
        piece.at = piece.bytes.len();
        false
    }
}

fn broken(why: &str) -> DataError {
    DataError::Unreadable(format!("the answer to COPY: {why}"))
}

fn take<const N: usize>(bytes: &[u8], at: &mut usize) -> Option<[u8; N]> {
    let taken = bytes.get(*at..*at + N)?.try_into().ok()?;
    *at += N;
    Some(taken)
}

/// Days between 1970, where Arrow begins to count, and 2000, where PostgreSQL does.
const DAYS: i32 = 10_957;
const MICROS: i64 = DAYS as i64 * 86_400 * 1_000_000;

impl Wire {
    fn read(self, bytes: &[u8]) -> std::result::Result<Cell<'_>, Unread> {
        Ok(match self {
            Wire::Bool => Cell::Bool(u8::from_be_bytes(exactly(bytes)?) != 0),
            Wire::Int => Cell::Int(match bytes.len() {
                2 => i16::from_be_bytes(exactly(bytes)?).into(),
                4 => i32::from_be_bytes(exactly(bytes)?).into(),
                _ => i64::from_be_bytes(exactly(bytes)?),
            }),
            Wire::Float => Cell::Float(match bytes.len() {
                4 => f32::from_be_bytes(exactly(bytes)?).into(),
                _ => f64::from_be_bytes(exactly(bytes)?),
            }),
            Wire::Decimal(scale) => Cell::Units(super::numeric::units(bytes, scale)?),
            Wire::Date => match i32::from_be_bytes(exactly(bytes)?) {
                i32::MAX => return Err(unread("infinity", "no date is that")),
                i32::MIN => return Err(unread("-infinity", "no date is that")),
                days => Cell::Days(days.checked_add(DAYS).ok_or_else(too_far)?),
            },
            Wire::Timestamp => match i64::from_be_bytes(exactly(bytes)?) {
                i64::MAX => return Err(unread("infinity", "no timestamp is that")),
                i64::MIN => return Err(unread("-infinity", "no timestamp is that")),
                micros => Cell::Micros(micros.checked_add(MICROS).ok_or_else(too_far)?),
            },
            Wire::Uuid => {
                let uuid = Uuid::from_bytes(exactly(bytes)?);
                Cell::Value(Cow::Owned(Value::Text(uuid.to_string())))
            }
            Wire::Text => Cell::Text(text(bytes)?),
            Wire::Bytes => Cell::Bytes(bytes),
            Wire::Json => {
                let json = serde_json::from_slice(bytes)
                    .map_err(|error| unread(&String::from_utf8_lossy(bytes), &error.to_string()))?;
                Cell::Value(Cow::Owned(Value::Json(json)))
            }
            Wire::Written => Cell::Text(text(bytes)?),
        })
    }
}

/// A cell that cannot be read.
pub(super) fn unread(value: &str, why: &str) -> Unread {
    Unread { value: value.to_owned(), why: why.to_owned() }
}

fn too_far() -> Unread {
    unread("a time", "it is further away than a part can hold")
}

fn exactly<const N: usize>(bytes: &[u8]) -> std::result::Result<[u8; N], Unread> {
    let length = || unread(&hex::encode(bytes), "its length is not that of its type");
    bytes.try_into().map_err(|_| length())
}

fn text(bytes: &[u8]) -> std::result::Result<&str, Unread> {
    std::str::from_utf8(bytes).map_err(|_| unread(&hex::encode(bytes), "it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let wire = |(column, field): (&Column, &std::sync::Arc<Field>)| Wire::of(column, field);
        let mut reader = Reader::new(columns.iter().zip(schema.fields()).map(wire).collect());
        let mut builder = RowBuilder::new(schema).map_err(misfit)?;
        for piece in bytes.chunks(pieces) {
            let mut piece = reader.feed(Bytes::copy_from_slice(piece));
            while reader.next(&mut piece, &mut builder)? {}
        }
        reader.end()?;
        builder.finish().map_err(misfit)
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
}
