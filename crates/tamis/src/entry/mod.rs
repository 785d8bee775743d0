//! What fingerprint structures hold, apart from any layout: entries, which are identities with
//! values and counts, in order.

pub(crate) mod order;
mod overflow;
pub(crate) mod section;

use alloc::vec::Vec;
use core::iter;

pub(crate) use self::overflow::Overflow;

use crate::bits::BitReader;
use crate::coder::gaps::{Sorted, SortedWriter};
use crate::coder::numbers;
use crate::spec::{Budget, Invalid, WireError};

/// An identity with its value (0 where a kind has none) and how often it is in.
///
/// ```
/// use tamis::RankIndexed;
/// let mut filter = RankIndexed::with_rate(1_000, 0.01)?;
/// filter.insert("apple")?;
/// filter.insert("apple")?;
/// let entries = filter.entries();
/// assert_eq!((entries.len(), entries[0].count, entries[0].value), (1, 2, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The identity.
    pub identity: u64,
    /// Its value.
    pub value: u64,
    /// How often it is in.
    pub count: u64,
}

impl Entry {
    /// Entries are compared and ordered by this.
    pub(crate) fn key(&self) -> (u64, u64) {
        (self.identity, self.value)
    }
}

/// How many low bits the identities of universe `a`, and those of universe `b`, must lose so that
/// they can be compared. `None` if the universes do not differ by a power of two.
pub(crate) fn common_universe(a: u64, b: u64) -> Option<(u32, u32)> {
    let (small, large) = (a.min(b), a.max(b));
    let ratio = large / small;
    if large % small != 0 || !ratio.is_power_of_two() {
        return None;
    }
    let bits = ratio.trailing_zeros();
    Some(if a == small { (0, bits) } else { (bits, 0) })
}

/// Adds entries in order: identities as gaps, values of `value_bits` bits, counts. What is in
/// several times is written twice, and its count follows behind all of them if it is above two:
/// that takes fewer bits than to say which are in twice. Returns how many entries there are.
///
/// `about` says how many identities are written, more or less. If the code depends on the
/// difference, and for values, entries are listed anew, so that nothing holds them all.
pub(crate) fn put_entries<I: Iterator<Item = Entry>>(
    out: &mut Vec<u8>,
    entries: impl Fn() -> I,
    about: u64,
    universe: u64,
    value_bits: u32,
) -> u64 {
    let mut written = about;
    let (identities, several) = loop {
        let mut identities = SortedWriter::new(written, universe);
        let mut several = Several::default();
        entries().for_each(|entry| {
            identities.put(entry.identity);
            if entry.count > 1 {
                identities.repeat();
                several.push(entry.count - 1);
            }
        });
        written = identities.written();
        if let Some(identities) = identities.finish() {
            break (identities, several);
        }
    };
    numbers::put(out, written);
    if written > 0 {
        numbers::put_bytes(out, &identities);
    }
    if value_bits > 0 {
        let twice = |one: Entry| iter::repeat_n(one.value, 1 + usize::from(one.count > 1));
        numbers::put_fields(out, entries().flat_map(twice), value_bits);
    }
    numbers::put(out, several.len);
    several.put(out);
    written - several.len
}

/// Bytes of memory that an entry takes.
pub(crate) const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

const DAMAGED: Invalid = Invalid("the identities are not what an encoder writes");

/// Reads the entries that [`put_entries`] added, one after the other. It ends early if the bytes
/// are damaged; [`finish`](Self::finish) finds this out.
pub(crate) struct EntryReader<'a> {
    identities: Sorted<'a>,
    values: BitReader<'a>,
    value_bits: u32,
    /// How many entries are in several times and not read yet.
    several: u64,
    counts: Counts<'a>,
    /// Identity and value that come next.
    next: Option<(u64, u64)>,
    is_damaged: bool,
}

impl<'a> EntryReader<'a> {
    /// The reader of all `bytes`.
    pub(crate) fn new(
        mut bytes: &'a [u8],
        universe: u64,
        value_bits: u32,
    ) -> Result<Self, WireError> {
        let identities = numbers::take_sorted(&mut bytes, universe, u64::MAX).ok_or(DAMAGED)?;
        let values = numbers::take_bits(&mut bytes, identities.left(), value_bits);
        let values = values.ok_or(DAMAGED)?;
        let several = numbers::take(&mut bytes).ok_or(DAMAGED)?;
        let counts = Counts::new(bytes, several).ok_or(DAMAGED)?;
        let (next, is_damaged) = (None, false);
        let mut reader = Self { identities, values, value_bits, several, counts, next, is_damaged };
        reader.next = reader.read();
        Ok(reader)
    }

    /// How many entries are still to come, unless the bytes are damaged.
    pub(crate) fn left(&self) -> Option<u64> {
        (self.identities.left() + u64::from(self.next.is_some())).checked_sub(self.several)
    }

    /// Whether an entry is in several times.
    pub(crate) fn has_several(&self) -> bool {
        self.several > 0
    }

    /// The next identity and value as they were written.
    #[inline]
    fn read(&mut self) -> Option<(u64, u64)> {
        let Ok(identity) = self.identities.read_next() else {
            self.is_damaged = true;
            return None;
        };
        let value = if self.value_bits == 0 { Some(0) } else { self.values.get(self.value_bits) };
        Some((identity?, value?))
    }

    /// The count of an entry that is written twice, whose second copy was read.
    fn read_count(&mut self) -> Option<u64> {
        self.several = self.several.checked_sub(1)?;
        self.counts.read_next()?.checked_add(1)
    }

    /// All entries, in memory that `budget` has.
    pub(crate) fn collect(
        mut self,
        count: u64,
        budget: &mut Budget,
    ) -> Result<Vec<Entry>, WireError> {
        if self.left() != Some(count) {
            return Err(DAMAGED.into());
        }
        let mut entries = budget.vec(count)?;
        entries.extend((&mut self).take(count as usize));
        self.finish()?;
        Ok(entries)
    }

    /// Fails if the bytes are damaged, or if something is left.
    pub(crate) fn finish(self) -> Result<(), WireError> {
        let is_read = !self.is_damaged && self.left() == Some(0) && self.several == 0;
        if is_read && self.values.ends_here() && self.counts.is_read() {
            return Ok(());
        }
        Err(DAMAGED.into())
    }
}

impl Iterator for EntryReader<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        let (identity, value) = self.next?;
        let mut count = Some(1);
        self.next = self.read();
        if self.next == Some((identity, value)) {
            count = self.read_count();
            self.next = self.read();
        }
        if count.is_none() || self.next.is_some_and(|next| next <= (identity, value)) {
            self.is_damaged = true;
            self.next = None;
        }
        Some(Entry { identity, value, count: count? })
    }
}

/// Counts, to be written. Most are one, so only the positions of the others are written, and
/// then those counts.
#[derive(Default)]
pub(crate) struct Several {
    len: u64,
    /// Positions and counts of those above one.
    several: Vec<(u64, u64)>,
}

impl Several {
    #[inline]
    pub(crate) fn push(&mut self, count: u64) {
        if count > 1 {
            self.several.push((self.len, count));
        }
        self.len += 1;
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let positions = self.several.iter().map(|&(at, _)| at);
        numbers::put_sorted(out, self.several.len() as u64, positions, self.len);
        self.several.iter().for_each(|&(_, count)| numbers::put(out, count));
    }
}

/// Reads the counts that [`Several`] wrote.
pub(crate) struct Counts<'a> {
    positions: Sorted<'a>,
    several: &'a [u8],
    /// The position of the next count, and of the next one above one.
    next: u64,
    next_several: u64,
}

impl<'a> Counts<'a> {
    /// The reader of `len` counts in all `bytes`.
    pub(crate) fn new(mut bytes: &'a [u8], len: u64) -> Option<Self> {
        let mut positions = numbers::take_sorted(&mut bytes, len, len)?;
        let next_several = positions.read_next().ok()?.unwrap_or(u64::MAX);
        Some(Self { positions, several: bytes, next: 0, next_several })
    }

    /// The next count; `None` if the bytes are damaged.
    #[inline]
    pub(crate) fn read_next(&mut self) -> Option<u64> {
        let is_several = self.next == self.next_several;
        self.next += 1;
        if is_several { self.read_several() } else { Some(1) }
    }

    fn read_several(&mut self) -> Option<u64> {
        // Positions rise strictly: one that does not is never reached.
        self.next_several = self.positions.read_next().ok()?.unwrap_or(u64::MAX);
        numbers::take(&mut self.several).filter(|&count| count > 1)
    }

    /// Whether nothing is left.
    pub(crate) fn is_read(&self) -> bool {
        self.next_several == u64::MAX && self.several.is_empty()
    }
}
