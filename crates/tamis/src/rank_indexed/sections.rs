//! The trimmed form: what a table holds, without its unused memory.
//!
//! For every bucket: I0 (L bits), the bits of IH that are in use, then as many fingerprints, then
//! as many counters or values. That is 1/lambda + r + 1 bits per key. No lengths are needed: every
//! set bit of I0 and IH owns a cell, so the bits of IH end when as many have been read as there
//! are set bits. The sizes of levels are among the params.
//!
//! A table that is read has the layout that was written. It does not grow meanwhile; what finds no
//! cell goes to the overflow.
//!
//! At most [`MAX_COPIES`] equal cells are written; a second section, [`section::list`], counts the
//! further copies of an identity. So equal contents have equal bytes whatever their history.
//!
//! The packed form is [`section::pack`]: 8.1 bits per key at 1%, against 8.6 for the trimmed form.

use alloc::vec;
use alloc::vec::Vec;

use super::Variant;
use super::bucket::Cell;
use super::chains::{Chains, per_cell};
use super::params::RankParams;
use super::table::{MAX_COPIES, MAX_COUNTER, Mode, Table};
use crate::bits::{BitReader, BitWriter, OutOfMemory};
use crate::entry::{Entry, section};
use crate::identities::Table as _;
use crate::spec::{Budget, Invalid, WireError};
use crate::wire::{Frame, Payload};

const CELLS: u8 = 0;

/// The sections of a table.
pub(super) fn encode<'a, V: Variant>(table: &Table<V>) -> Vec<Payload<'a>> {
    let layout = table.params().layout();
    let mut cells = BitWriter::default();
    let mut overflow = Vec::new();
    let (mut entries, mut chains) = (Vec::new(), Chains::default());
    for bucket in 0..layout.buckets {
        entries.clear();
        table.list_bucket(bucket, &mut entries);
        chains.clear();
        for entry in &entries {
            let left = chains.push(table.within(entry.identity), entry, V::MODE, MAX_COPIES);
            if left > 0 {
                overflow.push(Entry { count: left, ..*entry });
            }
        }
        chains.write(&mut cells, layout.locations, layout.fingerprint, layout.extra);
    }
    let mut payloads =
        vec![Payload::trimmed(CELLS, cells.finish(), Table::<V>::decoded_bytes(&table.params()))];
    payloads.extend(section::list(&overflow));
    payloads
}

const ENDS: Invalid = Invalid("the cells end before the buckets do");
const MORE: Invalid = Invalid("something follows the last bucket");
const ORDER: Invalid = Invalid("a chain is not in order");

/// A table from its sections.
pub(super) fn decode<V: Variant>(
    frame: &mut Frame<'_>,
    params: RankParams,
) -> Result<Table<V>, WireError> {
    let layout = params.layout();
    let (bytes, decoded) = frame.trimmed(CELLS)?;
    section::check_decoded(decoded, Table::<V>::decoded_bytes(&params))?;
    // Every bucket takes at least the bits of its base index, so a short input cannot ask for a
    // large table.
    if bytes.len() as u64 * 8 / u64::from(layout.locations) < layout.buckets {
        return Err(ENDS.into());
    }
    // The list is in the order of the cells, so that one pass goes through both.
    let mut overflow = section::read_list(frame)?.into_iter().peekable();
    frame.budget().take(Table::<V>::decoded_bytes(&params))?;
    let mut table = Table::<V>::new(params)?;
    table.overflow_mut().begin_reading(frame.budget());
    let mut reader = BitReader::new(&bytes);
    let (mut cells, mut entries, mut chains) = (Vec::new(), Vec::new(), Chains::default());
    for number in 0..layout.buckets {
        read_bucket(&mut reader, &params, &mut cells, frame.budget())?;
        entries.clear();
        frame.budget().reserve(&mut entries, cells.len())?;
        entries_of(&params, number, &cells, V::MODE, &mut entries)?;
        for entry in &mut entries {
            if let Some(more) = overflow.next_if(|more| more.key() == entry.key()) {
                let full = entry.count == u64::from(MAX_COPIES) * per_cell(V::MODE);
                let count = entry.count.checked_add(more.count).filter(|_| full);
                entry.count = count.ok_or(section::LIST_ORDER)?;
            }
        }
        table
            .lay_out_bucket(number, entries.iter().copied(), &mut chains)
            .map_err(|_| OutOfMemory { bytes: u64::MAX })?;
    }
    if !reader.ends_here() {
        return Err(MORE.into());
    }
    if overflow.next().is_some() {
        return Err(section::LIST_ORDER.into());
    }
    table.overflow_mut().end_reading();
    frame.set_sound();
    Ok(table)
}

/// A cell that was read: its location, its number in the bucket, its content.
type Numbered = (u32, u32, Cell);

/// The cells of the next bucket, in order of location and chain.
fn read_bucket(
    reader: &mut BitReader<'_>,
    params: &RankParams,
    cells: &mut Vec<Numbered>,
    budget: &mut Budget,
) -> Result<(), WireError> {
    let layout = params.layout();
    let base = reader.get(layout.locations).ok_or(ENDS)?;
    cells.clear();
    let empty = Cell { print: 0, extra: 0 };
    let chains = (0..layout.locations).filter(|at| base >> at & 1 == 1);
    cells.extend(chains.zip(0..).map(|(at, number)| (at, number, empty)));
    // Set bit number t owns cell t. Reading the bit of a cell may add a cell, but never more cells
    // than there are bits left for.
    let most = reader.left() / u64::from(1 + layout.fingerprint + layout.extra);
    let mut number = 0;
    while number < cells.len() {
        if reader.get(1).ok_or(ENDS)? == 1 {
            let next = u32::try_from(cells.len()).map_err(|_| ENDS)?;
            if u64::from(next) >= most {
                return Err(ENDS.into());
            }
            budget.reserve(cells, 1)?;
            cells.push((cells[number].0, next, empty));
        }
        number += 1;
    }
    for (.., cell) in &mut *cells {
        cell.print = reader.get(layout.fingerprint).ok_or(ENDS)?;
    }
    for (.., cell) in &mut *cells {
        cell.extra = reader.get(layout.extra).ok_or(ENDS)?;
    }
    // By number too, so that chains keep their order; a stable sort would take memory for a long
    // bucket.
    cells.sort_unstable_by_key(|&(location, number, _)| (location, number));
    Ok(())
}

/// The entries of a bucket with these cells, which must be as [`encode`] writes them; `entries`
/// must have room for them.
fn entries_of(
    params: &RankParams,
    number: u64,
    cells: &[Numbered],
    mode: Mode,
    entries: &mut Vec<Entry>,
) -> Result<(), WireError> {
    let start = number * params.identities_per_bucket();
    let same = |a: &Numbered, b: &Numbered| {
        (a.0, a.2.print) == (b.0, b.2.print) && (mode != Mode::Map || a.2.extra == b.2.extra)
    };
    let mut before: Option<(u32, u64, u64)> = None;
    for run in cells.chunk_by(same) {
        let (location, _, first) = run[0];
        let value = if mode == Mode::Map { first.extra } else { 0 };
        let here = (location, first.print, value);
        if before.is_some_and(|before| before >= here) || run.len() > MAX_COPIES as usize {
            return Err(ORDER.into());
        }
        before = Some(here);
        let count = match mode {
            Mode::Counting => {
                let full = run[..run.len() - 1].iter().all(|cell| cell.2.extra == MAX_COUNTER);
                if !full {
                    return Err(ORDER.into());
                }
                run.iter().map(|cell| cell.2.extra + 1).sum()
            }
            Mode::Set if run.len() > 1 => return Err(ORDER.into()),
            Mode::Set | Mode::Multiset | Mode::Map => run.len() as u64,
        };
        let chain = u64::from(location) << params.layout().fingerprint;
        entries.push(Entry { identity: start + chain + first.print, value, count });
    }
    Ok(())
}
