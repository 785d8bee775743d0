//! Fast hash tables: exact maps that ask a small counting filter before they read a large table.
//!
//! After H. Song, S. Dharmapurikar, J. Turner, J. Lockwood, "Fast Hash Table Lookup Using
//! Extended Bloom Filter", SIGCOMM 2005, as told in a project report
//! (`docs/papers/002-partitioned-and-fast-tables.md`).
//!
//! Every key has k buckets. A small counter for every bucket says how many keys have it among
//! theirs; these counters stay on chip, in the cache. If one of a key's counters is 0 the key is
//! absent, and no large memory is read. Otherwise only the bucket with the smallest counter is
//! searched, and hardly more than one item is read.
//!
//! ```text
//! on chip    counters   0 2 0 1 3 0 1 ...     4 bits each, k = 3 of them for a key
//!                         ^   ^     ^         the smallest, 1, and the first of those: its home
//! off chip   heads      - - - x y - z ...     4 bytes each
//!                             |
//!            items      [key value] ...       in one array, without gaps; 4 bytes per link
//! ```
//!
//! ```
//! use tamis::FastTable;
//! let mut ports = FastTable::with_capacity(1_000)?;
//! ports.insert("ssh", 22)?;
//! assert_eq!(ports.insert("http", 8080)?, None);
//! assert_eq!(ports.insert("http", 80)?, Some(8080));
//! assert_eq!(ports.get("http"), Some(&80));
//! assert_eq!(ports.remove("ssh"), Some(22));
//! assert_eq!(ports.get("ssh"), None);
//! # Ok::<(), tamis::OutOfMemory>(())
//! ```
//!
//! # Layouts
//!
//! `FastTable<K, V>` has the practical layout, [`Pruned`]: an item is in one bucket only. The
//! other layouts of the paper are for its experiments: an item in all its k buckets, the same
//! with lists that share their ends, and two baselines without a filter.
//!
//! Every lookup can tell what it reads: see [`get_traced`](FastTable::get_traced).
//!
//! # Keys
//!
//! A table gives exact answers, so it keeps the keys themselves and not their digests. Keys are
//! equal when their [bytes](Key) are. A table of `String` can be asked with a `&str`; a table of
//! `u64` only with a `u64`, because other integers are other keys.
//!
//! # Limits
//!
//! There are at most 2^32 - 1 buckets, and at most 2^32 - 1 items, each counted once for every
//! bucket of its own. Insertions and removals cost several random accesses, so use these tables
//! where lookups are much more frequent. A table that was sized for a number of keys doubles its
//! buckets beyond it, and hashes all keys again. An adversary can choose keys that fill one
//! bucket and make lookups slow: use a keyed hash against that. With fewer than about two buckets
//! per key the baselines read less. There is no wire format: send the items.
//!
//! On a processor with caches a general hash map answers a single lookup sooner. Its byte of
//! control for every slot is a filter too, and names a place at once; a `FastTable` has to read
//! the head of a list first. Batches ([`FastTable::get_many`]) are about as quick in large
//! tables. Two advantages remain: less memory for large values, because items lie without gaps,
//! and machines where the counters really are on chip. `records/2026-11-15-fast-tables.md` has
//! the figures.

pub(crate) mod basic;
mod counters;
pub(crate) mod layout;
pub(crate) mod lists;
pub(crate) mod params;
mod pruned;
mod trace;

use alloc::vec::Vec;
use core::borrow::Borrow;

pub use counters::Counters;
pub use params::TableParams;
pub use pruned::Pruned;
pub use trace::{Accesses, Trace};

use self::layout::Place;
use crate::bits::OutOfMemory;
use crate::digest::{Digest, Hasher};
use crate::key::Key;
use crate::spec::Invalid;

/// Where a table puts its items: [`Pruned`], or one of the paper's other layouts for experiments.
pub trait Layout: Place {}

impl<L: Place> Layout for L {}

/// An exact map from keys to values that answers no without reading its items; see
/// [the module](self).
#[derive(Clone, Debug)]
pub struct FastTable<K, V, L = Pruned> {
    params: TableParams,
    hasher: Hasher,
    items: Vec<(K, V)>,
    layout: L,
    /// The number of items at which the buckets are doubled.
    grow_at: Option<usize>,
}

impl<K: Key, V> FastTable<K, V> {
    /// An empty table for `keys` keys, with XXH3 and seed 0. It grows beyond them.
    pub fn with_capacity(keys: u64) -> Result<Self, OutOfMemory> {
        Self::with_capacity_and_hasher(keys, Hasher::default())
    }
}

impl<K: Key, V, L: Layout> FastTable<K, V, L> {
    /// An empty table for `keys` keys, which hashes with `hasher`. It grows beyond them.
    pub fn with_capacity_and_hasher(keys: u64, hasher: Hasher) -> Result<Self, OutOfMemory> {
        let params = TableParams::for_keys(keys);
        let planned = usize::try_from(keys.max(4)).map_err(|_| lists::TOO_MANY)?;
        let mut items = Vec::new();
        lists::reserve(&mut items, planned)?;
        let mut layout = L::new(params)?;
        layout.prepare(planned as u64, Digest(0))?;
        Ok(Self { params, hasher, items, layout, grow_at: Some(planned) })
    }

    /// An empty table with `params`, which stay as they are. It takes any number of keys, and its
    /// lists get longer.
    pub fn new(params: TableParams, hasher: Hasher) -> Result<Self, OutOfMemory> {
        let layout = L::new(params)?;
        Ok(Self { params, hasher, items: Vec::new(), layout, grow_at: None })
    }

    /// The params, which fix the layout.
    pub fn params(&self) -> TableParams {
        self.params
    }

    /// The hash function and seed.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// How many keys are in.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no key is in.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// All keys with their values, in arbitrary order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> {
        self.items.iter().map(|(key, value)| (key, value))
    }

    /// The value of `key`.
    #[inline]
    pub fn get<Q: Key + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_traced(key, &mut ())
    }

    /// The value of `key`; `trace` is told of every access.
    ///
    /// ```
    /// use tamis::FastTable;
    /// use tamis::fast_table::Accesses;
    /// let mut table = FastTable::with_capacity(1_000)?;
    /// table.insert("apple", ())?;
    /// let mut accesses = Accesses::default();
    /// assert!(table.get_traced("apple", &mut accesses).is_some());
    /// assert_eq!((accesses.counters, accesses.nodes), (3, 1));
    /// # Ok::<(), tamis::OutOfMemory>(())
    /// ```
    #[inline]
    pub fn get_traced<Q: Key + ?Sized, T: Trace>(&self, key: &Q, trace: &mut T) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let item = self.find(self.hasher.digest(key), key, trace)?;
        self.items.get(item as usize).map(|(_, value)| value)
    }

    /// The value of `key`, to change it.
    pub fn get_mut<Q: Key + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let item = self.find(self.hasher.digest(key), key, &mut ())?;
        self.items.get_mut(item as usize).map(|(_, value)| value)
    }

    /// Whether `key` is in.
    pub fn contains<Q: Key + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Gives `key` the value `value`, and returns the value that it had. On an error nothing has
    /// changed.
    pub fn insert(&mut self, key: K, value: V) -> Result<Option<V>, OutOfMemory> {
        self.insert_traced(key, value, &mut ())
    }

    /// As [`insert`](Self::insert); `trace` is told of the items that a pruned table looks at and
    /// moves.
    pub fn insert_traced<T: Trace>(
        &mut self,
        key: K,
        value: V,
        trace: &mut T,
    ) -> Result<Option<V>, OutOfMemory> {
        let digest = self.hasher.digest(&key);
        if let Some(item) = self.find(digest, &key, &mut ()) {
            return Ok(Some(core::mem::replace(&mut self.items[item as usize].1, value)));
        }
        if self.grow_at.is_some_and(|most| self.len() >= most) && self.grow().is_err() {
            // Longer lists will do. Raising the number avoids a new attempt for every key.
            self.grow_at = Some(self.len() + self.len() / 8 + 1);
        }
        self.layout.prepare(self.len() as u64 + 1, digest)?;
        lists::reserve(&mut self.items, 1)?;
        let item = self.items.len() as u32;
        self.items.push((key, value));
        let (items, hasher) = (&self.items, self.hasher);
        self.layout.link(item, digest, |item| hasher.digest(&items[item as usize].0), trace);
        Ok(None)
    }

    /// Removes `key`, and returns its value.
    pub fn remove<Q: Key + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.remove_traced(key, &mut ())
    }

    /// As [`remove`](Self::remove); `trace` is told of the items that a pruned table looks at and
    /// moves.
    pub fn remove_traced<Q: Key + ?Sized, T: Trace>(&mut self, key: &Q, trace: &mut T) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let digest = self.hasher.digest(key);
        let item = self.find(digest, key, &mut ())?;
        let (items, hasher) = (&self.items, self.hasher);
        let digest_of = |item: u32| hasher.digest(&items[item as usize].0);
        self.layout.unlink(item, digest, digest_of, trace);
        let last = items.len() as u32 - 1;
        if item != last {
            self.layout.rename(last, item, digest_of(last));
        }
        Some(self.items.swap_remove(item as usize).1)
    }

    /// Doubles the buckets. On an error nothing has changed.
    pub fn grow(&mut self) -> Result<(), OutOfMemory> {
        let params = self.params.doubled();
        let (items, hasher) = (&self.items, self.hasher);
        let mut layout = L::new(params)?;
        layout.fill(items.len() as u32, |item| hasher.digest(&items[item as usize].0))?;
        self.layout = layout;
        self.params = params;
        self.grow_at = self.grow_at.map(|most| most.saturating_mul(2));
        Ok(())
    }

    /// Bits of heap memory held. What keys and values hold themselves is not counted.
    pub fn footprint(&self) -> u64 {
        (self.items.capacity() * size_of::<(K, V)>()) as u64 * 8 + self.layout.footprint()
    }

    /// The counters, which are the on-chip part; `None` in the baselines, which have none.
    pub fn counters(&self) -> Option<&Counters> {
        self.layout.counters()
    }

    /// Where the items are, numbered in the order of [`iter`](Self::iter).
    #[doc(hidden)]
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// Checks every invariant. An error says that the bytes of a key have changed since it was
    /// inserted.
    pub fn validate(&self) -> Result<(), Invalid> {
        let digest_of = |item: u32| self.hasher.digest(&self.items[item as usize].0);
        self.layout.validate(self.len() as u32, digest_of)?;
        let lost = |(key, item): (&(K, V), u32)| {
            self.find(self.hasher.digest(&key.0), &key.0, &mut ()) != Some(item)
        };
        if self.items.iter().zip(0..).any(lost) {
            return Err(Invalid("a key is not found, or is in twice"));
        }
        Ok(())
    }

    #[inline]
    fn find<Q: Key + ?Sized, T: Trace>(
        &self,
        digest: Digest,
        key: &Q,
        trace: &mut T,
    ) -> Option<u32> {
        self.layout.find(digest, |item| self.is(item, key), trace)
    }

    #[inline]
    fn is<Q: Key + ?Sized>(&self, item: u32, key: &Q) -> bool {
        let stored = &self.items[item as usize].0;
        stored.with_bytes(|stored| key.with_bytes(|key| stored == key))
    }
}
