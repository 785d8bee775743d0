//! What fingerprint structures hold, apart from any layout: entries, which are identities with
//! values and counts, in order.

pub(crate) mod order;
mod overflow;
pub(crate) mod section;

use alloc::vec::Vec;

pub(crate) use self::overflow::Overflow;

use crate::bits::BitReader;
use crate::coder::gaps::Sorted;
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

/// Adds entries in order: identities as gaps, values of `value_bits` bits, counts. They are
/// listed anew for each of these, so that nothing holds them all. Returns how many there are.
pub(crate) fn put_entries<I: Iterator<Item = Entry>>(
    out: &mut Vec<u8>,
    entries: impl Fn() -> I,
    universe: u64,
    value_bits: u32,
) -> u64 {
    let mut several = Several::default();
    entries().for_each(|entry| several.push(entry.count));
    let identities = entries().map(|entry| entry.identity);
    numbers::put_sorted(out, several.len, identities, universe);
    if value_bits > 0 {
        numbers::put_fields(out, entries().map(|entry| entry.value), value_bits);
    }
    several.put(out);
    several.len
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
    counts: Counts<'a>,
    /// The least identity and value that may come next.
    least: (u64, u64),
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
        let count = identities.left();
        let values = numbers::take_bits(&mut bytes, count, value_bits).ok_or(DAMAGED)?;
        let counts = Counts::new(bytes, count).ok_or(DAMAGED)?;
        let least = (0, 0);
        Ok(Self { identities, values, value_bits, counts, least, is_damaged: false })
    }

    /// How many entries are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.identities.left()
    }

    /// Whether an entry is in several times.
    pub(crate) fn has_several(&self) -> bool {
        self.counts.next_several != u64::MAX
    }

    #[inline]
    fn read(&mut self) -> Option<Entry> {
        let identity = self.identities.read_next().ok()??;
        let value = if self.value_bits == 0 { 0 } else { self.values.get(self.value_bits)? };
        let entry = Entry { identity, value, count: self.counts.read_next()? };
        // (No value has 64 bits.)
        let is_next = entry.key() >= self.least;
        self.least = (identity, value + 1);
        is_next.then_some(entry)
    }

    /// All entries, in memory that `budget` has.
    pub(crate) fn collect(mut self, budget: &mut Budget) -> Result<Vec<Entry>, WireError> {
        let mut entries = budget.vec(self.left())?;
        entries.extend(&mut self);
        self.finish()?;
        Ok(entries)
    }

    /// Fails if the bytes are damaged, or if something is left.
    pub(crate) fn finish(self) -> Result<(), WireError> {
        let is_read = !self.is_damaged && self.left() == 0;
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
        if self.is_damaged || self.left() == 0 {
            return None;
        }
        let entry = self.read();
        self.is_damaged = entry.is_none();
        entry
    }
}

/// Counts, to be written. Almost all are one, so only the positions of the others are written,
/// and then those counts.
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
    counts: &'a [u8],
    /// The position of the next count, and of the next one above one.
    next: u64,
    next_several: u64,
}

impl<'a> Counts<'a> {
    /// The reader of `len` counts in all `bytes`.
    pub(crate) fn new(mut bytes: &'a [u8], len: u64) -> Option<Self> {
        let mut positions = numbers::take_sorted(&mut bytes, len, len)?;
        let next_several = positions.read_next().ok()?.unwrap_or(u64::MAX);
        Some(Self { positions, counts: bytes, next: 0, next_several })
    }

    /// The next count; `None` if the bytes are damaged.
    #[inline]
    pub(crate) fn read_next(&mut self) -> Option<u64> {
        let is_several = self.next == self.next_several;
        self.next += 1;
        if is_several { self.several() } else { Some(1) }
    }

    fn several(&mut self) -> Option<u64> {
        // Positions rise strictly: one that does not is never reached.
        self.next_several = self.positions.read_next().ok()?.unwrap_or(u64::MAX);
        numbers::take(&mut self.counts).filter(|&count| count > 1)
    }

    /// Whether nothing is left.
    pub(crate) fn is_read(&self) -> bool {
        self.next_several == u64::MAX && self.counts.is_empty()
    }
}
