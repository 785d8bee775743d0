//! Blocks of one or two cache lines: each map of bits is a number, and nothing is searched in a
//! loop.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use core::marker::PhantomData;

use super::block::{Block, Spot, nth};
use super::shape::Shape;
use crate::bits::low;

/// Instructions that machines may have. Each has a twin here that says what is right.
pub(super) trait Instructions {
    /// As [`nth`].
    #[inline(always)]
    fn nth(word: u64, rank: u32) -> u64 {
        nth(word, rank)
    }

    /// Puts `width` bits of `print` at bit `at`; the bits from there on move up. The last words
    /// get new `ends`.
    #[inline(always)]
    fn open(words: &mut [u64], (at, width): (u32, u32), print: u64, ends: Ends) {
        let (number, offset) = (at as usize / 64, at % 64);
        let here = words[number];
        let moved = here & !low(offset);
        let mut carried = u128::from(print) << offset | u128::from(moved) << width;
        words[number] = here & low(offset) | carried as u64;
        for word in &mut words[number + 1..] {
            carried = carried >> 64 | u128::from(*word) << width;
            *word = carried as u64;
        }
        ends.write(words);
    }

    /// Removes the `width` bits at bit `at`; the bits from there on move down. The last words get
    /// new `ends`.
    #[inline(always)]
    fn close(words: &mut [u64], (at, width): (u32, u32), ends: Ends) {
        let (number, offset) = (at as usize / 64, at % 64);
        let kept = words[number] & low(offset);
        ends.clear(words);
        for i in number..words.len() {
            let next = words.get(i + 1).copied().unwrap_or(0);
            words[i] = words[i] >> width | next << (64 - width);
        }
        words[number] = kept | words[number] & !low(offset);
        ends.write(words);
    }
}

/// The map of ends as it is to be: the last two words of a block, with zeros below it.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) words: [u64; 2],
    /// The bits of these words that do not belong to the map.
    pub(super) others: [u64; 2],
}

impl Ends {
    fn clear(self, words: &mut [u64]) {
        for (word, others) in words.iter_mut().rev().zip(self.others.into_iter().rev()) {
            *word &= others;
        }
    }

    fn write(self, words: &mut [u64]) {
        self.clear(words);
        for (word, ends) in words.iter_mut().rev().zip(self.words.into_iter().rev()) {
            *word |= ends;
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
    fn last_words(self) -> [u64; 2] {
        [self as u64, (self >> 64) as u64]
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

            #[inline(always)]
            fn written(ends: $map, shape: &Shape) -> Ends {
                let words = (ends << (<$map>::BITS - shape.cells)).last_words();
                Ends { words, others: shape.not_ends }
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
                // (Without such an end, this is not used.)
                let len = end.trailing_zeros().wrapping_add(1).wrapping_sub(start);
                let is_here = end != 0;
                let len = core::hint::select_unpredictable(is_occupied & is_here, len, 0);
                Spot { location, is_occupied, rank, is_here, start, len }
            }

            #[inline(always)]
            fn held(words: &[u64], shape: &Shape) -> (u32, u32) {
                let ends = Self::ends(&words[..$words], shape);
                (ends.count_ones(), <$map>::BITS - ends.leading_zeros())
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
            fn open(words: &mut [u64], shape: &Shape, spot: &Spot, at: u32, print: u64) {
                let words: &mut [u64; $words] = &mut words.as_chunks_mut().0[0];
                let ends = Self::ends(words, shape);
                let above = ends & <$map>::MAX << spot.start;
                let is_first = <$map>::from(spot.len == 0) << spot.start;
                // (Adding moves a bit up by one.)
                let ends = Self::written((ends + above) | is_first, shape);
                I::open(words, (at, shape.width), print, ends);
                words[spot.location as usize / 64 % $words] |= 1 << (spot.location % 64);
            }

            #[inline(always)]
            fn close(words: &mut [u64], shape: &Shape, spot: &Spot, at: u32) {
                let words: &mut [u64; $words] = &mut words.as_chunks_mut().0[0];
                let ends = Self::ends(words, shape);
                let above = ends & <$map>::MAX << spot.start;
                let ends = ends ^ above | above >> 1 & <$map>::MAX << spot.start;
                I::close(words, (at, shape.width), Self::written(ends, shape));
                let is_last = u64::from(spot.len == 1);
                words[spot.location as usize / 64 % $words] &= !(is_last << (spot.location % 64));
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
