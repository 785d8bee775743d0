//! The small traits that all filters share, and the laws they keep.
//!
//! Structures work on [`Digest`]s. The methods that take keys hash them and call the others.

use crate::bits::{fetch_ahead, fetch_all_ahead};
use crate::digest::{Digest, Hasher};
use crate::key::Key;
use crate::spec::{Absent, Full, Label};

/// Answers the question "is this key in the set?".
///
/// The answer `false` is always right, as long as only keys that are in were removed. The answer
/// `true` may be wrong: an absent key is answered `true` with probability [`rate`](Self::rate).
///
/// ```
/// use tamis::{Bloom, Filter};
/// let mut seen = Bloom::with_rate(1_000, 0.01)?;
/// seen.extend(["apple", "pear"]);
/// let digests = ["apple", "plum"].map(|key| seen.hasher().digest(key));
/// let mut answers = [false; 2];
/// seen.contains_many(&digests, &mut answers);
/// assert!(answers[0]);
/// # Ok::<(), tamis::PlanError>(())
/// ```
///
/// # Laws
///
/// 1. **No false negative.** After `insert(x)` has returned `Ok`, `contains(x)` is true until `x`
///    has been removed as often as it was inserted, no matter what else is inserted or removed.
///    (Removing a key that was never inserted may break this for another key: see [`Remove`].)
/// 2. **All or nothing.** A single operation that returns an error has changed nothing. A batch
///    keeps what it did before the failure, and says how much that is.
/// 3. **Undo.** `insert(x)` and then `remove(x)` restores the content id, unless a counter is
///    saturated.
/// 4. **Counts are never low.** `count(x)`, where it is known, is at least the number of times
///    that `x` is in.
/// 5. **Batches are plain.** A batch method does what its single twin does, key after key, only
///    faster. An insertion that fails ends its batch; a removal that fails is passed over.
/// 6. **No panic.** Nothing panics, for any digest, any accepted params and any order of calls,
///    except where a method has a section "Panics".
/// 7. **Footprint is memory.** `footprint()` is the heap memory held, to the bit.
/// 8. **Bytes are faithful.** `decode(encode(x)) = x`, and encoding that gives the same bytes
///    again.
///
/// `tamis-testkit` tests these laws for planned filters of every kind and, in its model test, for
/// random layouts with random histories.
pub trait Filter {
    /// The label: hash function and seed, keys, capacity.
    fn label(&self) -> Label;

    /// The hash function and seed that make the digests of this filter.
    #[inline]
    fn hasher(&self) -> Hasher {
        self.label().hasher
    }

    /// Whether a key with this digest may be in the set. See [`contains`](Self::contains).
    fn contains_digest(&self, digest: Digest) -> bool;

    /// Writes to `answers` whether each of `digests` may be in the set. It is quicker than asking
    /// one by one.
    ///
    /// # Panics
    ///
    /// If `answers` and `digests` differ in length.
    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        assert_eq!(digests.len(), answers.len(), "an answer for each digest");
        let fetch = |_: &_, digest| self.prefetch(digest);
        fetch_all_ahead(answers, digests, fetch, |answers, number, digest| {
            answers[number] = self.contains_digest(digest);
        });
    }

    /// Starts fetching the memory that a question for `digest` will read. A batch does so for
    /// several digests before it asks for the first of them.
    fn prefetch(&self, digest: Digest);

    /// Whether `key` may be in the set. `false` is always right, as long as only keys that are in
    /// were removed. An absent key is answered `true` with probability [`rate`](Self::rate).
    #[inline]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool
    where
        Self: Sized,
    {
        self.contains_digest(self.hasher().digest(key))
    }

    /// Insertions less removals so far. A key that is inserted twice counts twice, and a merge
    /// adds the keys of both filters.
    fn keys(&self) -> u64 {
        self.label().keys
    }

    /// How many keys the filter was planned for; 0 if that was not said.
    fn capacity(&self) -> u64 {
        self.label().capacity
    }

    /// Bits of heap memory held.
    fn footprint(&self) -> u64;

    /// The probability that this filter, as it is now, answers yes for a random absent key. It is
    /// computed from the fill, and includes keys that share a digest.
    fn rate(&self) -> f64;

    /// The share of the bits or cells that is in use.
    fn fill(&self) -> f64;

    /// How many entries found no regular place and are in the overflow; `None` for kinds without
    /// one.
    fn overflow(&self) -> Option<u64> {
        None
    }

    /// Whether the filter is fuller than it should be. It still keeps its laws, but its rate or
    /// its speed suffers: grow it, or build a larger one.
    fn is_crowded(&self) -> bool {
        self.label().is_exceeded()
    }

    /// How many distinct blocks of memory [`contains_digest`](Self::contains_digest) reads for
    /// `digest` now. It is for experiments and may be slow.
    fn blocks_to_contain(&self, digest: Digest) -> u32;

    /// How many distinct blocks of memory an insertion of `digest` would touch now; 0 for kinds
    /// that are built once.
    fn blocks_to_insert(&self, digest: Digest) -> u32 {
        let _ = digest;
        0
    }
}

/// A filter that takes keys one by one.
///
/// ```
/// use tamis::{Bloom, Insert, PlanError};
/// fn insert_all(filter: &mut impl Insert, keys: &[&str]) -> Result<(), tamis::Full> {
///     keys.iter().try_for_each(|key| filter.insert(*key).map(drop))
/// }
/// let mut filter = Bloom::with_rate(1_000, 0.01)?;
/// insert_all(&mut filter, &["apple", "pear"]).unwrap();
/// assert!(filter.contains("pear"));
/// # Ok::<(), PlanError>(())
/// ```
pub trait Insert: Filter {
    /// Inserts a key by its digest. Returns `Ok(true)` if the filter answered no before.
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full>;

    /// Inserts many digests, which is quicker than one by one. The error says how many of them
    /// went in before it: those stay in.
    fn insert_many(&mut self, digests: &[Digest]) -> Result<(), Full> {
        fetch_ahead(self, digests, Self::prefetch, |filter, number, digest| {
            let inserted = number as u64;
            filter.insert_digest(digest).map(drop).map_err(|full| Full { inserted, ..full })
        })
    }

    /// Inserts `key`. Returns `Ok(true)` if it was surely absent before.
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
/// Remove only keys that are in: check that in your own data, not in the filter. If the filter
/// answers no for an absent key, its removal is refused. If it answers yes for one (with
/// probability `rate`), the removal takes away what other keys rely on, and the filter may then
/// answer no for those, for good and without an error. No filter of this family can notice that.
///
/// ```
/// use tamis::BlockedRank;
/// let mut filter = BlockedRank::with_rate(1_000, 0.001)?;
/// filter.insert("apple")?;
/// filter.remove("apple")?;
/// assert!(!filter.contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Remove: Insert {
    /// Removes one occurrence of a key by its digest. It is an error if the filter answers no for
    /// it. If it answers yes by mistake (with probability `rate`), another key may be lost for
    /// good, without an error.
    fn remove_digest(&mut self, digest: Digest) -> Result<(), Absent>;

    /// Removes one occurrence of each of `digests`, and returns how many were removed. Those that
    /// are not in are passed over.
    fn remove_many(&mut self, digests: &[Digest]) -> u64 {
        let mut removed = 0;
        fetch_all_ahead(self, digests, Self::prefetch, |filter, _, digest| {
            removed += u64::from(filter.remove_digest(digest).is_ok());
        });
        removed
    }

    /// Removes one occurrence of `key`. It is an error if the filter answers no for it. If it
    /// answers yes by mistake (with probability `rate`), another key may be lost for good, without
    /// an error: check in your own data that the key is in before you remove it.
    #[inline]
    fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Absent>
    where
        Self: Sized,
    {
        self.remove_digest(self.hasher().digest(key))
    }
}

/// A filter that knows how often a key is in.
///
/// ```
/// use tamis::RankCounting;
/// let mut filter = RankCounting::with_rate(1_000, 0.001)?;
/// filter.insert("apple")?;
/// filter.insert("apple")?;
/// assert_eq!(filter.count("apple"), Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Count: Filter {
    /// How often the key with this digest is in. Counts are never too low; they are too high for
    /// about a share `rate` of the keys. An absent key has 0, unless the filter answers yes for
    /// it. `None` if its counters are saturated: then the key is in at least once, and its count
    /// is lost.
    fn count_digest(&self, digest: Digest) -> Option<u64>;

    /// The largest count that the filter can tell. Beyond it counts are lost, and told as `None`.
    fn max_count(&self) -> u64;

    /// How often `key` is in, never too low; see [`count_digest`](Self::count_digest).
    #[inline]
    fn count<K: Key + ?Sized>(&self, key: &K) -> Option<u64>
    where
        Self: Sized,
    {
        self.count_digest(self.hasher().digest(key))
    }
}
