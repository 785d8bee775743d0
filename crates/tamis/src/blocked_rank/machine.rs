//! Which instructions the machine has, and the operations on a table of blocks with them.
#![allow(unsafe_code)] // Special instructions are unsafe because a machine may lack them.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use alloc::vec::Vec;

use super::block::{self, Block, Inserted, Prints, Removed, Spot};
use super::cells;
use super::dense::Dense;
use super::line::{One, Portable, Two};
use super::place::{Cut, Place};
use super::shape::Shape;
#[cfg(target_arch = "x86_64")]
use super::x86::Quick;
use crate::bits::{AHEAD, prefetch};
use crate::digest::Digest;
use crate::entry::Entry;

/// The operations for a shape on this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    size: Size,
    /// Whether the instructions were found. Only [`detect`](Self::detect) says so.
    is_quick: bool,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    One,
    Two,
    Any,
}

impl Machine {
    /// The operations that need no special instructions.
    pub(super) fn portable(shape: &Shape) -> Self {
        let size = match shape.words {
            8 => Size::One,
            16 => Size::Two,
            _ => Size::Any,
        };
        Self { size, is_quick: false }
    }

    /// The best operations.
    pub(super) fn detect(shape: &Shape) -> Self {
        Self { is_quick: is_quick(), ..Self::portable(shape) }
    }

    pub(super) fn is_portable(self) -> bool {
        !self.is_quick
    }
}

/// Whether the machine has what [`Quick`] needs.
fn is_quick() -> bool {
    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    return super::x86::is_detected();
    #[cfg(not(all(feature = "std", target_arch = "x86_64")))]
    false
}

/// Each operation, by size and instructions. Bodies see the kind of block as `B`.
macro_rules! operations {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        impl Machine {
            $($(#[$doc])*
            #[inline]
            pub(super) fn $name(self, $($arg: $type),*) -> $result {
                #[cfg(target_arch = "x86_64")]
                if self.is_quick {
                    // SAFETY: `is_quick` says that the machine has the instructions.
                    return unsafe {
                        match self.size {
                            Size::One => quick::$name::<One<Quick>>($($arg),*),
                            Size::Two => quick::$name::<Two<Quick>>($($arg),*),
                            Size::Any => quick::$name::<Dense<Quick>>($($arg),*),
                        }
                    };
                }
                match self.size {
                    Size::One => portable::$name::<One<Portable>>($($arg),*),
                    Size::Two => portable::$name::<Two<Portable>>($($arg),*),
                    Size::Any => portable::$name::<Dense<Portable>>($($arg),*),
                }
            })*
        }

        /// Functions that are not inlined, like those with special instructions: so a caller
        /// saves no registers for either.
        mod portable {
            use super::*;
            $(#[inline(never)]
            pub(super) fn $name<B: Block>($($arg: $type),*) -> $result $body)*
        }

        #[cfg(target_arch = "x86_64")]
        mod quick {
            use super::*;
            $(#[target_feature(enable = "avx2,popcnt,lzcnt,bmi1,bmi2")]
            pub(super) fn $name<B: Block>($($arg: $type),*) -> $result $body)*
        }
    };
}

operations! {
    /// Whether the fingerprint of a place is in its block; `None` if its location is behind.
    fn find(words: &[u64], cut: &Cut, place: Place) -> Option<bool> {
        block::find::<B>(&words[range::<B>(cut, place.block)], &cut.shape, cut.cell(place))
    }

    fn insert(words: &mut [u64], cut: &Cut, place: Place) -> Inserted {
        insert_one::<B>(words, cut, place)
    }

    /// Inserts fingerprints into the location of a place, as [`block::insert`] does.
    fn insert_run(words: &mut [u64], cut: &Cut, place: Place, prints: Prints) -> Inserted {
        let block = &mut words[range::<B>(cut, place.block)];
        block::insert::<B>(block, &cut.shape, cut.location_of(place), prints)
    }

    fn remove(words: &mut [u64], cut: &Cut, place: Place) -> Removed {
        block::remove::<B>(&mut words[range::<B>(cut, place.block)], &cut.shape, cut.cell(place))
    }

    /// Where the run of a location of a block is.
    fn spot(words: &[u64], cut: &Cut, number: u64, location: u32) -> Spot {
        B::spot(&words[range::<B>(cut, number)], &cut.shape, location)
    }

    /// The highest run of a block.
    fn highest(words: &[u64], cut: &Cut, number: u64) -> Option<Spot> {
        block::highest::<B>(&words[range::<B>(cut, number)], &cut.shape)
    }

    /// The lowest location behind a block, and the cells in use.
    fn lowest_behind(words: &[u64], cut: &Cut, number: u64) -> Option<(u32, u32)> {
        block::lowest_behind::<B>(&words[range::<B>(cut, number)], &cut.shape)
    }

    /// Removes `count` cells from bit `at` on from the run at `spot` of a block.
    fn remove_cells(words: &mut [u64], cut: &Cut, number: u64, spot: &Spot, at: u32, count: u32) -> () {
        B::close(&mut words[range::<B>(cut, number)], &cut.shape, spot, at, count);
    }

    /// Adds the entries of a block, without what is behind it, as [`cells::list`] does.
    fn list(words: &[u64], cut: &Cut, number: u64, entries: &mut Vec<Entry>) -> Option<u64> {
        let first = cut.identity(cut.place_at(number, 0, 0));
        cells::list::<B>(&words[range::<B>(cut, number)], &cut.shape, first, entries)
    }

    /// Writes keys to an empty block, as [`cells::write`] does.
    fn write(block: &mut [u64], cut: &Cut, keys: &[u64]) -> () {
        cells::write(&mut block[..B::words(&cut.shape)], &cut.shape, keys);
    }

    /// Answers for digests from number `from` on, up to the first whose location is behind;
    /// returns its number and its place. There must be as many answers as digests. Lines are
    /// fetched ahead, except the first.
    fn find_many(words: &[u64], cut: &Cut, digests: &[Digest], answers: &mut [bool], from: usize) -> Option<(usize, Place)> {
        let answers = &mut answers[..digests.len()];
        for (number, answer) in answers.iter_mut().enumerate().skip(from) {
            let place = next_place(words, cut, digests, number);
            let block = &words[range::<B>(cut, place.block)];
            match block::find::<B>(block, &cut.shape, cut.cell(place)) {
                Some(here) => *answer = here,
                None => return Some((number, place)),
            }
        }
        None
    }

    /// Inserts digests from number `from` on, up to the first that finds no room; returns its
    /// number, its place, and why. Lines are fetched ahead, except the first.
    fn insert_many(words: &mut [u64], cut: &Cut, digests: &[Digest], from: usize) -> Option<(usize, Place, Inserted)> {
        for number in from..digests.len() {
            let place = next_place(words, cut, digests, number);
            let inserted = insert_one::<B>(words, cut, place);
            if !matches!(inserted, Inserted::Here(_)) {
                return Some((number, place, inserted));
            }
        }
        None
    }

    /// Removes digests from number `from` on, up to the first after which something is left to
    /// do; returns its number, its place, and the result. Lines are fetched ahead, except the
    /// first.
    fn remove_many(words: &mut [u64], cut: &Cut, digests: &[Digest], from: usize) -> Option<(usize, Place, Removed)> {
        for number in from..digests.len() {
            let place = next_place(words, cut, digests, number);
            let block = &mut words[range::<B>(cut, place.block)];
            let removed = block::remove::<B>(block, &cut.shape, cut.cell(place));
            if removed != Removed::Here {
                return Some((number, place, removed));
            }
        }
        None
    }
}

/// Inserts a fingerprint alone.
#[inline(always)]
fn insert_one<B: Block>(words: &mut [u64], cut: &Cut, place: Place) -> Inserted {
    let block = &mut words[range::<B>(cut, place.block)];
    let (location, print) = cut.cell(place);
    block::insert::<B>(block, &cut.shape, location, Prints::one(print))
}

/// The place of a digest of a batch; the block of a later one is fetched meanwhile.
#[inline(always)]
fn next_place(words: &[u64], cut: &Cut, digests: &[Digest], number: usize) -> Place {
    if let Some(&later) = digests.get(number + AHEAD) {
        fetch(words, cut, later);
    }
    cut.place(digests[number])
}

/// Starts fetching the block of a digest: what a question reads first, where it is large.
#[inline(always)]
pub(super) fn fetch(words: &[u64], cut: &Cut, digest: Digest) {
    fetch_place(words, cut, cut.place(digest));
}

/// Starts fetching what a question for a place reads.
#[inline(always)]
pub(super) fn fetch_place(words: &[u64], cut: &Cut, place: Place) {
    let first = place.block as usize * cut.shape.words as usize;
    prefetch(words, first);
    if cut.shape.words > 8 {
        prefetch(words, first + cut.shape.words as usize - 1);
    }
    if cut.shape.words > 16 {
        // Runs are about where their locations are among all.
        let share = cut.shape.cells * cut.location_of(place) / cut.shape.locations;
        prefetch(words, first + cut.shape.at(share) as usize / 64);
        prefetch(words, first + (cut.shape.ends_at() + share) as usize / 64);
        prefetch(words, first + cut.location_of(place) as usize / 64);
    }
}

/// The words of a block.
#[inline(always)]
fn range<B: Block>(cut: &Cut, number: u64) -> core::ops::Range<usize> {
    let words = B::words(&cut.shape);
    let first = number as usize * words;
    first..first + words
}
