//! Numbers in bytes: single numbers, sorted numbers, and fields of a fixed width.
//!
//! Every function that reads removes what it read from the front of `bytes`. It returns `None` if
//! the bytes are not what a writer writes.

use alloc::vec::Vec;

use super::gaps::{Sorted, encode_sorted};
use crate::bits::{BitReader, BitWriter};

/// Adds `number` to `out`: seven bits in each byte, the lowest first. The top bit of a byte is set
/// if more follow.
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number that [`put`] added.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit, and the last byte is not zero unless it is the only
        // one: there is only one way to write a number.
        if shift == 63 && bits > 1 || shift > 0 && byte == 0 {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Adds `bytes` to `out`, with their length in front.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend(bytes);
}

/// Reads bytes that [`put_bytes`] added.
pub(super) fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

/// Adds `count` numbers, which are sorted and below `universe`, to `out` as gaps.
pub(crate) fn put_sorted(
    out: &mut Vec<u8>,
    count: u64,
    numbers: impl Iterator<Item = u64>,
    universe: u64,
) {
    put(out, count);
    if count > 0 {
        put_bytes(out, &encode_sorted(count, numbers, universe));
    }
}

/// A reader of the `count` numbers that [`put_sorted`] added; `None` if there are others.
pub(crate) fn take_all_sorted<'a>(
    bytes: &mut &'a [u8],
    universe: u64,
    count: u64,
) -> Option<Sorted<'a>> {
    take_sorted(bytes, universe, count).filter(|numbers| numbers.left() == count)
}

/// A reader of the numbers that [`put_sorted`] added; `None` if there are more than `most`.
pub(crate) fn take_sorted<'a>(
    bytes: &mut &'a [u8],
    universe: u64,
    most: u64,
) -> Option<Sorted<'a>> {
    match take(bytes)? {
        0 => Sorted::new(&[], 0, universe).ok(),
        count if count > most => None,
        count => Sorted::new(take_bytes(bytes)?, count, universe).ok(),
    }
}

/// Adds fields of `width` bits each to `out`.
pub(crate) fn put_fields(out: &mut Vec<u8>, fields: impl Iterator<Item = u64>, width: u32) {
    let mut writer = BitWriter::default();
    fields.for_each(|field| writer.put(field, width));
    out.extend(writer.finish());
}

/// A reader of the `count` fields that [`put_fields`] added.
pub(crate) fn take_bits<'a>(bytes: &mut &'a [u8], count: u64, width: u32) -> Option<BitReader<'a>> {
    let len = count.checked_mul(width.into())?.div_ceil(8);
    let (taken, rest) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
    *bytes = rest;
    Some(BitReader::new(taken))
}
