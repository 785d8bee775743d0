//! Blocks of one or two cache lines: each map of bits is a number, and nothing is searched in a
//! loop.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use core::marker::PhantomData;

use super::block::{Block, Prints, Spot, nth};
use super::shape::Shape;
use crate::bits::low;

/// Instructions that machines may have. Each has a twin here that says what is right.
pub(super) trait Instructions {
    /// As [`nth`].
    #[inline(always)]
    fn nth(word: u64, rank: u32) -> u64 {
        nth(word, rank)
    }

    /// How many of the first `bits` bits are set; there must be more.
    #[inline(always)]
    fn rank(words: &[[u64; 4]], bits: u32) -> u32 {
        let words = words.as_flattened();
        let (whole, rest) = (bits as usize / 64, bits % 64);
        let ones = words[..whole].iter().map(|word| word.count_ones()).sum::<u32>();
        ones + (words[whole] & low(rest)).count_ones()
    }

    /// The number of the word that has set bit number `rank` of all words, and the rank of that
    /// bit in it; as many as there are words if there are fewer such bits.
    #[inline(always)]
    fn select(words: &[[u64; 4]], rank: u32) -> (usize, u32) {
        let words = words.as_flattened();
        let mut left = rank;
        for (number, word) in words.iter().enumerate() {
            let ones = word.count_ones();
            if left < ones {
                return (number, left);
            }
            left -= ones;
        }
        (words.len(), left)
    }

    /// Puts `width` bits of `print` at bit `at`; the bits from there on move up. The maps become
    /// `maps`.
    #[inline(always)]
    fn open(words: &mut [u64], (at, width): (u32, u32), print: u64, maps: Maps) {
        let (number, offset) = (at as usize / 64, at % 64);
        maps.clear_ends(words);
        let first = words[number];
        let kept = first & low(offset);
        // All words move, and those after the first stay so: how many there are cannot be
        // predicted.
        let mut below = [0; MOST + 1];
        below[1..=words.len()].copy_from_slice(words);
        for (at, (word, moves)) in words.iter_mut().zip(from(number + 1)).enumerate() {
            let moved = below[at + 1] << width | below[at] >> (64 - width);
            *word = *word & !moves | moved & moves;
        }
        words[number] = kept | (first ^ kept) << width | print << offset;
        // What was not to move into the next word, and what of `print` does not fit.
        if let Some(next) = words.get_mut(number + 1) {
            *next = *next ^ kept >> (64 - width) | print >> 1 >> (63 - offset);
        }
        maps.write(words);
    }

    /// Removes the `width` bits at bit `at`; the bits from there on move down. The maps become
    /// `maps`.
    #[inline(always)]
    fn close(words: &mut [u64], (at, width): (u32, u32), maps: Maps) {
        let (number, offset) = (at as usize / 64, at % 64);
        maps.clear_ends(words);
        let kept = words[number] & low(offset);
        // As in `open`.
        let mut above = [0; MOST + 1];
        above[..words.len()].copy_from_slice(words);
        for (at, (word, moves)) in words.iter_mut().zip(from(number)).enumerate() {
            let moved = above[at] >> width | above[at + 1] << (64 - width);
            *word = *word & !moves | moved & moves;
        }
        words[number] = kept | words[number] & !low(offset);
        maps.write(words);
    }
}

/// The most words of such a block: two lines. Frozen.
const MOST: usize = 16;

/// All bits of the words from number `first` on, and none of those before.
#[inline(always)]
fn from(first: usize) -> &'static [u64] {
    static MASKS: [u64; 2 * MOST] = {
        let mut masks = [0; 2 * MOST];
        let mut at = MOST;
        while at < 2 * MOST {
            masks[at] = u64::MAX;
            at += 1;
        }
        masks
    };
    &MASKS[MOST - first..]
}

/// What becomes of the maps of a block.
#[derive(Clone, Copy)]
pub(super) struct Maps {
    /// The bits of the first two words that change: locations that become occupied, or no longer
    /// are.
    pub(super) flipped: [u64; 2],
    /// The map of ends as it is to be: the last two words of a block, with zeros below it.
    pub(super) ends: [u64; 2],
    /// The bits of these words that do not belong to the map.
    pub(super) others: [u64; 2],
}

impl Maps {
    /// Clears the map of ends, which has a word a line.
    #[inline(always)]
    fn clear_ends(&self, words: &mut [u64]) {
        let lines = words.len() / 8;
        for (word, others) in words.iter_mut().rev().zip(self.others.iter().rev()).take(lines) {
            *word &= others;
        }
    }

    /// Writes the maps; that of ends must be clear.
    #[inline(always)]
    fn write(&self, words: &mut [u64]) {
        let lines = words.len() / 8;
        for (word, ends) in words.iter_mut().rev().zip(self.ends.iter().rev()).take(lines) {
            *word |= ends;
        }
        for (word, flipped) in words.iter_mut().zip(self.flipped).take(lines) {
            *word ^= flipped;
        }
    }
}

/// For any machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Instructions for Portable {}

/// A map of bits, in as many words as the block has lines.
trait Map: Sized {
    fn read(words: &[u64]) -> Self;
    /// Set bit number `rank`, alone; 0 if there are fewer.
    fn nth<I: Instructions>(self, rank: u32) -> Self;
    /// The first two words of a block whose first bits are these.
    fn first_words(self) -> [u64; 2];
    /// The last two words of a block whose last bits are these.
    fn last_words(self) -> [u64; 2];
}

impl Map for u64 {
    #[inline(always)]
    fn read(words: &[u64]) -> Self {
        words[0]
    }

    #[inline(always)]
    fn nth<I: Instructions>(self, rank: u32) -> Self {
        I::nth(self, rank)
    }

    #[inline(always)]
    fn first_words(self) -> [u64; 2] {
        [self, 0]
    }

    #[inline(always)]
    fn last_words(self) -> [u64; 2] {
        [0, self]
    }
}

impl Map for u128 {
    #[inline(always)]
    fn read(words: &[u64]) -> Self {
        Self::from(words[0]) | Self::from(words[1]) << 64
    }

    #[inline(always)]
    fn nth<I: Instructions>(self, rank: u32) -> Self {
        let [first, second] = [self as u64, (self >> 64) as u64];
        let ones = first.count_ones();
        // Which of the two cannot be predicted.
        let is_first = rank < ones;
        let word = core::hint::select_unpredictable(is_first, first, second);
        let rank = core::hint::select_unpredictable(is_first, rank, rank.wrapping_sub(ones));
        let bit = if rank < 64 { Self::from(I::nth(word, rank)) } else { 0 };
        core::hint::select_unpredictable(is_first, bit, bit << 64)
    }

    #[inline(always)]
    fn first_words(self) -> [u64; 2] {
        [self as u64, (self >> 64) as u64]
    }

    #[inline(always)]
    fn last_words(self) -> [u64; 2] {
        self.first_words()
    }
}

macro_rules! lines {
    ($(#[$doc:meta])* $name:ident, $map:ty, $words:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $name<I>(PhantomData<I>);

        impl<I> $name<I> {
            /// The map of occupied locations.
            #[inline(always)]
            fn map(words: &[u64], shape: &Shape) -> $map {
                let beyond = <$map>::BITS - shape.locations;
                <$map>::read(words) << beyond >> beyond
            }

            /// The map of ends, from bit 0 on.
            #[inline(always)]
            fn ends(words: &[u64], shape: &Shape) -> $map {
                <$map>::read(&words[$words - $words / 8..]) >> (<$map>::BITS - shape.cells)
            }

            /// New ends, and the location of `spot` flipped if its run begins or goes.
            #[inline(always)]
            fn maps(shape: &Shape, spot: &Spot, flips: bool, ends: $map) -> Maps {
                Maps {
                    flipped: (<$map>::from(flips) << spot.location).first_words(),
                    ends: (ends << (<$map>::BITS - shape.cells)).last_words(),
                    others: shape.not_ends,
                }
            }
        }

        impl<I: Instructions> Block for $name<I> {
            #[inline(always)]
            fn words(_: &Shape) -> usize {
                $words
            }

            #[inline(always)]
            fn spot(words: &[u64], shape: &Shape, location: u32) -> Spot {
                let words = &words[..$words];
                let (occupied, ends) = (<$map>::read(words), Self::ends(words, shape));
                let rank = (occupied & ((1 << location) - 1)).count_ones();
                let is_occupied = occupied >> location & 1 == 1;
                let end = ends.nth::<I>(rank);
                // Without such an end these are all ends.
                let before = ends & end.wrapping_sub(1);
                let start = <$map>::BITS - before.leading_zeros();
                let len = end.trailing_zeros().wrapping_add(1).wrapping_sub(start);
                // (Whether it is occupied cannot be predicted.)
                let len = len & u32::from(is_occupied).wrapping_neg();
                Spot { location, is_occupied, rank, is_here: end != 0, start, len }
            }

            #[inline(always)]
            fn runs(words: &[u64], shape: &Shape) -> u32 {
                Self::ends(&words[..$words], shape).count_ones()
            }

            #[inline(always)]
            fn used(words: &[u64], shape: &Shape) -> u32 {
                <$map>::BITS - Self::ends(&words[..$words], shape).leading_zeros()
            }

            #[inline(always)]
            fn occupied(words: &[u64], shape: &Shape) -> u32 {
                Self::map(words, shape).count_ones()
            }

            #[inline(always)]
            fn ranked(words: &[u64], shape: &Shape, rank: u32) -> Option<u32> {
                let map = Self::map(words, shape);
                (rank < map.count_ones()).then(|| map.nth::<I>(rank).trailing_zeros())
            }

            #[inline(always)]
            fn open(words: &mut [u64], shape: &Shape, spot: &Spot, at: u32, prints: Prints) {
                let words: &mut [u64; $words] = &mut words.as_chunks_mut().0[0];
                let ends = Self::ends(words, shape);
                let above = ends & <$map>::MAX << spot.start;
                let is_first = spot.len == 0;
                let Prints { count, bits } = prints;
                let first = <$map>::from(is_first) << (spot.start + count - 1);
                let maps = Self::maps(shape, spot, is_first, ends ^ above | above << count | first);
                I::open(words, (at, count * shape.width), bits, maps);
            }

            #[inline(always)]
            fn close(words: &mut [u64], shape: &Shape, spot: &Spot, at: u32, count: u32) {
                let words: &mut [u64; $words] = &mut words.as_chunks_mut().0[0];
                let ends = Self::ends(words, shape);
                let above = ends & <$map>::MAX << spot.start;
                let ends = ends ^ above | above >> count & <$map>::MAX << spot.start;
                let maps = Self::maps(shape, spot, spot.len == count, ends);
                I::close(words, (at, count * shape.width), maps);
            }
        }
    };
}

lines!(
    /// A block of 64 bytes.
    One, u64, 8
);
lines!(
    /// A block of 128 bytes.
    Two, u128, 16
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    #[test]
    fn set_bits_of_two_words_are_found_by_rank() {
        for seed in 0..500 {
            let word = |number| Digest(seed).word(number) & Digest(seed).word(number + 2);
            let map = u128::from(word(0)) | u128::from(word(1)) << 64;
            let mut rest = map;
            for rank in 0..128 {
                let lowest = rest & rest.wrapping_neg();
                assert_eq!(map.nth::<Portable>(rank), lowest);
                rest ^= lowest;
            }
        }
    }
}
