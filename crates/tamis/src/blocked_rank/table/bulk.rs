//! Blocks filled with all keys of a new filter at once.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::super::place::Cut;
use super::back::{Back, FULL};
use super::blocks::Blocks;
use super::pass;
use crate::address::identity;
use crate::digest::Digest;
use crate::entry::Entry;
use crate::spec::Full;
use crate::threads::{Dealt, deal, for_each};

/// With fewer entries a second thread costs more than it saves.
const FEW: usize = 10_000;

impl Blocks {
    /// Fills empty blocks with the identities of digests.
    pub(super) fn fill_with(&mut self, digests: &[Digest], threads: usize) -> Result<(), Full> {
        let universe = self.cut.universe();
        let entry =
            |digest: Digest| Entry { identity: identity(digest, universe), value: 0, count: 1 };
        if is_sorted(digests, threads) {
            return self.fill_parts(threads, 1, |cut, blocks| {
                let before = |block| digests.partition_point(|&one| cut.place(one).block < block);
                digests[before(blocks.start)..before(blocks.end)].iter().copied().map(entry)
            });
        }
        let blocks = self.words.len() as u64 / u64::from(self.cut.shape.words);
        let lots = Lots::new(&self.cut, blocks, digests, threads)?;
        self.fill_parts(threads, 1 << lots.shift, |_, blocks| lots.in_order(blocks).map(entry))
    }

    /// Fills empty blocks with entries of their own identities, which are in order.
    fn fill_with_entries(&mut self, entries: &[Entry], threads: usize) -> Result<(), Full> {
        let threads = if entries.len() < FEW { 1 } else { threads };
        self.fill_parts(threads, 1, |cut, blocks| {
            let block = |entry: &Entry| cut.place_of(entry.identity).block;
            let before = |number| entries.partition_point(|entry| block(entry) < number);
            entries[before(blocks.start)..before(blocks.end)].iter().copied()
        })
    }

    /// Fills empty blocks, and those behind them. Each of `threads` threads has a part of the
    /// blocks to itself, which is a multiple of `multiple` blocks; `own` has the entries of a
    /// part, in order.
    fn fill_parts<I: Iterator<Item = Entry>>(
        &mut self,
        threads: usize,
        multiple: usize,
        own: impl Fn(&Cut, Range<u64>) -> I + Sync,
    ) -> Result<(), Full> {
        let Self { cut, spread, machine, words, .. } = &mut *self;
        let level = (&*cut, &*spread, *machine);
        let (cut, block_words) = (&*cut, cut.shape.words as usize);
        let share = (words.len() / block_words).div_ceil(threads).next_multiple_of(multiple);
        let parts = words.as_mut_slice().chunks_mut(share * block_words);
        let mut parts: Vec<_> = parts.zip((0..).step_by(share)).map(|part| (part, None)).collect();
        for_each(threads.min(parts.len()), parts.iter_mut(), |((words, from), refused)| {
            let end = *from + (words.len() / block_words) as u64;
            let entries = own(cut, *from..end);
            *refused = Some(pass::fill(level, (words, *from), entries, usize::MAX));
        });
        let mut all: Vec<Entry> = Vec::new();
        for refused in parts.into_iter().filter_map(|(_, refused)| refused) {
            all.extend(refused?);
        }
        // (Stable, because that is quick where parts are in order.)
        all.sort_by_key(|entry| entry.identity);
        match &mut self.back {
            Back::Blocks(blocks) => blocks.fill_with_entries(&all, threads),
            list @ Back::List(_) => list.fill(all),
        }
    }
}

/// Whether digests are in order. The threads share this too: it is long enough beside the filling
/// to be seen (records/2026-11-19-quiet.md).
fn is_sorted(digests: &[Digest], threads: usize) -> bool {
    let (share, sorted) = (digests.len().div_ceil(threads).max(1), AtomicBool::new(true));
    let parts = (0..digests.len()).step_by(share);
    for_each(threads, parts, |start| {
        // The first of the next part belongs to this one too.
        let part = &digests[start..digests.len().min(start + share + 1)];
        if !part.is_sorted_by_key(|digest| digest.0) {
            sorted.store(false, Relaxed);
        }
    });
    sorted.into_inner()
}

/// The most lots: few enough that dealing out does not wait for memory.
const MOST_LOTS: u64 = 2048;

/// Digests dealt out to lots of neighbouring blocks, each thread its share of the digests.
struct Lots {
    /// A lot has 2^`shift` blocks.
    shift: u32,
    dealt: Vec<Dealt>,
}

impl Lots {
    fn new(cut: &Cut, blocks: u64, digests: &[Digest], threads: usize) -> Result<Self, Full> {
        let shift = (blocks / MOST_LOTS + 1).next_power_of_two().ilog2();
        let lots = (blocks >> shift) as usize + 1;
        let lot = |digest: Digest| (cut.place(digest).block >> shift) as usize;
        let share = digests.len().div_ceil(threads).max(1);
        let mut shares: Vec<_> = digests.chunks(share).map(|own| (own, None)).collect();
        for_each(threads.min(shares.len()), shares.iter_mut(), |(own, dealt)| {
            *dealt = deal(own, lots, lot).ok();
        });
        let dealt = shares.into_iter().map(|(_, dealt)| dealt).collect::<Option<_>>();
        Ok(Self { shift, dealt: dealt.ok_or(FULL)? })
    }

    /// The digests of some blocks, in order. These blocks are whole lots.
    fn in_order(&self, blocks: Range<u64>) -> impl Iterator<Item = Digest> {
        let lots = blocks.start >> self.shift..blocks.end.div_ceil(1 << self.shift);
        lots.flat_map(|lot| {
            let lot = lot as usize;
            let mut own = Vec::new();
            for Dealt { digests, ends } in &self.dealt {
                let start = if lot == 0 { 0 } else { ends[lot - 1] };
                own.extend_from_slice(&digests[start..ends[lot]]);
            }
            own.sort_unstable_by_key(|digest| digest.0);
            own
        })
    }
}
