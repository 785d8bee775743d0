//! From a digest to a block, a location in it and a fingerprint.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use super::params::Level;
use super::shape::Shape;
use crate::address::reduce;
use crate::digest::Digest;

/// Where a key belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) block: u64,
    /// Location and fingerprint in one, so that a place is passed in two registers.
    pub(super) rest: u64,
}

impl Place {
    /// The place of the identity that is `more` higher, which must belong to the same location.
    #[inline]
    pub(super) fn plus(self, more: u64) -> Self {
        Self { rest: self.rest + more, ..self }
    }
}

/// How identities are cut: what every operation needs of the params, computed once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) shape: Shape,
    pub(super) blocks: u64,
    /// Identities of a block, without values.
    pub(super) keys: u64,
    /// floor(2^64 / `per_block`), which saves divisions.
    inverse: u64,
}

impl Cut {
    pub(super) fn new(level: &Level) -> Self {
        let per_block = u64::from(level.locations) << level.fingerprint;
        let inverse =
            if per_block == 1 { u64::MAX } else { ((1 << 64) / u128::from(per_block)) as u64 };
        Self { shape: level.shape(), blocks: level.blocks, keys: per_block >> level.value, inverse }
    }

    /// Identities of a block.
    #[inline(always)]
    pub(super) fn per_block(&self) -> u64 {
        self.keys << self.shape.value
    }

    /// U, the number of identities.
    pub(super) fn universe(&self) -> u64 {
        self.blocks * self.per_block()
    }

    /// The words of a block.
    #[inline(always)]
    pub(super) fn range(&self, block: u64) -> core::ops::Range<usize> {
        let words = self.shape.words as usize;
        let first = block as usize * words;
        first..first + words
    }

    /// The place of [`identity`](crate::address::identity) without a division: the high word of
    /// digest times blocks is the block, and the low word times the identities of a block gives
    /// the rest.
    ///
    /// The value, where there is one, is 0.
    #[inline(always)]
    pub(super) fn place(&self, digest: Digest) -> Place {
        let product = u128::from(digest.0) * u128::from(self.blocks);
        let rest = reduce(product as u64, self.keys) << self.shape.value;
        Place { block: (product >> 64) as u64, rest }
    }

    /// The place of an identity. (One beyond the universe, which only unchecked bytes have, gets
    /// a place in the last block.)
    #[inline(always)]
    pub(super) fn place_of(&self, identity: u64) -> Place {
        // At most one too small.
        let block = reduce(identity, self.inverse);
        let per_block = self.per_block();
        let rest = identity - block * per_block;
        let is_next = rest >= per_block;
        let (block, rest) =
            (block + u64::from(is_next), if is_next { rest - per_block } else { rest });
        Place { block: block.min(self.blocks - 1), rest }
    }

    /// The place of a fingerprint in a location of a block.
    #[inline(always)]
    pub(super) fn place_at(&self, block: u64, location: u32, print: u64) -> Place {
        Place { block, rest: u64::from(location) << self.shape.width | print }
    }

    /// The location of a place in its block.
    #[inline(always)]
    pub(super) fn location_of(&self, place: Place) -> u32 {
        (place.rest >> self.shape.width) as u32
    }

    /// The fingerprint of a place.
    #[inline(always)]
    pub(super) fn print_of(&self, place: Place) -> u64 {
        place.rest & self.shape.mask
    }

    /// The location of a place in its block, and its fingerprint.
    #[inline(always)]
    pub(super) fn cell(&self, place: Place) -> (u32, u64) {
        (self.location_of(place), self.print_of(place))
    }

    /// The locations of all blocks.
    #[inline(always)]
    pub(super) fn all_locations(&self) -> u64 {
        self.blocks * u64::from(self.shape.locations)
    }

    /// The location of a place among those of all blocks.
    #[inline(always)]
    pub(super) fn location(&self, place: Place) -> u64 {
        place.block * u64::from(self.shape.locations) + u64::from(self.location_of(place))
    }

    pub(super) fn identity(&self, place: Place) -> u64 {
        place.block * self.per_block() + place.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::identity;

    #[test]
    fn a_digest_and_its_identity_have_one_place() {
        for (blocks, locations, cells, fingerprint) in [
            (1, 1, 1, 1),
            (3, 62, 50, 8),
            (1 << 39, 64, 33, 12),
            (12_345, 60, 26, 16),
            (1, 3, 9, 48),
        ] {
            let level = Level { blocks, locations, cells, fingerprint, block: 512, value: 0 };
            let cut = Cut::new(&level);
            let ends = [0, 1, u64::MAX - 1, u64::MAX].map(Digest);
            for digest in (0..1000).map(|seed| Digest(Digest(seed).word(7))).chain(ends) {
                let place = cut.place(digest);
                let identity = identity(digest, level.universe());
                assert_eq!(cut.identity(place), identity);
                assert_eq!(cut.place_of(identity), place);
            }
        }
    }
}
