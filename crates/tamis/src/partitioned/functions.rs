//! The functions: which group a key is in, and where a candidate puts it.
//!
//! | choice | group | candidate j, from 0 on |
//! |---|---|---|
//! | ours (0) | the top of the digest | a mixer of its own |
//! | the report's (1) | RS, Robert Sedgewick's string hash, mod g | CRC-32(CRC-32(0, key), R1 + (j + 1) R2) mod m |
//!
//! The report hashes the bytes of a key; here the eight bytes of its digest, the lowest first,
//! stand for the key, as everywhere in this library. The report names neither the constants of RS
//! nor the byte order of the number: both are those of the notes (section 4.1). All of it is
//! frozen: stored filters depend on it.
//!
//! The CRC candidates are XOR translates of one another (notes, section 4.3;
//! `crc_candidates_are_translates`). Modulo a power of two, keys that collide under one of them
//! collide under all, and the rate cannot fall below n/m. So this family is for segments with an
//! odd factor; see
//! [`PartitionedParams::with_functions`](super::PartitionedParams::with_functions).

use crate::address::reduce;
use crate::digest::Digest;

/// What decides the group of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// The top of the digest, so that a sorted list of digests is a list of groups.
    #[default]
    Top = 0,
    /// The report's: Robert Sedgewick's string hash.
    Rs = 1,
}

impl Partition {
    /// The group of a key, of `groups`.
    #[inline]
    pub fn group(self, key: Digest, groups: u64) -> u64 {
        match self {
            Self::Top => reduce(key.0, groups),
            Self::Rs => u64::from(rs(&key.0.to_le_bytes())) % groups,
        }
    }
}

/// The candidates that groups choose from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// An independent mixer for every candidate.
    #[default]
    Mixers = 0,
    /// The report's: CRC-32 of the key and a number.
    Crc = 1,
}

impl Family {
    /// Position of a key under candidate number `candidate` in `bits` bits.
    #[inline]
    pub fn position(self, key: Digest, candidate: u32, bits: u64) -> u64 {
        match self {
            Self::Mixers => mixed(key, candidate, bits),
            Self::Crc => translated(key_crc(key), candidate, bits),
        }
    }
}

/// Position by the mixer of a candidate.
#[inline]
pub(super) fn mixed(key: Digest, candidate: u32, bits: u64) -> u64 {
    reduce(key.word(candidate.into()), bits)
}

/// CRC-32 of a key. Its positions under all candidates of the CRC family follow from this.
#[inline]
pub(super) fn key_crc(key: Digest) -> u32 {
    crc32(0, &key.0.to_le_bytes())
}

/// Position by a CRC candidate of the key with this CRC.
#[inline]
pub(super) fn translated(key_crc: u32, candidate: u32, bits: u64) -> u64 {
    const R1: u32 = 0x5ed5_0e23;
    const R2: u32 = 0x1b75_e0d1;
    let number = R1.wrapping_add(candidate.wrapping_add(1).wrapping_mul(R2));
    u64::from(crc32(key_crc, &number.to_le_bytes())) % bits
}

/// RS, the string hash of Robert Sedgewick's "Algorithms in C", in 32 bits.
pub fn rs(bytes: &[u8]) -> u32 {
    const B: u32 = 378_551;
    let (mut a, mut hash) = (63_689_u32, 0_u32);
    for &byte in bytes {
        hash = hash.wrapping_mul(a).wrapping_add(byte.into());
        a = a.wrapping_mul(B);
    }
    hash
}

/// CRC-32 as in zlib, continued from the `crc` of the bytes before; 0 at the beginning.
pub fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!crc, |crc, &byte| CRC[usize::from(crc as u8 ^ byte)] ^ (crc >> 8))
}

const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ ((crc & 1) * 0xedb8_8320);
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};
