//! Any filter behind a shared reference: several threads insert, remove and ask at once.
//!
//! The keys are distributed over shards, each a filter of its own behind a lock of its own. The
//! shard of a key depends on bits of its digest that the filters do not use, so that every shard
//! gets an even sample of the keys.
//!
//! ```text
//! digest -> word(3) -> shard   [lock | filter] [lock | filter] ...   on cache lines of their own
//! ```
//!
//! ```
//! use tamis::{Count, Filter, Goal, Hasher, RankIndexed, Sharded};
//! let filter = Sharded::<RankIndexed>::plan(&Goal::rate(10_000, 0.01), Hasher::default(), 16)?;
//! std::thread::scope(|scope| {
//!     scope.spawn(|| filter.insert("apple"));
//!     scope.spawn(|| filter.insert("apple"));
//! });
//! assert_eq!(filter.count("apple"), Some(2));
//! filter.remove("apple")?;
//! assert!(filter.contains("apple"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What an answer means while others change the filter
//!
//! A single operation happens at one moment between its call and its return, and all operations on
//! one key happen one after the other. So if several threads insert the same new key, exactly one
//! is told that it was new; if several remove its last occurrence, exactly one succeeds. (False
//! positives remain: if the filter answers yes for a new key, no thread is told that it was new.)
//!
//! A batch is cut by shards, and each lock is taken once for some dozens of keys. These happen
//! together; the batch as a whole does not. Sums over all shards, such as [`keys`](Filter::keys),
//! visit one shard after the other; they are exact while no thread changes the filter.
//!
//! # How to save it
//!
//! A `Sharded` has no bytes of its own. Encode shard after shard
//! ([`for_each_shard`](Sharded::for_each_shard)), and give what was decoded to
//! [`from_shards`](Sharded::from_shards) in the same order. For one file,
//! [`merged`](Sharded::merged) makes one filter of all shards; not of Bloom kinds, because one
//! array of a shard's size cannot hold the bits of all. Use the
//! [atomic filters](crate::AtomicBloom) for those.
//!
//! # How many shards?
//!
//! Eight or more for each thread that writes: then two threads seldom meet. Single operations pass
//! the cache lines of the locks back and forth between threads, however many shards there are.
//! Batches do that once for dozens of keys, so threads gain most from batches (`tamis-bench`,
//! binary `threads`, measures it).

mod groups;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use self::groups::Groups;
use crate::address::reduce;
use crate::any::{AnyFilter, AnyParams};
use crate::digest::{Digest, Hasher};
use crate::filter::{Count, Filter, Insert, Remove};
use crate::key::Key;
use crate::spec::{Absent, Full, Goal, Kind, Label, Mismatch, Params, PlanError, Size, require};
use crate::stored::Stored;

/// Which [word](Digest::word) of a digest decides its shard. No filter uses it. Frozen: shards may
/// be stored one by one.
const SHARD_WORD: u64 = 3;

/// The most shards that a plan gives.
const MAX_SHARDS: usize = 1 << 16;

/// A filter of any kind for several threads that insert, remove and ask at once; see
/// [the module](self).
///
/// ```
/// use tamis::{BlockedBloom, Filter, Goal, Hasher, Sharded};
/// let goal = Goal::rate(10_000, 0.01);
/// let seen = Sharded::<BlockedBloom>::plan(&goal, Hasher::default(), 16)?;
/// seen.insert("apple")?; // It takes `&self`.
/// assert!(seen.contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sharded<F> {
    hasher: Hasher,
    shards: Box<[Shard<F>]>,
}

/// A filter and its lock, on a pair of lines: processors fetch lines in pairs, so shards on
/// neighbouring lines would disturb each other.
#[derive(Debug)]
#[repr(align(128))]
struct Shard<F>(RwLock<F>);

impl<F> Shard<F> {
    /// Operations do not panic, so they poison no lock. If a closure of the caller panics, the
    /// filter is still valid.
    fn read(&self) -> RwLockReadGuard<'_, F> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, F> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Stored> Sharded<F> {
    /// Empty shards that meet the goal together. Params that the goal fixes are those of each
    /// shard.
    pub fn plan(goal: &Goal, hasher: Hasher, shards: usize) -> Result<Self, PlanError> {
        Self::planned(F::KIND, goal, hasher, shards, |params, label| {
            let values: Vec<u64> = params.named().into_iter().map(|(_, value)| value).collect();
            Ok(F::new(F::Params::from_values(&values)?, label)?)
        })
    }
}

impl Sharded<AnyFilter> {
    /// Empty shards of this kind that meet the goal together. Params that the goal fixes are those
    /// of each shard.
    pub fn plan_kind(
        kind: Kind,
        goal: &Goal,
        hasher: Hasher,
        shards: usize,
    ) -> Result<Self, PlanError> {
        Self::planned(kind, goal, hasher, shards, |params, label| Ok(params.build(label)?))
    }
}

/// The goal of one of `shards` shards: its share of the memory, and its share of the keys plus
/// four standard deviations, because keys are distributed by chance.
fn share(goal: &Goal, shards: usize) -> Result<Goal, PlanError> {
    require((1..=MAX_SHARDS).contains(&shards), "shards", shards as u64, "1 to 2^16")?;
    goal.check()?;
    let mean = goal.keys as f64 / shards as f64;
    let spread = if shards == 1 { 0.0 } else { 4.0 * libm::sqrt(mean) };
    let keys = libm::ceil(mean + spread) as u64;
    let size = match goal.size {
        Size::Rate(rate) => Size::Rate(rate),
        Size::BitsPerKey(bits) => {
            let share = goal.sized_keys() as f64 / shards as f64;
            Size::BitsPerKey(bits * share / keys.max(1) as f64)
        }
        Size::Memory(bytes) => Size::Memory(bytes / shards as u64),
        Size::Wire { bytes, margin } => Size::Wire { bytes: bytes / shards as u64, margin },
    };
    Ok(Goal { keys, size, ..goal.clone() })
}

impl<F: Filter> Sharded<F> {
    /// These filters as shards: empty ones, or those that [`into_shards`](Self::into_shards) gave,
    /// in the same order. They must have the same hash and seed.
    pub fn from_shards(filters: Vec<F>) -> Result<Self, Mismatch> {
        let Some(first) = filters.first() else {
            return Err(Mismatch {
                field: "shards",
                left: "none".into(),
                right: "at least one".into(),
            });
        };
        let hasher = first.hasher();
        filters.iter().try_for_each(|filter| Mismatch::check_hashers(hasher, filter.hasher()))?;
        Ok(Self::alike(hasher, filters))
    }

    /// Shards that `build` builds from the params and the label of a share.
    fn planned(
        kind: Kind,
        goal: &Goal,
        hasher: Hasher,
        shards: usize,
        build: impl Fn(AnyParams, Label) -> Result<F, PlanError>,
    ) -> Result<Self, PlanError> {
        let share = share(goal, shards)?;
        let params = AnyParams::plan(kind, &share)?;
        let label = Label::planned(hasher, share.keys);
        let filters: Result<_, PlanError> = (0..shards).map(|_| build(params, label)).collect();
        Ok(Self::alike(hasher, filters?))
    }

    fn alike(hasher: Hasher, filters: Vec<F>) -> Self {
        Self {
            hasher,
            shards: filters.into_iter().map(|filter| Shard(RwLock::new(filter))).collect(),
        }
    }
}

impl<F> Sharded<F> {
    /// How many shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The filters, in order of their shards.
    pub fn into_shards(self) -> Vec<F> {
        let shards = self.shards.into_iter();
        shards.map(|shard| shard.0.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Calls `look` for every shard, one after the other: for example to encode it.
    pub fn for_each_shard(&self, mut look: impl FnMut(&F)) {
        self.shards.iter().for_each(|shard| look(&shard.read()));
    }

    /// Calls `look` with the shard of a digest, for what the filter can do beyond the methods
    /// here.
    pub fn with<R>(&self, digest: Digest, look: impl FnOnce(&F) -> R) -> R {
        look(&self.shard(digest).read())
    }

    /// Calls `change` with the shard of a digest, for what the filter can do beyond the methods
    /// here.
    pub fn with_mut<R>(&self, digest: Digest, change: impl FnOnce(&mut F) -> R) -> R {
        change(&mut self.shard(digest).write())
    }

    /// Calls `change` for shard after shard, each with its part of the digests: batches for what
    /// the filters can do beyond the methods here.
    pub fn with_groups_mut<E>(
        &self,
        digests: &[Digest],
        mut change: impl FnMut(&mut F, &[Digest]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut groups = Groups::new(self.shards.len(), digests.len());
        for digests in digests.chunks(groups.chunk()) {
            for group in groups.sort(digests, |digest| self.index(digest)) {
                change(&mut self.shards[group.shard].write(), group.digests)?;
            }
        }
        Ok(())
    }

    /// One filter with the keys of all shards. `merge` adds the second filter to the first, for
    /// example `RankIndexed::merge`.
    ///
    /// Here an absent key is looked up in one shard; in the merged filter it meets the keys of
    /// all, so that the rates of the shards add up. If that matters, plan for the rate over the
    /// number of shards. Do not merge Bloom filters: one array of a shard's size cannot hold the
    /// bits of all. Use [`AtomicBloom`] for those.
    ///
    /// [`AtomicBloom`]: crate::bloom::AtomicBloom
    pub fn merged<E>(&self, mut merge: impl FnMut(&mut F, &F) -> Result<(), E>) -> Result<F, E>
    where
        F: Clone,
    {
        let mut all = self.shards[0].read().clone();
        self.shards[1..].iter().try_for_each(|shard| merge(&mut all, &shard.read()))?;
        Ok(all)
    }

    #[inline]
    fn index(&self, digest: Digest) -> usize {
        reduce(digest.word(SHARD_WORD), self.shards.len() as u64) as usize
    }

    #[inline]
    fn shard(&self, digest: Digest) -> &Shard<F> {
        &self.shards[self.index(digest)]
    }
}

impl<F: Filter> Sharded<F> {
    fn each<T>(&self, value: impl Fn(&F) -> T) -> impl Iterator<Item = T> {
        self.shards.iter().map(move |shard| value(&shard.read()))
    }

    fn sum(&self, value: impl Fn(&F) -> u64) -> u64 {
        // Headers may claim any number of keys.
        self.each(value).fold(0, u64::saturating_add)
    }

    /// The mean over the shards: an absent key is looked up in any of them alike.
    fn mean(&self, value: impl Fn(&F) -> f64) -> f64 {
        self.each(value).sum::<f64>() / self.shards.len() as f64
    }
}

impl<F: Filter> Filter for Sharded<F> {
    fn label(&self) -> Label {
        Label { hasher: self.hasher, keys: self.keys(), capacity: self.capacity() }
    }

    #[inline]
    fn hasher(&self) -> Hasher {
        self.hasher
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.with(digest, |filter| filter.contains_digest(digest))
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        assert_eq!(digests.len(), answers.len(), "an answer for each digest");
        let mut groups = Groups::new(self.shards.len(), digests.len());
        let chunk = groups.chunk();
        let mut told = vec![false; chunk];
        for (digests, answers) in digests.chunks(chunk).zip(answers.chunks_mut(chunk)) {
            for group in groups.sort(digests, |digest| self.index(digest)) {
                let told = &mut told[..group.digests.len()];
                self.shards[group.shard].read().contains_many(group.digests, told);
                for (&position, &answer) in group.positions.iter().zip(told.iter()) {
                    answers[position] = answer;
                }
            }
        }
    }

    /// Takes the lock of the shard. Batches of this filter prefetch inside the shards instead.
    fn prefetch(&self, digest: Digest) {
        self.with(digest, |filter| filter.prefetch(digest));
    }

    fn keys(&self) -> u64 {
        self.sum(Filter::keys)
    }

    /// The sum over the shards, each of which has room for more than its share.
    fn capacity(&self) -> u64 {
        self.sum(Filter::capacity)
    }

    fn footprint(&self) -> u64 {
        self.sum(Filter::footprint) + 8 * size_of_val::<[_]>(&self.shards) as u64
    }

    fn rate(&self) -> f64 {
        self.mean(Filter::rate)
    }

    fn fill(&self) -> f64 {
        self.mean(Filter::fill)
    }

    fn overflow(&self) -> Option<u64> {
        self.each(Filter::overflow).sum()
    }

    fn is_crowded(&self) -> bool {
        self.shards.iter().any(|shard| shard.read().is_crowded())
    }

    /// Without the lock's line.
    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        self.with(digest, |filter| filter.blocks_to_contain(digest))
    }

    /// Without the lock's line.
    fn blocks_to_insert(&self, digest: Digest) -> u32 {
        self.with(digest, |filter| filter.blocks_to_insert(digest))
    }
}

impl<F: Insert> Sharded<F> {
    /// Inserts a key by its digest. `Ok(true)` says that the filter answered no before.
    #[inline]
    pub fn insert_digest(&self, digest: Digest) -> Result<bool, Full> {
        self.with_mut(digest, |filter| filter.insert_digest(digest))
    }

    /// Inserts a key. `Ok(true)` says that it was surely not in before.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> Result<bool, Full> {
        self.insert_digest(self.hasher.digest(key))
    }

    /// Inserts many digests. An error says how many of them are in; these need not be the first
    /// ones.
    pub fn insert_many(&self, digests: &[Digest]) -> Result<(), Full> {
        let mut before = 0;
        self.with_groups_mut(digests, |filter, digests| {
            let done = filter.insert_many(digests);
            done.map_err(|full| Full { inserted: before + full.inserted, ..full })?;
            before += digests.len() as u64;
            Ok(())
        })
    }
}

/// As in [`Remove`], remove only keys that are in.
impl<F: Remove> Sharded<F> {
    /// Removes one occurrence of a key by its digest.
    #[inline]
    pub fn remove_digest(&self, digest: Digest) -> Result<(), Absent> {
        self.with_mut(digest, |filter| filter.remove_digest(digest))
    }

    /// Removes one occurrence of a key.
    #[inline]
    pub fn remove<K: Key + ?Sized>(&self, key: &K) -> Result<(), Absent> {
        self.remove_digest(self.hasher.digest(key))
    }

    /// Removes one occurrence for each of many digests, and returns for how many it did: those
    /// that are not in are passed over.
    pub fn remove_many(&self, digests: &[Digest]) -> u64 {
        let mut removed = 0;
        let Ok(()) = self.with_groups_mut(digests, |filter, digests| {
            removed += filter.remove_many(digests);
            Ok::<(), core::convert::Infallible>(())
        });
        removed
    }
}

impl<F: Count> Count for Sharded<F> {
    fn count_digest(&self, digest: Digest) -> Option<u64> {
        self.with(digest, |filter| filter.count_digest(digest))
    }

    fn max_count(&self) -> u64 {
        self.shards.iter().map(|shard| shard.read().max_count()).min().unwrap_or(0)
    }
}
