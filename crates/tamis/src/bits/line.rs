//! One cache line of words, and the views of lines as words and as little-endian bytes.
#![allow(unsafe_code)] // The casts between plain integer views; each block says why it is sound.

use alloc::alloc::{Layout, alloc_zeroed};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::{mem, ptr, slice};

/// 64 bytes on a 64-byte boundary: what one memory access fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line(pub [u64; Line::WORDS]);

impl Line {
    /// Words in a line.
    pub const WORDS: usize = 8;
    /// Bytes in a line.
    pub const BYTES: usize = 64;
    /// Bits in a line.
    pub const BITS: u64 = 512;
    /// A line of zeros.
    pub const ZERO: Self = Self([0; Self::WORDS]);

    /// How many different lines there are among a few, given by their numbers.
    pub(crate) fn distinct(lines: impl Iterator<Item = u64>) -> u32 {
        let mut lines: Vec<u64> = lines.collect();
        lines.sort_unstable();
        lines.dedup();
        lines.len() as u32
    }
}

const _: () =
    assert!(mem::size_of::<Line>() == Line::BYTES && mem::align_of::<Line>() == Line::BYTES);

/// `len` lines of zeros, from an allocator that may have them without writing them; `None` if it
/// has not.
pub(super) fn zeroed(len: usize) -> Option<Vec<Line>> {
    let layout = Layout::array::<Line>(len).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the size is not 0.
    let lines: *mut Line = unsafe { alloc_zeroed(layout) }.cast();
    if lines.is_null() {
        return None;
    }
    let lines = ptr::slice_from_raw_parts_mut(lines, len);
    // SAFETY: the allocator of all boxes made the block with the layout of `len` lines, and zeros
    // are lines.
    Some(unsafe { Box::from_raw(lines) }.into_vec())
}

/// The lines as one slice of words.
#[inline]
pub(super) fn words(lines: &[Line]) -> &[u64] {
    // SAFETY: a Line is exactly eight u64 without padding (asserted above), so n lines are 8n
    // initialised words at an address that is aligned for u64; lifetime and sharing are the
    // input's.
    unsafe { slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * Line::WORDS) }
}

/// The lines as one slice of words, to write.
#[inline]
pub(super) fn words_mut(lines: &mut [Line]) -> &mut [u64] {
    // SAFETY: as in `words`; the borrow of the input is exclusive, and every u64 is a valid value.
    unsafe { slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * Line::WORDS) }
}

/// The bytes of words as they are in memory: little-endian on a little-endian machine.
#[inline]
pub(crate) fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: u64 has no padding, and u8 has no alignment to ask for.
    unsafe { slice::from_raw_parts(words.as_ptr().cast(), mem::size_of_val(words)) }
}

/// The bytes of words as they are in memory, to write.
#[inline]
pub(super) fn bytes_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: as in `bytes`; exclusive, and any bytes make valid u64 values.
    unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast(), mem::size_of_val(words)) }
}

/// Bytes seen as words; `None` unless they start on a word boundary and are whole words.
#[inline]
pub(super) fn words_from_bytes(bytes: &[u8]) -> Option<&[u64]> {
    // SAFETY: any initialised bytes make valid u64 values; `align_to` puts what is not aligned or
    // not whole into the outer parts, which must be empty here.
    let (before, words, after) = unsafe { bytes.align_to::<u64>() };
    (before.is_empty() && after.is_empty()).then_some(words)
}
