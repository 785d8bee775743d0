//! What differs between machines: comparing the low bytes of a block, opening and closing cells. `Portable` is the oracle of the
//! others, and all of them make the same bytes.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use super::block::Block;
use crate::bits::field;

/// Operations on the first `cells` bytes of a block, and on fields of `width` bits from 1 to 16 that end at bit `end`.
pub(super) trait Backend {
    /// A bit for each of the 64 bytes that equals this one. (What lies behind the cells may be reported too.)
    fn equal(block: &Block, byte: u8) -> u64;

    /// Moves the bytes from `at` on up by one, and puts a byte there; the last of the cells is dropped.
    fn open(block: &mut Block, cells: u32, at: u32, byte: u8);

    /// Puts a byte at `changed`, which is not behind `at`, then moves the bytes behind `at` down by one; a zero comes in at the end.
    /// (In one step: a vector that is loaded just after one of its bytes was stored has to wait for it.)
    fn close(block: &mut Block, cells: u32, at: u32, changed: u32, byte: u8);

    /// Moves the fields from bit `at` on up by one, and puts a value there; the last one is dropped.
    fn open_field(block: &mut Block, end: u32, at: u32, width: u32, value: u64);

    /// Puts a value at bit `changed`, which is not behind `at`, then moves the fields behind bit `at` down by one; a zero comes in
    /// at the end.
    fn close_field(block: &mut Block, end: u32, at: u32, width: u32, changed: u32, value: u64);
}

/// Words, for any machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = LOW << 7;

/// The bytes of a word from this one on.
const fn from(byte: u32) -> u64 {
    if byte >= 8 { 0 } else { u64::MAX << (8 * byte) }
}

impl Backend for Portable {
    #[inline(always)]
    fn equal(block: &Block, byte: u8) -> u64 {
        let mut bits = 0;
        for (at, word) in block.iter().enumerate() {
            let differs = word ^ (LOW * u64::from(byte));
            // The highest bit of every byte that is zero; no byte carries into the next.
            let zero = !(((differs & !HIGH) + !HIGH) | differs) & HIGH;
            // Gathers them in the top byte.
            bits |= ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
        }
        bits
    }

    #[inline(always)]
    fn open(block: &mut Block, cells: u32, at: u32, byte: u8) {
        let mut carry = u64::from(byte);
        let last = (cells - 1) / 8;
        for word in at / 8..=last {
            let start = if word == at / 8 { at % 8 } else { 0 };
            let end = if word == last { cells - 8 * last } else { 8 };
            // Only bytes from `start` to `end` change.
            let moves = from(start) & !from(end);
            let old = block[word as usize];
            let new = (old & from(start)) << 8 | carry << (8 * start);
            block[word as usize] = old & !moves | new & moves;
            carry = old >> 56;
        }
    }

    #[inline(always)]
    fn close(block: &mut Block, cells: u32, at: u32, changed: u32, byte: u8) {
        let (word, offset) = (changed as usize / 8, changed % 8 * 8);
        block[word] = block[word] & !(0xff << offset) | u64::from(byte) << offset;
        let last = (cells - 1) / 8;
        let mut carry = 0;
        for word in (at / 8..=last).rev() {
            let start = if word == at / 8 { at % 8 } else { 0 };
            let end = if word == last { cells - 8 * last } else { 8 };
            let moves = from(start) & !from(end);
            let old = block[word as usize];
            let new = (old & !from(end)) >> 8 | carry << (8 * (end - 1));
            block[word as usize] = old & !moves | new & moves;
            carry = old & 0xff;
        }
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
