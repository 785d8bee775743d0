//! Blocks read and written in order, all their keys in one pass.
//!
//! The cells of a block lie in order of location and fingerprint, and so in order of identity. A
//! pass goes through the maps of a block together: cell by cell, the location is the lowest that
//! is left of those occupied, and after the end of a run that one is dropped. Nothing is searched,
//! and which cells end a run, which cannot be predicted, decides no branch.

use alloc::vec::Vec;

use super::super::block::{self, Block, next_occupied, window};
use super::super::dense::Dense;
use super::super::line::Portable;
use super::super::place::Cut;
use super::super::shape::{Shape, WINDOW};
use super::back::FULL;
use super::blocks::{Blocks, Spread};
use crate::bits::{field, low};
use crate::entry::{Entry, order};
use crate::spec::Full;

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
    fn new(block: &'a [u64], shape: &Shape) -> Self {
        let locations = shape.locations;
        let words = &block[..locations.div_ceil(64) as usize];
        Self { words, locations, number: 0, left: words[0] & low(locations.min(64)) }
    }

    /// The next location. (If there is none, which only unchecked bytes can cause, the last of
    /// all.)
    #[inline]
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
    #[inline]
    fn drop_if(&mut self, is_done: u64) {
        self.left &= self.left.wrapping_sub(is_done);
    }
}

impl Blocks {
    /// Adds the entries of a block and of what is behind it to `entries`, in order.
    pub(super) fn list_block(&self, number: u64, entries: &mut Vec<Entry>) {
        let (block, shape) = (self.block(number), self.shape());
        let first = self.cut.identity(self.cut.place_at(number, 0, 0));
        let from = entries.len();
        let (runs, used) = Dense::<Portable>::held(block, shape);
        let mut occupied = Occupied::new(block, shape);
        let ends_at = shape.ends_at();
        // The least identity that may come next, and whether all were in order.
        let (mut least, mut in_order) = (first, true);
        entries.reserve(used as usize);
        let mut take = |identity: u64, count: u64| {
            if identity < least {
                if let Some(last) = entries.last_mut().filter(|last| last.identity == identity) {
                    last.count = last.count.saturating_add(count);
                    return;
                }
                in_order = false; // (Only unchecked bytes have such runs.)
            }
            least = identity + 1;
            entries.push(Entry { identity, value: 0, count });
        };
        let mut ends = 0;
        for cell in 0..used {
            if cell.is_multiple_of(WINDOW) {
                ends = window(block, ends_at + cell);
            }
            let start = first + (u64::from(occupied.next()) << shape.width);
            take(start | window(block, shape.at(cell)) & shape.mask, 1);
            occupied.drop_if(ends & 1);
            ends >>= 1;
        }
        // What is left is behind.
        if Dense::<Portable>::occupied(block, shape) > runs {
            let mut next = Dense::<Portable>::ranked(block, shape, runs);
            while let Some(location) = next {
                let start = first + (u64::from(location) << shape.width);
                let part = self.part(number, location);
                self.back.for_each(part, &mut |print, count| take(start | print, count));
                next = next_occupied(block, shape, location + 1);
            }
        }
        if !in_order {
            order::put_in_order(entries, from, false);
        }
    }
}

/// Fills empty blocks with entries of their identities, which must be in order; an identity may
/// come several times. `words` are those of the blocks from number `from` on. Returns at most
/// `most` entries that the blocks refuse, with their identities behind, in order.
pub(super) fn fill(
    (cut, spread): (&Cut, &Spread),
    (words, from): (&mut [u64], u64),
    entries: impl Iterator<Item = Entry>,
    most: usize,
) -> Result<Vec<Entry>, Full> {
    let (shape, ends_at) = (&cut.shape, cut.shape.ends_at());
    let mut refused = Refused { cut, spread, entries: Vec::new(), most };
    // A block, the first identity of it, and the first behind it.
    let mut block: &mut [u64] = &mut [];
    let (mut number, mut first, mut end) = (0, 0, 0);
    // The cells in use, the first cell of the last run, and the location of that.
    let (mut used, mut start, mut location) = (0, 0, u32::MAX);
    let mut is_full = false;
    for entry in entries {
        if entry.identity >= end {
            end_run_if(block, ends_at, used, true);
            number = cut.place_of(entry.identity).block;
            first = cut.identity(cut.place_at(number, 0, 0));
            end = first + cut.per_block;
            let words_before = (number - from) as usize * shape.words as usize;
            block = &mut words[words_before..][..shape.words as usize];
            (used, start, location, is_full) = (0, 0, u32::MAX, false);
        }
        let within = entry.identity - first;
        let (here, print) = ((within >> shape.width) as u32, within & shape.mask);
        let begins = here != location;
        end_run_if(block, ends_at, used, begins);
        block[here as usize / 64] |= 1 << (here % 64);
        start = if begins { used } else { start };
        location = here;
        if is_full || entry.count > u64::from(shape.cells - used) {
            if !is_full {
                // Runs are here or behind as a whole.
                for cell in start..used {
                    refused.push(number, location, block::print(block, shape, cell), 1)?;
                }
                let bits = u64::from((used - start) * shape.width);
                field::clear(block, shape.at(start).into(), bits);
                (used, is_full) = (start, true);
            }
            refused.push(number, location, print, entry.count)?;
            continue;
        }
        for _ in 0..entry.count {
            field::put(block, shape.at(used).into(), shape.width, print);
            used += 1;
        }
    }
    end_run_if(block, ends_at, used, true);
    refused.entries.sort_unstable_by_key(|entry| entry.identity);
    Ok(refused.entries)
}

/// Ends the run of the last cell in use if `ends`: a branch could not be predicted.
#[inline]
fn end_run_if(block: &mut [u64], ends_at: u32, used: u32, ends: bool) {
    let last = ends_at + used - 1;
    if let Some(word) = block.get_mut(last as usize / 64) {
        *word |= (u64::from(ends) & u64::from(used > 0)) << (last % 64);
    }
}

/// What blocks refuse.
struct Refused<'a> {
    cut: &'a Cut,
    spread: &'a Spread,
    entries: Vec<Entry>,
    most: usize,
}

impl Refused<'_> {
    fn push(&mut self, block: u64, location: u32, print: u64, count: u64) -> Result<(), Full> {
        let identity = self.spread.behind(self.cut, self.cut.place_at(block, location, print));
        if self.entries.len() >= self.most || self.entries.try_reserve(1).is_err() {
            return Err(FULL);
        }
        self.entries.push(Entry { identity, value: 0, count });
        Ok(())
    }
}
