//! Buckets in packed memory: records of the first level, and pools of extensions that buckets
//! borrow.
//!
//! ```text
//! bucket   I0 (L) | IH (Z1) | fingerprints (Z1 r) | extras | flag | number of level-2 extension
//! level 2  used | IH (Z2) | fingerprints (Z2 r) | extras | flag | number of level-3 extension
//! level 3  used | IH (Z3) | fingerprints (Z3 r) | extras
//! ```
//!
//! Cell c is in the bucket if c < Z1, in its level-2 extension if c < Z1 + Z2, otherwise in its
//! level-3 extension. A bucket has an extension exactly if it needs one. All memory that is not in
//! use is zero.

mod view;

pub(super) use self::view::View;
use super::model::{Layout, pointer_bits};
use crate::bits::field;
use crate::bits::{Line, OutOfMemory, Words};

/// The levels of a bucket. Frozen.
const LEVELS: usize = 3;

/// All memory of a table except its overflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Store {
    shape: Shape,
    /// The records of level 1, then those of level 2, then those of level 3, packed.
    words: Words,
}

/// Where the parts of a record are.
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
    /// Empty buckets.
    pub(super) fn new(layout: &Layout) -> Result<Self, OutOfMemory> {
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
        Ok(Self { shape, words: Words::zeroed(layout.bits().div_ceil(64))? })
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

    /// Index, fingerprints and extras of a record from one of its cells on: first bit, end, and
    /// bits of a cell.
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
        // (Only unchecked bytes point beyond the last.)
        (number < self.shape.extensions[level])
            .then(|| self.record(level, self.pool_start(bucket, level) + number))
    }

    /// The first extension of a level that the group of this bucket has.
    fn pool_start(&self, bucket: u64, level: usize) -> u64 {
        bucket / self.shape.extensions[0] * self.shape.extensions[level]
    }

    /// The number, in its group, of an extension that is not in use. The search starts at a
    /// position that depends on the bucket alone, so that it is short and always gives the same
    /// result.
    fn free_extension(&self, bucket: u64, level: usize) -> Option<u64> {
        let extensions = self.shape.extensions[level];
        let start = self.pool_start(bucket, level);
        let words = self.words();
        let hint =
            crate::address::reduce(crate::digest::Digest(bucket).word(level as u64), extensions);
        (hint..extensions)
            .chain(0..hint)
            .find(|number| field::get(words, self.used_bit(level, start + number), 1) == 0)
    }

    /// Every extension that is used belongs to one bucket, and what is not used is zero.
    pub(super) fn check_extensions(&self, buckets: u64) -> bool {
        let groups = buckets / self.shape.extensions[0];
        let pool = |level: usize| groups * self.shape.extensions[level];
        // A bit for each extension that has an owner. Without memory for these the check fails.
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
        let end = self.used_bit(LEVELS - 1, pool(LEVELS - 1));
        (1..LEVELS).all(|level| (0..pool(level)).all(|number| in_order(level, number)))
            && field::get(self.words(), end, (self.words().len() as u64 * 64 - end) as u32) == 0
    }
}
