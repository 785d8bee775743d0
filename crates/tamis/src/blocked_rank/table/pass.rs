//! Blocks read and written in order, all their keys in one pass.

use alloc::vec;
use alloc::vec::Vec;

use super::super::block::{self, Block, next_occupied};
use super::super::dense::Dense;
use super::super::line::Portable;
use super::super::machine::Machine;
use super::super::place::Cut;
use super::back::FULL;
use super::blocks::{Blocks, Spread};
use crate::entry::{Entry, order};
use crate::spec::Full;

impl Blocks {
    /// Adds the entries of a block and of what is behind it to `entries`, in order.
    pub(super) fn list_block(&self, number: u64, entries: &mut Vec<Entry>) {
        let (block, shape) = (self.block(number), self.shape());
        let first = self.cut.identity(self.cut.place_at(number, 0, 0));
        let from = entries.len();
        let least = self.machine.list(self.words.as_slice(), &self.cut, number, entries);
        let (mut least, mut in_order) = (least.unwrap_or(0), least.is_some());
        // What is left is behind.
        let runs = Dense::<Portable>::runs(block, shape);
        if Dense::<Portable>::occupied(block, shape) > runs {
            let mut next = Dense::<Portable>::ranked(block, shape, runs);
            while let Some(location) = next {
                let start = first + (u64::from(location) << shape.width);
                let part = self.part(number, location);
                self.back.for_each(part, &mut |print, count| {
                    let identity = start | print;
                    in_order &= identity >= least;
                    least = identity + 1;
                    entries.push(Entry { identity, value: 0, count });
                });
                next = next_occupied(block, shape, location + 1);
            }
        }
        if !in_order {
            order::put_in_order(entries, from, false);
        }
    }
}

/// Fills empty blocks with entries of their identities, which must be in order; an identity may
/// come several times. `words` are those of the blocks from number `from` on. Returns at most
/// `most` entries that the blocks refuse, with their identities behind, in order, each once.
pub(super) fn fill(
    (cut, spread, machine): (&Cut, &Spread, Machine),
    (words, from): (&mut [u64], u64),
    entries: impl Iterator<Item = Entry>,
    most: usize,
) -> Result<Vec<Entry>, Full> {
    let mut refused = Refused { cut, spread, machine, entries: Vec::new(), most };
    // A block, the first identity of it, and the first behind it.
    let mut block: &mut [u64] = &mut [];
    let (mut number, mut first, mut end) = (0, 0, 0);
    // The keys of the block, less its first identity: as many as it has cells, and one more, which
    // says where it is full.
    let mut keys = vec![0; cut.shape.cells as usize + 1];
    let mut held = 0;
    for entry in entries {
        if entry.identity >= end {
            refused.write(number, block, &keys[..held])?;
            number = cut.place_of(entry.identity).block;
            first = cut.identity(cut.place_at(number, 0, 0));
            end = first + cut.per_block();
            let words_before = (number - from) as usize * cut.shape.words as usize;
            block = &mut words[words_before..][..cut.shape.words as usize];
            held = 0;
        }
        let key = entry.identity - first;
        if entry.count == 1 && held < keys.len() {
            keys[held] = key;
            held += 1;
            continue;
        }
        let copies = entry.count.min((keys.len() - held) as u64);
        keys[held..held + copies as usize].fill(key);
        held += copies as usize;
        if entry.count > copies {
            refused.push(number, block, key, entry.count - copies)?;
        }
    }
    refused.write(number, block, &keys[..held])?;
    order::put_in_order(&mut refused.entries, 0, false);
    Ok(refused.entries)
}

/// What blocks refuse.
struct Refused<'a> {
    cut: &'a Cut,
    spread: &'a Spread,
    machine: Machine,
    entries: Vec<Entry>,
    most: usize,
}

impl Refused<'_> {
    /// Writes keys to an empty block, in order, and refuses what does not fit. Runs are here or
    /// behind as a whole.
    fn write(&mut self, number: u64, block: &mut [u64], keys: &[u64]) -> Result<(), Full> {
        if keys.is_empty() {
            return Ok(()); // Before the first block there is none.
        }
        let shape = &self.cut.shape;
        let mut here = keys;
        if let Some(more) = keys.get(shape.cells as usize) {
            let location = more >> shape.width;
            here = &keys[..keys.partition_point(|key| key >> shape.width < location)];
        }
        self.machine.write(block, self.cut, here);
        keys[here.len()..].iter().try_for_each(|&key| self.push(number, block, key, 1))
    }

    /// Refuses copies of a key of a block.
    fn push(&mut self, number: u64, block: &mut [u64], key: u64, count: u64) -> Result<(), Full> {
        let shape = &self.cut.shape;
        let (location, print) = ((key >> shape.width) as u32, key & shape.mask);
        block::set_occupied(block, location, true);
        let identity = self.spread.behind(self.cut, self.cut.place_at(number, location, print));
        if let Some(last) = self.entries.last_mut().filter(|last| last.identity == identity) {
            last.count = last.count.saturating_add(count);
            return Ok(());
        }
        if self.entries.len() >= self.most || self.entries.try_reserve(1).is_err() {
            return Err(FULL);
        }
        self.entries.push(Entry { identity, value: 0, count });
        Ok(())
    }
}
