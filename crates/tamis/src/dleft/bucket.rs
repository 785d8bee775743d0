//! The paper's bucket: cells of a remainder and a counter, the used ones first, searched all at
//! once.
//!
//! ```text
//! bucket   | cell 0 | cell 1 | ... | cell c-1 |   cell   counter (2 bits) | remainder (r) | value
//! ```
//!
//! A cell of zeros is empty. The paper therefore forbids the remainder 0. Here it is legal,
//! because growing shortens remainders and may turn others into 0. Instead the counter of a
//! remainder 0 starts at 1 where others start at 0: a used cell is never all zeros, and no
//! identity is reserved. So a cell counts 1 to 4, and 1 to 3 if its remainder is 0.

use super::params::{COUNTER_BITS, DLeftParams};
use crate::bits::{Line, OutOfMemory, Words, equal_lanes, field, prefetch, tail_is_zero};

/// The content of a used cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) remainder: u64,
    pub(super) count: u64,
    pub(super) value: u64,
}

/// The most that a cell counts. Frozen.
pub(super) const MAX_COUNT: u64 = 4;

/// The most that a cell with this remainder counts: one less for the remainder 0, which must not
/// look like an empty cell.
pub(super) fn max_count(remainder: u64) -> u64 {
    if remainder == 0 { MAX_COUNT - 1 } else { MAX_COUNT }
}

/// The largest part of a bucket that is compared at once. Frozen: it is the width of a word.
const LANES_BITS: u32 = 128;

/// All buckets.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    words: Words,
    cells: u32,
    remainder_bits: u32,
    cell_bits: u32,
    search: Search,
}

/// How a bucket is searched.
#[derive(Clone, Copy, Debug)]
enum Search {
    /// Eight cells of 16 bits: one vector compare.
    Vector,
    /// All cells in one number of 128 bits, each with the same content: compared by one
    /// subtraction.
    Lanes {
        /// The lowest bit of every cell.
        lows: u128,
        /// The highest bit of every cell.
        highs: u128,
    },
    /// Cell by cell.
    Cells,
}

impl Search {
    fn of(params: &DLeftParams) -> Self {
        let (cells, width) = (params.cells(), params.cell_bits());
        if (cells, width) == (8, 16) {
            return Self::Vector;
        }
        if cells * width > LANES_BITS {
            return Self::Cells;
        }
        let lows = (0..cells).fold(0, |lows, cell| lows | 1_u128 << (cell * width));
        Self::Lanes { lows, highs: lows << (width - 1) }
    }
}

impl Buckets {
    pub(super) fn new(params: &DLeftParams) -> Result<Self, OutOfMemory> {
        Ok(Self {
            words: Words::zeroed(params.bits().div_ceil(64))?,
            cells: params.cells(),
            remainder_bits: params.remainder(),
            cell_bits: params.cell_bits(),
            search: Search::of(params),
        })
    }

    pub(super) fn footprint(&self) -> u64 {
        self.words.footprint()
    }

    pub(super) fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
    }

    /// Bits of a bucket.
    fn bucket_bits(&self) -> u64 {
        u64::from(self.cells) * u64::from(self.cell_bits)
    }

    #[inline]
    fn start(&self, bucket: u64, cell: u32) -> u64 {
        bucket * self.bucket_bits() + u64::from(cell) * u64::from(self.cell_bits)
    }

    #[inline]
    pub(super) fn prefetch(&self, bucket: u64) {
        let start = self.start(bucket, 0);
        prefetch(self.words.as_slice(), (start / 64) as usize);
        prefetch(self.words.as_slice(), ((start + self.bucket_bits() - 1) / 64) as usize);
    }

    /// The cache lines of a bucket.
    pub(super) fn lines(&self, bucket: u64) -> core::ops::RangeInclusive<u64> {
        let start = self.start(bucket, 0);
        start / Line::BITS..=(start + self.bucket_bits() - 1) / Line::BITS
    }

    #[inline]
    fn bits_of(&self, bucket: u64, cell: u32) -> u64 {
        field::get(self.words.as_slice(), self.start(bucket, cell), self.cell_bits)
    }

    /// A bucket of at most 128 bits as one number.
    #[inline]
    fn lanes(&self, bucket: u64) -> u128 {
        let (start, bits) = (self.start(bucket, 0), self.bucket_bits() as u32);
        let low = field::get(self.words.as_slice(), start, bits.min(64));
        let high = match bits.checked_sub(64) {
            Some(more) if more > 0 => field::get(self.words.as_slice(), start + 64, more),
            _ => 0,
        };
        u128::from(high) << 64 | u128::from(low)
    }

    /// The bits of a cell that its remainder takes.
    #[inline]
    fn remainder_mask(&self) -> u64 {
        ((1 << self.remainder_bits) - 1) << COUNTER_BITS
    }

    /// What a cell holds; `None` if it is empty.
    #[inline]
    pub(super) fn cell(&self, bucket: u64, cell: u32) -> Option<Cell> {
        let bits = self.bits_of(bucket, cell);
        let remainder = (bits & self.remainder_mask()) >> COUNTER_BITS;
        let counter = bits & ((1 << COUNTER_BITS) - 1);
        let count = counter + u64::from(remainder != 0);
        let value = bits >> COUNTER_BITS >> self.remainder_bits;
        (count > 0).then_some(Cell { remainder, count, value })
    }

    /// Writes a cell, whose count must be at most [`max_count`].
    #[inline]
    pub(super) fn set_cell(&mut self, bucket: u64, cell: u32, content: Cell) {
        let Cell { remainder, count, value } = content;
        let counter = count - u64::from(remainder != 0);
        let bits =
            counter | remainder << COUNTER_BITS | value << COUNTER_BITS << self.remainder_bits;
        let at = self.start(bucket, cell);
        field::put(self.words.as_mut_slice(), at, self.cell_bits, bits);
    }

    /// Empties a cell; the last used cell moves there.
    pub(super) fn free_cell(&mut self, bucket: u64, cell: u32) {
        let last = self.load(bucket) - 1;
        let (bits, at) = (self.bits_of(bucket, last), self.start(bucket, cell));
        field::put(self.words.as_mut_slice(), at, self.cell_bits, bits);
        let at = self.start(bucket, last);
        field::put(self.words.as_mut_slice(), at, self.cell_bits, 0);
    }

    /// The number of used cells.
    #[inline]
    pub(super) fn load(&self, bucket: u64) -> u32 {
        match self.search {
            Search::Vector => {
                self.cells - equal_lanes(self.pair(bucket), 0, u16::MAX).count_ones() / 2
            }
            Search::Lanes { highs, .. } => {
                self.cells - zero_lanes(self.lanes(bucket), highs).count_ones()
            }
            Search::Cells => self.load_by_cells(bucket),
        }
    }

    fn load_by_cells(&self, bucket: u64) -> u32 {
        (0..self.cells).filter(|&cell| self.bits_of(bucket, cell) != 0).count() as u32
    }

    /// Whether a cell of the bucket has this remainder.
    #[inline]
    pub(super) fn has(&self, bucket: u64, remainder: u64) -> bool {
        if remainder == 0 {
            return self.find(bucket, 0).next().is_some(); // An empty cell has this remainder too.
        }
        match self.search {
            Search::Vector => {
                let wanted = (remainder << COUNTER_BITS) as u16;
                equal_lanes(self.pair(bucket), wanted, self.remainder_mask() as u16) != 0
            }
            Search::Lanes { lows, highs } => {
                let wanted = lows.wrapping_mul(u128::from(remainder << COUNTER_BITS));
                let mask = lows.wrapping_mul(u128::from(self.remainder_mask()));
                zero_lanes((self.lanes(bucket) ^ wanted) & mask, highs) != 0
            }
            Search::Cells => self.has_by_cells(bucket, remainder),
        }
    }

    fn has_by_cells(&self, bucket: u64, remainder: u64) -> bool {
        (0..self.cells).any(|cell| {
            self.bits_of(bucket, cell) & self.remainder_mask() == remainder << COUNTER_BITS
        })
    }

    /// The cells with this remainder. (There are several only where cells have values.)
    pub(super) fn find(
        &self,
        bucket: u64,
        remainder: u64,
    ) -> impl Iterator<Item = (u32, Cell)> + use<'_> {
        (0..self.cells)
            .map_while(move |cell| Some((cell, self.cell(bucket, cell)?)))
            .filter(move |(_, content)| content.remainder == remainder)
    }

    /// A bucket of exactly 128 bits.
    #[inline]
    fn pair(&self, bucket: u64) -> [u64; 2] {
        let at = bucket as usize * 2;
        let words = self.words.as_slice();
        [words[at], words[at + 1]]
    }

    /// Whether the used cells of every bucket come first, and all bits behind the last bucket are
    /// zero.
    pub(super) fn is_tidy(&self, buckets: u64) -> bool {
        let dense = |bucket: u64| {
            let load = self.load_by_cells(bucket);
            (0..self.cells).all(|cell| self.cell(bucket, cell).is_some() == (cell < load))
        };
        tail_is_zero(self.words.as_slice(), self.start(buckets, 0)) && (0..buckets).all(dense)
    }
}

/// The highest bit of every lane that is zero. `highs` has the highest bit of every lane.
#[inline]
fn zero_lanes(number: u128, highs: u128) -> u128 {
    // Adding all ones to the other bits of a lane carries into its highest unless they are all
    // zero; no lane carries into the next.
    let ones = u128::MAX >> highs.leading_zeros() & !highs;
    let others = (number & !highs).wrapping_add(ones);
    !(others | number) & highs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ways of searching agree with the plain one, on buckets of every load.
    #[test]
    fn searches_agree_with_the_portable_one() {
        for (cells, remainder, value) in
            [(8, 14, 0), (8, 12, 2), (8, 12, 0), (4, 30, 0), (15, 6, 0), (3, 1, 0), (8, 20, 0)]
        {
            let params = DLeftParams::new(1, 300, cells, remainder, value).unwrap();
            let mut buckets = Buckets::new(&params).unwrap();
            let mut state = 1_u64;
            let mut draw = |below: u64| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 33) % below
            };
            for bucket in 0..300 {
                for cell in 0..draw(u64::from(cells) + 1) as u32 {
                    let remainder = draw(1 << remainder) * u64::from(draw(4) > 0);
                    let count = 1 + draw(max_count(remainder));
                    let content = Cell { remainder, count, value: draw(1 << value) };
                    buckets.set_cell(bucket, cell, content);
                    assert_eq!(buckets.cell(bucket, cell), Some(content));
                }
                let load = buckets.load(bucket);
                assert_eq!(load, buckets.load_by_cells(bucket));
                let held = (0..load).filter_map(|cell| buckets.cell(bucket, cell));
                let held: alloc::vec::Vec<u64> = held.map(|content| content.remainder).collect();
                let absent = (0..20).map(|_| draw(1 << remainder));
                for wanted in held.iter().copied().chain(absent).chain([0]) {
                    let found = buckets.has(bucket, wanted);
                    assert_eq!(found, held.contains(&wanted));
                    assert_eq!(found, buckets.find(bucket, wanted).next().is_some());
                    assert!(wanted == 0 || found == buckets.has_by_cells(bucket, wanted));
                }
            }
            assert!(buckets.is_tidy(300));
        }
    }
}
