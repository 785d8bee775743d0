//! Plain and blocked Bloom filters that several threads fill and ask at once, without locks.

use super::params::{BlockedParams, BloomParams};
use super::{BlockedBloom, Bloom, looked_at};
use crate::bits::{AtomicWords, Line, Tally, fetch_all_ahead};
use crate::digest::Digest;
use crate::filter::Filter;
use crate::key::Key;
use crate::spec::Label;

/// A [`Bloom`] filter into which several threads insert at once, without locks: `insert` takes a
/// shared reference.
///
/// It is made from a `Bloom` and becomes one again, in the same memory. The bytes are those that
/// one thread would have made.
///
/// ```
/// use tamis::{Bloom, Filter, bloom::AtomicBloom};
/// let filter = AtomicBloom::from(Bloom::with_rate(1_000, 0.01)?);
/// std::thread::scope(|scope| {
///     scope.spawn(|| filter.insert("apple"));
///     scope.spawn(|| filter.insert("pear"));
/// });
/// let filter = Bloom::from(filter);
/// assert!(filter.contains("apple") && filter.contains("pear"));
/// # Ok::<(), tamis::PlanError>(())
/// ```
///
/// # What an answer means while others insert
///
/// - `contains` returns true for every key whose insertion the asking thread can know of: its own,
///   and those of threads that it has since joined or heard from, through a lock, a channel or an
///   atomic flag. An insertion that is still under way may be seen or not.
/// - `insert` returns true if it set a bit that was zero: the filter answered no when the call
///   began. It returns false if all bits were set already. If several threads insert the same new
///   key at once, at least one of them gets true, unless other keys set its bits meanwhile;
///   several may, each for a bit of its own. Use a sharded filter if exactly one must.
///
/// # When to take them
///
/// Take them if lookups matter most: these need no lock. Insertions write to each word whose bits
/// are not all set by an atomic operation, which takes as long as ten plain ones, and threads that
/// write to the same lines wait for each other: for many insertions take a sharded filter with
/// batches.
pub type AtomicBloom = Atomic<BloomParams>;

/// A [`BlockedBloom`] filter into which several threads insert at once; otherwise as
/// [`AtomicBloom`].
pub type AtomicBlockedBloom = Atomic<BlockedParams>;

/// A filter of bits that are set and never cleared, in either layout.
#[derive(Debug)]
pub struct Atomic<P> {
    params: P,
    /// The label of the filter that this one was made from.
    label: Label,
    /// Keys since then.
    inserted: Tally,
    words: AtomicWords,
}

/// What differs between the two: where the bits of a digest are.
pub trait Layout {
    /// Sets the bits of a digest; true if this very call set one.
    fn set(&self, words: &AtomicWords, digest: Digest) -> bool;

    /// Whether all bits of a digest are set.
    fn holds(&self, words: &AtomicWords, digest: Digest) -> bool;

    /// Starts fetching the lines that a digest has bits in.
    fn prefetch(&self, words: &AtomicWords, digest: Digest);

    /// How many lines are read for a digest.
    fn lines_read(&self, words: &AtomicWords, digest: Digest) -> u32;

    /// All bits.
    fn bits(&self) -> u64;

    /// The rate of a filter of these words.
    fn rate(&self, words: impl Iterator<Item = u64>, keys: u64) -> f64;
}

impl Layout for BloomParams {
    #[inline]
    fn set(&self, words: &AtomicWords, digest: Digest) -> bool {
        self.positions(digest).fold(false, |new, at| new | words.set(at))
    }

    #[inline]
    fn holds(&self, words: &AtomicWords, digest: Digest) -> bool {
        self.positions(digest).all(|at| words.test(at))
    }

    #[inline]
    fn prefetch(&self, words: &AtomicWords, digest: Digest) {
        self.positions(digest).for_each(|at| words.prefetch(at));
    }

    fn lines_read(&self, words: &AtomicWords, digest: Digest) -> u32 {
        let read = looked_at(self.positions(digest), |at| words.test(at));
        Line::distinct(read.map(|at| at / Line::BITS))
    }

    fn bits(&self) -> u64 {
        self.bits()
    }

    fn rate(&self, words: impl Iterator<Item = u64>, keys: u64) -> f64 {
        super::plain_rate(ones(words) as f64 / self.bits() as f64, self.hashes(), keys)
    }
}

impl Layout for BlockedParams {
    #[inline]
    fn set(&self, words: &AtomicWords, digest: Digest) -> bool {
        let (range, mask) = (self.layout().range(digest), self.layout().mask(digest));
        words.set_all(range.start, &mask[..range.len()])
    }

    #[inline]
    fn holds(&self, words: &AtomicWords, digest: Digest) -> bool {
        let (range, mask) = (self.layout().range(digest), self.layout().mask(digest));
        words.hold(range.start, &mask[..range.len()])
    }

    #[inline]
    fn prefetch(&self, words: &AtomicWords, digest: Digest) {
        words.prefetch(self.layout().range(digest).start as u64 * 64);
    }

    fn lines_read(&self, _: &AtomicWords, _: Digest) -> u32 {
        1
    }

    fn bits(&self) -> u64 {
        self.bits()
    }

    fn rate(&self, words: impl Iterator<Item = u64>, keys: u64) -> f64 {
        super::blocked_rate(self, words, keys)
    }
}

fn ones(words: impl Iterator<Item = u64>) -> u64 {
    words.map(|word| u64::from(word.count_ones())).sum()
}

impl<P: Layout> Atomic<P> {
    /// Inserts a key by its digest. True if the filter answered no before.
    #[inline]
    pub fn insert_digest(&self, digest: Digest) -> bool {
        let new = self.set(digest);
        self.inserted.add(1);
        new
    }

    /// Inserts a key. True if it was surely not in before.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.insert_digest(self.hasher().digest(key))
    }

    /// Inserts many digests. If many threads insert, batches are much quicker: the shared number
    /// of keys is written once a batch.
    pub fn insert_many(&self, digests: &[Digest]) {
        let fetch = |(): &(), digest| self.prefetch(digest);
        fetch_all_ahead(&mut (), digests, fetch, |(), _, digest| {
            self.set(digest);
        });
        self.inserted.add(digests.len() as u64);
    }

    #[inline]
    fn set(&self, digest: Digest) -> bool {
        self.params.set(&self.words, digest)
    }
}

impl<P: Layout> Filter for Atomic<P> {
    fn label(&self) -> Label {
        let keys = self.label.keys.saturating_add(self.inserted.get());
        Label { keys, ..self.label }
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.params.holds(&self.words, digest)
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        self.params.prefetch(&self.words, digest);
    }

    fn footprint(&self) -> u64 {
        self.words.footprint()
    }

    fn rate(&self) -> f64 {
        self.params.rate(self.words.iter(), self.keys())
    }

    fn fill(&self) -> f64 {
        ones(self.words.iter()) as f64 / self.params.bits() as f64
    }

    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        self.params.lines_read(&self.words, digest)
    }
}

impl From<Bloom> for AtomicBloom {
    fn from(filter: Bloom) -> Self {
        let Bloom { params, label, words } = filter;
        Self { params, label, inserted: Tally::default(), words: words.into() }
    }
}

impl From<AtomicBloom> for Bloom {
    fn from(filter: AtomicBloom) -> Self {
        Self { params: filter.params, label: filter.label(), words: filter.words.into() }
    }
}

impl From<BlockedBloom> for AtomicBlockedBloom {
    fn from(filter: BlockedBloom) -> Self {
        let BlockedBloom { params, label, words } = filter;
        Self { params, label, inserted: Tally::default(), words: words.into() }
    }
}

impl From<AtomicBlockedBloom> for BlockedBloom {
    fn from(filter: AtomicBlockedBloom) -> Self {
        Self { params: filter.params, label: filter.label(), words: filter.words.into() }
    }
}
