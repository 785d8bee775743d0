//! How a block is cut: chain locations, cells, and fingerprints of any width, without padding.
//!
//! ```text
//! bit 0                                                                                last bit
//! | occupied (L bits) | Z fingerprints of w bits, side by side | spare (zeros) | ends (Z bits) |
//! ```
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use crate::bits::low;

/// The fewest words of a block: a cache line. Frozen.
pub(super) const LEAST_WORDS: u32 = 8;
/// The most words of a block: a page. Frozen.
pub(super) const MOST_WORDS: u32 = 512;
/// The widest fingerprint of any block. Frozen.
pub(super) const MAX_WIDTH: u32 = 48;

/// The fewest bits that a window has: a word from any byte on, less up to seven bits. Frozen.
pub(super) const WINDOW: u32 = 57;

/// How a block is cut, with what every operation needs, computed once.
///
/// Several fingerprints are compared at once. A word of them is a *window*, and each of its
/// fingerprints a *lane*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) words: u16,
    pub(super) locations: u32,
    pub(super) cells: u32,
    /// Bits of a fingerprint.
    pub(super) width: u32,
    /// The fingerprints of a window.
    pub(super) lanes: u8,
    /// The lowest bit of every lane.
    pub(super) ones: u64,
    /// The highest bit of every lane.
    pub(super) tops: u64,
    /// All other bits of every lane.
    others: u64,
    /// Those of them that are no value.
    pub(super) others_of_keys: u64,
    /// The bits of the first lane.
    pub(super) mask: u64,
    /// The lowest bits of a fingerprint, which are a value and no part of a key.
    pub(super) value: u8,
    /// The bits of the last two words of a block that do not belong to the map of ends.
    pub(super) not_ends: [u64; 2],
}

impl Shape {
    /// A block of `words` words with `locations` locations and `cells` cells of `width` bits; they
    /// must [fit](Self::most_locations).
    pub(super) fn new(words: u32, locations: u32, cells: u32, width: u32, value: u32) -> Self {
        let lanes = WINDOW / width;
        let ones = (0..lanes).fold(0_u64, |ones, lane| ones | 1 << (lane * width));
        let (tops, mask) = (ones << (width - 1), low(width));
        let others = tops - ones;
        let others_of_keys = others & !ones.wrapping_mul(low(value));
        let not_ends = [low(128 - cells.clamp(64, 128)), low(64 - cells.min(64))];
        // (All are small, and tables of few keys are to be small as well.)
        let (words, lanes, value) = (words as u16, lanes as u8, value as u8);
        Self {
            words,
            locations,
            cells,
            width,
            lanes,
            ones,
            tops,
            others,
            others_of_keys,
            mask,
            value,
            not_ends,
        }
    }

    /// The most cells, and locations, of a block, whatever their width. In one or two lines a map
    /// of bits takes a word a line.
    pub(super) fn most_cells(words: u32) -> u32 {
        if words <= 2 * LEAST_WORDS { words * 8 } else { u32::MAX }
    }

    /// The most locations of a block with `cells` cells; `None` if the cells do not fit.
    pub(super) fn most_locations(words: u32, cells: u32, width: u32) -> Option<u32> {
        let most = Self::most_cells(words);
        let left = (64 * words).checked_sub(cells.checked_mul(width + 1)?)?;
        Some(left.min(most)).filter(|&left| left > 0 && cells <= most)
    }

    /// The first bit of a cell.
    #[inline(always)]
    pub(super) fn at(&self, cell: u32) -> u32 {
        self.locations + cell * self.width
    }

    /// The first bit of the map of ends.
    pub(super) fn ends_at(&self) -> u32 {
        64 * u32::from(self.words) - self.cells
    }

    /// The highest bits of those of the first `len` lanes of a window that equal `print`, in all
    /// bits or only in those that are part of a key.
    #[inline(always)]
    pub(super) fn equal(&self, window: u64, len: u32, print: u64, keys_only: bool) -> u64 {
        let differs = window ^ print.wrapping_mul(self.ones);
        let others = if keys_only { self.others_of_keys } else { self.others };
        // The sum has the highest bit of a lane if one of the others differs. No lane carries into
        // the next.
        let sum = (differs & others).wrapping_add(self.others);
        !(sum | differs | u64::MAX << (len * self.width)) & self.tops
    }

    /// Where the first of the first `len` lanes of a window begins that is not below `print`, or
    /// else the first after them; and whether it equals `print`.
    #[inline(always)]
    pub(super) fn search(&self, window: u64, len: u32, print: u64) -> (u32, bool) {
        let wanted = print.wrapping_mul(self.ones);
        let end = len * self.width;
        // The difference keeps the highest bit of a lane if its other bits are not below those of
        // `print`. No lane borrows from the next.
        let others = (window | self.tops).wrapping_sub(wanted & self.others);
        let differs = window ^ wanted;
        let not_below = (window & differs | others & !differs) & self.tops;
        let first = (not_below >> (self.width - 1) | u64::MAX << end).trailing_zeros();
        (first, first < end && (window >> first ^ print) & self.mask == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_compared_as_numbers() {
        let mut random = crate::digest::Digest(1);
        for width in 1..=MAX_WIDTH {
            let value = width / 3;
            let shape = Shape::new(8, 1, 1, width, value);
            for _ in 0..2000 {
                random = crate::digest::Digest(random.word(3));
                let window = random.word(1) & random.word(2) | random.word(4) >> 40;
                let print = match random.0 & 3 {
                    0 => window & low(width),
                    1 => (window >> (u32::from(shape.lanes - 1) * width)) & low(width),
                    _ => random.word(5) & low(width),
                };
                let held: alloc::vec::Vec<u64> = (0..shape.lanes.into())
                    .map(|lane: u32| window >> (lane * width) & low(width))
                    .collect();
                for len in 0..=shape.lanes.into() {
                    let held = &held[..len as usize];
                    let tops = |value: u32, print: u64| {
                        let equal = (0..).zip(held);
                        let equal = equal.filter(|&(_, &one)| one >> value == print >> value);
                        equal.fold(0, |all, (lane, _)| all | 1 << (lane * width + width - 1))
                    };
                    assert_eq!(shape.equal(window, len, print, false), tops(0, print));
                    let key = print >> value << value;
                    assert_eq!(shape.equal(window, len, key, true), tops(value, key));
                    let first = held.iter().position(|&one| one >= print);
                    let is_in = first.is_some_and(|first| held[first] == print);
                    let at = first.unwrap_or(held.len()) as u32 * width;
                    assert_eq!(shape.search(window, len, print), (at, is_in));
                }
            }
        }
    }
}
