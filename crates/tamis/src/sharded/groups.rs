//! A batch of digests cut into those of each shard.

use alloc::vec;
use alloc::vec::Vec;

use crate::digest::Digest;

/// How many digests of a shard are handled together, on average: enough to pay for the lock, and
/// few enough to stay in the cache.
const PER_SHARD: usize = 64;

/// Digests sorted by shard, with their positions in the batch.
#[derive(Debug)]
pub(super) struct Groups {
    /// Where the digests of each shard end, and those of the next begin.
    ends: Vec<usize>,
    /// The shard of each digest, in the order they came.
    shards: Vec<usize>,
    digests: Vec<Digest>,
    positions: Vec<usize>,
}

/// The digests of one shard.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) shard: usize,
    pub(super) digests: &'a [Digest],
    /// The position of each digest in the batch.
    pub(super) positions: &'a [usize],
}

impl Groups {
    /// For batches of up to `digests` digests.
    pub(super) fn new(shards: usize, digests: usize) -> Self {
        let chunk = digests.clamp(1, shards * PER_SHARD);
        Self {
            ends: vec![0; shards],
            shards: Vec::with_capacity(chunk),
            digests: vec![Digest(0); chunk],
            positions: vec![0; chunk],
        }
    }

    /// The most digests that can be sorted at once.
    pub(super) fn chunk(&self) -> usize {
        self.digests.len()
    }

    /// Sorts digests, at most a chunk, and returns the digests of each shard that has any. The
    /// first shard is that of the first digest, so that threads with different batches begin at
    /// different shards.
    pub(super) fn sort(
        &mut self,
        digests: &[Digest],
        shard_of: impl Fn(Digest) -> usize,
    ) -> impl Iterator<Item = Group<'_>> {
        let Self { ends, shards, digests: sorted, positions } = self;
        ends.fill(0);
        shards.clear();
        for &digest in digests {
            let shard = shard_of(digest);
            ends[shard] += 1;
            shards.push(shard);
        }
        let mut end = 0;
        for place in ends.iter_mut() {
            // For now this is where the digests of the shard begin; placing them moves it to their
            // end.
            end += core::mem::replace(place, end);
        }
        for (position, (&digest, &shard)) in digests.iter().zip(shards.iter()).enumerate() {
            let place = ends[shard];
            sorted[place] = digest;
            positions[place] = position;
            ends[shard] += 1;
        }
        let first = shards.first().copied().unwrap_or(0);
        (first..ends.len()).chain(0..first).filter_map(|shard| {
            let start = if shard == 0 { 0 } else { ends[shard - 1] };
            let range = start..ends[shard];
            (!range.is_empty()).then(|| Group {
                shard,
                digests: &sorted[range.clone()],
                positions: &positions[range],
            })
        })
    }
}
