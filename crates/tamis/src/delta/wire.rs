//! Deltas as bytes: the header of the format with object 2, the content ids of base and result, and the change.
//!
//! ```text
//! section 0   content id of the base, content id of the result (16 bytes each)
//! section 1   bits: the flips as one frame of the coder
//!             counters: a frame of which change, then by how much (zigzag, as planes)
//!             identities: what goes, as gaps between positions (or identities); see `write_moves`
//!             listed: the flips as one frame
//! section 2   identities: what comes, as gaps between identities
//!             listed: the digests that come to the list or leave it (8 bytes each, in order)
//! ```

use alloc::vec;
use alloc::vec::Vec;

use super::bits::Flips;
use super::counters::Steps;
use super::identities::{Gone, Moves};
use super::listed::Listed;
use super::{Change, Delta};
use crate::coder::{self, Effort, numbers, planes};
use crate::group::{GROUP_BYTES, put_counts, put_groups, take_counts, take_groups};
use crate::spec::{Budget, Invalid, Kind, Label, Limits, WireError};
use crate::wire::{self, ContentId, Encoded, Frame, Header, Object, Payload};

const IDS: u8 = 0;
const CHANGE: u8 = 1;
const INSERTED: u8 = 2;

const DAMAGED: Invalid = Invalid("the change of a delta is not what an encoder writes");

impl Delta {
    /// The delta as bytes.
    pub fn encode(&self) -> Encoded<'static> {
        let mut ids = self.base.0.to_le_bytes().to_vec();
        ids.extend(self.result.0.to_le_bytes());
        let mut payloads = vec![Payload::trimmed(IDS, ids, 32)];
        match &self.change {
            Change::Bits(flips) => {
                let bytes = coder::encode(&flips.words, flips.bits, Effort::Best);
                payloads.push(Payload::packed(CHANGE, bytes, flips.words.len() as u64 * 8));
            }
            Change::Counters(steps) => {
                let bytes = write_steps(steps);
                payloads.push(Payload::packed(CHANGE, bytes, steps.changes.len() as u64 * 16));
            }
            Change::Identities(moves) => {
                let value_bits = self.value_bits();
                let (gone, inserted) = write_moves(moves, self.universe(), value_bits);
                let sizes = moves.sizes();
                payloads.push(Payload::packed(CHANGE, gone, sizes.0 * GROUP_BYTES));
                payloads.push(Payload::packed(INSERTED, inserted, sizes.1 * GROUP_BYTES));
            }
            Change::Listed(listed) => {
                let Flips { bits, words } = &listed.flips;
                let bytes = coder::encode(words, *bits, Effort::Best);
                payloads.push(Payload::packed(CHANGE, bytes, words.len() as u64 * 8));
                let entries = listed.toggled.iter().flat_map(|entry| entry.to_le_bytes());
                let size = listed.toggled.len() as u64 * 8;
                payloads.push(Payload::trimmed(INSERTED, entries.collect(), size));
            }
        }
        let Label { hasher, keys, capacity } = self.label;
        wire::encode_parts(
            Header {
                object: Object::Delta,
                kind: self.kind,
                hasher,
                keys,
                capacity,
                params: self.params.clone(),
                sections: Vec::new(),
            },
            payloads,
        )
    }

    fn universe(&self) -> u64 {
        self.params.first().copied().unwrap_or(0)
    }

    fn value_bits(&self) -> u32 {
        match self.kind {
            Kind::RankMap | Kind::DLeft => self.params.get(1).copied().unwrap_or(0).min(32) as u32,
            _ => 0,
        }
    }

    /// A delta from bytes, everything checked that can be checked without the base.
    pub fn decode(mut bytes: &[u8], limits: Limits) -> Result<Self, WireError> {
        let mut frame = Frame::read(&mut bytes, limits)?;
        let header = frame.header().clone();
        if header.object != Object::Delta {
            return Err(WireError::Value {
                field: "object",
                value: header.object as u64,
                expected: "this is a filter, not a delta",
            });
        }
        let (ids, _) = frame.trimmed(IDS)?;
        let id = |at: usize| {
            let bytes = ids.get(at..at + 16).and_then(|bytes| bytes.try_into().ok());
            bytes.map(|bytes| ContentId(u128::from_le_bytes(bytes))).ok_or(DAMAGED)
        };
        let (base, result) = (id(0)?, id(16)?);
        if ids.len() != 32 {
            return Err(DAMAGED.into());
        }
        let label = Label { hasher: header.hasher, keys: header.keys, capacity: header.capacity };
        let mut delta = Self {
            kind: header.kind,
            label,
            params: header.params,
            base,
            result,
            change: Change::Identities(Moves {
                base_groups: 0,
                gone: None,
                removed: None,
                inserted: Vec::new(),
            }),
        };
        delta.change = delta.read_change(&mut frame)?;
        frame.finish()?;
        Ok(delta)
    }

    fn read_change(&self, frame: &mut Frame<'_>) -> Result<Change, WireError> {
        let param = |at: usize| self.params.get(at).copied().ok_or(DAMAGED);
        let section = frame.packed(CHANGE)?;
        match self.kind {
            Kind::Bloom => Ok(Change::Bits(read_flips(frame, &section, param(0)?)?)),
            Kind::Blocked => {
                let bits = param(0)?.checked_mul(param(1)?).ok_or(DAMAGED)?;
                Ok(Change::Bits(read_flips(frame, &section, bits)?))
            }
            Kind::BalancedSingle
            | Kind::BalancedSequential
            | Kind::BalancedMht
            | Kind::BalancedPopcount
            | Kind::BalancedTwoChoice => {
                let bits = param(0)?.checked_mul(param(1)?).ok_or(DAMAGED)?;
                let flips = read_flips(frame, &section, bits)?;
                let (entries, size) = frame.trimmed(INSERTED)?;
                let (whole, rest) = entries.as_chunks();
                let mut toggled: Vec<u64> = frame.budget().vec(whole.len() as u64)?;
                toggled.extend(whole.iter().map(|entry| u64::from_le_bytes(*entry)));
                if !rest.is_empty()
                    || size != entries.len() as u64
                    || !numbers::strictly_rise(&toggled)
                {
                    return Err(DAMAGED.into());
                }
                Ok(Change::Listed(Listed { flips, toggled }))
            }
            Kind::Counting => {
                let (counters, width) = (param(0)?, param(2)?);
                let width = u32::try_from(width).ok().filter(|width| (1..=16).contains(width));
                let steps = read_steps(frame, &section, counters, width.ok_or(DAMAGED)?)?;
                Ok(Change::Counters(steps))
            }
            kind if kind.keeps_identities() => {
                Ok(Change::Identities(self.read_moves(frame, &section)?))
            }
            _ => Err(WireError::Unknown { field: "kind", value: self.kind.name().into() }),
        }
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
    coder::check(bytes, bits).map_err(|_| DAMAGED)?;
    let mut words = frame.budget().zeros(len)?;
    coder::decode_into(bytes, bits, &mut words).map_err(|_| DAMAGED)?;
    Ok(Flips { bits, words })
}

impl Delta {
    /// What goes and what comes, exactly as many as are claimed.
    fn read_moves(&self, frame: &mut Frame<'_>, (gone, size): &Packed) -> Result<Moves, WireError> {
        let (universe, value_bits) = (self.universe(), self.value_bits());
        let count = |decoded: u64| {
            let whole = decoded.is_multiple_of(GROUP_BYTES);
            whole.then_some(decoded / GROUP_BYTES).ok_or(DAMAGED)
        };
        let (&form, mut rest) = gone.split_first().ok_or(DAMAGED)?;
        let mut moves = Moves { base_groups: 0, gone: None, removed: None, inserted: Vec::new() };
        match form {
            1 => {
                moves.base_groups = numbers::take(&mut rest).ok_or(DAMAGED)?;
                moves.gone =
                    Some(read_gone(&mut rest, moves.base_groups, count(*size)?, frame.budget())?);
            }
            0 => {
                let budget = frame.budget();
                let removed = take_groups(&mut rest, universe, value_bits, count(*size)?, budget)?;
                moves.removed = Some(removed);
            }
            _ => return Err(DAMAGED.into()),
        }
        let (come, size) = frame.packed(INSERTED)?;
        let mut come = come.as_slice();
        moves.inserted =
            take_groups(&mut come, universe, value_bits, count(size)?, frame.budget())?;
        if rest.is_empty() && come.is_empty() { Ok(moves) } else { Err(DAMAGED.into()) }
    }
}

/// So many positions among the groups of the base, and how often each goes.
fn read_gone(
    rest: &mut &[u8],
    base_groups: u64,
    count: u64,
    budget: &mut Budget,
) -> Result<Vec<Gone>, WireError> {
    let positions = numbers::take_sorted(rest, base_groups, count);
    let mut positions = positions.filter(|numbers| numbers.left() == count).ok_or(DAMAGED)?;
    let mut gone: Vec<Gone> = budget.vec(count)?;
    while let Some(position) = positions.next().map_err(|_| DAMAGED)? {
        gone.push(Gone { position, count: 1 });
    }
    take_counts(rest, gone.iter_mut().map(|gone| &mut gone.count)).ok_or(DAMAGED)?;
    let rises = gone.is_sorted_by(|a, b| a.position < b.position);
    if rises { Ok(gone) } else { Err(DAMAGED.into()) }
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
    let indices: Vec<u64> = steps.changes.iter().map(|&(index, _)| index).collect();
    let sizes = steps.changes.iter().map(|&(_, step)| zigzag(step, steps.width));
    let mut out = Vec::new();
    numbers::put_sorted(&mut out, &indices, steps.counters);
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
    let indices = numbers::take_sorted(&mut rest, counters, count);
    let mut indices = indices.filter(|numbers| numbers.left() == count).ok_or(DAMAGED)?;
    let budget = frame.budget();
    let mut changes: Vec<(u64, u64)> = budget.vec(count)?;
    while let Some(index) = indices.next().map_err(|_| DAMAGED)? {
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

/// What goes: a byte that says whether by position (1) or by identity (0), then for positions how many groups the base has, then gaps,
/// then the counts less one; what comes: gaps, values, counts less one.
fn write_moves(moves: &Moves, universe: u64, value_bits: u32) -> (Vec<u8>, Vec<u8>) {
    let mut gone = Vec::new();
    if let Some(positions) = &moves.gone {
        gone.push(1);
        numbers::put(&mut gone, moves.base_groups);
        let at: Vec<u64> = positions.iter().map(|gone| gone.position).collect();
        let counts: Vec<u64> = positions.iter().map(|gone| gone.count).collect();
        numbers::put_sorted(&mut gone, &at, moves.base_groups);
        put_counts(&mut gone, &counts);
    } else {
        gone.push(0);
        put_groups(&mut gone, moves.removed.as_deref().unwrap_or_default(), universe, value_bits);
    }
    let mut inserted = Vec::new();
    put_groups(&mut inserted, &moves.inserted, universe, value_bits);
    (gone, inserted)
}
