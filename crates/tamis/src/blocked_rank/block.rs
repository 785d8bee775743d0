//! A block: a multiset of (location, fingerprint) in one or more cache lines.
//!
//! The cells of a location are its *run*. Runs lie side by side, in order of location, and the
//! cells of a run in order of fingerprint, without gaps. Bit c of the map of *ends* is set if
//! cell c is the last of its run, and bit l of the map of *occupied* locations if location l has
//! keys. So run number r ends at set bit number r of the ends, and belongs to set bit number r of
//! the occupied locations.
//!
//! There may be fewer runs than occupied locations: those of the highest occupied locations are
//! *behind* the block, in the back table. A location that is not occupied has no keys anywhere.
//!
//! The functions of this file are the same for every size of block and every machine; what
//! differs is in [`Block`].
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use super::shape::{Shape, WINDOW};
use crate::bits::{field, low};

/// Where the run of a location is, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) location: u32,
    /// Whether the location has keys, here or behind.
    pub(super) is_occupied: bool,
    /// Occupied locations below this one.
    pub(super) rank: u32,
    /// Whether there is a run for this rank. If the location is not occupied, it is that of the
    /// next one that is.
    pub(super) is_here: bool,
    /// The first cell of the run.
    pub(super) start: u32,
    /// Cells of the run of the location; 0 if it has no keys. If it is behind, this says nothing.
    pub(super) len: u32,
}

impl Spot {
    /// Whether the keys of the location are behind the block.
    #[inline(always)]
    pub(super) fn is_behind(&self) -> bool {
        // In this order, because the second cannot be predicted.
        !self.is_here && self.is_occupied
    }
}

/// What depends on the size of a block and on the machine. `words` is always one block.
pub(super) trait Block {
    /// Words of a block of this shape.
    fn words(shape: &Shape) -> usize;

    fn spot(words: &[u64], shape: &Shape, location: u32) -> Spot;

    /// After a removal a block looks for runs that it could take back only if the number of free
    /// cells has none of these bits: in a large block looking takes long.
    #[inline(always)]
    fn patience(_: &Shape) -> u32 {
        0
    }

    /// Runs here.
    fn runs(words: &[u64], shape: &Shape) -> u32;

    /// Cells in use.
    fn used(words: &[u64], shape: &Shape) -> u32;

    /// Runs here, and cells in use.
    #[inline(always)]
    fn held(words: &[u64], shape: &Shape) -> (u32, u32) {
        (Self::runs(words, shape), Self::used(words, shape))
    }

    /// Occupied locations, here or behind.
    fn occupied(words: &[u64], shape: &Shape) -> u32;

    /// The occupied location of this rank.
    fn ranked(words: &[u64], shape: &Shape, rank: u32) -> Option<u32>;

    /// Puts `prints` at bit `at` into the run at `spot`; the cells from there on move up. If the
    /// location has no run yet, it gets one. There must be room.
    fn open(words: &mut [u64], shape: &Shape, spot: &Spot, at: u32, prints: Prints);

    /// Removes `count` cells, no more than a window has, from bit `at` on from the run at `spot`;
    /// those behind them move down.
    fn close(words: &mut [u64], shape: &Shape, spot: &Spot, at: u32, count: u32);
}

/// Fingerprints side by side, in order; no more than a window has, and at least one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prints {
    pub(super) count: u32,
    pub(super) bits: u64,
}

impl Prints {
    /// A fingerprint alone.
    #[inline(always)]
    pub(super) fn one(print: u64) -> Self {
        Self { count: 1, bits: print }
    }
}

/// The bits from bit `at` on: at least 57, or all up to the end of the block, and zeros.
#[inline(always)]
pub(super) fn window(words: &[u64], at: u32) -> u64 {
    #[cfg(target_endian = "little")]
    {
        // One load. (A shift of two words together would be slow.)
        let bytes = crate::bits::bytes(words);
        let first = (at as usize / 8).min(bytes.len() - 8);
        let (window, _) = bytes[first..].split_first_chunk().unwrap_or((&[0; 8], &[]));
        u64::from_le_bytes(*window) >> (at as usize - 8 * first)
    }
    #[cfg(target_endian = "big")]
    {
        let (word, offset) = (at as usize / 64, at % 64);
        let next = words.get(word + 1).copied().unwrap_or(0);
        words[word] >> offset | next << 1 << (63 - offset)
    }
}

/// Where the first cell of a run begins that is not below `print`, or else the run ends; and
/// whether that cell equals `print`.
#[inline(always)]
fn search(words: &[u64], shape: &Shape, spot: &Spot, print: u64) -> (u32, bool) {
    if spot.len > shape.lanes.into() {
        return search_long(words, shape, (spot.start, spot.len), print, 0);
    }
    let at = shape.at(spot.start);
    let (offset, is_in) = shape.search(window(words, at), spot.len, print);
    (at + offset, is_in)
}

/// The same in less time; if no cell equals `print`, it is not said where one would be. If
/// `keys_only`, values are not compared; that of `print` must be 0.
#[inline(always)]
fn look_up(words: &[u64], shape: &Shape, spot: &Spot, print: u64, keys_only: bool) -> (u32, bool) {
    if spot.len > shape.lanes.into() {
        let value = if keys_only { shape.value } else { 0 };
        return search_long(words, shape, (spot.start, spot.len), print, value);
    }
    let at = shape.at(spot.start);
    let equal = shape.equal(window(words, at), spot.len, print, keys_only);
    ((at + equal.trailing_zeros() + 1).wrapping_sub(shape.width), equal != 0)
}

/// As [`search`], for a run that is longer than a window. The lowest `value` bits are not
/// compared; those of `wanted` must be 0.
#[cold]
#[inline(never)]
fn search_long(
    words: &[u64],
    shape: &Shape,
    (start, len): (u32, u32),
    wanted: u64,
    value: u8,
) -> (u32, bool) {
    let end = start + len;
    let first = (start..end).find(|&cell| print(words, shape, cell) >= wanted).unwrap_or(end);
    (shape.at(first), first < end && print(words, shape, first) >> value == wanted >> value)
}

/// Whether the fingerprint is in the block, with any value; `None` if its location is behind.
#[inline(always)]
pub(super) fn find<B: Block>(
    words: &[u64],
    shape: &Shape,
    (location, print): (u32, u64),
) -> Option<bool> {
    let spot = B::spot(words, shape, location);
    if spot.is_behind() {
        return None;
    }
    Some(look_up(words, shape, &spot, print, true).1)
}

/// The result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// It is in the block; true if it was not in before.
    Here(bool),
    /// It belongs into the block, but all cells are in use.
    Full,
    /// It belongs behind the block.
    Behind,
}

/// Inserts fingerprints into a location, all or none. If there are several, none that is in may be
/// between the first and the last; it may equal either. Says of the last whether it is new.
#[inline(always)]
pub(super) fn insert<B: Block>(
    words: &mut [u64],
    shape: &Shape,
    location: u32,
    prints: Prints,
) -> Inserted {
    let spot = B::spot(words, shape, location);
    // Without a run of this rank, only the next location after all runs can begin one.
    let belongs = spot.is_here || !spot.is_occupied && spot.rank == B::runs(words, shape);
    if !belongs || B::used(words, shape) + prints.count > shape.cells {
        return if spot.is_here { Inserted::Full } else { Inserted::Behind };
    }
    let last = prints.bits >> ((prints.count - 1) * shape.width);
    let (at, is_in) = search(words, shape, &spot, last);
    B::open(words, shape, &spot, at, prints);
    Inserted::Here(!is_in)
}

/// A block takes runs back only if this many cells are free, so that keys which replace each
/// other do not send the same run back and forth.
pub(super) const FREE_TO_TAKE: u32 = 2;

/// The result of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removed {
    /// It is gone.
    Here,
    /// It is gone, and the block should take runs back.
    Room,
    /// It is nowhere.
    Nowhere,
    /// Its location is behind.
    Behind,
}

#[inline(always)]
pub(super) fn remove<B: Block>(
    words: &mut [u64],
    shape: &Shape,
    (location, print): (u32, u64),
) -> Removed {
    let spot = B::spot(words, shape, location);
    if spot.is_behind() {
        return Removed::Behind;
    }
    let (at, is_in) = look_up(words, shape, &spot, print, false);
    if !is_in {
        return Removed::Nowhere;
    }
    let free = shape.cells + 1 - B::used(words, shape);
    let is_done = free < FREE_TO_TAKE
        || free & B::patience(shape) != 0
        || B::occupied(words, shape) == B::runs(words, shape);
    B::close(words, shape, &spot, at, 1);
    if is_done { Removed::Here } else { Removed::Room }
}

/// The fingerprint of a cell.
pub(super) fn print(words: &[u64], shape: &Shape, cell: u32) -> u64 {
    window(words, shape.at(cell)) & low(shape.width)
}

/// The fingerprints of the run at `spot`, in order.
pub(super) fn run<'a>(
    words: &'a [u64],
    shape: &'a Shape,
    spot: &Spot,
) -> impl Iterator<Item = u64> + use<'a> {
    (spot.start..spot.start + spot.len).map(move |cell| print(words, shape, cell))
}

/// The lowest occupied location from `from` on.
pub(super) fn next_occupied(words: &[u64], shape: &Shape, from: u32) -> Option<u32> {
    let mut at = from;
    while at < shape.locations {
        let rest = words[at as usize / 64] >> (at % 64);
        if rest != 0 {
            return Some(at + rest.trailing_zeros()).filter(|&at| at < shape.locations);
        }
        at = (at / 64 + 1) * 64;
    }
    None
}

/// The highest run.
#[inline(always)]
pub(super) fn highest<B: Block>(words: &[u64], shape: &Shape) -> Option<Spot> {
    let rank = B::runs(words, shape).checked_sub(1)?;
    Some(B::spot(words, shape, B::ranked(words, shape, rank)?))
}

/// The lowest location behind, and the cells in use.
#[inline(always)]
pub(super) fn lowest_behind<B: Block>(words: &[u64], shape: &Shape) -> Option<(u32, u32)> {
    let (runs, used) = B::held(words, shape);
    Some((B::ranked(words, shape, runs)?, used))
}

/// Says that a location has keys, or that it has none.
pub(super) fn set_occupied(words: &mut [u64], location: u32, is_occupied: bool) {
    let (word, bit) = (location as usize / 64, location % 64);
    words[word] = words[word] & !(1 << bit) | u64::from(is_occupied) << bit;
}

/// Set bit number `rank` of a word, alone; 0 if there are fewer.
#[inline(always)]
pub(super) fn nth(word: u64, rank: u32) -> u64 {
    // The lowest bit of every byte. Frozen.
    const LOW: u64 = 0x0101_0101_0101_0101;
    // The highest bit of every byte. Frozen.
    const HIGH: u64 = LOW << 7;
    // How many bits are set in each byte, and then in it and all below.
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let sums = ((fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(LOW);
    // The bytes whose sum is at most `rank` come before the byte of that bit.
    let at_most = |sums: u64, rank: u64| {
        ((((LOW.wrapping_mul(rank) | HIGH) - sums) & HIGH) >> 7).wrapping_mul(LOW) >> 56
    };
    let before = 8 * at_most(sums, rank.into());
    if before == 64 {
        return 0;
    }
    let left = u64::from(rank) - ((sums << 8) >> before & 0xff);
    // The same once more, with a byte for each bit of that byte.
    let bits = (word >> before & 0xff).wrapping_mul(LOW) & 0x8040_2010_0804_0201;
    let sums = (((bits + (HIGH - LOW)) & HIGH) >> 7).wrapping_mul(LOW);
    1 << (before + at_most(sums, left))
}

/// Whether the block could have been made by these functions: every run belongs to an occupied
/// location and is in order, and no other bit is set.
pub(super) fn is_valid<B: Block>(words: &[u64], shape: &Shape) -> bool {
    let (runs, used) = B::held(words, shape);
    if used > shape.cells || runs > B::occupied(words, shape) {
        return false;
    }
    let mut spare = shape.at(used);
    while spare < shape.ends_at() {
        let bits = (shape.ends_at() - spare).min(WINDOW);
        if window(words, spare) & low(bits) != 0 {
            return false;
        }
        spare += bits;
    }
    // The last end is in the last cell in use, so every cell belongs to a run. Which cells end one
    // cannot be predicted, and decides no branch.
    let (mut ends, mut least, mut is_in_order) = (0, 0, true);
    for cell in 0..used {
        if cell.is_multiple_of(WINDOW) {
            ends = window(words, shape.ends_at() + cell);
        }
        let here = window(words, shape.at(cell)) & shape.mask;
        is_in_order &= least <= here;
        least = here & (ends & 1).wrapping_sub(1);
        ends >>= 1;
    }
    is_in_order
}

/// Removes the last run, whose location stays occupied: it goes behind.
pub(super) fn drop_last_run(words: &mut [u64], shape: &Shape, spot: &Spot) {
    let bits = u64::from(spot.len * shape.width);
    field::clear(words, shape.at(spot.start).into(), bits);
    field::clear(words, (shape.ends_at() + spot.start + spot.len - 1).into(), 1);
}

/// Writes `print` into the first free cell, which is `cell`.
pub(super) fn append(words: &mut [u64], shape: &Shape, cell: u32, print: u64) {
    field::put(words, shape.at(cell).into(), shape.width, print);
}

/// Ends the last run at a cell.
pub(super) fn end_run(words: &mut [u64], shape: &Shape, cell: u32) {
    field::put(words, (shape.ends_at() + cell).into(), 1, 1);
}
