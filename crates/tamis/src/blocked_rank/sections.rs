//! The raw form: the blocks as they lie in memory, to be used in place, and the back table as identities in order. The packed form
//! is [`section::pack`].

use alloc::vec;
use alloc::vec::Vec;

use super::params::BlockedRankParams;
use super::table::Table;
use crate::filter::Invalid;
use crate::group::{GROUP_BYTES, Group, put_groups, section, take_groups};
use crate::wire::{Frame, Payload, WireError};

const BLOCKS: u8 = 0;
const BACK: u8 = 1;

const DAMAGED: Invalid = Invalid("the back table is not what an encoder writes");

/// The sections of a table.
pub(super) fn encode(table: &Table) -> Vec<Payload<'_>> {
    let groups = table.back_groups();
    let mut bytes = Vec::new();
    put_groups(&mut bytes, &groups, table.params().universe(), 0);
    let decoded = groups.len() as u64 * GROUP_BYTES;
    vec![Payload::raw(BLOCKS, table.words()), Payload::packed(BACK, bytes, decoded)]
}

/// A table from its sections.
pub(super) fn decode(frame: &mut Frame<'_>, params: BlockedRankParams) -> Result<Table, WireError> {
    let words = frame.array(BLOCKS, params.bits())?;
    let (bytes, decoded) = frame.packed(BACK)?;
    let mut rest = bytes.as_slice();
    let groups = take_groups(&mut rest, params.universe(), 0, decoded / GROUP_BYTES);
    let whole =
        |groups: &Vec<Group>| rest.is_empty() && groups.len() as u64 * GROUP_BYTES == decoded;
    let groups = groups.filter(whole).ok_or(DAMAGED)?;
    let mut table =
        Table::of_words(params, words).map_err(|refused| section::no_memory(refused.bytes))?;
    table.set_back(&groups).map_err(|_| section::no_memory(u64::MAX))?;
    Ok(table)
}

fn table_bytes(params: &BlockedRankParams) -> u64 {
    params.bits() / 8
}

/// The packed section of a table.
pub(super) fn pack<'a>(table: &Table) -> Payload<'a> {
    let mut groups = Vec::new();
    table.for_each_group(&mut |group| groups.push(group));
    section::pack(&groups, table.params().universe(), 0, table_bytes(table.params()))
}

/// A table from its packed section.
pub(super) fn unpack(frame: &mut Frame<'_>, params: BlockedRankParams) -> Result<Table, WireError> {
    let groups = section::unpack(frame, params.universe(), 0, table_bytes(&params))?;
    let mut table = Table::new(params).map_err(|refused| section::no_memory(refused.bytes))?;
    for group in groups {
        table.add(group).map_err(|_| section::no_memory(u64::MAX))?;
    }
    Ok(table)
}
