//! Memory that work on a layer takes beside it.
//!
//! Steps of the library that collect what a layer holds cannot report that memory is short: the
//! server would end there. So what they may take is allocated before, and given back. The figures
//! are bounds of what was measured for every kind; a test measures them again.

use std::hint::black_box;
use std::iter;

use tamis::wire::{Encoding, Header};
use tamis::{AnyFilter, Filter, Kind, Operation};

/// There is not enough memory for the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory;

/// How many blocks of each size lists may need while they grow, and the largest size of a small
/// block, in allocators that keep large ones apart.
const GROWING: usize = 4;
const LARGEST: u64 = 4 << 20;

/// Asks for `bytes` bytes, which work is about to take: in one block, with smaller ones of every
/// size beside it.
pub(crate) fn ask(bytes: u64) -> Result<(), NoMemory> {
    let halves = iter::successors(Some(bytes.min(LARGEST)), |size| Some(size / 2));
    let sizes = halves.take_while(|&size| size > SPARE / 4);
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    for size in sizes.flat_map(|size| iter::repeat_n(size, GROWING)).chain([bytes]) {
        blocks.push(block(size)?);
    }
    black_box(blocks); // Otherwise the compiler may remove the allocation.
    Ok(())
}

/// Asks for `bytes` bytes, which work is about to take in pieces of a few hundred.
pub(crate) fn ask_for_pieces(bytes: u64) -> Result<(), NoMemory> {
    black_box(block(bytes)?);
    Ok(())
}

fn block(size: u64) -> Result<Vec<u8>, NoMemory> {
    let mut block = Vec::new();
    let size = usize::try_from(size).map_err(|_| NoMemory)?;
    block.try_reserve_exact(size).map_err(|_| NoMemory)?;
    Ok(block)
}

/// Headers, checksums and such.
pub(crate) const SPARE: u64 = 1 << 16;
/// Bytes for every identity while all are collected or compared: a list that grows takes up to
/// three times its length.
const IDENTITY: u64 = 200;
/// Bytes for every identity while all are packed: an entry, in a list that grows.
const PACKED: u64 = 72;

/// Bytes for every identity that a reader lists: see [`tamis::Limits::memory`].
const LISTED: u64 = 144;

/// The memory of a layer; its encoded bytes are at most as many.
pub(crate) fn bytes(layer: &AnyFilter) -> u64 {
    layer.footprint() / 8
}

/// What it takes to encode a layer. Arrays are borrowed, not copied.
pub(crate) fn to_encode(layer: &AnyFilter) -> u64 {
    match layer.kind() {
        Kind::Bloom | Kind::Blocked | Kind::Counting => SPARE + bytes(layer) / 1024,
        _ => SPARE + 3 * bytes(layer),
    }
}

/// What it takes to read a layer whose header says this, itself included. A reader that is limited
/// to it reads what the library writes.
pub(crate) fn to_decode(header: &Header) -> u64 {
    let decoded = header.sections.iter().map(|section| {
        // What finds no cell while a table is built is listed.
        let times = if section.encoding == Encoding::Packed { 12 } else { 4 };
        section.decoded.saturating_mul(times)
    });
    // Keys past the plan may all be listed while a table is built of them. In what is no array
    // each has a bit at least.
    let built = header.sections.iter().filter(|section| section.encoding != Encoding::Raw);
    let most = built.map(|section| section.stored.saturating_mul(8)).fold(0, u64::saturating_add);
    let listed = match header.kind {
        Kind::Bloom | Kind::Blocked | Kind::Counting => 0,
        _ => header.keys.saturating_sub(header.capacity).min(most).saturating_mul(LISTED),
    };
    decoded.fold(SPARE.saturating_add(listed), u64::saturating_add)
}

/// What it takes to merge a layer into another, and to list what is in then.
pub(crate) fn to_merge(layer: &AnyFilter) -> u64 {
    match layer.overflow() {
        _ if layer.kind().can(Operation::Grow) => to_collect(layer),
        // The list beside the blocks grows.
        Some(_) => SPARE + 4 * bytes(layer),
        None => SPARE,
    }
}

/// The most identities of a layer. Copies are counted: a cell has three bits at least.
fn identities(layer: &AnyFilter) -> u64 {
    layer.keys().min(bytes(layer).saturating_mul(8) / 3)
}

/// What it takes to pack a layer.
pub(crate) fn to_pack(layer: &AnyFilter) -> u64 {
    match layer.kind() {
        kind if kind.can(Operation::Grow) => {
            let listed = identities(layer).saturating_mul(PACKED);
            listed.saturating_add(bytes(layer).saturating_mul(4)).saturating_add(SPARE)
        }
        _ => to_collect(layer),
    }
}

/// What it takes to unpack a layer, or to find a delta between two like it.
pub(crate) fn to_collect(layer: &AnyFilter) -> u64 {
    let bytes = bytes(layer);
    let work = match layer.kind() {
        kind if kind.can(Operation::Grow) => {
            identities(layer).saturating_mul(IDENTITY).saturating_add(bytes.saturating_mul(3))
        }
        // Every counter that changed, with its place.
        Kind::Counting => bytes.saturating_mul(80),
        _ => bytes.saturating_mul(5),
    };
    work.saturating_add(SPARE)
}

#[cfg(test)]
mod tests {
    use tamis::wire::Frame;
    use tamis::{AnyParams, Delta, Effort, Goal, Hasher, Label, Limits};
    use tamis_report::memory::{CountingAllocator, peak_of};

    use super::*;

    #[global_allocator]
    static MEMORY: CountingAllocator = CountingAllocator;

    fn header_of(mut bytes: &[u8]) -> Header {
        Frame::read(&mut bytes, Limits::NONE).unwrap().header().clone()
    }

    fn filled(empty: &AnyFilter, keys: u64, copies: u64) -> AnyFilter {
        let mut layer = empty.clone();
        let insert = layer.as_insert().unwrap();
        for key in (0..keys).cycle().take((keys * copies) as usize) {
            insert.insert_digest(Hasher::default().digest_bytes(&key.to_le_bytes())).unwrap();
        }
        layer
    }

    /// What a primary has read, a replica reads without asking for more than there is.
    #[test]
    fn what_a_header_claims_is_bounded_by_what_is_there() {
        for kind in Kind::ALL.iter().copied().filter(|kind| kind.can_insert()) {
            let params = AnyParams::plan(kind, &Goal::rate(10_000, 0.01)).unwrap();
            let layer = filled(&params.build(Hasher::default()).unwrap(), 10_000, 1);
            for encoded in [layer.encode().to_vec(), layer.pack(Effort::Best).to_vec()] {
                let mut header = header_of(&encoded);
                header.keys = u64::MAX;
                let most = SPARE + 12 * bytes(&layer) + 8 * LISTED * encoded.len() as u64;
                assert!(to_decode(&header) <= most, "{kind:?}");
            }
        }
    }

    #[test]
    fn work_takes_no_more_than_was_asked_for() {
        // A little more than a power of two, where lists have just grown; up to ten times past the
        // plan.
        for kind in Kind::ALL.iter().copied().filter(|kind| kind.can_insert()) {
            for (capacity, rate) in [(1, 0.25), (8_300, 0.25), (8_300, 0.01), (8_300, 1e-5)] {
                let params = AnyParams::plan(kind, &Goal::rate(capacity, rate)).unwrap();
                let empty = params.build(Label::planned(Hasher::default(), capacity)).unwrap();
                let fifth = capacity / 5;
                let past = [(1, 20), (2, 40), (3, 10), (5, 3), (5, 10), (15, 1), (50, 1)];
                let past = past.map(|(fifths, copies)| (fifths * fifth, copies));
                for (keys, copies) in
                    [(0, 0), (capacity / 50, 1), (capacity, 1)].into_iter().chain(past)
                {
                    let layer = filled(&empty, keys, copies);
                    let check = |what: &str, peak: u64, asked: u64| {
                        assert!(peak <= asked, "{kind:?} {rate} {keys} {what}: {peak} > {asked}");
                    };
                    let encoded = peak_of(|| layer.encode().len());
                    check("encode", encoded.1, to_encode(&layer));
                    assert!(encoded.0 <= bytes(&layer) + SPARE);
                    for effort in [Effort::Fast, Effort::Best] {
                        let packed = peak_of(|| layer.pack(effort).to_vec());
                        check("pack", packed.1, to_pack(&layer));
                        assert!(packed.0.len() as u64 <= bytes(&layer) + SPARE);
                        let asked = to_decode(&header_of(&packed.0));
                        let limits = Limits::memory(asked);
                        let unpacked = peak_of(|| AnyFilter::decode(&packed.0, limits).unwrap());
                        check("unpack", unpacked.1, to_collect(&layer));
                        check("decode packed", unpacked.1, asked);
                    }
                    let encoded = layer.encode().to_vec();
                    let asked = to_decode(&header_of(&encoded));
                    let limits = Limits::memory(asked);
                    let decoded = peak_of(|| AnyFilter::decode(&encoded, limits).unwrap());
                    check("decode", decoded.1, asked);
                    for (old, new) in [(&empty, &layer), (&layer, &empty)] {
                        let delta =
                            peak_of(|| Delta::between(old, new).map(|d| d.encode().to_vec()));
                        check("delta", delta.1, to_collect(&layer));
                    }
                    let mut merged = empty.clone();
                    let done = peak_of(|| (merged.merge(&layer).is_ok(), merged.entries().len()));
                    check("merge", done.1, to_merge(&layer));
                }
            }
        }
    }
}
