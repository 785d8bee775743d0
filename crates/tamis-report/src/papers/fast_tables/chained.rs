//! The naive table: one bucket a key, a list a bucket, no filter.

use tamis::internals::address::reduce;
use tamis::internals::fast_table::{Counters, Lists, Place, TableParams, Trace};
use tamis::{Digest, Invalid, OutOfMemory};

/// One bucket a key, and all items of a bucket in one list. The papers compare their tables with
/// it.
#[derive(Clone, Debug)]
pub struct Chained {
    lists: Lists,
}

impl Chained {
    fn bucket(&self, digest: Digest) -> u32 {
        reduce(digest.0, self.lists.buckets().into()) as u32
    }
}

impl Place for Chained {
    fn new(params: TableParams) -> Result<Self, OutOfMemory> {
        Ok(Self { lists: Lists::new(params.buckets())? })
    }

    fn find(&self, digest: Digest, is: impl Fn(u32) -> bool, by: &mut impl Trace) -> Option<u32> {
        self.lists.find(self.bucket(digest), is, by)
    }

    fn prepare(&mut self, items: u64, _: Digest) -> Result<(), OutOfMemory> {
        self.lists.prepare(items)
    }

    fn link(&mut self, item: u32, digest: Digest, _: impl Fn(u32) -> Digest, _: &mut impl Trace) {
        self.lists.push(self.bucket(digest), item);
    }

    fn unlink(&mut self, item: u32, digest: Digest, _: impl Fn(u32) -> Digest, _: &mut impl Trace) {
        self.lists.remove(self.bucket(digest), item);
    }

    fn rename(&mut self, from: u32, to: u32, digest: Digest) {
        self.lists.rename(self.bucket(digest), from, to);
    }

    fn counters(&self) -> Option<&Counters> {
        None
    }

    fn footprint(&self) -> u64 {
        self.lists.footprint()
    }

    fn validate(&self, items: u32, digest_of: impl Fn(u32) -> Digest) -> Result<(), Invalid> {
        self.lists.validate_all(items, |item, bucket| bucket == self.bucket(digest_of(item)))
    }
}
