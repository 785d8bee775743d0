//! From a digest to a block, a location in it and a fingerprint.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use super::block::Shape;
use super::params::BlockedRankParams;
use crate::address::reduce;
use crate::digest::Digest;

/// Where a key belongs.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub(super) block: u64,
    pub(super) location: u32,
    pub(super) print: u32,
}

/// How identities are cut: what every operation needs of the params, computed once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) shape: Shape,
    blocks: u64,
    /// Identities of a block.
    per_block: u64,
    /// Bits of a fingerprint.
    width: u32,
}

impl Cut {
    pub(super) fn new(params: &BlockedRankParams) -> Self {
        Self {
            shape: params.shape(),
            blocks: params.blocks(),
            per_block: u64::from(params.locations()) << params.fingerprint(),
            width: params.fingerprint(),
        }
    }

    /// The same with a constant shape, which must be its own: then the compiler knows it too.
    #[inline(always)]
    pub(super) fn with_shape(&self, shape: Shape) -> Self {
        let width = 8 + shape.high;
        let per_block = u64::from(shape.locations) << width;
        Self { shape, blocks: self.blocks, per_block, width }
    }

    /// Identities of a block.
    pub(super) fn per_block(&self) -> u64 {
        self.per_block
    }

    #[inline(always)]
    pub(super) fn block_of(&self, digest: Digest) -> usize {
        reduce(digest.0, self.blocks) as usize
    }

    /// The place of [`identity`](crate::address::identity) without a division: the high word of
    /// digest times blocks is the block, and the low word times the identities of a block gives
    /// the rest.
    #[inline(always)]
    pub(super) fn place(&self, digest: Digest) -> Place {
        let product = u128::from(digest.0) * u128::from(self.blocks);
        self.within((product >> 64) as u64, reduce(product as u64, self.per_block))
    }

    pub(super) fn place_of(&self, identity: u64) -> Place {
        self.within(identity / self.per_block, identity % self.per_block)
    }

    #[inline(always)]
    fn within(&self, block: u64, rest: u64) -> Place {
        let location = (rest >> self.width) as u32;
        Place { block, location, print: rest as u32 & ((1 << self.width) - 1) }
    }

    /// The location of a place among those of all blocks.
    pub(super) fn location(&self, place: Place) -> u64 {
        place.block * u64::from(self.shape.locations) + u64::from(place.location)
    }

    pub(super) fn identity(&self, place: Place) -> u64 {
        self.location(place) << self.width | u64::from(place.print)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::identity;

    #[test]
    fn a_digest_and_its_identity_have_one_place() {
        for (blocks, locations, cells, fingerprint) in
            [(1, 1, 1, 1), (3, 64, 49, 8), (1 << 39, 64, 33, 12), (12_345, 60, 26, 16)]
        {
            let params = BlockedRankParams::new(blocks, locations, cells, fingerprint, 1).unwrap();
            let cut = Cut::new(&params);
            let ends = [0, 1, u64::MAX - 1, u64::MAX].map(Digest);
            for digest in (0..1000).map(|seed| Digest(Digest(seed).word(7))).chain(ends) {
                let place = cut.place(digest);
                let identity = identity(digest, params.universe());
                assert_eq!(cut.identity(place), identity);
                assert_eq!(cut.block_of(digest) as u64, place.block);
                let again = cut.place_of(identity);
                let parts = |place: Place| (place.block, place.location, place.print);
                assert_eq!(parts(again), parts(place));
            }
        }
    }
}
