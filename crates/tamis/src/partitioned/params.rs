//! The parameters of a partitioned filter.

use alloc::vec;
use alloc::vec::Vec;

use super::functions::{Family, Partition};
use crate::bloom::{MAX_HASHES, MAX_POSITIONS};
use crate::digest::Digest;
use crate::spec::{InvalidParam, Params, as_stored, narrow, require};

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
    partition: Partition,
    family: Family,
}

impl PartitionedParams {
    /// `bits` positions and `groups` groups, both in `segments` equal parts. Every group has
    /// `hashes` functions out of `candidates` candidates. If there are several segments, each has
    /// whole words. The functions are ours; [`with_functions`](Self::with_functions) takes others.
    pub fn new(
        bits: u64,
        segments: u64,
        groups: u64,
        candidates: u32,
        hashes: u32,
    ) -> Result<Self, InvalidParam> {
        require((1..=MAX_POSITIONS).contains(&bits), "bits", bits, "1 to 2^48")?;
        require((1..=MAX_GROUPS).contains(&groups), "groups", groups, "1 to 2^40")?;
        let divides = segments > 0 && groups.is_multiple_of(segments);
        require(divides, "segments", segments, "a divisor of the groups")?;
        // (The product is below 2^46, because there are no more groups than 2^40.)
        let fits = segments == 1 || bits.is_multiple_of(segments * 64);
        require(
            fits,
            "segments",
            segments,
            "a number that cuts the bits into equal parts of whole words",
        )?;
        let fits = (1..=MAX_CANDIDATES).contains(&candidates);
        require(fits, "candidates", candidates, "1 to 2^20")?;
        let fits = (1..=MAX_HASHES.min(candidates)).contains(&hashes);
        require(fits, "hashes", hashes, "1 to 64, and no more than the candidates")?;
        let (partition, family) = (Partition::default(), Family::default());
        Ok(Self { bits, segments, groups, candidates, hashes, partition, family })
    }

    /// The same layout with these functions.
    ///
    /// RS and CRC have 32 bits, so there are at most 2^32 groups with RS, and 2^32 bits in a
    /// segment with CRC. The bits in a segment for CRC must not be a power of two, nor a multiple
    /// of 128: the candidates would not be independent of each other.
    pub fn with_functions(
        self,
        partition: Partition,
        family: Family,
    ) -> Result<Self, InvalidParam> {
        let fits = partition == Partition::Top || self.groups <= 1 << 32;
        require(fits, "groups", self.groups, "at most 2^32 with partition = 1, which is RS")?;
        if family == Family::Crc {
            let bits = self.segment_bits();
            let expected = "2 to 2^32 in a segment with family = 1, which is CRC-32";
            require((2..=1 << 32).contains(&bits), "bits", self.bits, expected)?;
            let fits = !bits.is_power_of_two() && bits.trailing_zeros() <= 6;
            let expected = "no power of two in a segment, nor a multiple of 128, with family = 1, which is CRC-32";
            require(fits, "bits", self.bits, expected)?;
        }
        Ok(Self { partition, family, ..self })
    }

    /// Bits in the array, m.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Equal parts of the array. Each has groups of its own, which set bits there and nowhere
    /// else.
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

    /// What decides the group of a key.
    pub fn partition(&self) -> Partition {
        self.partition
    }

    /// The candidates that groups choose from.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Bits in a segment.
    pub fn segment_bits(&self) -> u64 {
        self.bits / self.segments
    }

    /// Groups in a segment.
    pub fn segment_groups(&self) -> u64 {
        self.groups / self.segments
    }

    /// Bits of a stored choice; 0 if every candidate is taken, because then nothing is stored. A
    /// single choice needs room for the mark of an empty group; several choices mark it by their
    /// order.
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

    /// The group of a key.
    #[inline]
    pub fn group(&self, digest: Digest) -> u64 {
        self.partition.group(digest, self.groups)
    }
}

impl Params for PartitionedParams {
    const NAMES: &'static [&'static str] =
        &["bits", "segments", "groups", "candidates", "hashes", "partition", "family"];

    fn values(&self) -> Vec<u64> {
        let Self { bits, segments, groups, candidates, hashes, partition, family } = *self;
        let (partition, family) = (partition as u64, family as u64);
        vec![bits, segments, groups, candidates.into(), hashes.into(), partition, family]
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        let [bits, segments, groups, candidates, hashes, partition, family] = as_stored(values)?;
        let layout = Self::new(bits, segments, groups, narrow(candidates), narrow(hashes))?;
        let expected = "0 (the top of the digest) or 1 (RS)";
        require(partition <= 1, "partition", partition, expected)?;
        require(family <= 1, "family", family, "0 (mixers) or 1 (CRC-32)")?;
        layout.with_functions(
            if partition == 0 { Partition::Top } else { Partition::Rs },
            if family == 0 { Family::Mixers } else { Family::Crc },
        )
    }
}
