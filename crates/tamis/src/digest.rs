//! The one front door: bytes and a seed become a 64-bit [`Digest`], and structures see nothing else.
//!
//! Both hash functions are frozen: their ids stand in every stored filter, and
//! `tests/digest.rs` pins their values to the public test vectors.
//!
//! Two keys with the same digest cannot be told apart by any structure, so every rate has a floor of
//! n / 2^64 for n keys; predicted rates include it.

use core::hash::Hasher as _;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::key::Key;

/// 64 uniformly distributed bits that stand for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u64);

impl Digest {
    /// A second, independent-looking 64-bit word for this digest; every `index` gives another.
    ///
    /// Frozen: stored filters depend on it.
    #[inline]
    pub const fn word(self, index: u64) -> u64 {
        mix(self.0 ^ index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// Variant 13 of Stafford's 64-bit mixers: a bijection in which every input bit reaches every output
/// bit.
#[inline]
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Which hash function made the digests of a filter; the number is stored and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum HashId {
    /// `XXH3_64bits_withSeed`: fast, for keys that nobody chooses to do harm.
    Xxh3 = 1,
    /// SipHash-1-3 under a 128-bit key: for keys that an adversary may choose. It protects only as
    /// long as the seed is secret.
    Sip13 = 2,
}

impl HashId {
    /// The name used on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xxh3 => "xxh3",
            Self::Sip13 => "sip13",
        }
    }

    /// The hash function with this stored id.
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Self::Xxh3),
            2 => Some(Self::Sip13),
            _ => None,
        }
    }
}

/// A hash function with its seed: everything that decides which digest a key gets.
///
/// Filters can be merged, compared or patched only when their hashers are equal.
///
/// ```
/// use tamis::Hasher;
/// let hasher = Hasher::xxh3(0);
/// assert_eq!(hasher.digest("").0, 0x2d06_8005_38d3_94c2); // the specification's value
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hasher {
    id: HashId,
    seed: u128,
}

impl Default for Hasher {
    /// XXH3 with seed 0, so that filters built apart can be merged.
    fn default() -> Self {
        Self::xxh3(0)
    }
}

impl Hasher {
    /// XXH3 with a 64-bit seed.
    pub const fn xxh3(seed: u64) -> Self {
        Self { id: HashId::Xxh3, seed: seed as u128 }
    }

    /// SipHash-1-3 with a 128-bit key, whose little-endian bytes are the key of the specification.
    pub const fn sip13(seed: u128) -> Self {
        Self { id: HashId::Sip13, seed }
    }

    /// The hasher with these stored values; `None` if XXH3 is given more than 64 bits of seed.
    pub const fn from_parts(id: HashId, seed: u128) -> Option<Self> {
        match id {
            HashId::Xxh3 if seed > u64::MAX as u128 => None,
            _ => Some(Self { id, seed }),
        }
    }

    /// Which hash function this is.
    pub const fn id(self) -> HashId {
        self.id
    }

    /// The seed.
    pub const fn seed(self) -> u128 {
        self.seed
    }

    /// The digest of a key.
    #[inline]
    pub fn digest<K: Key + ?Sized>(self, key: &K) -> Digest {
        key.with_bytes(|bytes| self.digest_bytes(bytes))
    }

    /// The digest of a key that is bytes already.
    #[inline]
    pub fn digest_bytes(self, bytes: &[u8]) -> Digest {
        Digest(match self.id {
            // The specification's two functions agree at seed 0; the first is quicker on long keys.
            HashId::Xxh3 if self.seed == 0 => xxh3_64(bytes),
            HashId::Xxh3 => xxh3_64_with_seed(bytes, self.seed as u64),
            HashId::Sip13 => {
                let mut state =
                    SipHasher13::new_with_keys(self.seed as u64, (self.seed >> 64) as u64);
                state.write(bytes);
                state.finish()
            }
        })
    }
}
