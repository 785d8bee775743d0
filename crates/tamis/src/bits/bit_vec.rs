//! A vector of bits.

use super::words::{OutOfMemory, Words};

/// A fixed number of bits; the unused bits of the last word are always zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitVec {
    words: Words,
    len: u64,
}

impl BitVec {
    /// `len` zero bits.
    pub fn zeroed(len: u64) -> Result<Self, OutOfMemory> {
        Ok(Self { words: Words::zeroed(len.div_ceil(64))?, len })
    }

    /// The first `len` bits of these words; `None` if they do not fit, or if a bit beyond them is
    /// set.
    pub fn from_words(words: Words, len: u64) -> Option<Self> {
        let vec = Self { words, len };
        (vec.words.len() as u64 == len.div_ceil(64) && vec.tail_is_zero()).then_some(vec)
    }

    /// Whether the unused bits of the last word are zero, as they must be.
    pub(crate) fn tail_is_zero(&self) -> bool {
        let used = self.len % 64;
        used == 0 || self.words.as_slice().last().is_none_or(|last| last >> used == 0)
    }

    /// The words that hold the bits, bit i being bit i % 64 of word i / 64.
    #[inline]
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The words, to write. The caller keeps the unused bits of the last word zero.
    #[inline]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        self.words.as_mut_slice()
    }

    /// The bits in words that [`into_words`](Self::into_words) gave, with no bit set beyond `len`
    /// since.
    pub(crate) fn from_valid_words(words: Words, len: u64) -> Self {
        let vec = Self { words, len };
        debug_assert!(vec.words.len() as u64 == len.div_ceil(64) && vec.tail_is_zero());
        vec
    }

    /// The words alone.
    pub(crate) fn into_words(self) -> Words {
        self.words
    }

    /// How many bits.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no bit.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bits are set.
    pub fn ones(&self) -> u64 {
        self.words.ones()
    }

    /// Sets every bit to zero.
    pub fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
    }

    /// Sets the bits that are set in either. Both must have the same length.
    pub(crate) fn union(&mut self, other: &Self) {
        debug_assert_eq!(self.len, other.len);
        for (word, other) in self.words.as_mut_slice().iter_mut().zip(other.words.as_slice()) {
            *word |= other;
        }
    }

    /// Keeps the bits that are set in both. Both must have the same length.
    pub(crate) fn intersect(&mut self, other: &Self) {
        debug_assert_eq!(self.len, other.len);
        for (word, other) in self.words.as_mut_slice().iter_mut().zip(other.words.as_slice()) {
            *word &= other;
        }
    }
}

/// Whether bit `position` of these words is set.
#[inline]
pub(crate) fn test(words: &[u64], position: u64) -> bool {
    words[(position >> 6) as usize] >> (position & 63) & 1 == 1
}

/// Sets bit `position`; true if it was zero.
#[inline]
pub(crate) fn set(words: &mut [u64], position: u64) -> bool {
    let word = &mut words[(position >> 6) as usize];
    let before = *word;
    *word |= 1 << (position & 63);
    *word != before
}
