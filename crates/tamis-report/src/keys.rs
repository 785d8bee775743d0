//! Seeded streams of distinct keys.

use tamis::{Digest, Hasher};

/// A stream of keys: members and strangers, all different from each other.
///
/// Keys are eight bytes: a bijection of the seed and a running number. Members count up from 0, strangers from
/// 2^63, so no stranger is ever a member.
#[derive(Clone, Copy, Debug)]
pub struct KeyStream {
    offset: u64,
}

/// The running number of the first stranger.
const STRANGERS: u64 = 1 << 63;

impl KeyStream {
    /// The stream with this seed.
    pub fn new(seed: u64) -> Self {
        Self { offset: Digest(seed).word(0) }
    }

    /// Member number `index`.
    pub fn member(self, index: u64) -> u64 {
        // XOR keeps numbers apart, and so does `word`.
        Digest(index ^ self.offset).word(1)
    }

    /// Stranger number `index`.
    pub fn stranger(self, index: u64) -> u64 {
        self.member(STRANGERS | index)
    }

    /// Digests of the members in a range of numbers.
    pub fn members(
        self,
        hasher: Hasher,
        range: std::ops::Range<u64>,
    ) -> impl Iterator<Item = Digest> {
        range.map(move |index| hasher.digest(&self.member(index)))
    }

    /// Digests of the strangers in a range of numbers.
    pub fn strangers(
        self,
        hasher: Hasher,
        range: std::ops::Range<u64>,
    ) -> impl Iterator<Item = Digest> {
        range.map(move |index| hasher.digest(&self.stranger(index)))
    }
}
