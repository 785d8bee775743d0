//! A Bloom filter as it stands in a Parquet file: a header of Thrift's compact protocol, then the
//! words of its blocks.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use ::parquet::file::metadata::ColumnChunkMetaData;
use anyhow::{Context, Result, bail, ensure};

/// Bytes of a block.
pub(super) const BLOCK: u64 = 32;

/// What says that an i32 follows, which is the field 1: `numBytes`.
const NUM_BYTES: u8 = 0x15;

/// The other fields, and what each must be: the first member of a union, and the only one that
/// there is.
const UNIONS: [(&str, &str); 3] =
    [("algorithm", "BLOCK"), ("hash", "XXHASH"), ("compression", "UNCOMPRESSED")];

/// Such a field: the next field, a struct; in it the field 1, a struct; the ends of both.
const FIRST_MEMBER: [u8; 4] = [0x1c, 0x1c, 0, 0];

/// The end of the header.
const END: u8 = 0;

/// The most bytes of a number of 32 bits.
const MOST_OF_NUMBER: usize = 5;

/// The most bytes of a header.
const MOST_OF_HEADER: u64 = 1 + MOST_OF_NUMBER as u64 + 3 * 4 + 1;

/// The header of `num_bytes` bytes of bits.
pub(super) fn header(num_bytes: u32) -> Vec<u8> {
    let mut bytes = vec![NUM_BYTES];
    // Twice the number, as every number that is not negative.
    let mut left = u64::from(num_bytes) * 2;
    while left >= 0x80 {
        bytes.push(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
    bytes.extend(UNIONS.iter().flat_map(|_| FIRST_MEMBER));
    bytes.push(END);
    bytes
}

/// The `numBytes` of the header that starts with these bytes, and the bytes of the header.
fn read_header(start: &[u8]) -> Result<(i32, usize)> {
    let mut left = start;
    let mut next = |number| left.split_off(..number).context("its header is cut off");
    ensure!(next(1)? == [NUM_BYTES], "its header does not start with numBytes");
    let mut number = 0;
    for at in 0..MOST_OF_NUMBER {
        let byte = next(1)?[0];
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            break;
        }
        ensure!(at + 1 < MOST_OF_NUMBER, "numBytes has more than 32 bits");
    }
    let number = u32::try_from(number).context("numBytes has more than 32 bits")?;
    let num_bytes = (number >> 1).cast_signed() ^ -(number & 1).cast_signed();
    for (field, must_be) in UNIONS {
        ensure!(next(FIRST_MEMBER.len())? == FIRST_MEMBER, "its {field} is not {must_be}");
    }
    ensure!(next(1)? == [END], "its header has a field behind compression");
    Ok((num_bytes, start.len() - left.len()))
}

/// Where the bits of a filter are.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The first byte.
    at: u64,
    /// A power of two.
    pub(super) blocks: u64,
}

impl Place {
    /// Finds the filter of a column in a row group of a file with `file_bytes` bytes; `None` if
    /// there is none. All that the file says of it is checked.
    pub(super) fn find(
        mut file: &File,
        file_bytes: u64,
        column: &ColumnChunkMetaData,
    ) -> Result<Option<Self>> {
        let Some(offset) = column.bloom_filter_offset() else { return Ok(None) };
        let at = u64::try_from(offset).ok().filter(|&at| at < file_bytes).with_context(|| {
            format!(
                "bloom_filter_offset {offset} is outside the file, which has {file_bytes} bytes"
            )
        })?;
        file.seek(SeekFrom::Start(at))?;
        let mut start = Vec::new();
        file.take(MOST_OF_HEADER).read_to_end(&mut start)?;
        let read = read_header(&start);
        let (num_bytes, header) = read.with_context(|| format!("bloom_filter_offset {offset}"))?;
        let bytes = u64::try_from(num_bytes).ok().filter(|bytes| *bytes > 0 && bytes % BLOCK == 0);
        let bytes = bytes.with_context(|| {
            format!("numBytes {num_bytes} is no number of blocks, which have {BLOCK} bytes")
        })?;
        let header = header as u64;
        let behind = file_bytes - at - header;
        ensure!(bytes <= behind, "numBytes {bytes} is more than the {behind} bytes behind it");
        if let Some(length) = column.bloom_filter_length() {
            let found = header + bytes;
            ensure!(
                u64::try_from(length).is_ok_and(|length| length == found),
                "bloom_filter_length is {length}, but header and bits have {found} bytes"
            );
        }
        if !bytes.is_power_of_two() {
            // A key would be sought in another block once in 2^32 / blocks times, and lost.
            bail!(
                "numBytes {bytes} is no power of two, and then Parquet takes the block of a key by \
                 another rule than tamis"
            );
        }
        Ok(Some(Self { at: at + header, blocks: bytes / BLOCK }))
    }

    /// Adds the bits to those of a filter with as many.
    pub(super) fn add_to(self, mut file: &File, words: &mut [u64]) -> io::Result<()> {
        file.seek(SeekFrom::Start(self.at))?;
        let mut from = BufReader::new(file);
        let mut bytes = [0; 8];
        words.iter_mut().try_for_each(|word| {
            from.read_exact(&mut bytes)?;
            *word |= u64::from_le_bytes(bytes);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_are_written() {
        for num_bytes in [32, 63, 64, 8192, 1 << 27, i32::MAX as u32] {
            let bytes = header(num_bytes);
            assert!(bytes.len() as u64 <= MOST_OF_HEADER);
            let longer = [&bytes[..], &[7; 9]].concat();
            let read = read_header(&longer).expect("a header");
            assert_eq!(read, (num_bytes.cast_signed(), bytes.len()));
            for len in 0..bytes.len() {
                let error = read_header(&bytes[..len]).expect_err("a header that is cut off");
                assert_eq!(error.to_string(), "its header is cut off");
            }
        }
        // Negative.
        let bytes = [&[NUM_BYTES, 3][..], &header(0)[2..]].concat();
        assert_eq!(read_header(&bytes).expect("a header").0, -2);
    }

    #[test]
    fn every_other_header_is_refused_by_the_name_of_its_field() {
        let whole = header(32);
        let fields = [(0, "numBytes"), (2, "algorithm"), (6, "hash"), (10, "compression")];
        for (at, value) in (0..whole.len()).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let read = read_header(&bytes);
            if at == 1 && value < 0x80 || bytes == whole {
                assert!(read.is_ok());
                continue;
            }
            let error = read.expect_err("a header of another kind").to_string();
            let (_, field) = fields.iter().rfind(|(from, _)| *from <= at).expect("a field");
            // A number that goes on shifts what follows.
            let shifted = at == 1 && error.contains("algorithm");
            assert!(error.contains(field) || shifted, "byte {at} is {value}: {error}");
        }
        let endless = [[NUM_BYTES; 1].as_slice(), &[0xff; 30]].concat();
        assert!(read_header(&endless).expect_err("endless").to_string().contains("32 bits"));
    }
}
