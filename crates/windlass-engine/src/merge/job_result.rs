//! The storage format of a job's result: compressed frames of rows with an index, so that reading a
//! page or a byte range decodes only the frames it needs.
//!
//! The content is a sequence of zstd frames whose texts together are one JSON array: the column names,
//! then a thousand rows per frame. The last frame is a zstd skippable frame that holds the index.

use crate::Result;
use crate::merge::map_export::{new_part, unreadable};
use std::io::Write as _;
use windlass_connectors::{Emitted, EmittedCursor, Rows};
use windlass_core::problem::Code;
use windlass_core::{Problem, Value};
use windlass_store::{MERGED, NewPart};

/// A stored result, opened for reading.
pub struct JobResult {
    names: Vec<String>,
    content: Vec<u8>,
    frames: Vec<Frame>,
    /// Where the next frame would begin: the total rows and bytes.
    end: Frame,
}

/// Where a frame begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Frame {
    /// Position in the content.
    offset: u64,
    /// Number of its first row.
    row: u64,
    /// Position in the output, which has one JSON line per row.
    byte: u64,
}

/// Rows per frame.
const FRAME_ROWS: usize = 1000;
/// Magic number of a zstd skippable frame.
const SKIPPABLE_FRAME_MAGIC: u32 = 0x184D_2A50;
/// The last bytes of the content.
const INDEX_MAGIC: &[u8; 8] = b"WLINDEX1";
/// Size of an index entry.
const INDEX_ENTRY_BYTES: usize = 24;

/// A result after it was loaded. One that is too large for memory has only its first rows here.
pub(crate) struct MergedRows {
    pub(crate) rows: Rows,
    /// All rows.
    pub(crate) total: i64,
    /// The URL of the manifest that lists the files of the result, where it is in files.
    pub(crate) manifest: Option<String>,
}

/// First rows of a large result that are kept in the store, for the job's page.
pub(crate) const PREVIEW_ROWS: usize = 1000;

impl MergedRows {
    pub(crate) fn whole_of(rows: Rows) -> MergedRows {
        let total = rows.rows.len() as i64;
        MergedRows { rows, total, manifest: None }
    }

    fn is_whole(&self) -> bool {
        self.rows.rows.len() as i64 == self.total
    }

    /// All rows, for a report.
    pub(crate) fn whole(&self) -> Result<&Rows> {
        if self.is_whole() {
            return Ok(&self.rows);
        }
        let detail = format!(
            "the result has {} rows, which are too large for a report, whose rows must fit into memory; nothing was \
             loaded. Leave out `report`: the files in load.copy.from hold the result",
            self.total
        );
        Err(Problem::field(Code::Source, "report", detail).into())
    }

    /// What the store keeps: the result, or its first rows and the URL of its manifest.
    pub(crate) fn into_part(mut self) -> Result<NewPart> {
        match encode(&self.rows) {
            Err(error) if self.manifest.is_none() => return Err(error),
            Ok(part) if self.is_whole() => return Ok(part),
            _ => self.rows.rows.truncate(PREVIEW_ROWS),
        }
        Ok(NewPart { name: self.manifest, rows: self.total + 1, ..encode(&self.rows)? })
    }
}

/// Encodes a result for the store.
fn encode(result: &Rows) -> Result<NewPart> {
    let names: Vec<String> = result.columns.iter().map(|column| column.name.clone()).collect();
    let header: Vec<Value> = names.iter().cloned().map(Value::Text).collect();
    let mut text = b"[".to_vec();
    serde_json::to_writer(&mut text, &header).map_err(unreadable)?;
    let (mut content, mut frames) = (compress(&text)?, Vec::new());
    let mut at = Frame::default();
    for rows in result.rows.chunks(FRAME_ROWS) {
        frames.push(Frame { offset: content.len() as u64, ..at });
        let start = text.len();
        for row in rows {
            text.push(b',');
            serde_json::to_writer(&mut text, row).map_err(unreadable)?;
            at.byte += json_line(&names, row).len() as u64 + 1;
        }
        at.row += rows.len() as u64;
        content.extend(compress(&text[start..])?);
    }
    let end = Frame { offset: content.len() as u64, ..at };
    text.push(b']');
    content.extend(compress(b"]")?);
    content.extend(index(&frames, end));
    new_part(result.rows.len() + 1, &text, content)
}

/// Compresses a frame with a checksum, since a page is read without the hash of the whole content.
fn compress(text: &[u8]) -> Result<Vec<u8>> {
    let encode = || {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3)?;
        encoder.include_checksum(true)?;
        encoder.write_all(text)?;
        encoder.finish()
    };
    encode().map_err(unreadable)
}

fn index(frames: &[Frame], end: Frame) -> Vec<u8> {
    let entries = frames.iter().chain([&end]);
    let entries: Vec<u8> = entries
        .flat_map(|frame| [frame.offset, frame.row, frame.byte])
        .flat_map(u64::to_le_bytes)
        .collect();
    let length = (entries.len() + 4 + INDEX_MAGIC.len()) as u32;
    let count = frames.len() as u32 + 1;
    [
        &SKIPPABLE_FRAME_MAGIC.to_le_bytes()[..],
        &length.to_le_bytes(),
        &entries,
        &count.to_le_bytes(),
        INDEX_MAGIC,
    ]
    .concat()
}

/// A row as a JSON line of the output, without the line break.
fn json_line(names: &[String], row: &[Value]) -> String {
    let fields = names.iter().cloned().zip(row.iter().map(Value::to_json));
    serde_json::Value::Object(fields.collect()).to_string()
}

impl JobResult {
    pub(crate) fn open(part: NewPart) -> Result<JobResult> {
        let content = part.content.unwrap_or_default();
        let (mut frames, begin) =
            read_index(&content).ok_or_else(|| unreadable("it has no index"))?;
        if !is_ordered(&frames, begin) {
            return Err(unreadable("its index is damaged"));
        }
        let end = frames.pop().ok_or_else(|| unreadable("its index is empty"))?;
        let first = frames.first().unwrap_or(&end).offset as usize;
        let header = content.get(..first).filter(|_| first <= begin);
        let header = zstd::decode_all(header.unwrap_or_default()).map_err(unreadable)?;
        let names = serde_json::from_slice::<Vec<Value>>(header.get(1..).unwrap_or_default());
        let names = names.map_err(unreadable)?.iter().filter_map(Value::to_text).collect();
        Ok(JobResult { names, content, frames, end })
    }

    /// The names of its columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Size of the output in bytes, with one JSON line per row.
    pub fn bytes(&self) -> u64 {
        self.end.byte
    }

    /// Number of frames.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// The frame that contains this byte of the output.
    pub fn frame_of_byte(&self, byte: u64) -> usize {
        self.frames.partition_point(|frame| frame.byte <= byte).saturating_sub(1)
    }

    /// Position of a frame in the output.
    pub fn frame_start(&self, frame: usize) -> u64 {
        self.frames.get(frame).unwrap_or(&self.end).byte
    }

    /// The output of a frame, as JSON lines.
    pub fn lines(&self, frame: usize) -> Result<String> {
        let mut lines = String::new();
        for row in self.rows(frame)? {
            lines.push_str(&json_line(&self.names, &row));
            lines.push('\n');
        }
        Ok(lines)
    }

    /// The rows after the row with this number.
    pub(crate) fn page(&self, after: i64, limit: u32) -> Result<Vec<Emitted>> {
        let first = u64::try_from(after + 1).unwrap_or_default();
        let from = self.frames.partition_point(|frame| frame.row <= first).saturating_sub(1);
        let mut page = Vec::new();
        for frame in from..self.frames.len() {
            let wanted = limit as usize - page.len();
            if wanted == 0 {
                break;
            }
            let rows = (self.frames[frame].row..).zip(self.rows(frame)?);
            for (index, row) in rows.skip_while(|(index, _)| *index < first).take(wanted) {
                let cursor =
                    EmittedCursor { chunk: MERGED, item_key: String::new(), seq: index as i64 };
                page.push(Emitted { cursor, fields: json_line(&self.names, &row) });
            }
        }
        Ok(page)
    }

    fn rows(&self, frame: usize) -> Result<Vec<Vec<Value>>> {
        let Some(begin) = self.frames.get(frame) else { return Ok(Vec::new()) };
        let end = self.frames.get(frame + 1).unwrap_or(&self.end);
        let content = self.content.get(begin.offset as usize..end.offset as usize);
        let mut text = zstd::decode_all(content.unwrap_or_default()).map_err(unreadable)?;
        // A frame begins with the comma that separates it from the previous one.
        if let Some(first) = text.first_mut() {
            *first = b'[';
        }
        text.push(b']');
        serde_json::from_slice(&text).map_err(unreadable)
    }
}

/// The entries of the index, and its position in the content.
fn read_index(content: &[u8]) -> Option<(Vec<Frame>, usize)> {
    let rest = content.strip_suffix(INDEX_MAGIC)?;
    let (rest, count) = rest.split_last_chunk::<4>()?;
    let bytes = INDEX_ENTRY_BYTES.checked_mul(u32::from_le_bytes(*count) as usize)?;
    let begin = rest.len().checked_sub(bytes)?;
    let entries = rest.get(begin..)?.chunks_exact(INDEX_ENTRY_BYTES).map(|entry| {
        let mut numbers = entry.chunks_exact(8).filter_map(|number| number.try_into().ok());
        let mut next = || numbers.next().map(u64::from_le_bytes);
        Some(Frame { offset: next()?, row: next()?, byte: next()? })
    });
    Some((entries.collect::<Option<_>>()?, begin))
}

/// Whether the frames begin with the first row and follow each other up to the index.
fn is_ordered(frames: &[Frame], index: usize) -> bool {
    let starts = frames.first().is_none_or(|first| (first.row, first.byte) == (0, 0));
    let ends = frames.last().is_none_or(|last| last.offset <= index as u64);
    let follows = |a: &Frame, b: &Frame| a.offset < b.offset && a.row < b.row && a.byte < b.byte;
    starts && ends && frames.is_sorted_by(follows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::{Column, ColumnType};

    fn result(rows: usize) -> (Rows, NewPart) {
        let column = |name: &str| Column {
            name: name.to_owned(),
            kind: ColumnType::Other,
            sql_type: String::new(),
            nullable: true,
        };
        let row = |n: usize| vec![Value::Int(n as i64), Value::Text(format!("é{n}"))];
        let columns = vec![column("n"), column("name")];
        let result = Rows { columns, rows: (0..rows).map(row).collect() };
        let part = encode(&result).unwrap();
        (result, part)
    }

    #[test]
    fn a_result_reads_the_same_as_a_whole_by_frames_and_by_pages() {
        for rows in [0, 1, 999, 1000, 1001, 2500] {
            let (result, part) = result(rows);
            let whole = crate::merge::map_export::decode(&part).unwrap();
            assert_eq!(whole[1..], result.rows, "{rows} rows");
            assert_eq!(encode(&result).unwrap(), part, "the same rows are the same part");
            let opened = JobResult::open(part).unwrap();
            let lines: String = (0..opened.frames()).map(|f| opened.lines(f).unwrap()).collect();
            assert_eq!((lines.lines().count(), lines.len() as u64), (rows, opened.bytes()));
            for frame in 0..opened.frames() {
                let start = opened.frame_start(frame);
                assert!(lines[start as usize..].starts_with(&opened.lines(frame).unwrap()));
                assert_eq!(opened.frame_of_byte(start), frame);
            }
            let (mut after, mut paged) = (-1, String::new());
            loop {
                let page = opened.page(after, 700).unwrap();
                let Some(last) = page.last() else { break };
                after = last.cursor.seq;
                page.iter().for_each(|row| paged += &(row.fields.clone() + "\n"));
            }
            assert_eq!(paged, lines);
        }
    }

    #[test]
    fn a_byte_range_or_a_page_decodes_only_its_own_frames() {
        let (_, mut part) = result(5000);
        let whole = JobResult::open(part.clone()).unwrap();
        // Everything but the third frame is destroyed.
        let (from, to) = (whole.frames[2].offset as usize, whole.frames[3].offset as usize);
        let (first, end) = (whole.frames[0].offset as usize, whole.end.offset as usize);
        let content = part.content.as_mut().unwrap();
        content[first..from].fill(0);
        content[to..end].fill(0);
        let damaged = JobResult::open(part).unwrap();
        assert_eq!(damaged.lines(2).unwrap(), whole.lines(2).unwrap());
        assert_eq!(damaged.page(1999, 1000).unwrap(), whole.page(1999, 1000).unwrap());
        assert!(damaged.lines(1).is_err() && damaged.lines(3).is_err());
    }
}
