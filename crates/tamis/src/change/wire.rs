//! Changes as sections of a delta.
//!
//! ```text
//! section 1   bits: the flips as one frame of the coder
//!             counters: a frame of which change, then by how much (zigzag, as planes)
//!             identities: what is removed, as gaps of positions or identities (`write_moves`)
//!             listed: the flips as one frame
//! section 2   identities: what is inserted, as gaps between identities
//!             listed: the digests that are added to the list or removed (8 bytes each, in order)
//! ```

use alloc::vec;
use alloc::vec::Vec;

use super::flips::Flips;
use super::moves::{Gone, Moves};
use super::steps::Steps;
use super::{Change, Shape};
use crate::coder::{self, Effort, numbers, planes};
use crate::entry::{Counts, ENTRY_BYTES, Entry, EntryReader, Several, put_entries};
use crate::spec::{Budget, Invalid, WireError};
use crate::wire::{Frame, Payload};

const CHANGE: u8 = 1;
const INSERTED: u8 = 2;

const DAMAGED: Invalid = Invalid("the change of a delta is not what an encoder writes");

impl Change {
    /// The change as sections.
    pub(crate) fn encode(&self, shape: Shape) -> Vec<Payload<'static>> {
        match self {
            Self::Bits(Flips { bits, words, toggled }) => {
                let bytes = coder::encode(words, *bits, Effort::Best);
                let flips = Payload::packed(CHANGE, bytes, words.len() as u64 * 8);
                let list = toggled.as_ref().map(|toggled| {
                    let entries = toggled.iter().flat_map(|entry| entry.to_le_bytes());
                    Payload::trimmed(INSERTED, entries.collect(), toggled.len() as u64 * 8)
                });
                [flips].into_iter().chain(list).collect()
            }
            Self::Counters(steps) => {
                let size = steps.changes.len() as u64 * 16;
                vec![Payload::packed(CHANGE, write_steps(steps), size)]
            }
            Self::Identities(moves) => {
                let (gone, inserted) = write_moves(moves, shape);
                let sizes = moves.sizes();
                vec![
                    Payload::packed(CHANGE, gone, sizes.0 * ENTRY_BYTES),
                    Payload::packed(INSERTED, inserted, sizes.1 * ENTRY_BYTES),
                ]
            }
        }
    }

    /// A change of this shape from the sections that [`encode`](Self::encode) made.
    pub(crate) fn read(frame: &mut Frame<'_>, shape: Shape) -> Result<Self, WireError> {
        let section = frame.packed(CHANGE)?;
        Ok(match shape {
            Shape::Bits(bits) => Self::Bits(read_flips(frame, &section, bits)?),
            Shape::Counters { counters, width } => {
                Self::Counters(read_steps(frame, &section, counters, width)?)
            }
            Shape::Identities { universe, value_bits } => {
                Self::Identities(read_moves(frame, &section, universe, value_bits)?)
            }
            Shape::Listed(bits) => {
                let flips = read_flips(frame, &section, bits)?;
                let (entries, size) = frame.trimmed(INSERTED)?;
                let (whole, rest) = entries.as_chunks();
                let mut toggled: Vec<u64> = frame.budget().vec(whole.len() as u64)?;
                toggled.extend(whole.iter().map(|entry| u64::from_le_bytes(*entry)));
                if !rest.is_empty()
                    || size != entries.len() as u64
                    || !toggled.is_sorted_by(|a, b| a < b)
                {
                    return Err(DAMAGED.into());
                }
                Self::Bits(Flips { toggled: Some(toggled), ..flips })
            }
        })
    }
}

/// The bytes of a section, and the memory that it claims.
type Packed = (Vec<u8>, u64);

fn read_flips(
    frame: &mut Frame<'_>,
    (bytes, decoded): &Packed,
    bits: u64,
) -> Result<Flips, WireError> {
    let len = bits.div_ceil(64);
    if len.checked_mul(8) != Some(*decoded) {
        return Err(DAMAGED.into());
    }
    coder::check(bytes, bits).map_err(|error| error.or(DAMAGED))?;
    let mut words = frame.budget().zeros(len)?;
    coder::decode_into(bytes, bits, &mut words).map_err(|error| error.or(DAMAGED))?;
    Ok(Flips { bits, words, toggled: None })
}

/// What is removed and what is inserted, exactly as many as are claimed.
fn read_moves(
    frame: &mut Frame<'_>,
    (gone, size): &Packed,
    universe: u64,
    value_bits: u32,
) -> Result<Moves, WireError> {
    let count = |decoded: u64| {
        let whole = decoded.is_multiple_of(ENTRY_BYTES);
        whole.then_some(decoded / ENTRY_BYTES).ok_or(DAMAGED)
    };
    let read = |bytes: &[u8], count: u64, budget: &mut Budget| {
        EntryReader::new(bytes, universe, value_bits)?.collect(count, budget)
    };
    let (&form, mut rest) = gone.split_first().ok_or(DAMAGED)?;
    let mut moves = Moves { base_entries: 0, gone: None, removed: None, inserted: Vec::new() };
    match form {
        1 => {
            moves.base_entries = numbers::take(&mut rest).ok_or(DAMAGED)?;
            moves.gone = Some(read_gone(rest, moves.base_entries, count(*size)?, frame.budget())?);
        }
        0 => {
            moves.removed = Some(read(rest, count(*size)?, frame.budget())?);
        }
        _ => return Err(WireError::unknown("form", &form)),
    }
    let (come, size) = frame.packed(INSERTED)?;
    moves.inserted = read(&come, count(size)?, frame.budget())?;
    Ok(moves)
}

/// Reads `count` positions among the entries of the base, and how often each is removed.
fn read_gone(
    mut bytes: &[u8],
    base_entries: u64,
    count: u64,
    budget: &mut Budget,
) -> Result<Vec<Gone>, WireError> {
    let mut positions = numbers::take_all_sorted(&mut bytes, base_entries, count).ok_or(DAMAGED)?;
    let mut counts = Counts::new(bytes, count).ok_or(DAMAGED)?;
    let mut gone: Vec<Gone> = budget.vec(count)?;
    while let Some(position) = positions.read_next().map_err(|_| DAMAGED)? {
        gone.push(Gone { position, count: counts.read_next().ok_or(DAMAGED)? });
    }
    let rises = gone.is_sorted_by(|a, b| a.position < b.position);
    if rises && counts.is_read() { Ok(gone) } else { Err(DAMAGED.into()) }
}

/// Steps as small numbers: +1, -1, +2, -2, ... become 0, 1, 2, 3, ...
fn zigzag(step: u64, width: u32) -> u64 {
    let half = 1_u64 << (width - 1);
    if step <= half { 2 * (step - 1) } else { 2 * ((1 << width) - step) - 1 }
}

fn unzigzag(number: u64, width: u32) -> Option<u64> {
    let step = number / 2 + 1;
    let half = 1_u64 << (width - 1);
    match number % 2 {
        0 if step <= half => Some(step),
        1 if step < half => Some((1 << width) - step),
        _ => None,
    }
}

fn write_steps(steps: &Steps) -> Vec<u8> {
    let indices = steps.changes.iter().map(|&(index, _)| index);
    let sizes = steps.changes.iter().map(|&(_, step)| zigzag(step, steps.width));
    let mut out = Vec::new();
    numbers::put_sorted(&mut out, steps.changes.len() as u64, indices, steps.counters);
    let in_time = planes::put(&mut out, &sizes, Effort::Best);
    debug_assert!(in_time, "an index has a bit at least, and so half as many steps as it may");
    out
}

fn read_steps(
    frame: &mut Frame<'_>,
    (bytes, decoded): &Packed,
    counters: u64,
    width: u32,
) -> Result<Steps, WireError> {
    let mut rest = bytes.as_slice();
    let count = decoded / 16;
    let mut indices = numbers::take_all_sorted(&mut rest, counters, count).ok_or(DAMAGED)?;
    let budget = frame.budget();
    let mut changes: Vec<(u64, u64)> = budget.vec(count)?;
    while let Some(index) = indices.read_next().map_err(|_| DAMAGED)? {
        changes.push((index, 0));
    }
    let most = (1 << width) - 1;
    planes::take(rest, bytes.len() as u64, (count, most), budget, |at, size| {
        changes[at as usize].1 = size;
    })?;
    for (_, step) in &mut changes {
        *step = unzigzag(*step, width).ok_or(DAMAGED)?;
    }
    let rises = changes.is_sorted_by(|a, b| a.0 < b.0);
    if rises && decoded % 16 == 0 {
        Ok(Steps { counters, width, changes })
    } else {
        Err(DAMAGED.into())
    }
}

/// What is removed: a byte that says whether by position (1) or by identity (0), then for
/// positions how many entries the base has, then gaps, then the counts less one. What is inserted:
/// gaps, values, counts less one.
fn write_moves(moves: &Moves, shape: Shape) -> (Vec<u8>, Vec<u8>) {
    let (universe, value_bits) = match shape {
        Shape::Identities { universe, value_bits } => (universe, value_bits),
        _ => (0, 0),
    };
    let mut gone = Vec::new();
    let put = |out: &mut Vec<u8>, entries: &[Entry]| {
        put_entries(out, || entries.iter().copied(), entries.len() as u64, universe, value_bits);
    };
    if let Some(positions) = &moves.gone {
        gone.push(1);
        numbers::put(&mut gone, moves.base_entries);
        let at = positions.iter().map(|gone| gone.position);
        numbers::put_sorted(&mut gone, positions.len() as u64, at, moves.base_entries);
        let mut several = Several::default();
        for gone in positions {
            several.push(gone.count);
        }
        several.put(&mut gone);
    } else {
        gone.push(0);
        put(&mut gone, moves.removed.as_deref().unwrap_or_default());
    }
    let mut inserted = Vec::new();
    put(&mut inserted, &moves.inserted);
    (gone, inserted)
}
