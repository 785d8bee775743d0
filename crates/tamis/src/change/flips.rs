//! Flipped bits.

use alloc::vec::Vec;

use crate::bits::Words;

/// The bits of an array that flip: its XOR with another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flips {
    /// Bits of the array.
    pub(super) bits: u64,
    pub(super) words: Vec<u64>,
}

impl Flips {
    pub(crate) fn between(old: &Words, new: &Words, bits: u64) -> Self {
        let flip = |(old, new): (&u64, &u64)| old ^ new;
        Self { bits, words: old.as_slice().iter().zip(new.as_slice()).map(flip).collect() }
    }

    pub(crate) fn then(&self, next: &Self) -> Self {
        let join = |(first, second): (&u64, &u64)| first ^ second;
        Self { bits: self.bits, words: self.words.iter().zip(&next.words).map(join).collect() }
    }

    /// How many bits flip.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Flips the bits of an array of the same length.
    pub(crate) fn apply(&self, words: &mut [u64]) -> Result<(), &'static str> {
        if words.len() != self.words.len() {
            return Err("the array has another length");
        }
        for (word, flips) in words.iter_mut().zip(&self.words) {
            *word ^= flips;
        }
        Ok(())
    }
}
