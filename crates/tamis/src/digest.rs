//! Bytes and a seed become a 64-bit [`Digest`]. Filters see nothing else of a key.
//!
//! The hash functions are frozen: their ids are in every stored filter, and `digest.rs` of the
//! tests compares them with public test vectors.
//!
//! No structure can tell apart two keys with the same digest. So every rate is at least n / 2^64
//! for n keys; predicted rates include it.

use core::hash::Hasher as _;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};
use xxhash_rust::xxh64::xxh64;

use crate::key::Key;

/// The 64 uniformly distributed bits that stand for a key.
///
/// ```
/// use tamis::{Digest, Hasher};
/// let digest: Digest = Hasher::default().digest("apple");
/// assert_eq!(digest, Hasher::xxh3(0).digest_bytes(b"apple"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u64);

impl Digest {
    /// Another 64-bit word made from this digest. Words of different `index` look independent of
    /// each other and of the digest.
    ///
    /// Frozen: stored filters depend on it.
    #[inline]
    pub const fn word(self, index: u64) -> u64 {
        mix(self.0 ^ index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// Variant 13 of Stafford's 64-bit mixers: a bijection in which every input bit affects every
/// output bit.
#[inline]
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A hash function. Its number is stored in filters, and is never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum HashId {
    /// `XXH3_64bits_withSeed`: fast, for keys that no adversary chooses.
    Xxh3 = 1,
    /// SipHash-1-3 with a 128-bit seed: for keys that an adversary may choose. It protects only
    /// as long as the seed is secret.
    Sip13 = 2,
    /// XXH64 with a 64-bit seed: that of the Bloom filters in Parquet files, where the seed is 0.
    Xxh64 = 3,
}

impl HashId {
    /// All hash functions.
    pub const ALL: &'static [Self] = &[Self::Xxh3, Self::Sip13, Self::Xxh64];

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xxh3 => "xxh3",
            Self::Sip13 => "sip13",
            Self::Xxh64 => "xxh64",
        }
    }

    /// The hash function with the stored number `id`.
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Self::Xxh3),
            2 => Some(Self::Sip13),
            3 => Some(Self::Xxh64),
            _ => None,
        }
    }
}

/// A hash function with its seed: all that decides which digest a key gets.
///
/// Filters can be merged, compared or changed by a delta only if their hashers are equal.
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
    /// XXH3 with seed 0, so that filters that were built apart can be merged.
    fn default() -> Self {
        Self::xxh3(0)
    }
}

impl Hasher {
    /// XXH3 with a 64-bit seed.
    pub const fn xxh3(seed: u64) -> Self {
        Self { id: HashId::Xxh3, seed: seed as u128 }
    }

    /// SipHash-1-3 with a 128-bit seed, whose little-endian bytes are the key of the
    /// specification. For keys that an adversary may choose; keep the seed secret.
    pub const fn sip13(seed: u128) -> Self {
        Self { id: HashId::Sip13, seed }
    }

    /// XXH64 with a 64-bit seed. With seed 0 a key has the digest that Parquet gives a value with
    /// the same bytes: a [`BlockedBloom`](crate::BlockedBloom) of it with blocks of 256 bits, 8
    /// hashes and a number of blocks that is a power of two is a Bloom filter of Parquet.
    pub const fn xxh64(seed: u64) -> Self {
        Self { id: HashId::Xxh64, seed: seed as u128 }
    }

    /// The hasher with a stored `id` and `seed`; `None` if XXH3 or XXH64 is given more than 64
    /// bits of seed.
    pub const fn from_parts(id: HashId, seed: u128) -> Option<Self> {
        match id {
            HashId::Xxh3 | HashId::Xxh64 if seed > u64::MAX as u128 => None,
            _ => Some(Self { id, seed }),
        }
    }

    /// The hash function.
    pub const fn id(self) -> HashId {
        self.id
    }

    /// The seed.
    pub const fn seed(self) -> u128 {
        self.seed
    }

    /// The digest of `key`.
    #[inline]
    pub fn digest<K: Key + ?Sized>(self, key: &K) -> Digest {
        key.with_bytes(|bytes| self.digest_bytes(bytes))
    }

    /// The digest of the key with the canonical bytes `bytes`.
    #[inline]
    pub fn digest_bytes(self, bytes: &[u8]) -> Digest {
        Digest(match self.id {
            // The two functions agree at seed 0; the first is quicker on long keys.
            HashId::Xxh3 if self.seed == 0 => xxh3_64(bytes),
            HashId::Xxh3 => xxh3_64_with_seed(bytes, self.seed as u64),
            HashId::Sip13 => {
                let mut state =
                    SipHasher13::new_with_keys(self.seed as u64, (self.seed >> 64) as u64);
                state.write(bytes);
                state.finish()
            }
            HashId::Xxh64 => xxh64(bytes, self.seed as u64),
        })
    }
}
