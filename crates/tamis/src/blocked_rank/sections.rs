//! The blocks as they lie in memory, to be used in place, and the back table: of a small filter as identities in order, of a large one as
//! it lies in memory too, so that opening a file takes no longer if it is large. The packed form is [`section::pack`].

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::back::Back;
use super::params::{BlockedRankParams, Level};
use super::table::Table;
use crate::bits::Words;
use crate::filter::{Invalid, InvalidParam, Params};
use crate::group::{GROUP_BYTES, Group, put_groups, section, take_groups};
use crate::rank_indexed::raw;
use crate::wire::{self, Encoding, Frame, Payload, WireError};

const BLOCKS: u8 = 0;
const BACK: u8 = 1;
// 2 is the packed form.
const LAYOUT: u8 = 3;
const SECOND: u8 = 4;
/// The packed table at the end: its words, and what found no cell.
const LAST: [u8; 2] = [5, 6];

/// From so many bytes of blocks on the back table is written as it lies in memory. That takes two fifths more than its identities, 2% of a file;
/// to build it from them takes 20 ms at this size, and seconds at 1 GB.
const IN_PLACE_FROM: u64 = 4 << 20;
/// Numbers of the layout: those of the second level, which are zero if there is none, and those of the packed table.
const NUMBERS: usize = 5 + raw::NUMBERS;

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
    let groups = table.back_groups();
    let mut bytes = Vec::new();
    put_groups(&mut bytes, &groups, table.params().universe(), 0);
    let decoded = groups.len() as u64 * GROUP_BYTES;
    vec![Payload::raw(BLOCKS, table.words()), Payload::packed(BACK, bytes, decoded)]
}

/// The back table as it lies in memory; unless it has grown to what no reader would accept, as only a filter that cannot grow does.
pub(super) fn encode_in_place(table: &Table) -> Vec<Payload<'_>> {
    let (second, packed) = table.back().parts();
    let in_front = second.unwrap_or(table).params().front();
    if in_front.check_packed(packed.params()).is_err() {
        return encode_listed(table);
    }
    let level = second.map_or([0; 5], |table| table.params().front().values());
    let numbers = level.into_iter().chain(raw::numbers(packed));
    let layout: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    let decoded = layout.len() as u64;
    let mut payloads =
        vec![Payload::raw(BLOCKS, table.words()), Payload::trimmed(LAYOUT, layout, decoded)];
    payloads.extend(second.map(|table| Payload::raw(SECOND, table.words())));
    payloads.extend(raw::encode(packed, LAST));
    payloads
}

/// A table from its sections.
pub(super) fn decode(frame: &mut Frame<'_>, front: Level) -> Result<Table, WireError> {
    let words = frame.raw(BLOCKS, front.bits())?;
    match frame.next_encoding() {
        Some(Encoding::Trimmed) => decode_in_place(frame, front, words),
        _ => decode_listed(frame, BlockedRankParams::of(front)?, words),
    }
}

fn decode_listed(
    frame: &mut Frame<'_>,
    params: BlockedRankParams,
    words: Words,
) -> Result<Table, WireError> {
    let (bytes, decoded) = frame.packed(BACK)?;
    let mut rest = bytes.as_slice();
    let groups = take_groups(&mut rest, params.universe(), 0, decoded / GROUP_BYTES);
    let whole =
        |groups: &Vec<Group>| rest.is_empty() && groups.len() as u64 * GROUP_BYTES == decoded;
    let groups = groups.filter(whole).ok_or(DAMAGED)?;
    let back = Back::new(&params).map_err(|refused| section::no_memory(refused.bytes))?;
    let mut table = Table::of_parts(params, words, back);
    table.set_back(&groups).map_err(|_| section::no_memory(u64::MAX))?;
    Ok(table)
}

fn decode_in_place(frame: &mut Frame<'_>, front: Level, words: Words) -> Result<Table, WireError> {
    let (level, numbers) = read_layout(frame)?;
    let of = |part| move |param: InvalidParam| WireError::Layout { part, param };
    let behind = (level != [0; 5]).then(|| front.behind(level));
    let second = behind.transpose().map_err(of("the second level"))?;
    let packed = raw::params(&numbers).and_then(|packed| {
        second.unwrap_or(front).check_packed(&packed.0)?;
        Ok(packed)
    });
    let packed = packed.map_err(of("the packed table"))?;
    let params = BlockedRankParams::laid_out(front, second, packed.0);
    let second_words = second.map(|level| frame.raw(SECOND, level.bits())).transpose()?;
    let mut back = Back::Packed(raw::decode(frame, LAST, packed)?);
    if let Some((params, words)) = params.second().zip(second_words) {
        back = Back::Blocks(Box::new(Table::of_parts(params, words, back).into_behind()));
    }
    Ok(Table::of_parts(params, words, back))
}

/// The numbers of the second level, and those of the packed table.
fn read_layout(frame: &mut Frame<'_>) -> Result<([u64; 5], [u64; raw::NUMBERS]), WireError> {
    let (bytes, decoded) = frame.trimmed(LAYOUT)?;
    section::check_decoded(decoded, 8 * NUMBERS as u64)?;
    section::check_decoded(bytes.len() as u64, decoded)?;
    let numbers = bytes.as_chunks::<8>().0;
    let number = |at: usize| u64::from_le_bytes(numbers[at]);
    Ok((core::array::from_fn(number), core::array::from_fn(|at| number(5 + at))))
}

/// Bytes of a filter whose back table holds so many.
pub(super) fn planned_bytes(params: &BlockedRankParams, in_back: u64) -> f64 {
    let mut sections = vec![(Encoding::Raw, params.bits() / 8)];
    let mut listed = 0.0;
    if params.bits() / 8 < IN_PLACE_FROM {
        listed = libm::log2(params.universe() as f64 / in_back.max(1) as f64) + 1.5;
    } else {
        sections.push((Encoding::Trimmed, 8 * NUMBERS as u64));
        sections.extend(params.second().map(|second| (Encoding::Raw, second.bits() / 8)));
        sections.push((Encoding::Raw, params.last().layout().bits().div_ceil(64) * 8));
    }
    let whole = wire::planned_sections(BlockedRankParams::NAMES.len(), &sections);
    whole as f64 + listed * in_back as f64 / 8.0
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
pub(super) fn unpack(frame: &mut Frame<'_>, front: Level) -> Result<Table, WireError> {
    let params = BlockedRankParams::of(front)?;
    let groups = section::unpack(frame, params.universe(), 0, table_bytes(&params))?;
    let mut table = Table::new(params).map_err(|refused| section::no_memory(refused.bytes))?;
    for group in groups {
        table.add(group).map_err(|_| section::no_memory(u64::MAX))?;
    }
    Ok(table)
}
