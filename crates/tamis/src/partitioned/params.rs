//! The parameters of a partitioned filter.

use alloc::vec;
use alloc::vec::Vec;

use crate::address::reduce;
use crate::bloom::{MAX_HASHES, MAX_POSITIONS};
use crate::digest::Digest;
use crate::filter::{InvalidParam, Params, as_stored, narrow};

/// The most groups: each has a key or two in any filter that fits into memory.
const MAX_GROUPS: u64 = 1 << 40;
/// The most candidates: a group's choice among more would take longer than it is worth.
const MAX_CANDIDATES: u32 = 1 << 20;

/// Layout of a [`PartitionedBloom`](super::PartitionedBloom) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionedParams {
    bits: u64,
    segments: u64,
    groups: u64,
    candidates: u32,
    hashes: u32,
}

impl PartitionedParams {
    /// `bits` positions and `groups` groups, both in `segments` equal parts; every group has `hashes` functions out of
    /// `candidates`. Several segments are made of whole words.
    pub fn new(
        bits: u64,
        segments: u64,
        groups: u64,
        candidates: u32,
        hashes: u32,
    ) -> Result<Self, InvalidParam> {
        let refuse = |name, value, expected| Err(InvalidParam { name, value, expected });
        if !(1..=MAX_POSITIONS).contains(&bits) {
            return refuse("bits", bits, "1 to 2^48");
        }
        if !(1..=MAX_GROUPS).contains(&groups) {
            return refuse("groups", groups, "1 to 2^40");
        }
        if segments == 0 || !groups.is_multiple_of(segments) {
            return refuse("segments", segments, "a divisor of the groups");
        }
        if segments > 1 && !(bits.is_multiple_of(segments) && (bits / segments).is_multiple_of(64))
        {
            return refuse("segments", segments, "bits in equal parts of whole words");
        }
        if !(1..=MAX_CANDIDATES).contains(&candidates) {
            return refuse("candidates", candidates.into(), "1 to 2^20");
        }
        if !(1..=MAX_HASHES.min(candidates)).contains(&hashes) {
            return refuse("hashes", hashes.into(), "1 to 64, and no more than the candidates");
        }
        Ok(Self { bits, segments, groups, candidates, hashes })
    }

    /// Bits in the array, m.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Equal parts of the array, each with the groups of its own that set bits there and nowhere else.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Groups of keys, g.
    pub fn groups(&self) -> u64 {
        self.groups
    }

    /// Functions that a group chooses from, H.
    pub fn candidates(&self) -> u32 {
        self.candidates
    }

    /// Functions of a group, k.
    pub fn hashes(&self) -> u32 {
        self.hashes
    }

    /// Bits in a segment.
    pub fn segment_bits(&self) -> u64 {
        self.bits / self.segments
    }

    /// Groups in a segment.
    pub fn segment_groups(&self) -> u64 {
        self.groups / self.segments
    }

    /// Bits of a stored choice. 0 where every candidate is taken, so that there is nothing to store; a single choice has room
    /// for the mark of an empty group, which several express by their order.
    pub fn width(&self) -> u32 {
        match (self.candidates, self.hashes) {
            (candidates, hashes) if candidates == hashes => 0,
            (candidates, 1) => u32::BITS - candidates.leading_zeros(),
            (candidates, _) => u32::BITS - (candidates - 1).leading_zeros(),
        }
    }

    /// Bits of all stored choices.
    pub fn choice_bits(&self) -> u64 {
        self.groups * u64::from(self.hashes) * u64::from(self.width())
    }

    /// The group of a key: the top of its digest, so that a sorted list of digests is a list of groups.
    #[inline]
    pub fn group(&self, digest: Digest) -> u64 {
        reduce(digest.0, self.groups)
    }
}

impl Params for PartitionedParams {
    const NAMES: &'static [&'static str] = &["bits", "segments", "groups", "candidates", "hashes"];

    fn values(&self) -> Vec<u64> {
        let Self { bits, segments, groups, candidates, hashes } = *self;
        vec![bits, segments, groups, candidates.into(), hashes.into()]
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        let [bits, segments, groups, candidates, hashes] = as_stored(values)?;
        Self::new(bits, segments, groups, narrow(candidates), narrow(hashes))
    }
}
