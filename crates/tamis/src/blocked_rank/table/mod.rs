//! The blocks and the back table behind them: a multiset of identities that never loses one.

mod kind;

use alloc::vec::Vec;
use core::ops::Range;

use super::back::Back;
use super::block::{self, Block, Index, Inserted, Removed};
use super::machine::Machine;
use super::params::BlockedRankParams;
use super::place::{Cut, Place};
use crate::bits::{Line, OutOfMemory, Words, prefetch};
use crate::entry::{Entry, merged};
use crate::identities::Table as _;
use crate::permutation::{Permutation, inverse, multipliers};
use crate::spec::{Absent, Full};

/// A table of identities.
#[derive(Clone, Debug)]
pub struct Table {
    params: BlockedRankParams,
    cut: Cut,
    machine: Machine,
    words: Words,
    back: Back,
    /// Spreads locations over the back table; it can be undone.
    spread: Permutation,
    gather: Permutation,
    /// The table grows when the packed table behind it holds more.
    grow_above: u64,
}

impl Table {
    /// Blocks behind blocks. Their number is fixed; the blocks in front grow.
    pub(super) fn behind(params: BlockedRankParams) -> Result<Self, OutOfMemory> {
        Ok(Self::new(params)?.into_behind())
    }

    /// The same table, as a back table of other blocks.
    pub(super) fn into_behind(self) -> Self {
        Self { grow_above: u64::MAX, ..self }
    }

    /// A table of these blocks, with this back table.
    pub(super) fn of_parts(params: BlockedRankParams, words: Words, back: Back) -> Self {
        let all = params.all_locations();
        let [factor] = multipliers::<1>(1, all);
        Self {
            params,
            cut: Cut::new(&params),
            machine: Machine::detect(&params.shape(), params.fingerprint()),
            words,
            back,
            spread: Permutation::new(factor, all),
            gather: Permutation::new(inverse(factor, all), all),
            grow_above: params.most_packed(),
        }
    }

    pub(super) fn words(&self) -> &Words {
        &self.words
    }

    pub(super) fn back(&self) -> &Back {
        &self.back
    }

    pub(super) fn back_mut(&mut self) -> &mut Back {
        &mut self.back
    }

    /// Uses portable instructions only.
    pub(super) fn make_portable(&mut self) {
        self.machine = Machine::Any;
        self.back.make_portable();
    }

    /// Cells and entries of the packed table at the end.
    pub(super) fn packed(&self) -> u64 {
        self.back.packed()
    }

    fn blocks(&self) -> &[Block] {
        self.words.as_slice().as_chunks::<8>().0
    }

    #[inline]
    fn block(&self, number: u64) -> &Block {
        self.words.line(number as usize)
    }

    pub(super) fn prefetch_place(&self, place: Place) {
        prefetch(self.words.as_slice(), place.block as usize * 8);
    }

    /// Where an identity belongs.
    pub(super) fn place_of(&self, identity: u64) -> Place {
        self.cut.place_of(identity)
    }

    /// The identity of a place in the back table. Locations are spread, so that the locations of
    /// one block go to different blocks there; the identities of one location stay neighbours.
    fn back_identity(&self, place: Place) -> u64 {
        let location = self.cut.location(place);
        let spread = self.spread.apply(location, self.params.all_locations());
        spread << self.params.fingerprint() | u64::from(place.print)
    }

    /// Not inlined, so that the common case saves no registers for it.
    #[inline(never)]
    fn back_contains(&self, place: Place) -> bool {
        self.back.contains(self.back_identity(place))
    }

    /// Inserts a key that its block has refused, because the block is full or the location is in
    /// the back table. Not inlined, so that the common case saves no registers for it.
    #[inline(never)]
    fn insert_elsewhere(&mut self, place: Place, refused: Inserted) -> Result<bool, Full> {
        let (mut place, mut inserted) = (place, refused);
        loop {
            match inserted {
                Inserted::Here(new) => return Ok(new),
                Inserted::Elsewhere => {
                    if self.back.packed() < self.grow_above {
                        return self.back.insert(self.back_identity(place));
                    }
                    let identity = self.cut.identity(place);
                    if self.grow_or_wait() {
                        place = self.cut.place_of(identity);
                    }
                }
                Inserted::Full => self.make_room(place)?,
            }
            inserted = self.insert_into_block(place);
        }
    }

    #[inline]
    fn insert_into_block(&mut self, place: Place) -> Inserted {
        let block = self.words.line_mut(place.block as usize);
        self.machine.insert(block, &self.cut.shape, place.location, place.print)
    }

    /// Makes room in a full block for one more cell by lowering its threshold: its highest
    /// location moves to the back table, as a whole, or not at all if there is no memory. If the
    /// new cell has a higher location still, only the threshold falls.
    fn make_room(&mut self, place: Place) -> Result<(), Full> {
        let (number, shape) = (place.block, self.cut.shape);
        let block = *self.block(number);
        let highest = block::highest(&block, &shape);
        let Some(location) = highest.filter(|&highest| highest >= place.location) else {
            block::set_threshold(self.words.line_mut(number as usize), &shape, place.location);
            return Ok(());
        };
        for (moved, (_, print)) in block::chain(&block, &shape, location).enumerate() {
            let identity = self.back_identity(Place { block: number, location, print });
            if let Err(full) = self.back.insert(identity) {
                for (_, print) in block::chain(&block, &shape, location).take(moved) {
                    let identity = self.back_identity(Place { block: number, location, print });
                    let _ = self.back.remove(identity);
                }
                return Err(full);
            }
        }
        self.machine.lower(self.words.line_mut(number as usize), &shape);
        Ok(())
    }

    /// What is left to do after a removal from a block.
    #[inline]
    fn settle(&mut self, place: Place, removed: Removed) -> Result<(), Absent> {
        match removed {
            Removed::Here { spilled } => {
                if spilled {
                    self.take_back(place.block);
                }
            }
            Removed::Nowhere => return Err(Absent),
            Removed::Elsewhere => return self.remove_elsewhere(place),
        }
        Ok(())
    }

    #[inline(never)]
    fn remove_elsewhere(&mut self, place: Place) -> Result<(), Absent> {
        self.back.remove(self.back_identity(place))?;
        self.take_back(place.block);
        Ok(())
    }

    /// Brings locations of a block back, from the threshold on, as far as there is room. So the
    /// threshold depends on what is in, and not on the history.
    #[inline(never)]
    fn take_back(&mut self, number: u64) {
        let shape = self.cut.shape;
        loop {
            let index = Index::of(self.block(number), &shape);
            let location = index.threshold;
            if location >= shape.locations {
                return;
            }
            let elsewhere = self.elsewhere(number, location);
            let free = shape.cells.saturating_sub(index.len()) as usize;
            let mut coming = [0; 64];
            let Some(count) = self.back.remove_all(elsewhere, &mut coming[..free.min(64)]) else {
                return;
            };
            block::set_threshold(self.words.line_mut(number as usize), &shape, location + 1);
            for &print in &coming[..count] {
                self.insert_into_block(Place { block: number, location, print });
            }
        }
    }

    /// The identities of a location in the back table.
    fn elsewhere(&self, block: u64, location: u32) -> Range<u64> {
        let first = self.back_identity(Place { block, location, print: 0 });
        first..first + (1 << self.params.fingerprint())
    }

    /// The sum of the counts of all identities in a range, which must have one location.
    pub(super) fn count_between(&self, range: Range<u64>) -> u64 {
        let place = self.cut.place_of(range.start);
        if self.lives_in_back(place) {
            return self.back.count_between(self.range_in_back(place, &range));
        }
        self.prints_between(place, &range).count() as u64
    }

    /// Removes all identities of a range, which must have one location, if they fit into `gone`.
    /// Writes them there, less the first of the range, and returns how many.
    pub(super) fn remove_all(&mut self, range: Range<u64>, gone: &mut [u32]) -> Option<usize> {
        let place = self.cut.place_of(range.start);
        if self.lives_in_back(place) {
            let count = self.back.remove_all(self.range_in_back(place, &range), gone)?;
            self.take_back(place.block);
            return Some(count);
        }
        let mut count = 0;
        for print in self.prints_between(place, &range) {
            *gone.get_mut(count)? = print - place.print;
            count += 1;
        }
        for &above in &gone[..count] {
            let _ = self.remove(Place { print: place.print + above, ..place }, None);
        }
        Some(count)
    }

    /// The fingerprints of a block that are in a range of identities, which begins at this place.
    fn prints_between(&self, place: Place, range: &Range<u64>) -> impl Iterator<Item = u32> {
        let prints = u64::from(place.print)..u64::from(place.print) + (range.end - range.start);
        block::chain(self.block(place.block), &self.cut.shape, place.location)
            .map(|(_, print)| print)
            .filter(move |&print| prints.contains(&print.into()))
    }

    /// The identities, in the back table, of a range of identities that begins at this place.
    fn range_in_back(&self, place: Place, range: &Range<u64>) -> Range<u64> {
        let start = self.back_identity(place);
        start..start + (range.end - range.start)
    }

    fn lives_in_back(&self, place: Place) -> bool {
        place.location >= block::threshold(self.block(place.block))
    }

    fn back_entry(&self, place: Place, count: u64) -> Entry {
        Entry { identity: self.back_identity(place), value: 0, count }
    }

    /// Grows to twice the blocks. Returns false if there are too few keys for these, no memory, or
    /// no such layout; then the back table grows instead.
    fn grow_or_wait(&mut self) -> bool {
        let (used, room) = (self.used(), self.params.room());
        if used < room {
            // If few keys fill the back table, an adversary chose them, the blocks were planned
            // so, or keys come block by block: more blocks would not help yet. Looking at all
            // blocks takes long, so this waits for a share of the keys that are missing.
            self.grow_above = self.back.packed() + ((room - used) / 8).max(16);
            return false;
        }
        let grown = self.params.grown().ok().and_then(|params| self.rebuilt(params, 0).ok());
        if let Some(table) = grown {
            *self = table;
            return true;
        }
        // Do not try again for every key.
        self.grow_above = self.grow_above.saturating_mul(2).max(1);
        false
    }

    /// The same content under params whose universe is 2^`dropped` times smaller.
    pub(super) fn rebuilt(&self, params: BlockedRankParams, dropped: u32) -> Result<Self, Full> {
        let full = Full { keys: self.used(), inserted: 0 };
        let mut table = Self::new(params).map_err(|_| full)?;
        // A portable table stays portable. The machine is not copied: that of the common shape
        // does not fit another width.
        if let Machine::Any = self.machine {
            table.make_portable();
        }
        let mut entries = Vec::new();
        self.for_each_entry(&mut |entry| {
            entries.push(Entry { identity: entry.identity >> dropped, ..entry });
        });
        merged(&mut entries, false);
        table.lay_out(entries)?;
        table.back.settle(0);
        Ok(table)
    }

    /// Lays entries, which must be in order, out in an empty table. Nothing grows, so that a table
    /// that is read has the layout that was written.
    pub(super) fn lay_out(&mut self, mut entries: Vec<Entry>) -> Result<(), Full> {
        let cut = self.cut;
        let width = self.params.fingerprint();
        // Entries for the back table are kept at the front of the list: a second list might not
        // fit into memory.
        let (mut behind, mut start) = (0, 0);
        while let Some(first) = entries.get(start) {
            let (location, place) = (first.identity >> width, cut.place_of(first.identity));
            let rest = entries[start..].iter();
            let end = start + rest.take_while(|entry| entry.identity >> width == location).count();
            let index = Index::of(self.block(place.block), &cut.shape);
            let free = u64::from(cut.shape.cells.saturating_sub(index.len()));
            let copies = entries[start..end].iter().map(|entry| entry.count);
            if place.location >= index.threshold || copies.fold(0, u64::saturating_add) > free {
                // The first location that does not fit is the threshold: higher ones go to the
                // back table too.
                let block = self.words.line_mut(place.block as usize);
                block::set_threshold(block, &cut.shape, place.location.min(index.threshold));
                entries.copy_within(start..end, behind);
                behind += end - start;
            } else {
                for entry in &entries[start..end] {
                    let print = (entry.identity & ((1 << width) - 1)) as u32;
                    for _ in 0..entry.count {
                        self.insert_into_block(Place { print, ..place });
                    }
                }
            }
            start = end;
        }
        entries.truncate(behind);
        self.fill_back(entries)
    }

    /// Adds all entries of another table, whose identities lose their lowest `dropped` bits.
    pub(super) fn add_all(&mut self, other: &Self, dropped: u32) -> Result<(), Full> {
        let mut result = Ok(());
        other.for_each_entry(&mut |entry| {
            if result.is_ok() {
                result = self.add(Entry { identity: entry.identity >> dropped, ..entry });
            }
        });
        result
    }

    /// The entries of the back table, with the identities of this table, in order.
    pub(super) fn back_entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.back.for_each_entry(&mut |entry| {
            if let Some(identity) = self.identity_of(entry.identity) {
                entries.push(Entry { identity, ..entry });
            }
        });
        entries.sort_unstable_by_key(Entry::key);
        entries
    }

    /// The identity, in this table, of an identity of the back table. `None` if there is none,
    /// which happens only in unchecked bytes.
    fn identity_of(&self, behind: u64) -> Option<u64> {
        let (width, all) = (self.params.fingerprint(), self.params.all_locations());
        let spread = Some(behind >> width).filter(|&spread| spread < all)?;
        Some(self.gather.apply(spread, all) << width | behind & ((1 << width) - 1))
    }

    /// Lays out the back table of a table that was made from its blocks; the entries have the
    /// identities of this table.
    pub(super) fn fill_back(&mut self, mut entries: Vec<Entry>) -> Result<(), Full> {
        for entry in &mut entries {
            entry.identity = self.back_identity(self.cut.place_of(entry.identity));
        }
        entries.sort_unstable_by_key(Entry::key);
        self.back.lay_out(entries)
    }
}

#[inline]
fn blocks_mut(words: &mut Words) -> &mut [Block] {
    words.as_mut_slice().as_chunks_mut::<8>().0
}

const _: () = assert!(Line::WORDS == 8, "a block is a line");
