//! Keys in CSV: columns of records behind a header line.

use std::borrow::Cow;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, bail};
use csv::{ByteRecord, ReaderBuilder, WriterBuilder};

use super::{BATCH, HandOn, Piece, joined};
use crate::input::failed_to_read;
use crate::store::name;

/// Hands on the records of an input; the key is made of `columns`.
pub(super) fn each_record(
    bytes: Box<dyn Read>,
    path: &Path,
    delimiter: u8,
    columns: &[String],
    hand_on: &mut HandOn,
) -> Result<ControlFlow<()>> {
    let failed = || failed_to_read(path);
    let mut reader = ReaderBuilder::new().delimiter(delimiter).from_reader(bytes);
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
        while records.len() < BATCH && reader.read_byte_record(&mut record).with_context(failed)? {
            records.push(record.clone());
        }
        let lines: Vec<_> =
            records.iter().map(|record| line(record, delimiter)).collect::<Result<_>>()?;
        let lines: Vec<_> = lines.iter().map(Vec::as_slice).collect();
        let key = |record| joined(columns.iter().map(|&at| part(record, at)));
        let keys: Vec<_> = records.iter().map(key).collect();
        let last = records.len() < BATCH;
        let flow = hand_on(&Piece { lines: &lines, keys: &keys, header: header.take(), last })?;
        if last || flow.is_break() {
            return Ok(flow);
        }
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
