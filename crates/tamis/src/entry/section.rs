//! The sections that fingerprint structures share on the wire.
//!
//! The packed form: all identities as gaps. These take the entropy of a set of n identities, to
//! within a few hundredths of a bit each: for n keys at rate eps about log2(1/eps) + 1.44 bits per
//! key. The price is time: the reader builds its table anew.
//!
//! The list: identity, value and count of the few entries in the overflow, eight bytes each, in
//! order.

use alloc::vec::Vec;

use super::{ENTRY_BYTES, Entry, put_entries};
use crate::spec::{Invalid, WireError};
use crate::wire::{Encoding, Frame, Payload};

/// The role of the list.
const LIST: u8 = 1;
/// The role of all entries of a table, packed.
pub(crate) const IDENTITIES: u8 = 2;

/// The error for a list that no table would write.
pub(crate) const LIST_ORDER: Invalid = Invalid("the overflow is not in order");

/// All entries of a table, packed: `about` of them, more or less. The table itself takes
/// `table_bytes` bytes of memory. Also returns how many entries there are.
pub(crate) fn pack<'a, I: Iterator<Item = Entry>>(
    role: u8,
    (entries, about): (impl Fn() -> I, u64),
    universe: u64,
    value_bits: u32,
    table_bytes: u64,
) -> (Payload<'a>, u64) {
    let mut bytes = Vec::new();
    let count = put_entries(&mut bytes, entries, about, universe, value_bits);
    (Payload::packed(role, bytes, table_bytes), count)
}

/// The entries of the overflow as a section; `None` if there are none.
pub(crate) fn list<'a>(entries: &[Entry]) -> Option<Payload<'a>> {
    let numbers = entries.iter().flat_map(|entry| [entry.identity, entry.value, entry.count]);
    let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    let decoded = bytes.len() as u64;
    (decoded > 0).then(|| Payload::trimmed(LIST, bytes, decoded))
}

/// The section of a list of about `entries` entries, as it is planned.
pub(crate) fn planned_list(entries: f64) -> Option<(Encoding, u64)> {
    let entries = libm::round(entries) as u64;
    (entries > 0).then_some((Encoding::Trimmed, entries * ENTRY_BYTES))
}

/// The entries that [`list`] wrote, in order; none if no section follows.
pub(crate) fn read_list(frame: &mut Frame<'_>) -> Result<Vec<Entry>, WireError> {
    if !frame.has_more() {
        return Ok(Vec::new());
    }
    let (bytes, decoded) = frame.trimmed(LIST)?;
    check_decoded(decoded, bytes.len() as u64)?;
    let (whole, rest) = bytes.as_chunks::<24>();
    let entry = |bytes: &[u8; 24]| {
        let number = |at: usize| u64::from_le_bytes(bytes.as_chunks::<8>().0[at]);
        Entry { identity: number(0), value: number(1), count: number(2) }
    };
    let mut entries = frame.budget().vec(whole.len() as u64)?;
    entries.extend(whole.iter().map(entry));
    let in_order = entries.is_sorted_by(|a, b| a.key() < b.key());
    if entries.is_empty()
        || !rest.is_empty()
        || !in_order
        || entries.iter().any(|one| one.count == 0)
    {
        return Err(LIST_ORDER.into());
    }
    Ok(entries)
}

/// The claimed size must be the real one: it was checked against the limits.
pub(crate) fn check_decoded(decoded: u64, table_bytes: u64) -> Result<(), WireError> {
    let expected = "the memory that the params ask for";
    WireError::require(decoded == table_bytes, "section length", decoded, expected)
}
