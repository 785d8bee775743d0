//! The raw form of a table without counters and values: its words as they are in memory, to be
//! used in place.

use alloc::vec;
use alloc::vec::Vec;

use super::Multiset;
use super::params::RankParams;
use super::table::Table;
use crate::entry::{Overflow, section};
use crate::spec::{Invalid, WireError};
use crate::wire::{Frame, Payload};

const STRANGE_OVERFLOW: Invalid = Invalid("an entry beside the packed table belongs to no bucket");

/// The words of a table, and its overflow if there is any, as sections of these roles.
pub(crate) fn encode(table: &Table<Multiset>, roles: [u8; 2]) -> Vec<Payload<'_>> {
    let (words, _, overflow) = table.parts();
    let mut payloads = vec![Payload::raw(roles[0], words)];
    if !overflow.is_empty() {
        payloads.push(section::list(roles[1], overflow.entries()));
    }
    payloads
}

/// A table from its sections, which are the last ones, and how many of its cells are in use.
pub(crate) fn decode(
    frame: &mut Frame<'_>,
    roles: [u8; 2],
    params: RankParams,
    cells: u64,
) -> Result<Table<Multiset>, WireError> {
    let layout = params.layout();
    if cells > layout.all_cells() {
        return Err(Invalid("more cells are in use than there are").into());
    }
    let words = frame.raw(roles[0], layout.bits())?;
    // A bit for each extension while they are checked.
    let extensions = layout.groups.saturating_mul(layout.second + layout.third);
    frame.budget().take(extensions.div_ceil(8) + 16)?;
    let mut overflow = Overflow::default();
    if frame.has_more() {
        let entries = section::read_list(frame, roles[1])?;
        if entries.iter().any(|entry| entry.identity >= params.universe() || entry.value > 0) {
            return Err(STRANGE_OVERFLOW.into());
        }
        overflow = Overflow::from_entries(entries);
    }
    Ok(Table::of_parts(params, (words, cells, overflow)))
}
