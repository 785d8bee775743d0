//! The blocks as they are in memory, to be used in place, and the back table. A small filter
//! writes the back table as identities in order; a large one writes it as it is in memory too, so
//! that opening a large file takes no longer than opening a small one. The packed form is
//! [`section::pack`].

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::back::Back;
use super::params::BlockedRankParams;
use super::table::Table;
use crate::bits::Words;
use crate::entry::{Entry, put_entries, section};
use crate::identities::Table as _;
use crate::rank_indexed::raw;
use crate::spec::{Invalid, Params, WireError};
use crate::wire::{self, Encoding, Frame, Payload};

const BLOCKS: u8 = 0;
const BACK: u8 = 1;
// 2 is the packed form.
/// How many cells of the packed table are in use.
const USED: u8 = 3;
const SECOND: u8 = 4;
/// The packed table at the end: its words, and its overflow.
const LAST: [u8; 2] = [5, 6];

/// From this many bytes of blocks on, the back table is written as it is in memory. That takes two
/// fifths more than its identities, which is 2% of a file. Building it from identities takes 20 ms
/// at this size, and seconds at 1 GB.
const IN_PLACE_FROM: u64 = 4 << 20;
/// Bytes of the number of cells in use. Frozen.
const USED_BYTES: u64 = 8;

const DAMAGED: Invalid = Invalid("the back table is not what an encoder writes");

/// The sections of a table, in the form for its size.
pub(super) fn encode(table: &Table) -> Vec<Payload<'_>> {
    if table.params().bits() / 8 < IN_PLACE_FROM {
        return encode_listed(table);
    }
    encode_in_place(table)
}

/// The back table as identities in order.
fn encode_listed(table: &Table) -> Vec<Payload<'_>> {
    let params = table.params();
    let (entries, universe) = (table.back_entries(), params.universe());
    let back = section::pack(BACK, &entries, universe, 0, params.back_bits().div_ceil(8));
    vec![Payload::raw(BLOCKS, table.words()), back]
}

/// The back table as it is in memory.
pub(super) fn encode_in_place(table: &Table) -> Vec<Payload<'_>> {
    let (second, packed) = table.back().parts();
    let used = packed.parts().1.to_le_bytes().to_vec();
    let mut payloads =
        vec![Payload::raw(BLOCKS, table.words()), Payload::trimmed(USED, used, USED_BYTES)];
    payloads.extend(second.map(|table| Payload::raw(SECOND, table.words())));
    payloads.extend(raw::encode(packed, LAST));
    payloads
}

/// A table from its sections.
pub(super) fn decode(frame: &mut Frame<'_>, params: BlockedRankParams) -> Result<Table, WireError> {
    let words = frame.raw(BLOCKS, params.bits())?;
    match frame.next_encoding() {
        Some(Encoding::Trimmed) => decode_in_place(frame, params, words),
        _ => decode_listed(frame, params, words),
    }
}

fn decode_listed(
    frame: &mut Frame<'_>,
    params: BlockedRankParams,
    words: Words,
) -> Result<Table, WireError> {
    let back_bytes = params.back_bits().div_ceil(8);
    let entries = section::unpack(frame, BACK, params.universe(), 0, back_bytes)?;
    let budget = frame.budget();
    // Checking the extensions takes a bit for each, and an extension has at least three bits.
    budget.take(params.back_bits().div_ceil(6))?;
    let mut table = Table::of_parts(params, words, Back::new(&params)?);
    table.back_mut().overflow_mut().begin_reading(budget);
    table.fill_back(entries).map_err(|_| section::no_memory(u64::MAX))?;
    table.back_mut().overflow_mut().end_reading();
    Ok(table)
}

fn decode_in_place(
    frame: &mut Frame<'_>,
    params: BlockedRankParams,
    words: Words,
) -> Result<Table, WireError> {
    let (bytes, decoded) = frame.trimmed(USED)?;
    section::check_decoded(decoded, USED_BYTES)?;
    let used = *bytes.first_chunk().filter(|_| bytes.len() == 8).ok_or(DAMAGED)?;
    let second = params.second();
    let second_words = second.map(|level| frame.raw(SECOND, level.bits())).transpose()?;
    let packed = raw::decode(frame, LAST, params.last(), u64::from_le_bytes(used))?;
    let mut back = Back::of_packed(packed, &params);
    if let Some((params, words)) = second.zip(second_words) {
        back = Back::Blocks(Box::new(Table::of_parts(params, words, back).into_behind()));
    }
    Ok(Table::of_parts(params, words, back))
}

/// Bytes of a filter whose back table holds `in_back` identities.
pub(super) fn planned_bytes(params: &BlockedRankParams, in_back: u64) -> f64 {
    let mut sections = vec![(Encoding::Raw, params.bits() / 8)];
    if params.bits() / 8 < IN_PLACE_FROM {
        let mut none = Vec::new();
        put_entries(&mut none, &[], params.universe(), 0);
        let each = libm::log2(params.universe() as f64 / in_back.max(1) as f64) + 1.5;
        let listed = libm::round(each * in_back as f64 / 8.0) as u64;
        sections.push((Encoding::Packed, none.len() as u64 + listed));
    } else {
        sections.push((Encoding::Trimmed, USED_BYTES));
        sections.extend(params.second().map(|second| (Encoding::Raw, second.bits() / 8)));
        sections.push((Encoding::Raw, params.last().layout().bits().div_ceil(64) * 8));
    }
    wire::planned_sections(BlockedRankParams::NAMES.len(), &sections) as f64
}

/// A table of these entries, within what reading may take.
pub(super) fn unpack(
    frame: &mut Frame<'_>,
    params: BlockedRankParams,
    entries: Vec<Entry>,
) -> Result<Table, WireError> {
    let budget = frame.budget();
    budget.take(Table::decoded_bytes(&params))?;
    let mut table = Table::new(params)?;
    table.back_mut().overflow_mut().begin_reading(budget);
    table.lay_out(entries).map_err(|_| section::no_memory(u64::MAX))?;
    table.back_mut().overflow_mut().end_reading();
    Ok(table)
}
