//! The d-left table: several subtables, and every item in the least loaded of its buckets.

use tamis::internals::address::probes;
use tamis::internals::fast_table::{Counters, FastTable, Lists, Place, TableParams, Trace};
use tamis::{Digest, Invalid, Key, OutOfMemory};

/// A key has a bucket in each of d subtables. An item goes to the shortest list, and to the
/// leftmost of those that are equal. A lookup reads the lists from the left, and all of them for
/// an absent key.
///
/// In the report a counting filter points to the one bucket to read, the least loaded. But
/// nothing keeps an item in the bucket that is least loaded *now*: see [`away`](Self::away).
#[derive(Clone, Debug)]
pub struct DLeft {
    lists: Lists,
    subtables: u32,
}

impl DLeft {
    fn buckets(&self, digest: Digest) -> impl Iterator<Item = u32> + use<> {
        let each = self.lists.buckets() / self.subtables;
        let at = probes(digest, self.subtables, each.into());
        at.zip(0..).map(move |(bucket, subtable)| subtable * each + bucket as u32)
    }

    fn least_loaded(&self, digest: Digest) -> u32 {
        // `min_by_key` keeps the first of equals.
        self.buckets(digest).min_by_key(|&bucket| self.lists.walk(bucket).count()).unwrap_or(0)
    }

    /// How many keys of `table` are not in the bucket that is now the least loaded of their own:
    /// other keys may have filled theirs since.
    pub fn away<K: Key, V>(table: &FastTable<K, V, Self>) -> usize {
        let lists = &table.layout().lists;
        let is_away = |(key, item): &(&K, u32)| {
            let bucket = table.layout().least_loaded(table.hasher().digest(*key));
            lists.walk(bucket).all(|other| other != *item)
        };
        table.iter().map(|(key, _)| key).zip(0..).filter(is_away).count()
    }
}

impl Place for DLeft {
    fn new(params: TableParams) -> Result<Self, OutOfMemory> {
        let subtables = params.hashes();
        let each = (params.buckets() / u64::from(subtables)).max(1);
        Ok(Self { lists: Lists::new(each * u64::from(subtables))?, subtables })
    }

    fn find(&self, digest: Digest, is: impl Fn(u32) -> bool, by: &mut impl Trace) -> Option<u32> {
        self.buckets(digest).find_map(|bucket| self.lists.find(bucket, &is, by))
    }

    fn prepare(&mut self, items: u64, _: Digest) -> Result<(), OutOfMemory> {
        self.lists.prepare(items)
    }

    fn link(&mut self, item: u32, digest: Digest, _: impl Fn(u32) -> Digest, _: &mut impl Trace) {
        self.lists.push(self.least_loaded(digest), item);
    }

    fn unlink(&mut self, item: u32, digest: Digest, _: impl Fn(u32) -> Digest, _: &mut impl Trace) {
        self.buckets(digest).any(|bucket| self.lists.remove(bucket, item));
    }

    fn rename(&mut self, from: u32, to: u32, digest: Digest) {
        self.buckets(digest).any(|bucket| self.lists.rename(bucket, from, to));
    }

    fn counters(&self) -> Option<&Counters> {
        None
    }

    fn footprint(&self) -> u64 {
        self.lists.footprint()
    }

    fn validate(&self, items: u32, digest_of: impl Fn(u32) -> Digest) -> Result<(), Invalid> {
        self.lists.validate_all(items, |item, bucket| {
            self.buckets(digest_of(item)).any(|mine| mine == bucket)
        })
    }
}
