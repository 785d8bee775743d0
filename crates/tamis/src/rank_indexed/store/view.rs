//! One bucket with its extensions, seen as cells in a row.

use alloc::vec::Vec;
use core::borrow::{Borrow, BorrowMut};

use super::super::bucket::Cell;
use super::super::chains::Linked;
use super::{LEVELS, Record, Store};
use crate::bits::field;

/// Buckets of up to this many cells are read in one pass: more than a plan gives any.
const MOST_LINKED: usize = 128;

/// A bucket of a store, to read or to write.
#[derive(Clone, Copy)]
pub(in super::super) struct View<S> {
    pub(super) store: S,
    pub(super) number: u64,
}

impl<S: Borrow<Store>> View<S> {
    /// The record that has a cell, and the number of the cell there.
    #[inline]
    fn locate(&self, cell: u32) -> Option<(Record, u64)> {
        let store = self.store.borrow();
        let mut record = store.record(0, self.number);
        let mut cell = cell;
        loop {
            let here = store.shape.cells[record.level];
            if cell < here {
                return Some((record, cell.into()));
            }
            cell -= here;
            record = store.extension(self.number, &record)?;
        }
    }

    /// The records of the bucket.
    fn records(&self) -> impl Iterator<Item = Record> {
        let store = self.store.borrow();
        core::iter::successors(Some(store.record(0, self.number)), |record| {
            store.extension(self.number, record)
        })
    }

    /// Cells in use: the set bits of I0 and IH.
    pub(in super::super) fn len(&self) -> u32 {
        self.len_and_room().0
    }

    /// Cells in use, and cells that the records of the bucket have room for.
    fn len_and_room(&self) -> (u32, u32) {
        let store = self.store.borrow();
        self.records().fold((self.base().count_ones(), 0), |(len, room), record| {
            let cells = store.shape.cells[record.level];
            (len + field::ones(store.words(), record.index, cells.into()), room + cells)
        })
    }

    /// Calls `take` with the location and the content of every cell, in order of location and
    /// chain. Whether a chain goes on, which cannot be predicted, decides no branch.
    #[inline]
    pub(in super::super) fn for_each_cell(&self, mut take: impl FnMut(u32, Cell)) {
        let base = self.base();
        let mut next = [0_u8; MOST_LINKED];
        let Some(cells) = self.link(base, &mut next) else {
            let view = View { store: self.store.borrow(), number: self.number };
            for location in (0..64).filter(|location| base >> location & 1 == 1) {
                view.chain(location).for_each(|(_, cell)| take(location, cell));
            }
            return;
        };
        let (mut left, mut chain, mut at) = (base, 0, 0);
        for _ in 0..cells {
            take(left.trailing_zeros(), self.cell(at));
            let next = u32::from(next[at as usize % MOST_LINKED]);
            let ends = u32::from(next == 0);
            left &= left.wrapping_sub(ends.into());
            chain += ends;
            at = if next == 0 { chain } else { next };
        }
    }

    /// Writes the number of the next cell of its chain, or 0, for every cell. Returns how many
    /// cells there are; `None` if there are too many.
    #[inline]
    fn link(&self, base: u64, next: &mut [u8; MOST_LINKED]) -> Option<u32> {
        let store = self.store.borrow();
        // Every set bit of the index owns a cell; those of the bits read so far.
        let (mut cell, mut owned) = (0, base.count_ones());
        for record in self.records() {
            let (start, room) = (cell, store.shape.cells[record.level]);
            let mut index = 0;
            while cell < owned.min(start + room) {
                let within = cell - start;
                if within.is_multiple_of(64) {
                    let at = record.index + u64::from(within);
                    index = field::get(store.words(), at, (room - within).min(64));
                }
                let goes_on = index as u32 & 1;
                *next.get_mut(cell as usize)? = (owned * goes_on) as u8;
                owned += goes_on;
                index >>= 1;
                cell += 1;
            }
            if cell == owned {
                break;
            }
        }
        Some(cell)
    }

    /// The invariants of one bucket: as many records as the cells need, every owner before its
    /// cell, and zeros behind the last cell.
    pub(super) fn is_sound(&self) -> bool {
        let store = self.store.borrow();
        let used = self.len();
        let mut before = 0;
        let mut owners = self.base().count_ones();
        for record in self.records() {
            let cells = store.shape.cells[record.level];
            if record.level > 0 && used <= before {
                return false;
            }
            let words = store.words();
            for cell in 0..u64::from(cells) {
                let in_use = before + (cell as u32) < used;
                let goes_on = field::get(words, record.index + cell, 1) == 1;
                let print = record.prints + cell * u64::from(store.shape.print);
                let extra = record.extras + cell * u64::from(store.shape.extra);
                let empty = field::get(words, print, store.shape.print) == 0
                    && field::get(words, extra, store.shape.extra) == 0
                    && !goes_on;
                if !in_use && !empty {
                    return false;
                }
                if in_use && before + cell as u32 >= owners {
                    return false;
                }
                owners += u32::from(goes_on);
            }
            before += cells;
        }
        used <= before
    }

    /// The spans of memory that a question for these cells reads, as (first bit, bits): the index
    /// up to the last cell, and the cells.
    pub(in super::super) fn spans(&self, cells: &[u32]) -> Vec<(u64, u64)> {
        let store = self.store.borrow();
        let start = self.number * store.shape.record[0];
        let mut spans = alloc::vec![(start, u64::from(store.shape.locations))];
        for &cell in cells {
            let Some((record, within)) = self.locate(cell) else { continue };
            let print = record.prints + within * u64::from(store.shape.print);
            spans.push((record.index, within + 1));
            spans.push((print, store.shape.print.into()));
        }
        spans
    }

    /// The records of the bucket as spans, as in [`spans`](Self::spans): what an insertion may
    /// move.
    pub(in super::super) fn record_spans(&self) -> Vec<(u64, u64)> {
        let store = self.store.borrow();
        let span = |record: Record| {
            let lead = if record.level == 0 { u64::from(store.shape.locations) } else { 1 };
            (record.index - lead, store.shape.record[record.level])
        };
        self.records().map(span).collect()
    }
}

impl<S: BorrowMut<Store>> View<S> {
    /// Makes room for one more cell, with another extension if necessary. Returns false, and
    /// changes nothing, if there is none.
    pub(in super::super) fn make_room(&mut self) -> bool {
        let (len, room) = self.len_and_room();
        len < room || self.extend()
    }

    /// Fills an empty bucket: I0, and the cells in the order of their numbers. There must be room
    /// for them.
    pub(in super::super) fn fill(&mut self, base: u64, cells: &[Linked]) {
        self.set_base(base);
        let mut left = cells;
        let mut next = Some(self.store.borrow().record(0, self.number));
        while let Some(record) = next.filter(|_| !left.is_empty()) {
            let store = self.store.borrow_mut();
            let room = store.shape.cells[record.level] as usize;
            let (print, extra) = (store.shape.print, store.shape.extra);
            let (here, rest) = left.split_at(room.min(left.len()));
            let words = store.words_mut();
            for (cells, at) in here.chunks(64).zip((record.index..).step_by(64)) {
                let goes_on = |bits: u64, one: &Linked| bits << 1 | u64::from(one.1);
                field::put(words, at, cells.len() as u32, cells.iter().rev().fold(0, goes_on));
            }
            for (one, at) in here.iter().zip((record.prints..).step_by(print as usize)) {
                field::put(words, at, print, one.0.print);
            }
            if extra > 0 {
                for (one, at) in here.iter().zip((record.extras..).step_by(extra as usize)) {
                    field::put(words, at, extra, one.0.extra);
                }
            }
            left = rest;
            next = store.extension(self.number, &record);
        }
    }

    /// Borrows extensions until an empty bucket has room for `cells` cells, or no extension is
    /// left; returns the room.
    pub(in super::super) fn reserve(&mut self, cells: u32) -> u32 {
        loop {
            let (_, room) = self.len_and_room();
            if room >= cells || !self.extend() {
                return room;
            }
        }
    }

    /// Borrows another extension. Returns false, and changes nothing, if there is none.
    fn extend(&mut self) -> bool {
        let bucket = self.number;
        let Some(last) = self.records().last() else { return false };
        let level = last.level + 1;
        if level == LEVELS {
            return false;
        }
        let store = self.store.borrow_mut();
        let Some(number) = store.free_extension(bucket, level) else { return false };
        let used = store.used_bit(level, store.pool_start(bucket, level) + number);
        field::put(store.words_mut(), used, 1, 1);
        let width = store.shape.pointer[last.level];
        let words = store.words_mut();
        field::put(words, last.flag, 1, 1);
        field::put(words, last.flag + 1, width, number);
        true
    }

    /// Gives back the last extension if the cells fit without it.
    pub(in super::super) fn release_room(&mut self) {
        let Some(last) = self.records().last().filter(|last| last.level > 0) else { return };
        let store = self.store.borrow();
        let (len, room) = self.len_and_room();
        if len + store.shape.cells[last.level] > room {
            return;
        }
        let Some(owner) = self.records().nth(last.level - 1) else { return };
        let store = self.store.borrow_mut();
        let (start, len) = (last.index - 1, store.shape.record[last.level]);
        field::clear(store.words_mut(), start, len);
        let width = store.shape.pointer[owner.level];
        field::clear(store.words_mut(), owner.flag, 1 + u64::from(width));
    }
}

/// What a bucket is made of, to read.
impl<S: Borrow<Store>> View<S> {
    /// I0.
    #[inline]
    pub(in super::super) fn base(&self) -> u64 {
        let store = self.store.borrow();
        let at = self.number * store.shape.record[0];
        field::get(store.words(), at, store.shape.locations)
    }

    /// IH at a cell that is in use: whether its chain goes on after it.
    #[inline]
    pub(in super::super) fn goes_on(&self, cell: u32) -> bool {
        let store = self.store.borrow();
        if cell < store.shape.cells[0] {
            let at = store.record(0, self.number).index + u64::from(cell);
            return store.words()[(at / 64) as usize] >> (at % 64) & 1 == 1;
        }
        self.locate(cell)
            .is_some_and(|(record, cell)| field::get(store.words(), record.index + cell, 1) == 1)
    }

    /// How many of the cells before this one have chains that go on after them.
    #[inline]
    pub(in super::super) fn go_on_below(&self, cell: u32) -> u32 {
        let store = self.store.borrow();
        if cell <= store.shape.cells[0] {
            return field::ones(store.words(), store.record(0, self.number).index, cell.into());
        }
        let mut left = u64::from(cell);
        let mut count = 0;
        for record in self.records() {
            let here = left.min(store.shape.cells[record.level].into());
            count += field::ones(store.words(), record.index, here);
            left -= here;
            if left == 0 {
                break;
            }
        }
        count
    }

    /// A cell that is in use.
    #[inline]
    pub(in super::super) fn cell(&self, cell: u32) -> Cell {
        let store = self.store.borrow();
        let (record, cell) = if cell < store.shape.cells[0] {
            (store.record(0, self.number), cell.into())
        } else if let Some(located) = self.locate(cell) {
            located
        } else {
            return Cell { print: 0, extra: 0 };
        };
        let (print, extra) = (store.shape.print, store.shape.extra);
        let words = store.words();
        Cell {
            print: field::get(words, record.prints + cell * u64::from(print), print),
            extra: field::get(words, record.extras + cell * u64::from(extra), extra),
        }
    }
}

/// The same, to write.
impl<S: BorrowMut<Store>> View<S> {
    /// Writes I0.
    pub(in super::super) fn set_base(&mut self, base: u64) {
        let number = self.number;
        let store = self.store.borrow_mut();
        let at = number * store.shape.record[0];
        let locations = store.shape.locations;
        field::put(store.words_mut(), at, locations, base);
    }

    /// Writes IH at a cell that is in use.
    pub(in super::super) fn set_goes_on(&mut self, cell: u32, goes_on: bool) {
        let Some((record, cell)) = self.locate(cell) else { return };
        let words = self.store.borrow_mut().words_mut();
        field::put(words, record.index + cell, 1, goes_on.into());
    }

    /// Writes a cell that is in use.
    pub(in super::super) fn set_cell(&mut self, cell: u32, content: Cell) {
        let Some((record, cell)) = self.locate(cell) else { return };
        let store = self.store.borrow_mut();
        let (print, extra) = (store.shape.print, store.shape.extra);
        let words = store.words_mut();
        field::put(words, record.prints + cell * u64::from(print), print, content.print);
        field::put(words, record.extras + cell * u64::from(extra), extra, content.extra);
    }

    /// Moves this cell and all behind it up by one, and puts `content` there, at the end of its
    /// chain. There must be room.
    pub(in super::super) fn open(&mut self, cell: u32, content: Cell) {
        // A cell that is pushed out at the end of a record goes to the front of the next.
        let Some((first, mut within)) = self.locate(cell) else { return };
        let mut pushed = [0, content.print, content.extra];
        let mut next = Some(first);
        while let Some(record) = next {
            let store = self.store.borrow_mut();
            let parts = store.parts(&record, within);
            let words = store.words_mut();
            for ((at, end, width), pushed) in parts.into_iter().zip(&mut pushed) {
                *pushed = field::open(words, at, end, width, *pushed);
            }
            next = self.store.borrow().extension(self.number, &record);
            within = 0;
        }
    }

    /// Moves all cells behind this one, which is at the end of its chain, down by one.
    pub(in super::super) fn close(&mut self, cell: u32) {
        // From the last record down: the cell that leaves the front of a record fills the end of
        // the one before.
        let Some((first, within)) = self.locate(cell) else { return };
        let deepest = self.records().last().map_or(0, |record| record.level);
        let mut filling = [0; 3];
        for level in (first.level..=deepest).rev() {
            let Some(record) = self.records().nth(level) else { return };
            let store = self.store.borrow_mut();
            let parts = store.parts(&record, if level == first.level { within } else { 0 });
            let words = store.words_mut();
            for ((at, end, width), filling) in parts.into_iter().zip(&mut filling) {
                *filling = field::close(words, at, end, width, *filling);
            }
        }
    }
}
