//! The basic table: every item in all its buckets.

use super::counters::Counters;
use super::layout::Place;
use super::lists::{Lists, TOO_MANY};
use super::params::TableParams;
use super::trace::Trace;
use crate::bits::OutOfMemory;
use crate::digest::Digest;
use crate::spec::Invalid;

/// Every item is in the lists of all its buckets; a lookup reads the shortest of them.
///
/// The report copies the item into each list. Here a list holds the numbers of items, and items
/// are kept once: a node takes as many accesses, and values need not be copied.
#[derive(Clone, Debug)]
pub struct Basic {
    pub(super) counters: Counters,
    /// Number `item * hashes + i` stands for `item` in its i-th bucket.
    lists: Lists,
    hashes: u32,
}

impl Basic {
    /// All items that have `bucket` among their buckets.
    pub(super) fn items(&self, bucket: u32) -> impl Iterator<Item = u32> {
        let hashes = self.hashes;
        self.lists.walk(bucket).map(move |entry| entry / hashes)
    }

    /// Puts `item` into its lists. Its counters must have been raised already.
    pub(super) fn enter(&mut self, item: u32, digest: Digest) {
        let buckets = self.counters.buckets_of(digest);
        for (&bucket, entry) in buckets.as_slice().iter().zip(item * self.hashes..) {
            self.lists.push(bucket, entry);
        }
    }
}

impl Place for Basic {
    fn new(params: TableParams) -> Result<Self, OutOfMemory> {
        let lists = Lists::new(params.buckets())?;
        Ok(Self { counters: Counters::new(params)?, lists, hashes: params.hashes() })
    }

    fn find(&self, digest: Digest, is: impl Fn(u32) -> bool, by: &mut impl Trace) -> Option<u32> {
        let home = self.counters.find_home(digest, by)?;
        let entry = self.lists.find(home, |entry| is(entry / self.hashes), by)?;
        Some(entry / self.hashes)
    }

    fn prepare(&mut self, items: u64, digest: Digest) -> Result<(), OutOfMemory> {
        self.lists.prepare(items.checked_mul(self.hashes.into()).ok_or(TOO_MANY)?)?;
        self.counters.prepare(&self.counters.buckets_of(digest))
    }

    fn link(&mut self, item: u32, digest: Digest, _: impl Fn(u32) -> Digest, _: &mut impl Trace) {
        self.counters.raise(&self.counters.buckets_of(digest));
        self.enter(item, digest);
    }

    fn unlink(&mut self, item: u32, digest: Digest, _: impl Fn(u32) -> Digest, _: &mut impl Trace) {
        let buckets = self.counters.buckets_of(digest);
        for (&bucket, entry) in buckets.as_slice().iter().zip(item * self.hashes..) {
            self.lists.remove(bucket, entry);
        }
        self.counters.lower(&buckets);
    }

    fn rename(&mut self, from: u32, to: u32, digest: Digest) {
        let buckets = self.counters.buckets_of(digest);
        let entries = (from * self.hashes..).zip(to * self.hashes..);
        for (&bucket, (from, to)) in buckets.as_slice().iter().zip(entries) {
            self.lists.rename(bucket, from, to);
        }
    }

    fn counters(&self) -> Option<&Counters> {
        Some(&self.counters)
    }

    fn footprint(&self) -> u64 {
        self.counters.footprint() + self.lists.footprint()
    }

    fn validate(&self, items: u32, digest_of: impl Fn(u32) -> Digest) -> Result<(), Invalid> {
        let entries = self.counters.validate(items, &digest_of)?;
        let linked = self.lists.validate((items * self.hashes) as usize, |entry, bucket| {
            let buckets = self.counters.buckets_of(digest_of(entry / self.hashes));
            buckets.as_slice().get((entry % self.hashes) as usize) == Some(&bucket)
        })?;
        if linked == entries { Ok(()) } else { Err(Invalid("an item is not in all its lists")) }
    }
}
