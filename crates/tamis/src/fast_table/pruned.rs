//! The pruned table: one copy of an item, in the bucket with the smallest counter.

use core::borrow::Borrow;

use super::FastTable;
use super::basic::Basic;
use super::counters::Counters;
use super::layout::Place;
use super::lists::Lists;
use super::params::TableParams;
use super::trace::Trace;
use crate::bits::{self, AHEAD, OutOfMemory};
use crate::digest::Digest;
use crate::key::Key;
use crate::spec::Invalid;

/// Every item is in one list, that of its home: the bucket with the smallest counter among its
/// own, and the lowest of them if several are equal.
///
/// Counters change, and homes with them. An insertion raises some counters, so only items in the
/// lists of those buckets may have a smaller one elsewhere. A removal lowers some, and then any
/// item that has such a bucket among its own may have to move there. To find those items there is
/// a basic table beside, which no lookup reads.
#[derive(Clone, Debug)]
pub struct Pruned {
    /// The counters, and the lists of all items of each bucket.
    all: Basic,
    homes: Lists,
}

impl Place for Pruned {
    fn new(params: TableParams) -> Result<Self, OutOfMemory> {
        Ok(Self { all: Basic::new(params)?, homes: Lists::new(params.buckets())? })
    }

    #[inline]
    fn find(&self, digest: Digest, is: impl Fn(u32) -> bool, by: &mut impl Trace) -> Option<u32> {
        let home = self.all.counters.find_home(digest, by)?;
        self.homes.find(home, is, by)
    }

    fn prepare(&mut self, items: u64, digest: Digest) -> Result<(), OutOfMemory> {
        self.homes.prepare(items)?;
        self.all.prepare(items, digest)
    }

    fn link(
        &mut self,
        item: u32,
        digest: Digest,
        digest_of: impl Fn(u32) -> Digest,
        by: &mut impl Trace,
    ) {
        self.all.link(item, digest, &digest_of, by);
        let counters = &self.all.counters;
        let buckets = counters.buckets_of(digest);
        for &bucket in buckets.as_slice() {
            let mut at = self.homes.first(bucket);
            while let Some(other) = at {
                by.node();
                at = self.homes.after(other);
                let home = counters.home_of(digest_of(other));
                if home != bucket {
                    by.moved();
                    self.homes.remove(bucket, other);
                    self.homes.push(home, other);
                }
            }
        }
        self.homes.push(counters.home(&buckets), item);
    }

    fn unlink(
        &mut self,
        item: u32,
        digest: Digest,
        digest_of: impl Fn(u32) -> Digest,
        by: &mut impl Trace,
    ) {
        let buckets = self.all.counters.buckets_of(digest);
        self.homes.remove(self.all.counters.home(&buckets), item);
        self.all.unlink(item, digest, &digest_of, by);
        let counters = &self.all.counters;
        for (done, &bucket) in buckets.as_slice().iter().enumerate() {
            for other in self.all.items(bucket) {
                let theirs = counters.buckets_of(digest_of(other));
                if buckets.as_slice()[..done].iter().any(|&before| theirs.contains(before)) {
                    continue; // Met in that list already.
                }
                by.node();
                let before = counters.home_if(&theirs, |at| u64::from(buckets.contains(at)));
                let home = counters.home(&theirs);
                if home != before {
                    by.moved();
                    self.homes.remove(before, other);
                    self.homes.push(home, other);
                }
            }
        }
    }

    fn rename(&mut self, from: u32, to: u32, digest: Digest) {
        let home = self.all.counters.home_of(digest);
        self.homes.rename(home, from, to);
        self.all.rename(from, to, digest);
    }

    /// Counts all items first and places them then, so that nothing moves.
    fn fill(
        &mut self,
        items: u32,
        digest_of: impl Fn(u32) -> Digest + Copy,
    ) -> Result<(), OutOfMemory> {
        for item in 0..items {
            let digest = digest_of(item);
            self.prepare(items.into(), digest)?;
            let buckets = self.all.counters.buckets_of(digest);
            self.all.counters.raise(&buckets);
        }
        for item in 0..items {
            let digest = digest_of(item);
            self.all.enter(item, digest);
            self.homes.push(self.all.counters.home_of(digest), item);
        }
        Ok(())
    }

    fn counters(&self) -> Option<&Counters> {
        Some(&self.all.counters)
    }

    fn footprint(&self) -> u64 {
        self.all.footprint() + self.homes.footprint()
    }

    fn validate(&self, items: u32, digest_of: impl Fn(u32) -> Digest) -> Result<(), Invalid> {
        self.all.validate(items, &digest_of)?;
        let counters = &self.all.counters;
        self.homes.validate_all(items, |item, bucket| counters.home_of(digest_of(item)) == bucket)
    }
}

impl<K: Key, V> FastTable<K, V> {
    /// Writes to `found` the value of each of `keys`. It is quicker than asking one by one:
    /// counters, heads of lists and items are each fetched ahead for several keys.
    ///
    /// # Panics
    ///
    /// If `found` is not as long as `keys`.
    pub fn get_many<'a, Q: Key>(&'a self, keys: &[Q], found: &mut [Option<&'a V>])
    where
        K: Borrow<Q>,
    {
        assert_eq!(keys.len(), found.len(), "a place for each key");
        for (keys, found) in keys.chunks(AHEAD).zip(found.chunks_mut(AHEAD)) {
            let mut digests = [Digest(0); AHEAD];
            for (digest, key) in digests.iter_mut().zip(keys) {
                *digest = self.hasher.digest(key);
                self.layout.all.counters.prefetch(*digest);
            }
            let mut homes = [None; AHEAD];
            for ((home, &digest), _) in homes.iter_mut().zip(&digests).zip(keys) {
                *home = self.layout.all.counters.find_home(digest, &mut ());
                if let Some(home) = *home {
                    self.layout.homes.prefetch(home);
                }
            }
            let mut firsts = [None; AHEAD];
            for (first, home) in firsts.iter_mut().zip(homes) {
                *first = home.and_then(|home| self.layout.homes.first(home));
                if let Some(first) = *first {
                    bits::prefetch(&self.items, first as usize);
                }
            }
            for ((found, key), mut at) in found.iter_mut().zip(keys).zip(firsts) {
                *found = None;
                while let Some(item) = at {
                    if self.is(item, key) {
                        *found = Some(&self.items[item as usize].1);
                        break;
                    }
                    at = self.layout.homes.after(item);
                }
            }
        }
    }
}
