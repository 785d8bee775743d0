//! The d choices of an identity: permutations h -> a h mod U, the high part for the bucket and the
//! low part for the remainder.
//!
//! The low part must be the remainder: if it were the bucket, all buckets of an identity would
//! follow from its lowest bits. A permutation can be undone, so bucket and remainder together are
//! the identity: nothing is lost.

use super::params::MAX_SUBTABLES;
use crate::permutation::{Permutation, inverse, multipliers};

/// Where an identity would be in one subtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) bucket: u64,
    pub(super) remainder: u64,
}

/// The permutations of all subtables, and their inverses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choices {
    universe: u64,
    remainder_bits: u32,
    there: [Permutation; MAX_SUBTABLES as usize],
    back: [Permutation; MAX_SUBTABLES as usize],
}

impl Choices {
    pub(super) fn new(subtables: u32, universe: u64, remainder_bits: u32) -> Self {
        let mut choices =
            Self { universe, remainder_bits, there: Default::default(), back: Default::default() };
        let factors = multipliers::<{ MAX_SUBTABLES as usize }>(subtables as usize, universe);
        for (at, &factor) in factors.iter().enumerate().take(subtables as usize) {
            choices.there[at] = Permutation::new(factor, universe);
            choices.back[at] = Permutation::new(inverse(factor, universe), universe);
        }
        choices
    }

    /// Where an identity would be in a subtable.
    #[inline]
    pub(super) fn choice(&self, subtable: u32, identity: u64) -> Choice {
        let permuted = self.there[subtable as usize].apply(identity, self.universe);
        Choice {
            bucket: permuted >> self.remainder_bits,
            remainder: permuted & ((1 << self.remainder_bits) - 1),
        }
    }

    /// The identity that has this choice in a subtable.
    pub(super) fn identity(&self, subtable: u32, choice: Choice) -> u64 {
        let permuted = choice.bucket << self.remainder_bits | choice.remainder;
        self.back[subtable as usize].apply(permuted, self.universe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIVERSES: [u64; 9] =
        [2, 14, 24, 31 << 9, 2000 << 14, 1 << 25, 12_345_679 << 30, 7 << 40, (1 << 62) - 2];

    #[test]
    fn permutations_are_undone() {
        for universe in UNIVERSES {
            let choices = Choices::new(MAX_SUBTABLES, universe, 1);
            for subtable in 0..MAX_SUBTABLES {
                let middle = [universe / 2, universe / 3, universe - 1].into_iter();
                for identity in (0..universe.min(5000)).chain(middle) {
                    let choice = choices.choice(subtable, identity);
                    assert!(choice.bucket < universe / 2 + universe % 2);
                    assert_eq!(choices.identity(subtable, choice), identity);
                }
            }
        }
    }
}
