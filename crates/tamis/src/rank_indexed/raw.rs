//! The raw form of a table without counters and values: its words as they lie in memory, to be used in place, and the numbers
//! without which they mean nothing. The layout is among these: rules that choose it may change, and bytes do not.

use alloc::vec;
use alloc::vec::Vec;

use super::model::Layout;
use super::params::RankParams;
use super::table::{Mode, Table};
use crate::filter::{Invalid, InvalidParam};
use crate::group::{Spill, section};
use crate::wire::{Frame, Payload, WireError};

/// How many numbers a table has.
pub(crate) const NUMBERS: usize = 11;

const STRANGE_SPILL: Invalid = Invalid("an entry beside the packed table belongs to no bucket");

/// Layout, capacity and cells in use.
pub(crate) fn numbers(table: &Table) -> [u64; NUMBERS] {
    let Layout {
        buckets,
        locations,
        fingerprint,
        level1,
        level2,
        level3,
        second,
        third,
        groups,
        ..
    } = table.params().layout();
    let [locations, fingerprint] = [locations, fingerprint].map(u64::from);
    let [level1, level2, level3] = [level1, level2, level3].map(u64::from);
    let (capacity, (_, cells, _)) = (table.params().capacity(), table.parts());
    [
        buckets,
        locations,
        fingerprint,
        level1,
        level2,
        level3,
        second,
        third,
        groups,
        capacity,
        cells,
    ]
}

/// What the numbers say: the params, and cells in use.
pub(crate) fn params(numbers: &[u64; NUMBERS]) -> Result<(RankParams, u64), InvalidParam> {
    let narrow = |at: usize| u32::try_from(numbers[at]).unwrap_or(u32::MAX);
    let layout = Layout {
        buckets: numbers[0],
        locations: narrow(1),
        fingerprint: narrow(2),
        extra: 0,
        level1: narrow(3),
        level2: narrow(4),
        level3: narrow(5),
        second: numbers[6],
        third: numbers[7],
        groups: numbers[8],
    };
    let (params, cells) = (RankParams::laid_out(layout, numbers[9])?, numbers[10]);
    if cells > layout.all_cells() {
        let expected = "as many as there are, or fewer";
        return Err(InvalidParam { name: "cells", value: cells, expected });
    }
    Ok((params, cells))
}

/// The words of a table, and its spill if there is any, as sections of these roles.
pub(crate) fn encode(table: &Table, roles: [u8; 2]) -> Vec<Payload<'_>> {
    let (words, _, spill) = table.parts();
    let mut payloads = vec![Payload::raw(roles[0], words)];
    if !spill.is_empty() {
        payloads.push(section::list(roles[1], spill.entries()));
    }
    payloads
}

/// A table from what its numbers say and its sections, which are the last ones.
pub(crate) fn decode(
    frame: &mut Frame<'_>,
    roles: [u8; 2],
    (params, cells): (RankParams, u64),
) -> Result<Table, WireError> {
    let words = frame.raw(roles[0], params.layout().bits())?;
    let mut spill = Spill::default();
    if frame.has_more() {
        let entries = section::read_list(frame, roles[1])?;
        if entries.iter().any(|entry| entry.identity >= params.universe() || entry.value > 0) {
            return Err(STRANGE_SPILL.into());
        }
        spill = Spill::from_entries(entries);
    }
    Ok(Table::of_parts(params, Mode::Multiset, (words, cells, spill)))
}
