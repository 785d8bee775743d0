//! One level: where a key belongs in it, whether it was bumped, and whether it may be in.

use crate::address::reduce;
use crate::bits::{self, Line};
use crate::digest::Digest;

/// Rows of a block. Every key has coefficients for this many rows. Frozen.
pub(super) const ROWS: u64 = 64;
/// Starts of a bucket. The keys of a bucket that are bumped are told by its code. Frozen.
pub(super) const BUCKET: u64 = 128;
/// By code: keys of the bucket that start below are bumped. Frozen.
///
/// Code 0 bumps all keys, so that zeros are an empty filter.
pub(super) const BUMPED_BELOW: [u64; 4] = [BUCKET, 56, 24, 0];
/// Codes in a word. Frozen.
pub(super) const CODES: u64 = 32;

/// Columns that are compared before a lookup looks whether they agreed: an absent key is told by
/// its first four in 15 of 16 cases, which a processor predicts better than by the first in one
/// of two.
pub(super) const TOGETHER: usize = 4;

/// All that a digest is to a filter. Frozen.
#[derive(Clone, Copy)]
pub(super) struct Equation {
    /// Which of the 64 rows from the start on are added up. The first is always among them.
    pub(super) coefficients: u64,
    /// What they add up to, a bit for each column.
    pub(super) value: u64,
}

impl Equation {
    #[inline]
    pub(super) fn of(digest: Digest) -> Self {
        Self { coefficients: digest.word(0) | 1, value: digest.word(1) }
    }
}

/// The word that decides where a digest starts in the level with this number. Frozen.
#[inline]
pub(super) fn position(digest: Digest, level: usize) -> u64 {
    if level == 0 { digest.0 } else { digest.word(level as u64 + 1) }
}

/// Where a level is in the array, and how it is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Where keys can start; none in a level without rows.
    pub(super) starts: u64,
    /// Columns of most blocks, each a word.
    pub(super) columns: u32,
    /// The first blocks have a column more: this many.
    pub(super) wide: u64,
    /// The first word of the rows.
    pub(super) first: u64,
    /// The first word of the codes.
    pub(super) codes: u64,
}

impl Level {
    /// A level of `rows` rows from word `first` on. Its codes are put elsewhere later.
    pub(super) fn new(rows: u64, columns: u32, wide: u64, first: u64) -> Self {
        Self { starts: rows.saturating_sub(ROWS), columns, wide, first, codes: 0 }
    }

    pub(super) fn buckets(&self) -> u64 {
        self.starts.div_ceil(BUCKET)
    }

    pub(super) fn blocks(&self) -> u64 {
        if self.starts == 0 { 0 } else { self.starts / ROWS + 1 }
    }

    /// Where the digest starts.
    #[inline]
    pub(super) fn start(&self, digest: Digest, level: usize) -> u64 {
        reduce(position(digest, level), self.starts)
    }

    /// The first word of a block.
    #[inline]
    pub(super) fn block_at(&self, block: u64) -> u64 {
        self.first + block * u64::from(self.columns) + block.min(self.wide)
    }

    /// The columns that are compared for a key that starts in this block: those that it and the
    /// next block have.
    #[inline]
    pub(super) fn compared(&self, block: u64) -> u32 {
        self.columns + u32::from(block + 1 < self.wide)
    }

    /// The starts from which a column more is compared.
    pub(super) fn wide_starts(&self) -> u64 {
        (self.wide.saturating_sub(1) * ROWS).min(self.starts)
    }

    #[inline]
    pub(super) fn code(&self, words: &[u64], bucket: u64) -> u64 {
        words[self.code_at(bucket) as usize] >> (bucket % CODES * 2) & 3
    }

    /// The word that has the code of a bucket.
    #[inline]
    pub(super) fn code_at(&self, bucket: u64) -> u64 {
        self.codes + bucket / CODES
    }

    /// Whether a bit is set beyond the last code.
    pub(super) fn has_stray_codes(&self, words: &[u64]) -> bool {
        let used = self.buckets() % CODES * 2;
        used > 0 && words[self.code_at(self.buckets()) as usize] >> used != 0
    }

    /// Whether a key that starts here was bumped.
    #[inline]
    pub(super) fn is_bumped(&self, words: &[u64], start: u64) -> bool {
        start % BUCKET < BUMPED_BELOW[self.code(words, start / BUCKET) as usize]
    }

    /// Whether a key that starts here satisfies its equation, and how many columns that took.
    #[inline]
    pub(super) fn satisfies(&self, words: &[u64], start: u64, digest: Digest) -> (bool, u32) {
        let (block, offset) = (start / ROWS, start % ROWS);
        let Equation { coefficients, mut value } = Equation::of(digest);
        let low = coefficients << offset;
        let high = coefficients >> 1 >> (ROWS - 1 - offset);
        let columns = self.compared(block) as usize;
        let [here, next] = [block, block + 1].map(|block| self.block_at(block) as usize);
        let (here, next) = (&words[here..here + columns], &words[next..next + columns]);
        let mut differs = |column: usize| {
            let sum = (here[column] & low) ^ (next[column] & high);
            let differs = u64::from(sum.count_ones()) ^ value;
            value >>= 1;
            differs & 1 != 0
        };
        let together = columns.min(TOGETHER);
        if (0..together).fold(false, |any, column| any | differs(column)) {
            return (false, together as u32);
        }
        for column in together..columns {
            if differs(column) {
                return (false, column as u32 + 1);
            }
        }
        (true, columns as u32)
    }

    /// Starts fetching the rows of a digest.
    #[inline]
    pub(super) fn prefetch(&self, words: &[u64], digest: Digest, level: usize) {
        let block = self.start(digest, level) / ROWS;
        let (here, end) = (self.block_at(block), self.block_at(block + 2));
        // Rows without columns have no words.
        let lines = here / Line::WORDS as u64..end.div_ceil(Line::WORDS as u64);
        lines.for_each(|line| bits::prefetch(words, line as usize * Line::WORDS));
    }
}
