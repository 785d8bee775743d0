//! Objects: files of a store that never change, named by what they hold.

use sha2::{Digest as _, Sha256};

use crate::hex;

/// Bytes of a hash. Frozen.
pub(crate) const HASH_BYTES: usize = 16;

/// The first half of the SHA-256 of an object. Nobody finds other bytes for one that a publisher
/// wrote: that takes 2^128 tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Hash(pub(crate) [u8; HASH_BYTES]);

impl Hash {
    /// What a hasher has found.
    pub(crate) fn of(hasher: Sha256) -> Self {
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(&hasher.finalize()[..HASH_BYTES]);
        Self(hash)
    }
}

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

/// A file of a store: its length and its hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Object {
    pub(crate) bytes: u64,
    pub(crate) hash: Hash,
}

impl Object {
    /// The object that `bytes` are.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, hash: Hash::of(Sha256::new_with_prefix(bytes)) }
    }
}
