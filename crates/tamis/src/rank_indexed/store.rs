//! Buckets in packed memory: records of the first level, and pools of extensions that buckets borrow.
//!
//! ```text
//! bucket      I0 (L) | IH (Z1) | fingerprints (Z1 r) | extras | flag | number of a level-2 extension
//! level 2     used | IH (Z2) | fingerprints (Z2 r) | extras | flag | number of a level-3 extension
//! level 3     used | IH (Z3) | fingerprints (Z3 r) | extras
//! ```
//!
//! Cell c lies in the bucket if c < Z1, in its level-2 extension if c < Z1 + Z2, else in its level-3 extension. A bucket
//! has an extension exactly when it needs it. Whatever is not in use is zero.

use core::borrow::{Borrow, BorrowMut};

use super::bucket::{Bucket, BucketMut, Cell};
use super::model::{Layout, pointer_bits};
use crate::bits::field;
use crate::bits::{Line, Words};

/// The levels of a bucket. Frozen.
const LEVELS: usize = 3;

/// All memory of a table but its spill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Store {
    shape: Shape,
    /// The records of level 1, then those of level 2, then those of level 3, packed.
    words: Words,
}

/// Where things lie in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    locations: u32,
    print: u32,
    extra: u32,
    /// Cells of a record, by level.
    cells: [u32; LEVELS],
    /// Bits of a record, by level.
    record: [u64; LEVELS],
    /// The first bit of the records of a level.
    start: [u64; LEVELS],
    /// Bits of the number of the next level's extension.
    pointer: [u32; LEVELS],
    /// Extensions of a group, by level; of level 1 the group's buckets.
    extensions: [u64; LEVELS],
}

/// One record.
#[derive(Clone, Copy)]
struct Record {
    level: usize,
    /// Its first bit of IH.
    index: u64,
    /// Its first fingerprint.
    prints: u64,
    /// Its first counter or value.
    extras: u64,
    /// Whether it has an extension; the number of that follows.
    flag: u64,
}

impl Store {
    /// A store whose words are given, as many as the layout asks for. They may lie: then so do answers, and nothing else.
    pub(super) fn of_words(layout: &Layout, words: Words) -> Self {
        let record = [layout.bucket_bits(), layout.second_bits(), layout.third_bits()];
        let buckets = layout.buckets * record[0];
        let second = layout.groups * layout.second * record[1];
        let shape = Shape {
            locations: layout.locations,
            print: layout.fingerprint,
            extra: layout.extra,
            cells: [layout.level1, layout.level2, layout.level3],
            record,
            start: [0, buckets, buckets + second],
            pointer: [pointer_bits(layout.second) as u32, pointer_bits(layout.third) as u32, 0],
            extensions: [layout.group_buckets(), layout.second, layout.third],
        };
        Self { shape, words }
    }

    /// All memory.
    pub(super) fn as_words(&self) -> &Words {
        &self.words
    }

    /// Bits of heap memory held.
    pub(super) fn footprint(&self) -> u64 {
        self.words.footprint()
    }

    pub(super) fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
    }

    /// Starts fetching the index of a bucket.
    #[inline]
    pub(super) fn prefetch(&self, bucket: u64) {
        let at = bucket * self.shape.record[0];
        let words = self.words();
        crate::bits::prefetch(words, (at / 64) as usize);
        crate::bits::prefetch(words, ((at + Line::BITS) / 64) as usize);
    }

    #[inline]
    pub(super) fn bucket(&self, number: u64) -> View<&Self> {
        View { store: self, number }
    }

    #[inline]
    pub(super) fn bucket_mut(&mut self, number: u64) -> View<&mut Self> {
        View { store: self, number }
    }

    #[inline]
    fn record(&self, level: usize, number: u64) -> Record {
        let shape = &self.shape;
        let start = shape.start[level] + number * shape.record[level];
        let lead = if level == 0 { u64::from(shape.locations) } else { 1 };
        let cells = u64::from(shape.cells[level]);
        let index = start + lead;
        let prints = index + cells;
        let extras = prints + cells * u64::from(shape.print);
        Record { level, index, prints, extras, flag: extras + cells * u64::from(shape.extra) }
    }

    /// Index, fingerprints and extras of a record from one of its cells on: first bit, end, and bits of a cell.
    fn parts(&self, record: &Record, cell: u64) -> [(u64, u64, u32); 3] {
        let cells = u64::from(self.shape.cells[record.level]);
        let starts = [record.index, record.prints, record.extras];
        let widths = [1, self.shape.print, self.shape.extra];
        core::array::from_fn(|part| {
            let (start, width) = (starts[part], u64::from(widths[part]));
            (start + cell * width, start + cells * width, widths[part])
        })
    }

    #[inline]
    fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    #[inline]
    fn words_mut(&mut self) -> &mut [u64] {
        self.words.as_mut_slice()
    }

    /// The bit that says whether an extension is used, which is its first.
    fn used_bit(&self, level: usize, number: u64) -> u64 {
        self.shape.start[level] + number * self.shape.record[level]
    }

    /// The extension of a record of a bucket; `None` if it has none.
    fn extension(&self, bucket: u64, of: &Record) -> Option<Record> {
        let level = of.level + 1;
        if level == LEVELS || field::get(self.words(), of.flag, 1) == 0 {
            return None;
        }
        let number = field::get(self.words(), of.flag + 1, self.shape.pointer[of.level]);
        // (Only bytes that nobody has checked point beyond the last.)
        (number < self.shape.extensions[level])
            .then(|| self.record(level, self.pool_start(bucket, level) + number))
    }

    /// The first extension of a level that the group of this bucket has.
    fn pool_start(&self, bucket: u64, level: usize) -> u64 {
        bucket / self.shape.extensions[0] * self.shape.extensions[level]
    }

    /// The number in its group of an extension that nobody uses. Looking for it starts anywhere but always at the
    /// same place for a bucket, so that the search is short and the result does not depend on chance.
    fn free_extension(&self, bucket: u64, level: usize) -> Option<u64> {
        let extensions = self.shape.extensions[level];
        let start = self.pool_start(bucket, level);
        let words = self.words();
        let hint = crate::address::reduce(crate::Digest(bucket).word(level as u64), extensions);
        (hint..extensions)
            .chain(0..hint)
            .find(|number| field::get(words, self.used_bit(level, start + number), 1) == 0)
    }

    /// Every extension that is used belongs to one bucket, and what is not used is zero.
    pub(super) fn check_extensions(&self, buckets: u64) -> bool {
        let groups = buckets / self.shape.extensions[0];
        let pool = |level: usize| groups * self.shape.extensions[level];
        // A bit for each extension that has an owner; if there is no memory even for these, nothing can be said for it.
        let (Ok(second), Ok(third)) =
            (Words::zeroed(pool(1).div_ceil(64)), Words::zeroed(pool(2).div_ceil(64)))
        else {
            return false;
        };
        let mut owned = [second, third];
        for bucket in 0..buckets {
            if !self.bucket(bucket).is_sound() {
                return false;
            }
            let mut record = self.record(0, bucket);
            while let Some(extension) = self.extension(bucket, &record) {
                let level = extension.level;
                let number =
                    (extension.index - 1 - self.shape.start[level]) / self.shape.record[level];
                let owned = owned[level - 1].as_mut_slice();
                if field::get(owned, number, 1) == 1 {
                    return false;
                }
                field::put(owned, number, 1, 1);
                record = extension;
            }
            // An extension that is not there.
            if record.level + 1 < LEVELS && field::get(self.words(), record.flag, 1) == 1 {
                return false;
            }
        }
        let in_order = |level: usize, number: u64| {
            let at = self.used_bit(level, number);
            let is_used = field::get(self.words(), at, 1);
            is_used == field::get(owned[level - 1].as_slice(), number, 1)
                && (is_used == 1 || field::ones(self.words(), at, self.shape.record[level]) == 0)
        };
        (1..LEVELS).all(|level| (0..pool(level)).all(|number| in_order(level, number)))
            && self.ends_with_zeros(pool(LEVELS - 1))
    }

    /// Whether nothing is set behind the last of so many extensions.
    fn ends_with_zeros(&self, extensions: u64) -> bool {
        let (words, end) = (self.words(), self.used_bit(LEVELS - 1, extensions));
        field::get(words, end, (words.len() as u64 * 64 - end) as u32) == 0
    }
}

/// A bucket of a store, to read or to write.
#[derive(Clone, Copy)]
pub(super) struct View<S> {
    store: S,
    number: u64,
}

impl<S: Borrow<Store>> View<S> {
    /// The record in which a cell lies, and its number there.
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
    pub(super) fn len(&self) -> u32 {
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

    /// The invariants of one bucket: as many records as the cells need, every owner before its cell, and zeros
    /// behind the last cell.
    fn is_sound(&self) -> bool {
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

    /// Bits of memory that a question for these cells reads, as (first bit, bits): the index in front of the
    /// last cell, and the cells.
    pub(super) fn spans(&self, cells: &[u32]) -> alloc::vec::Vec<(u64, u64)> {
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

    /// The records of the bucket as spans, as in [`spans`](Self::spans): what an insertion may move.
    pub(super) fn record_spans(&self) -> alloc::vec::Vec<(u64, u64)> {
        let store = self.store.borrow();
        let span = |record: Record| {
            let lead = if record.level == 0 { u64::from(store.shape.locations) } else { 1 };
            (record.index - lead, store.shape.record[record.level])
        };
        self.records().map(span).collect()
    }
}

impl<S: BorrowMut<Store>> View<S> {
    /// Makes room for one more cell: borrows an extension if that is needed. False, and nothing changed, if there
    /// is none.
    pub(super) fn make_room(&mut self) -> bool {
        let (len, room) = self.len_and_room();
        len < room || self.extend()
    }

    /// Fills a bucket that is empty: I0, and the cells in the order of their numbers, each with whether its chain goes
    /// on. There is room for them.
    pub(super) fn fill(&mut self, base: u64, cells: impl Iterator<Item = (Cell, bool)>) {
        self.set_base(base);
        for (cell, (content, goes_on)) in (0..).zip(cells) {
            self.set_cell(cell, content);
            if goes_on {
                self.set_goes_on(cell, true);
            }
        }
    }

    /// Borrows extensions until there is room for so many cells in all, or no extension is left; returns the room.
    pub(super) fn reserve(&mut self, cells: u32) -> u32 {
        loop {
            let (_, room) = self.len_and_room();
            if room >= cells || !self.extend() {
                return room;
            }
        }
    }

    /// Borrows another extension. False, and nothing changed, if there is none.
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
    pub(super) fn release_room(&mut self) {
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

impl<S: Borrow<Store>> Bucket for View<S> {
    #[inline]
    fn base(&self) -> u64 {
        let store = self.store.borrow();
        let at = self.number * store.shape.record[0];
        field::get(store.words(), at, store.shape.locations)
    }

    #[inline]
    fn goes_on(&self, cell: u32) -> bool {
        let store = self.store.borrow();
        if cell < store.shape.cells[0] {
            let at = store.record(0, self.number).index + u64::from(cell);
            return store.words()[(at / 64) as usize] >> (at % 64) & 1 == 1;
        }
        self.locate(cell)
            .is_some_and(|(record, cell)| field::get(store.words(), record.index + cell, 1) == 1)
    }

    #[inline]
    fn go_on_below(&self, cell: u32) -> u32 {
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

    #[inline]
    fn cell(&self, cell: u32) -> Cell {
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

impl<S: BorrowMut<Store>> BucketMut for View<S> {
    fn set_base(&mut self, base: u64) {
        let number = self.number;
        let store = self.store.borrow_mut();
        let at = number * store.shape.record[0];
        let locations = store.shape.locations;
        field::put(store.words_mut(), at, locations, base);
    }

    fn set_goes_on(&mut self, cell: u32, goes_on: bool) {
        let Some((record, cell)) = self.locate(cell) else { return };
        let words = self.store.borrow_mut().words_mut();
        field::put(words, record.index + cell, 1, goes_on.into());
    }

    fn set_cell(&mut self, cell: u32, content: Cell) {
        let Some((record, cell)) = self.locate(cell) else { return };
        let store = self.store.borrow_mut();
        let (print, extra) = (store.shape.print, store.shape.extra);
        let words = store.words_mut();
        field::put(words, record.prints + cell * u64::from(print), print, content.print);
        field::put(words, record.extras + cell * u64::from(extra), extra, content.extra);
    }

    fn open(&mut self, cell: u32, content: Cell) {
        // What a record pushes out at its end goes to the front of the next.
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

    fn close(&mut self, cell: u32) {
        // From the last record down: what leaves the front of a record fills the end of the one before.
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
