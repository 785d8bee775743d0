//! The table: a multiset of identities in d subtables, which never loses one.

mod kind;

use alloc::vec::Vec;

use super::bucket::{Buckets, Cell, max_count};
use super::choices::{Choice, Choices};
use super::params::DLeftParams;
use crate::bits::Line;
use crate::entry::{Entry, Overflow, order};
use crate::identities::Table as _;
use crate::spec::Full;

/// How many cells may move for one insertion, from one bucket to the next. The paper tried one
/// move and suggested more. With two the overflow stays empty up to 7.9 of 8 cells. (Three would
/// have to remember their path, because they may come back to where they started.)
const MOVES: u32 = 2;
/// With more entries than this in the overflow all buckets are full, and a second move would only
/// take time.
const FEW_OVERFLOWN: usize = 8;

/// A cell of a bucket of the table.
#[derive(Clone, Copy, Debug)]
struct Slot {
    bucket: u64,
    cell: u32,
}

/// A table of identities.
#[derive(Clone, Debug)]
pub struct Table {
    params: DLeftParams,
    choices: Choices,
    buckets: Buckets,
    /// Used cells.
    used: u64,
    /// Entries that found no cell, and the further copies of those whose cell counts no further.
    overflow: Overflow,
    /// The table grows when it holds more than this: all its cells, or more if growing has failed
    /// before.
    grow_above: u64,
}

impl Table {
    /// Inserts `entry.count` copies; true if the identity was not in before.
    fn insert_entry(&mut self, entry: Entry) -> Result<bool, Full> {
        let new = !self.contains(entry.identity);
        if self.used + self.overflow.len() as u64 >= self.grow_above
            && (new || !self.has_value(entry.identity, entry.value))
        {
            self.grow_or_wait();
        }
        self.put(entry, new)?;
        Ok(new)
    }

    /// Adds all entries to `entries`, in order of identity and value.
    fn list(&self, entries: &mut Vec<Entry>) {
        let from = entries.len();
        for bucket in 0..self.params.all_buckets() {
            entries.extend(self.cells(bucket).map(|Cell { remainder, count, value }| Entry {
                identity: self.identity(bucket, remainder),
                value,
                count,
            }));
        }
        entries.extend_from_slice(self.overflow.entries());
        order::put_in_order(entries, from, false);
    }

    pub(super) fn overflown(&self) -> &Overflow {
        &self.overflow
    }

    /// The choice of an identity in a subtable, its bucket numbered among those of all subtables.
    #[inline]
    fn choice(&self, subtable: u32, identity: u64) -> Choice {
        let choice = self.choices.choice(subtable, identity);
        Choice { bucket: u64::from(subtable) * self.params.buckets() + choice.bucket, ..choice }
    }

    /// The choices of an identity, from left to right.
    #[inline]
    fn choices(&self, identity: u64) -> impl Iterator<Item = Choice> + use<'_> {
        (0..self.params.subtables()).map(move |subtable| self.choice(subtable, identity))
    }

    /// The identity of a cell.
    fn identity(&self, bucket: u64, remainder: u64) -> u64 {
        let (subtable, bucket) = (bucket / self.params.buckets(), bucket % self.params.buckets());
        self.choices.identity(subtable as u32, Choice { bucket, remainder })
    }

    /// The cells of an identity: one for each of its values.
    fn cells_of(&self, identity: u64) -> impl Iterator<Item = (Slot, Cell)> + use<'_> {
        let holds = |choice: &Choice| self.buckets.has(choice.bucket, choice.remainder);
        self.choices(identity).filter(holds).flat_map(|Choice { bucket, remainder }| {
            let found = self.buckets.find(bucket, remainder);
            found.map(move |(cell, content)| (Slot { bucket, cell }, content))
        })
    }

    /// The cell of an identity with this value.
    fn cell_of(&self, identity: u64, value: u64) -> Option<(Slot, Cell)> {
        self.cells_of(identity).find(|(_, content)| content.value == value)
    }

    /// Whether an identity is in with this value, so that another copy needs no cell of its own.
    fn has_value(&self, identity: u64, value: u64) -> bool {
        self.cell_of(identity, value).is_some()
            || self.overflow.of(identity).iter().any(|entry| entry.value == value)
    }

    /// Whether an identity that is new to the table would find a cell without a move.
    pub(super) fn has_room(&self, identity: u64) -> bool {
        self.choices(identity).any(|choice| self.buckets.load(choice.bucket) < self.params.cells())
    }

    /// Puts `entry.count` copies into a cell, as far as it counts, and the rest into the overflow.
    /// `new` says that the identity is not in.
    fn put(&mut self, entry: Entry, new: bool) -> Result<(), Full> {
        let Entry { identity, value, count } = entry;
        let mut left = count;
        if new {
            left -= self.place(entry);
        } else if let Some((slot, content)) = self.cell_of(identity, value) {
            let here = left.min(max_count(content.remainder) - content.count);
            let content = Cell { count: content.count + here, ..content };
            self.buckets.set_cell(slot.bucket, slot.cell, content);
            left -= here;
        } else if !self.has_value(identity, value) {
            left -= self.place(entry);
        }
        if left > 0 && !self.overflow.add(identity, value, left) {
            return Err(self.full());
        }
        Ok(())
    }

    /// Places an entry that is not in the table in its least loaded bucket, the leftmost of
    /// several. If all are full, it takes the first, after a cell has moved out of that. Returns
    /// how many copies the cell took: 0 if no cell was found.
    fn place(&mut self, entry: Entry) -> u64 {
        let mut least: Option<(u32, Choice)> = None;
        for subtable in 0..self.params.subtables() {
            let choice = self.choice(subtable, entry.identity);
            let load = self.buckets.load(choice.bucket);
            if least.is_none_or(|(lowest, _)| load < lowest) {
                least = Some((load, choice));
            }
        }
        let Some((load, mut choice)) = least else { return 0 };
        let mut cell = load;
        if load == self.params.cells() {
            choice = self.choice(0, entry.identity);
            let moves = if self.overflow.len() > FEW_OVERFLOWN { 1 } else { MOVES };
            let Some(freed) = self.make_room(0, choice.bucket, moves) else { return 0 };
            cell = freed;
        }
        let here = entry.count.min(max_count(choice.remainder));
        let content = Cell { remainder: choice.remainder, count: here, value: entry.value };
        self.buckets.set_cell(choice.bucket, cell, content);
        self.used += 1;
        here
    }

    /// Moves a cell out of a full bucket of this subtable into another of its choices. If all of
    /// these are full too and more than one move is left, a cell moves out of one of these first.
    /// Returns the cell that is free then.
    fn make_room(&mut self, subtable: u32, bucket: u64, moves: u32) -> Option<u32> {
        for moves in 1..=moves {
            for cell in 0..self.params.cells() {
                let content = self.buckets.cell(bucket, cell)?;
                let identity = self.identity(bucket, content.remainder);
                for other in (0..self.params.subtables()).filter(|&other| other != subtable) {
                    let to = self.choice(other, identity);
                    if content.count > max_count(to.remainder) {
                        continue;
                    }
                    let load = self.buckets.load(to.bucket);
                    let place = match (load < self.params.cells(), moves) {
                        (true, _) => Some(load),
                        (false, 1) => None,
                        // A cell that leaves goes to a bucket with room, so it cannot come back to
                        // this one.
                        (false, moves) => self.make_room(other, to.bucket, moves - 1),
                    };
                    if let Some(place) = place {
                        let content = Cell { remainder: to.remainder, ..content };
                        self.buckets.set_cell(to.bucket, place, content);
                        return Some(cell);
                    }
                }
            }
        }
        None
    }

    fn count_down(&mut self, slot: Slot, content: Cell) {
        if content.count > 1 {
            let content = Cell { count: content.count - 1, ..content };
            self.buckets.set_cell(slot.bucket, slot.cell, content);
            return;
        }
        self.buckets.free_cell(slot.bucket, slot.cell);
        self.used -= 1;
        self.take_back();
    }

    /// Tries to find a cell for one entry of the overflow, now that a cell is free. Each call
    /// tries another entry, so that the overflow empties as the table does.
    fn take_back(&mut self) {
        let entries = self.overflow.entries();
        let turn = self.used.checked_rem(entries.len() as u64);
        let Some(&entry) = turn.and_then(|turn| entries.get(turn as usize)) else { return };
        if self.cell_of(entry.identity, entry.value).is_some() {
            return; // Further copies of a cell that counts no further.
        }
        let placed = self.place(entry);
        if placed > 0 {
            self.overflow.take_up_to(entry.identity, entry.value, placed);
        }
    }

    /// Grows to twice the buckets. If there is no memory, or no such layout, the overflow takes
    /// what finds no cell.
    fn grow_or_wait(&mut self) {
        let grown = self.params.grown().ok().and_then(|params| self.resized(params).ok());
        match grown {
            Some(table) => *self = table,
            // Do not try again for every key.
            None => self.grow_above = self.grow_above.saturating_mul(2).max(1),
        }
    }

    /// The content under params whose universe is 2^`dropped` times smaller.
    pub(super) fn coarser(&self, params: DLeftParams, dropped: u32) -> Result<Self, Full> {
        let full = self.full();
        let mut table = Self::new(params).map_err(|_| full)?;
        table.add_all(self.entries(), dropped)?;
        Ok(table)
    }

    /// The same identities under params of the same universe. What was in a subtable stays in it,
    /// as far as there is room.
    pub(super) fn resized(&self, params: DLeftParams) -> Result<Self, Full> {
        let full = self.full();
        let mut table = Self::new(params).map_err(|_| full)?;
        let mut left = Vec::new();
        for bucket in 0..self.params.all_buckets() {
            let subtable = (bucket / self.params.buckets()) as u32;
            for content in self.cells(bucket) {
                let identity = self.identity(bucket, content.remainder);
                let to = table.choice(subtable, identity);
                let moved = Cell { remainder: to.remainder, ..content };
                if content.count > max_count(to.remainder) || !table.append(to.bucket, moved) {
                    left.try_reserve(1).map_err(|_| full)?;
                    left.push(Entry { identity, value: content.value, count: content.count });
                }
            }
        }
        left.try_reserve(self.overflow.len()).map_err(|_| full)?;
        left.extend_from_slice(self.overflow.entries());
        // In order, so that what finds no cell is appended to the overflow.
        left.sort_unstable_by_key(Entry::key);
        table.add_all(left.into_iter(), 0)?;
        Ok(table)
    }

    /// Adds entries, whose identities lose their lowest `dropped` bits. They may be in order: the
    /// choices of neighbours are far apart.
    pub(super) fn add_all(
        &mut self,
        mut entries: impl Iterator<Item = Entry>,
        dropped: u32,
    ) -> Result<(), Full> {
        let shorter = |entry: Entry| Entry { identity: entry.identity >> dropped, ..entry };
        entries.try_for_each(|entry| self.put(shorter(entry), false))
    }

    /// What one bucket holds.
    pub(super) fn cells(&self, bucket: u64) -> impl Iterator<Item = Cell> + use<'_> {
        (0..self.params.cells()).map_while(move |cell| self.buckets.cell(bucket, cell))
    }

    /// Appends a cell to a bucket; false if it is full.
    pub(super) fn append(&mut self, bucket: u64, content: Cell) -> bool {
        let load = self.buckets.load(bucket);
        if load == self.params.cells() {
            return false;
        }
        self.buckets.set_cell(bucket, load, content);
        self.used += 1;
        true
    }

    fn lines(&self, identity: u64, buckets: usize) -> u32 {
        let choices = self.choices(identity).take(buckets);
        Line::distinct(choices.flat_map(|choice| self.buckets.lines(choice.bucket)))
    }
}
