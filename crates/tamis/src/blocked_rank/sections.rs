//! All blocks as they are in memory, to be used in place, and the list at the end. The packed form
//! is [`section::pack`].

use alloc::vec::Vec;

use super::params::BlockedRankParams;
use super::table::Table;
use crate::entry::section;
use crate::spec::{Params, WireError};
use crate::wire::{self, Encoding, Frame, Payload};

/// The roles of the levels: in front, second and third. (1 is the list, 2 the packed form.)
const LEVELS: [u8; 3] = [0, 3, 4];

/// The sections of a table, whose runs must all be where they fit.
pub(super) fn encode(table: &Table) -> Vec<Payload<'_>> {
    let (levels, list) = table.parts();
    let levels = levels.into_iter().zip(LEVELS);
    let mut payloads: Vec<_> = levels.map(|(words, role)| Payload::raw(role, words)).collect();
    payloads.extend(section::list(list.entries()));
    payloads
}

/// A table from its sections.
pub(super) fn decode(frame: &mut Frame<'_>, params: BlockedRankParams) -> Result<Table, WireError> {
    let front = frame.raw(LEVELS[0], params.bits())?;
    let mut behind = Vec::new();
    for (level, role) in params.levels().zip(LEVELS).skip(1) {
        behind.push(frame.raw(role, level.bits())?);
    }
    let list = section::read_list(frame)?;
    // Values are bits of identities here.
    if list.iter().any(|entry| entry.value != 0) {
        return Err(section::LIST_ORDER.into());
    }
    Ok(Table::of_parts(params, front, behind, list))
}

/// Bytes of a filter whose list holds `listed` entries.
pub(super) fn planned_bytes(params: &BlockedRankParams, listed: f64) -> f64 {
    let mut sections: Vec<_> =
        params.levels().map(|level| (Encoding::Raw, level.bits() / 8)).collect();
    sections.extend(section::planned_list(listed));
    let params = BlockedRankParams::NAMES.len() + usize::from(params.front.value > 0);
    wire::planned_sections(params, &sections) as f64
}
