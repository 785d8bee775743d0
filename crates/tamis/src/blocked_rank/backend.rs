//! What differs between machines: comparing the low bytes of a block, opening and closing cells.
//! `Portable` says what is right; all of them make the same bytes.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use super::block::Block;
use crate::bits::field;

/// Operations on the first `cells` bytes of a block, and on fields of `width` bits from 1 to 16
/// that end at bit `end`.
pub(super) trait Backend {
    /// Which bytes of the block equal `byte`: 0 if none does. (Bytes behind the cells may count
    /// too.)
    fn equal(block: &Block, byte: u8) -> u64;

    /// Whether the byte of a cell equals `byte`, 1 or 0, where `equal` is the result of
    /// [`equal`](Self::equal) for it.
    fn is_equal(block: &Block, equal: u64, cell: u32, byte: u8) -> u64;

    /// Moves the bytes from `at` on up by one, and puts `byte` there; the byte of the last cell is
    /// dropped.
    fn open(block: &mut Block, cells: u32, at: u32, byte: u8);

    /// Puts `byte` at `changed`, which is not behind `at`, then moves the bytes behind `at` down
    /// by one; a zero comes in at the end. (In one step, because a vector that is loaded just
    /// after one of its bytes was stored has to wait for it.)
    fn close(block: &mut Block, cells: u32, at: u32, changed: u32, byte: u8);

    /// Moves the fields from bit `at` on up by one, and puts a value there; the last one is
    /// dropped.
    fn open_field(block: &mut Block, end: u32, at: u32, width: u32, value: u64);

    /// Puts a value at bit `changed`, which is not behind `at`, then moves the fields behind bit
    /// `at` down by one; a zero comes in at the end.
    fn close_field(block: &mut Block, end: u32, at: u32, width: u32, changed: u32, value: u64);
}

/// Words, for any machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

/// The lowest bit of every byte. Frozen.
const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = LOW << 7;

/// The bytes of a word from this one on.
const fn from(byte: u32) -> u64 {
    if byte >= 8 { 0 } else { u64::MAX << (8 * byte) }
}

impl Backend for Portable {
    #[inline(always)]
    fn equal(block: &Block, byte: u8) -> u64 {
        let any = block.iter().fold(0, |any, word| {
            let differs = word ^ (LOW * u64::from(byte));
            // The highest bit of every byte that is zero; no byte carries into the next.
            any | !(((differs & !HIGH) + !HIGH) | differs) & HIGH
        });
        if any == 0 { 0 } else { u64::MAX }
    }

    #[inline(always)]
    fn is_equal(block: &Block, _: u64, cell: u32, byte: u8) -> u64 {
        let word = block[cell as usize / 8 % 8];
        u64::from((word >> (cell % 8 * 8)) as u8 == byte)
    }

    #[inline(always)]
    fn open(block: &mut Block, cells: u32, at: u32, byte: u8) {
        let (first, last) = (at as usize / 8, (cells - 1) as usize / 8);
        let behind = block[last] & from(cells - 8 * last as u32);
        let here = from(at % 8);
        let up = (block[first] & here) << 8 | u64::from(byte) << (at % 8 * 8);
        let stays = block[first] & !here;
        for word in (first + 1..=last).rev() {
            block[word] = block[word] << 8 | block[word - 1] >> 56;
        }
        block[first] = up | stays;
        block[last] = block[last] & !from(cells - 8 * last as u32) | behind;
    }

    #[inline(always)]
    fn close(block: &mut Block, cells: u32, at: u32, changed: u32, byte: u8) {
        let (word, offset) = (changed as usize / 8, changed % 8 * 8);
        block[word] = block[word] & !(0xff << offset) | u64::from(byte) << offset;
        let (first, last) = (at as usize / 8, (cells - 1) as usize / 8);
        let behind = block[last] & from(cells - 8 * last as u32);
        block[last] ^= behind;
        let here = from(at % 8);
        let stays = block[first] & !here;
        for word in first..last {
            block[word] = block[word] >> 8 | block[word + 1] << 56;
        }
        block[last] >>= 8;
        block[first] = block[first] & here | stays;
        block[last] |= behind;
    }

    #[inline(always)]
    fn open_field(block: &mut Block, end: u32, at: u32, width: u32, value: u64) {
        field::open(block, at.into(), end.into(), width, value);
    }

    #[inline(always)]
    fn close_field(block: &mut Block, end: u32, at: u32, width: u32, changed: u32, value: u64) {
        field::put(block, changed.into(), width, value);
        field::close(block, at.into(), end.into(), width, 0);
    }
}
