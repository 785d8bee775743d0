//! The content id: a name for what a filter holds, whatever its encoding and its history.

use core::fmt;

use xxhash_rust::xxh3::Xxh3;

use crate::bits::Words;
use crate::digest::Hasher;
use crate::spec::Kind;

/// A name for what a filter holds: XXH3-128 over kind, hash, seed, the params that decide
/// answers, and the canonical content, which is the bit array of a Bloom kind and the sorted
/// entries of a fingerprint kind.
///
/// Equal ids mean equal answers to every question. The number of keys is not part of it:
/// inserting a key twice leaves a Bloom filter as it was.
///
/// ```
/// use tamis::{Bloom, Stored};
/// let mut filter = Bloom::with_rate(1_000, 0.01)?;
/// filter.insert("apple");
/// let id = filter.content_id();
/// filter.insert("apple");
/// assert_eq!(filter.content_id(), id);
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentId(pub u128);

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentId({self})")
    }
}

/// Collects what a [`ContentId`] covers.
pub(crate) struct ContentHasher {
    state: Xxh3,
    /// Numbers that have not been hashed: one by one they would take several times as long.
    pending: [u8; PENDING],
    held: usize,
}

/// Bytes that are hashed at once.
const PENDING: usize = 2048;

impl ContentHasher {
    /// Starts with what all kinds have.
    pub(crate) fn new(kind: Kind, hasher: Hasher, params: &[u64]) -> Self {
        let mut this = Self { state: Xxh3::new(), pending: [0; PENDING], held: 0 };
        this.state.update(&kind.id().to_le_bytes());
        this.state.update(&[hasher.id() as u8, params.len() as u8]);
        this.state.update(&hasher.seed().to_le_bytes());
        for &param in params {
            this.number(param);
        }
        this
    }

    /// Adds a number as eight little-endian bytes.
    #[inline]
    pub(crate) fn number(&mut self, number: u64) {
        self.pending[self.held..self.held + 8].copy_from_slice(&number.to_le_bytes());
        self.held += 8;
        if self.held == PENDING {
            self.hash_pending();
        }
    }

    #[inline(never)]
    fn hash_pending(&mut self) {
        self.state.update(&self.pending[..self.held]);
        self.held = 0;
    }

    /// Adds words as their stored bytes.
    pub(crate) fn words(&mut self, words: &Words) {
        self.hash_pending();
        self.state.update(&words.as_le_bytes());
    }

    /// The id.
    pub(crate) fn finish(mut self) -> ContentId {
        self.hash_pending();
        ContentId(self.state.digest128())
    }
}
