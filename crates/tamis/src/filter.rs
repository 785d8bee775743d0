//! The small traits that all filters share, and the laws they keep.
//!
//! Structures work on [`Digest`]s; methods that take keys are provided.

use crate::bits::AHEAD;
use crate::digest::{Digest, Hasher};
use crate::key::Key;
use crate::spec::{Absent, Full, Label};

/// Answers "is this key in the set?": `false` means absent; `true` means probably present, for an absent key
/// passes with probability [`rate`](Self::rate).
///
/// # Laws
///
/// 1. **No false negative.** After `insert(x)` has returned `Ok`, `contains(x)` is true until `x` has been
///    removed as often as it was inserted, whatever else is inserted or removed meanwhile. (Removing a
///    key that was never inserted may break this for another key: see [`Remove`].)
/// 2. **All or nothing.** An operation that returns an error has changed nothing.
/// 3. **Undo.** `insert(x)` and then `remove(x)` restores the content id, unless a counter is saturated.
/// 4. **Counts are never low.** `count(x)`, where it is known, is at least the number of times that `x` is in.
/// 5. **Batches are plain.** A batch method does what its single twin does, key after key, only faster. An insertion that
///    fails ends its batch; a removal that fails is passed over.
/// 6. **No panic.** Any digest, any parameters that were accepted, any order of calls.
/// 7. **Footprint is memory.** `footprint()` is the heap memory held, to the bit.
/// 8. **Bytes are faithful.** `decode(encode(x)) = x`, and encoding that gives the same bytes again.
///
/// `tamis-testkit` runs every filter through these laws, planned ones and, in its model test, any legal layout with any history.
pub trait Filter {
    /// Hash function, seed, keys and planned keys.
    fn label(&self) -> Label;

    /// The hash function and seed that make this filter's digests.
    #[inline]
    fn hasher(&self) -> Hasher {
        self.label().hasher
    }

    /// Whether a key with this digest may be in the set.
    fn contains_digest(&self, digest: Digest) -> bool;

    /// Answers for many digests at once, which is quicker than one by one.
    ///
    /// # Panics
    ///
    /// If `answers` is not as long as `digests`.
    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        assert_eq!(digests.len(), answers.len(), "an answer for each digest");
        for (digests, answers) in digests.chunks(AHEAD).zip(answers.chunks_mut(AHEAD)) {
            for &digest in digests {
                self.prefetch(digest);
            }
            for (answer, &digest) in answers.iter_mut().zip(digests) {
                *answer = self.contains_digest(digest);
            }
        }
    }

    /// Starts fetching the memory that a question for this digest will read; batches do so for a few digests
    /// before they ask for the first.
    fn prefetch(&self, digest: Digest);

    /// Whether the key may be in the set.
    #[inline]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool
    where
        Self: Sized,
    {
        self.contains_digest(self.hasher().digest(key))
    }

    /// Insertions less removals so far. Inserting a key twice counts twice, and a merge adds.
    fn keys(&self) -> u64 {
        self.label().keys
    }

    /// Keys that the filter was planned for; 0 if nobody said.
    fn capacity(&self) -> u64 {
        self.label().capacity
    }

    /// Bits of heap memory held.
    fn footprint(&self) -> u64;

    /// The rate of this very filter as it stands, computed from its fill: the share of random keys outside
    /// the set that it would let through, equal digests included.
    fn rate(&self) -> f64;

    /// The share of its bits or cells that is in use.
    fn fill(&self) -> f64;

    /// Entries that found no regular place and are kept in an overflow; `None` where a kind has none.
    fn overflow(&self) -> Option<u64> {
        None
    }

    /// Whether the filter is fuller than it should be: its answers stay right, but its rate or its time suffers, and a
    /// larger one should be built.
    fn is_crowded(&self) -> bool {
        self.label().is_exceeded()
    }

    /// How many distinct blocks of memory `contains_digest` reads for this digest now. For studies, not for hot
    /// paths.
    fn blocks_to_contain(&self, digest: Digest) -> u32;

    /// How many distinct blocks of memory inserting this digest would touch now; 0 for kinds that are built once.
    fn blocks_to_insert(&self, digest: Digest) -> u32 {
        let _ = digest;
        0
    }
}

/// A filter that takes keys one by one.
pub trait Insert: Filter {
    /// Inserts a key by its digest. `Ok(true)` says that the filter answered no before.
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full>;

    /// Inserts many digests. On an error those before it are in, and the error says how many.
    fn insert_many(&mut self, digests: &[Digest]) -> Result<(), Full> {
        let mut inserted = 0;
        for digests in digests.chunks(AHEAD) {
            for &digest in digests {
                self.prefetch(digest);
            }
            for &digest in digests {
                self.insert_digest(digest).map_err(|full| Full { inserted, ..full })?;
                inserted += 1;
            }
        }
        Ok(())
    }

    /// Inserts a key. `Ok(true)` says that it was surely not in before.
    #[inline]
    fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, Full>
    where
        Self: Sized,
    {
        self.insert_digest(self.hasher().digest(key))
    }
}

/// A filter from which keys can be removed.
///
/// Remove only keys that are in. A key that was never inserted is refused when the filter answers no to it;
/// when it answers yes by mistake (with probability `rate`), removing it takes away what other keys rely on, and
/// they may then be missed. No filter of this family can notice that.
pub trait Remove: Insert {
    /// Removes one occurrence of a key by its digest.
    fn remove_digest(&mut self, digest: Digest) -> Result<(), Absent>;

    /// Removes one occurrence for each of many digests, and says for how many: those that are not in are passed over.
    fn remove_many(&mut self, digests: &[Digest]) -> u64 {
        let mut removed = 0;
        for digests in digests.chunks(AHEAD) {
            for &digest in digests {
                self.prefetch(digest);
            }
            for &digest in digests {
                removed += u64::from(self.remove_digest(digest).is_ok());
            }
        }
        removed
    }

    /// Removes one occurrence of a key.
    #[inline]
    fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Absent>
    where
        Self: Sized,
    {
        self.remove_digest(self.hasher().digest(key))
    }
}

/// A filter that knows how often a key is in.
pub trait Count: Filter {
    /// At most how often the key with this digest is in; 0 if it is not. `None` when the counters that
    /// would tell are saturated: then the answer is somewhere from 1 up, and lost.
    fn count_digest(&self, digest: Digest) -> Option<u64>;

    /// The largest count that can be told; what goes beyond is lost, and told as `None`.
    fn max_count(&self) -> u64;

    /// At most how often the key is in.
    #[inline]
    fn count<K: Key + ?Sized>(&self, key: &K) -> Option<u64>
    where
        Self: Sized,
    {
        self.count_digest(self.hasher().digest(key))
    }
}
