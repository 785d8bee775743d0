//! The on-chip part: an exact counter for every bucket.

use alloc::vec;

use super::params::{MAX_HASHES, TableParams};
use super::trace::Trace;
use crate::address::probes;
use crate::bits::{self, OutOfMemory, Packed};
use crate::digest::Digest;
use crate::spec::Invalid;

/// Bits of a counter at first. Random keys do not reach 15 at any sensible size.
const WIDTH: u32 = 4;

/// The distinct buckets of a key, in the order of its hash functions.
///
/// Two functions may give the same bucket, which then counts once: a list that took a key twice
/// would link a node to itself.
#[derive(Clone, Copy)]
pub struct Buckets {
    at: [u32; MAX_HASHES as usize],
    len: usize,
}

impl Buckets {
    /// The buckets of `digest` in a table of `buckets` buckets and `hashes` hash functions.
    pub fn of(digest: Digest, hashes: u32, buckets: u64) -> Self {
        let mut these = Self { at: [0; MAX_HASHES as usize], len: 0 };
        for bucket in probes(digest, hashes, buckets) {
            let bucket = bucket as u32;
            if !these.contains(bucket) {
                these.at[these.len] = bucket;
                these.len += 1;
            }
        }
        these
    }

    /// All of them.
    pub fn as_slice(&self) -> &[u32] {
        &self.at[..self.len]
    }

    /// Whether `bucket` is one of them.
    pub fn contains(&self, bucket: u32) -> bool {
        self.as_slice().contains(&bucket)
    }
}

/// A counting filter that never saturates: for every bucket, how many keys have it among theirs.
///
/// The home of a key and the length of a walk depend on these numbers, so a wrong one would lose
/// keys. If a counter is about to overflow, all of them become twice as wide.
#[derive(Clone, Debug)]
pub struct Counters {
    cells: Packed,
    hashes: u32,
}

impl Counters {
    #[doc(hidden)]
    pub fn new(params: TableParams) -> Result<Self, OutOfMemory> {
        Ok(Self { cells: Packed::zeroed(params.buckets(), WIDTH)?, hashes: params.hashes() })
    }

    /// The number of counters: one for each bucket.
    pub fn buckets(&self) -> u64 {
        self.cells.len()
    }

    /// Bits of a counter: 4, until one would overflow.
    pub fn width(&self) -> u32 {
        self.cells.width()
    }

    /// How many keys have `bucket` among theirs; 0 if there is no such bucket.
    pub fn count(&self, bucket: u64) -> u64 {
        if bucket < self.cells.len() { self.cells.get(bucket) } else { 0 }
    }

    /// Bits of memory held. They have to fit into the cache.
    pub fn footprint(&self) -> u64 {
        self.cells.words().footprint()
    }

    #[doc(hidden)]
    pub fn buckets_of(&self, digest: Digest) -> Buckets {
        Buckets::of(digest, self.hashes, self.cells.len())
    }

    /// The home of a key with these buckets: the one with the smallest counter, and the lowest of
    /// those that are equal.
    pub(super) fn home(&self, buckets: &Buckets) -> u32 {
        self.home_if(buckets, |_| 0)
    }

    /// The home of the key with `digest`, which is in.
    pub(super) fn home_of(&self, digest: Digest) -> u32 {
        self.home(&self.buckets_of(digest))
    }

    /// The home as it would be if every counter were higher by `higher(bucket)`.
    pub(super) fn home_if(&self, buckets: &Buckets, higher: impl Fn(u32) -> u64) -> u32 {
        let counted = |&bucket: &u32| (self.cells.get(bucket.into()) + higher(bucket), bucket);
        buckets.as_slice().iter().map(counted).min().map_or(0, |(_, bucket)| bucket)
    }

    /// The home of the key with `digest`; `None` if one of its counters is 0, so that the key is
    /// absent.
    ///
    /// It stops at the first 0. Reading all counters without a branch was quicker in a table that
    /// fits in the cache. It was slower for misses in a large table, which these tables are for
    /// (two runs of each on a busy machine).
    #[doc(hidden)]
    #[inline]
    pub fn find_home<T: Trace>(&self, digest: Digest, trace: &mut T) -> Option<u32> {
        // Widths are powers of two, so that no counter lies in two words.
        let (words, width_log2) = (self.cells.words().as_slice(), self.cells.width().ilog2());
        let mask = self.cells.max_value();
        let mut least = u64::MAX;
        for bucket in probes(digest, self.hashes, self.cells.len()) {
            trace.counter();
            // A counter is never wider than 32 bits, because tables cannot number more items.
            let at = bucket << width_log2;
            let count = words[(at / 64) as usize] >> (at % 64) & mask;
            if count == 0 {
                return None;
            }
            least = least.min(count << 32 | bucket);
        }
        Some(least as u32)
    }

    /// Starts fetching the counters of the key with `digest`.
    #[inline]
    pub(super) fn prefetch(&self, digest: Digest) {
        let (words, width) = (self.cells.words().as_slice(), u64::from(self.cells.width()));
        for bucket in probes(digest, self.hashes, self.cells.len()) {
            bits::prefetch(words, (bucket * width / 64) as usize);
        }
    }

    /// Makes sure that the counters of `buckets` can be raised.
    #[doc(hidden)]
    pub fn prepare(&mut self, buckets: &Buckets) -> Result<(), OutOfMemory> {
        let full = self.cells.max_value();
        if buckets.as_slice().iter().any(|&bucket| self.cells.get(bucket.into()) == full) {
            let mut wider = Packed::zeroed(self.cells.len(), 2 * self.cells.width())?;
            for (bucket, count) in self.cells.iter().enumerate() {
                wider.set(bucket as u64, count);
            }
            self.cells = wider;
        }
        Ok(())
    }

    /// Counts a key with these buckets. There must be room: see [`prepare`](Self::prepare).
    #[doc(hidden)]
    pub fn raise(&mut self, buckets: &Buckets) {
        for &bucket in buckets.as_slice() {
            let count = self.cells.get(bucket.into());
            debug_assert!(count < self.cells.max_value());
            self.cells.set(bucket.into(), count + 1);
        }
    }

    /// Takes back what [`raise`](Self::raise) did for a key.
    #[doc(hidden)]
    pub fn lower(&mut self, buckets: &Buckets) {
        for &bucket in buckets.as_slice() {
            let count = self.cells.get(bucket.into());
            debug_assert!(count > 0);
            self.cells.set(bucket.into(), count.saturating_sub(1));
        }
    }

    /// Checks that every counter is right for the items below `items`. Returns the sum of all
    /// counters.
    #[doc(hidden)]
    pub fn validate(
        &self,
        items: u32,
        digest_of: impl Fn(u32) -> Digest,
    ) -> Result<usize, Invalid> {
        let mut counts = vec![0_u64; self.cells.len() as usize];
        for item in 0..items {
            for &bucket in self.buckets_of(digest_of(item)).as_slice() {
                counts[bucket as usize] += 1;
            }
        }
        if self.cells.iter().eq(counts.iter().copied()) {
            Ok(counts.iter().sum::<u64>() as usize)
        } else {
            Err(Invalid("a counter is not the number of its keys"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_exact_beyond_every_width() {
        let mut counters = Counters::new(TableParams::new(1000, 2).unwrap()).unwrap();
        let buckets = counters.buckets_of(Digest(0x9e37_79b9_7f4a_7c15));
        assert_eq!(buckets.as_slice().len(), 2);
        let widths = [(15, 4), (16, 8), (255, 8), (256, 16), (65_535, 16), (65_536, 32)];
        for raised in 1..=70_000 {
            counters.prepare(&buckets).unwrap();
            counters.raise(&buckets);
            if let Some(&(_, width)) = widths.iter().find(|&&(at, _)| at == raised) {
                assert_eq!(counters.width(), width);
                for bucket in 0..1001 {
                    let mine = buckets.contains(bucket);
                    assert_eq!(counters.count(bucket.into()), if mine { raised } else { 0 });
                }
            }
        }
        for _ in 0..70_000 {
            counters.lower(&buckets);
        }
        assert!((0..1000).all(|bucket| counters.count(bucket) == 0));
    }
}
