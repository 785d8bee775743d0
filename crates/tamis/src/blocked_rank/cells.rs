//! All cells of a block, read or written in order.
//!
//! They lie in order of location and fingerprint. A pass goes through the maps of a block
//! together: cell by cell, the location is the lowest that is left of those occupied, and after
//! the end of a run that one is dropped. Nothing is searched, and which cells end a run, which
//! cannot be predicted, decides no branch.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use alloc::vec::Vec;

use super::block::{Block, window};
use super::shape::{Shape, WINDOW};
use crate::bits::low;
use crate::entry::Entry;

/// The occupied locations of a block, in order.
struct Occupied<'a> {
    /// The words of the map.
    words: &'a [u64],
    locations: u32,
    /// The word that the next location is in, and its bits that are left.
    number: u32,
    left: u64,
}

impl<'a> Occupied<'a> {
    #[inline(always)]
    fn new(block: &'a [u64], shape: &Shape) -> Self {
        let locations = shape.locations;
        let words = &block[..locations.div_ceil(64) as usize];
        Self { words, locations, number: 0, left: words[0] & low(locations.min(64)) }
    }

    /// The next location. (If there is none, which only unchecked bytes can cause, the last of
    /// all.)
    #[inline(always)]
    fn next(&mut self) -> u32 {
        while self.left == 0 {
            if self.number as usize + 1 == self.words.len() {
                return self.locations - 1;
            }
            self.number += 1;
            let bits = (self.locations - 64 * self.number).min(64);
            self.left = self.words[self.number as usize] & low(bits);
        }
        64 * self.number + self.left.trailing_zeros()
    }

    /// Drops the next location if `is_done` is 1.
    #[inline(always)]
    fn drop_if(&mut self, is_done: u64) {
        self.left &= self.left.wrapping_sub(is_done);
    }
}

/// Adds an entry to `entries` for each cell of a block whose identities begin at `first`. Returns
/// the least identity that may come next; `None` if one of these was not above the one before it:
/// then an identity is in several times, or the bytes are unchecked.
#[inline(always)]
pub(super) fn list<B: Block>(
    block: &[u64],
    shape: &Shape,
    first: u64,
    entries: &mut Vec<Entry>,
) -> Option<u64> {
    let used = B::used(block, shape);
    let mut occupied = Occupied::new(block, shape);
    let (mut least, mut in_order) = (first, true);
    for start in (0..used).step_by(WINDOW as usize) {
        let mut ends = window(block, shape.ends_at() + start);
        entries.extend((start..used.min(start + WINDOW)).map(|cell| {
            let start = first + (u64::from(occupied.next()) << shape.width);
            occupied.drop_if(ends & 1);
            ends >>= 1;
            let identity = start | window(block, shape.at(cell)) & shape.mask;
            in_order &= identity >= least;
            least = identity + 1;
            Entry { identity, value: 0, count: 1 }
        }));
    }
    in_order.then_some(least)
}

/// Bits that are put into words one after the other, where there are zeros.
struct Bits {
    word: usize,
    /// The bits of that word, and how many there are.
    pending: u64,
    held: u32,
}

impl Bits {
    /// Bits from bit `at` on.
    #[inline(always)]
    fn at(at: u32) -> Self {
        Self { word: at as usize / 64, pending: 0, held: at % 64 }
    }

    /// Puts a value of `width` bits, at most 63.
    #[inline(always)]
    fn put(&mut self, words: &mut [u64], value: u64, width: u32) {
        self.pending |= value << self.held;
        self.held += width;
        if self.held >= 64 {
            words[self.word] |= self.pending;
            self.word += 1;
            self.held -= 64;
            self.pending = value >> (width - self.held);
        }
    }

    #[inline(always)]
    fn finish(self, words: &mut [u64]) {
        if let Some(word) = words.get_mut(self.word) {
            *word |= self.pending;
        }
    }
}

/// Writes keys to an empty block, in order: locations with their fingerprints, all of which fit.
#[inline(always)]
pub(super) fn write(block: &mut [u64], shape: &Shape, keys: &[u64]) {
    let (mut prints, mut ends) = (Bits::at(shape.at(0)), Bits::at(shape.ends_at()));
    let mut last = None;
    for &key in keys {
        let location = (key >> shape.width) as u32;
        if let Some(last) = last {
            ends.put(block, u64::from(location != last), 1);
        }
        block[location as usize / 64] |= 1 << (location % 64);
        prints.put(block, key & shape.mask, shape.width);
        last = Some(location);
    }
    if last.is_some() {
        ends.put(block, 1, 1);
    }
    prints.finish(block);
    ends.finish(block);
}
