//! Keys in CSV: columns of records behind a header line.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, bail};
use csv::{ByteRecord, Reader, ReaderBuilder, WriterBuilder};

use super::lines::Chunks;
use super::{BATCH, HandOn, Piece, joined};
use crate::input::failed_to_read;
use crate::store::name;

/// Hands on the records of an input; the key is made of `columns`.
pub(super) fn each_record(
    mut bytes: Box<dyn Read>,
    path: &Path,
    delimiter: u8,
    columns: &[String],
    hand_on: &mut HandOn,
) -> Result<ControlFlow<()>> {
    let failed = || failed_to_read(path);
    let came = Cell::new(0);
    let lines = WholeLines { chunks: Chunks::new(&mut bytes, b'\n'), left: 0, came: &came };
    let mut reader = ReaderBuilder::new().delimiter(delimiter).from_reader(lines);
    let header = reader.byte_headers().with_context(failed)?.clone();
    let columns: Vec<usize> = columns
        .iter()
        .map(|column| find(&header, column).with_context(|| name(path)))
        .collect::<Result<_>>()?;
    let header_line = line(&header, delimiter)?;
    let mut header = Some(&header_line[..]);
    let mut records = Vec::with_capacity(BATCH);
    loop {
        records.clear();
        let mut record = ByteRecord::new();
        // A record has two bytes at least; one alone is the LF behind the CR of the last.
        let ready = |reader: &Reader<_>| came.get() > reader.position().byte() + 1;
        let (mut end, mut pause) = (false, false);
        while !end && !pause && records.len() < BATCH {
            end = !reader.read_byte_record(&mut record).with_context(failed)?;
            if !end {
                records.push(record.clone());
                pause = !ready(&reader);
            }
        }
        let lines: Vec<_> =
            records.iter().map(|record| line(record, delimiter)).collect::<Result<_>>()?;
        let lines: Vec<_> = lines.iter().map(Vec::as_slice).collect();
        let key = |record| joined(columns.iter().map(|&at| part(record, at)));
        let keys: Vec<_> = records.iter().map(key).collect();
        let last = pause || end;
        let flow = hand_on(&Piece { lines: &lines, keys: &keys, header: header.take(), last })?;
        if end || flow.is_break() {
            return Ok(flow);
        }
    }
}

/// An input that is handed on in whole lines, so that what has come of it can be answered before
/// the rest of a line comes.
struct WholeLines<'a> {
    chunks: Chunks<'a>,
    /// Bytes at the end of the last chunk that were not handed on.
    left: usize,
    /// Bytes of all chunks.
    came: &'a Cell<u64>,
}

impl Read for WholeLines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            self.left = self.chunks.next()?.map_or(0, <[u8]>::len);
            self.came.set(self.came.get() + self.left as u64);
        }
        let chunk = self.chunks.last();
        let len = (&chunk[chunk.len() - self.left..]).read(buffer)?;
        self.left -= len;
        Ok(len)
    }
}

fn part(record: &ByteRecord, column: usize) -> Cow<'_, [u8]> {
    // The reader has seen to it that all records have as many columns as the header.
    record.get(column).unwrap_or_default().into()
}

/// The number of a column, from 0.
fn find(header: &ByteRecord, column: &str) -> Result<usize> {
    let mut found = (0..header.len()).filter(|&at| header.get(at) == Some(column.as_bytes()));
    match (found.next(), found.next()) {
        (Some(at), None) => Ok(at),
        (Some(_), Some(_)) => bail!("the header has several columns {column}"),
        (None, _) => {
            let names: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
            bail!("the header has no column {column}; it has {}", names.join(", "))
        }
    }
}

/// A record as a line, quoted where it needs to be.
fn line(record: &ByteRecord, delimiter: u8) -> Result<Vec<u8>> {
    let mut writer = WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
    writer.write_byte_record(record)?;
    let mut line = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    line.pop_if(|byte| *byte == b'\n');
    Ok(line)
}
