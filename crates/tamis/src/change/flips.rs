//! Flipped bits.

use alloc::vec::Vec;

use crate::bits::Words;

/// The bits of an array that flip: its XOR with another. And what changes in the list of digests
/// beside the array, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flips {
    /// Bits of the array.
    pub(super) bits: u64,
    pub(super) words: Vec<u64>,
    /// Digests that are in one list and not in the other, in order.
    pub(super) toggled: Option<Vec<u64>>,
}

impl Flips {
    pub(crate) fn between(old: &Words, new: &Words, bits: u64) -> Self {
        let flip = |(old, new): (&u64, &u64)| old ^ new;
        let words = old.as_slice().iter().zip(new.as_slice()).map(flip).collect();
        Self { bits, words, toggled: None }
    }

    /// The same for arrays with these sorted lists beside them.
    pub(crate) fn with_lists(self, old: &[u64], new: &[u64]) -> Self {
        Self { toggled: Some(either(old, new)), ..self }
    }

    /// Both changes, one after the other; `None` if the arrays are not of one length, or if only
    /// one has a list.
    pub(crate) fn then(&self, next: &Self) -> Option<Self> {
        if self.bits != next.bits {
            return None;
        }
        let toggled = match (&self.toggled, &next.toggled) {
            (Some(first), Some(second)) => Some(either(first, second)),
            (None, None) => None,
            _ => return None,
        };
        let join = |(first, second): (&u64, &u64)| first ^ second;
        let words = self.words.iter().zip(&next.words).map(join).collect();
        Some(Self { bits: self.bits, words, toggled })
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

    /// The list that `old` becomes; `None` if no list changes.
    pub(crate) fn list(&self, old: &[u64]) -> Option<Vec<u64>> {
        Some(either(old, self.toggled.as_ref()?))
    }
}

/// What is in exactly one of two sorted lists.
fn either(left: &[u64], right: &[u64]) -> Vec<u64> {
    let mut all: Vec<u64> = left.iter().chain(right).copied().collect();
    all.sort_unstable();
    let mut kept: Vec<u64> = Vec::with_capacity(all.len());
    for entry in all {
        if kept.last() == Some(&entry) {
            kept.pop();
        } else {
            kept.push(entry);
        }
    }
    kept
}
