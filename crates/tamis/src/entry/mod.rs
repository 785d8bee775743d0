//! What fingerprint structures hold, apart from any layout: entries, which are identities with
//! values and counts, in order.

mod overflow;
pub(crate) mod section;

use alloc::vec::Vec;

pub(crate) use self::overflow::Overflow;

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

/// Sorts entries and joins equal ones: their counts are added, or in a set one of each is kept.
pub(crate) fn merged(entries: &mut Vec<Entry>, is_set: bool) -> &[Entry] {
    entries.sort_unstable_by_key(Entry::key);
    entries.dedup_by(|one, kept| {
        let same = one.key() == kept.key();
        if same && !is_set {
            kept.count = kept.count.saturating_add(one.count);
        }
        same
    });
    entries
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

/// Adds entries in order: identities as gaps, values of `value_bits` bits, counts.
pub(crate) fn put_entries(out: &mut Vec<u8>, entries: &[Entry], universe: u64, value_bits: u32) {
    let identities: Vec<u64> = entries.iter().map(|entry| entry.identity).collect();
    let counts: Vec<u64> = entries.iter().map(|entry| entry.count).collect();
    numbers::put_sorted(out, &identities, universe);
    numbers::put_fields(out, entries.iter().map(|entry| entry.value), value_bits);
    put_counts(out, &counts);
}

/// Bytes of memory that an entry takes.
pub(crate) const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

const DAMAGED: Invalid = Invalid("the identities are not what an encoder writes");

/// Reads `count` entries that [`put_entries`] added.
pub(crate) fn take_entries(
    bytes: &mut &[u8],
    universe: u64,
    value_bits: u32,
    count: u64,
    budget: &mut Budget,
) -> Result<Vec<Entry>, WireError> {
    let mut identities = numbers::take_all_sorted(bytes, universe, count).ok_or(DAMAGED)?;
    let mut entries = budget.vec(count)?;
    while let Some(identity) = identities.read_next().map_err(|_| DAMAGED)? {
        entries.push(Entry { identity, value: 0, count: 1 });
    }
    let values = entries.iter_mut().map(|entry| &mut entry.value);
    numbers::take_fields(bytes, values, value_bits).ok_or(DAMAGED)?;
    take_counts(bytes, entries.iter_mut().map(|entry| &mut entry.count)).ok_or(DAMAGED)?;
    if entries.is_sorted_by(|a, b| a.key() < b.key()) { Ok(entries) } else { Err(DAMAGED.into()) }
}

/// Adds counts. Almost all are one, so only the positions of the others are written, and then
/// those counts.
pub(crate) fn put_counts(out: &mut Vec<u8>, counts: &[u64]) {
    let several = counts.iter().enumerate().filter(|&(_, &count)| count > 1);
    let at: Vec<u64> = several.clone().map(|(at, _)| at as u64).collect();
    numbers::put_sorted(out, &at, counts.len() as u64);
    several.for_each(|(_, &count)| numbers::put(out, count));
}

/// Reads what [`put_counts`] added into `counts`, which must all be one.
pub(crate) fn take_counts<'a>(
    bytes: &mut &[u8],
    mut counts: impl ExactSizeIterator<Item = &'a mut u64>,
) -> Option<()> {
    let len = counts.len() as u64;
    let mut several = numbers::take_sorted(bytes, len, len)?;
    let mut next = 0;
    while let Some(at) = several.read_next().ok()? {
        // Positions rise strictly.
        let count = counts.nth(usize::try_from(at.checked_sub(next)?).ok()?)?;
        next = at + 1;
        *count = numbers::take(bytes).filter(|&count| count > 1)?;
    }
    Some(())
}
