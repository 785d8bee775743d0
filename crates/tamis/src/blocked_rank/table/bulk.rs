//! Blocks filled with all keys of a new filter at once.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::super::place::Cut;
use super::back::FULL;
use super::blocks::Blocks;
use super::pass;
use crate::address::identity;
use crate::bits::with_room;
use crate::digest::Digest;
use crate::entry::Entry;
use crate::spec::Full;

impl Blocks {
    /// Fills empty blocks with the identities of digests. Each of `threads` threads has a part of
    /// the blocks to itself.
    pub(super) fn fill_with(&mut self, digests: &[Digest], threads: usize) -> Result<(), Full> {
        let Self { cut, spread, words, .. } = &mut *self;
        let (cut, spread, universe) = (&*cut, &*spread, cut.universe());
        let entry =
            |digest: &Digest| Entry { identity: identity(*digest, universe), value: 0, count: 1 };
        let is_sorted = digests.is_sorted_by_key(|digest| digest.0);
        let fill = |words: &mut [u64], from: u64| {
            let end = from + words.len() as u64 / u64::from(cut.shape.words);
            let before = |block| digests.partition_point(|&one| cut.place(one).block < block);
            let sorted;
            let own = if is_sorted {
                &digests[before(from)..before(end)]
            } else {
                sorted = in_order(digests, cut, from..end)?;
                &sorted
            };
            pass::fill((cut, spread), (words, from), own.iter().map(entry), usize::MAX)
        };
        let block_words = cut.shape.words as usize;
        let share = (words.len() / block_words).div_ceil(threads);
        let parts = words.as_mut_slice().chunks_mut(share * block_words);
        let parts = parts.zip((0..).step_by(share));
        #[cfg(not(feature = "std"))]
        let parts = parts.map(|(words, from)| fill(words, from));
        #[cfg(feature = "std")]
        let parts = side_by_side(parts, &fill);
        let mut refused = Vec::new();
        for part in parts {
            refused.extend(part?);
        }
        // (Stable, because that is quick where parts are in order.)
        refused.sort_by_key(|entry: &Entry| entry.identity);
        self.back.fill(refused)
    }
}

/// The most lots of [`in_order`]: few enough that dealing out does not wait for memory.
const MOST_LOTS: u64 = 2048;

/// The digests of some blocks, in order: dealt out to lots of neighbouring blocks, which are then
/// sorted one by one.
fn in_order(digests: &[Digest], cut: &Cut, blocks: Range<u64>) -> Result<Vec<Digest>, Full> {
    let count = blocks.end - blocks.start;
    let shift = (count / MOST_LOTS + 1).next_power_of_two().ilog2();
    let lot = |digest: &Digest| {
        let block = cut.place(*digest).block.wrapping_sub(blocks.start);
        (block < count).then_some((block >> shift) as usize)
    };
    let mut ends = vec![0; (count >> shift) as usize + 1];
    digests.iter().filter_map(lot).for_each(|lot| ends[lot] += 1);
    let mut all = 0;
    for end in &mut ends {
        (*end, all) = (all, all + *end);
    }
    let mut sorted = with_room(all as u64).map_err(|_| FULL)?;
    sorted.resize(all, Digest(0));
    for digest in digests {
        if let Some(lot) = lot(digest) {
            sorted[ends[lot]] = *digest;
            ends[lot] += 1;
        }
    }
    let mut start = 0;
    for end in ends {
        sorted[start..end].sort_unstable_by_key(|digest| digest.0);
        start = end;
    }
    Ok(sorted)
}

/// Calls `fill` with each of some parts, on a thread of its own.
#[cfg(feature = "std")]
fn side_by_side<'a, T: Send>(
    parts: impl Iterator<Item = (&'a mut [u64], u64)>,
    fill: &(impl Fn(&mut [u64], u64) -> T + Sync),
) -> Vec<T> {
    let mut parts: Vec<_> = parts.map(|part| (part, None)).collect();
    std::thread::scope(|scope| {
        let mut rest = parts.iter_mut();
        let first = rest.next();
        for ((words, from), result) in rest {
            scope.spawn(move || *result = Some(fill(words, *from)));
        }
        if let Some(((words, from), result)) = first {
            *result = Some(fill(words, *from));
        }
    });
    parts.into_iter().filter_map(|(_, result)| result).collect()
}
