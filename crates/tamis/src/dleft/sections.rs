//! The trimmed form: for every bucket the number of its used cells, four bits, and these cells as
//! they are in memory; then the overflow, as [`section::list`]. The packed form is
//! [`section::pack`]: it does not say where identities are, and the reader places them anew.

use alloc::vec;
use alloc::vec::Vec;

use super::bucket::{Cell, max_count};
use super::params::{COUNTER_BITS, DLeftParams};
use super::table::Table;
use crate::bits::{BitReader, BitWriter};
use crate::entry::{Overflow, section};
use crate::identities::Table as _;
use crate::spec::{Invalid, WireError};
use crate::wire::{Frame, Payload};

const CELLS: u8 = 0;
/// Bits of the number of used cells. Frozen.
pub(super) const LOAD_BITS: u32 = 4;

const ENDS: Invalid = Invalid("the cells end before the buckets do");

/// The sections of a table.
pub(super) fn encode<'a>(table: &Table) -> Vec<Payload<'a>> {
    let params = table.params();
    let mut cells = BitWriter::default();
    for bucket in 0..params.all_buckets() {
        cells.put(table.cells(bucket).count() as u64, LOAD_BITS);
        for Cell { remainder, count, value } in table.cells(bucket) {
            cells.put(count - 1, COUNTER_BITS);
            cells.put(remainder, params.remainder());
            cells.put(value, params.value());
        }
    }
    let mut payloads = vec![Payload::trimmed(CELLS, cells.finish(), Table::decoded_bytes(&params))];
    payloads.extend(section::list(table.overflown().entries()));
    payloads
}

/// A table from its sections. `validate` checks afterwards whether each identity is where it may
/// be.
pub(super) fn decode(frame: &mut Frame<'_>, params: DLeftParams) -> Result<Table, WireError> {
    let (bytes, decoded) = frame.trimmed(CELLS)?;
    section::check_decoded(decoded, Table::decoded_bytes(&params))?;
    // Every bucket takes at least the bits of its number, so a short input cannot ask for a large
    // table.
    if bytes.len() as u64 * 8 / u64::from(LOAD_BITS) < params.all_buckets() {
        return Err(ENDS.into());
    }
    frame.budget().take(Table::decoded_bytes(&params))?;
    let mut table = Table::new(params)?;
    let mut reader = BitReader::new(&bytes);
    for bucket in 0..params.all_buckets() {
        for _ in 0..reader.get(LOAD_BITS).ok_or(ENDS)? {
            let cell = read_cell(&mut reader, &params).ok_or(ENDS)?;
            if cell.count > max_count(cell.remainder) || !table.append(bucket, cell) {
                return Err(Invalid("a bucket or a counter holds more than it can").into());
            }
        }
    }
    if !reader.ends_here() {
        return Err(Invalid("something follows the last bucket").into());
    }
    let overflow = section::read_list(frame)?;
    let within = |value: u64| value >> params.value() == 0;
    if overflow.iter().any(|one| one.identity >= params.universe() || !within(one.value)) {
        return Err(section::LIST_ORDER.into());
    }
    *table.overflow_mut() = Overflow::from_entries(overflow);
    Ok(table)
}

fn read_cell(reader: &mut BitReader<'_>, params: &DLeftParams) -> Option<Cell> {
    Some(Cell {
        count: reader.get(COUNTER_BITS)? + 1,
        remainder: reader.get(params.remainder())?,
        value: reader.get(params.value())?,
    })
}
