//! A filter as bytes: a header of ours, then the wire form of every layer.
//!
//! ```text
//! header   magic (8) | family (1) | hash (1) | seed (16) | rate as bits (8) | capacity (8) |
//!          expansion (4) | bucket size (2) | max iterations (2) | removed (8) | layers (4) |
//!          of each layer bytes (8) and different identities (8) | checksum of all before (8)
//! layers   one after the other, each as `tamis` reads it
//! ```
//!
//! Numbers are little-endian. RDB files, chunks of a rewritten AOF and SCANDUMP all carry this. A
//! layer that a replica is to build is announced by the same header, with its layout in place of
//! the lengths. Bytes that come in may be hostile: nothing is allocated for what they merely
//! claim.

use tamis::wire::{Encoded, Encoding, Frame, Source};
use tamis::{AnyFilter, AnyParams, HashId, Hasher, Kind, Limits, WireError};

use crate::memory::{self, NoMemory};
use crate::scaling::{Asked, Family, Layer, MOST_LAYERS, Scaling};

/// The header of a filter.
const FILTER: [u8; 8] = *b"TAMISVK1";
/// The announcement of a layer.
const LAYER: [u8; 8] = *b"TAMISVL1";
/// Bytes of a chunk in a rewritten log and in SCANDUMP, as clients know it.
pub(crate) const CHUNK: usize = 16 << 20;
/// The memory that a layer may take, as a multiple of its bytes: empty buckets are stored in a few
/// bits each.
const EMPTINESS: u64 = 256;
/// What it may take beyond that: small layers are rounded up.
const SPARE: u64 = 1 << 16;

/// The bytes are not what this module writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// Why there is no filter from bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// They are not what this module writes.
    Damaged,
    /// There is no memory for what they hold.
    Memory,
}

impl From<Damaged> for Refused {
    fn from(_: Damaged) -> Self {
        Self::Damaged
    }
}

impl From<WireError> for Refused {
    fn from(error: WireError) -> Self {
        // No layer that this module wrote is beyond the limits.
        match error {
            WireError::Limit { limit, .. } if limit == usize::MAX as u64 => Self::Memory,
            _ => Self::Damaged,
        }
    }
}

/// What a header says.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) asked: Asked,
    pub(crate) removed: u64,
    /// Bytes of each layer.
    pub(crate) lengths: Vec<u64>,
    /// Different identities in each layer.
    distinct: Vec<u64>,
}

impl Header {
    /// The header of a filter.
    pub(crate) fn of(filter: &Scaling) -> Result<Self, NoMemory> {
        let length = |layer| encode(layer).map(|encoded| encoded.len());
        let lengths = filter.layers().iter().map(length).collect::<Result<_, _>>()?;
        let (asked, removed) = (*filter.asked(), filter.removed());
        Ok(Self { asked, removed, lengths, distinct: filter.distinct().to_vec() })
    }

    /// Bytes of all layers.
    pub(crate) fn total(&self) -> u64 {
        self.lengths.iter().copied().fold(0, u64::saturating_add)
    }

    /// The header as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = FILTER.to_vec();
        put_asked(&mut out, &self.asked);
        out.extend(self.removed.to_le_bytes());
        out.extend((self.lengths.len() as u32).to_le_bytes());
        for (length, distinct) in self.lengths.iter().zip(&self.distinct) {
            out.extend(length.to_le_bytes());
            out.extend(distinct.to_le_bytes());
        }
        seal(out)
    }

    /// The header that these bytes are.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut fields = Fields(open(bytes, FILTER)?);
        let asked = fields.asked()?;
        let removed = fields.u64()?;
        let layers = fields.u32()? as usize;
        if !(1..=MOST_LAYERS).contains(&layers) || fields.0.len() != layers * 16 {
            return Err(Damaged);
        }
        let (mut lengths, mut distinct) = (Vec::new(), Vec::new());
        for _ in 0..layers {
            lengths.push(fields.u64()?);
            distinct.push(fields.u64()?);
        }
        Ok(Self { asked, removed, lengths, distinct })
    }

    /// The filter with this header and these layers, if none takes more than `most` bytes of
    /// memory.
    pub(crate) fn assemble(&self, mut layers: &[u8], most: u64) -> Result<Scaling, Refused> {
        memory::ask(layers.len() as u64).map_err(|_| Refused::Memory)?;
        let mut filters = Vec::new();
        for &length in &self.lengths {
            let length = usize::try_from(length).map_err(|_| Damaged)?;
            let (mut layer, rest) = layers.split_at_checked(length).ok_or(Damaged)?;
            filters.push(read_layer(&mut layer, most)?);
            layers = rest;
        }
        if !layers.is_empty() {
            return Err(Refused::Damaged);
        }
        Ok(self.assemble_layers(filters)?)
    }

    /// The filter with this header and these layers.
    pub(crate) fn assemble_layers(&self, layers: Vec<AnyFilter>) -> Result<Scaling, Damaged> {
        Scaling::of_layers(self.asked, layers, self.distinct.clone(), self.removed).ok_or(Damaged)
    }
}

/// A layer from its bytes. It may take at most `most` bytes of memory, and no more than its bytes
/// can decode into: the packed form, in which few bytes may stand for any number of cells, is for
/// transfer and not written here.
pub(crate) fn read_layer(source: &mut dyn Source, most: u64) -> Result<AnyFilter, Refused> {
    let bytes = source.remaining();
    let memory = bytes.saturating_mul(EMPTINESS).saturating_add(SPARE).min(most);
    let frame = Frame::read(source, Limits::memory(memory))?;
    if frame.header().sections.iter().any(|section| section.encoding == Encoding::Packed) {
        return Err(Refused::Damaged);
    }
    let layer = AnyFilter::read_behind(frame)?;
    if source.remaining() == 0 { Ok(layer) } else { Err(Refused::Damaged) }
}

/// At most `most` bytes of the layers, from `start` on.
pub(crate) fn chunk(filter: &Scaling, start: u64, most: usize) -> Result<Vec<u8>, NoMemory> {
    let mut out = Vec::new();
    let mut position = 0;
    for layer in filter.layers() {
        let encoded = encode(layer)?;
        for piece in encoded.pieces() {
            let skipped = start.saturating_sub(position).min(piece.len() as u64) as usize;
            let taken = (piece.len() - skipped).min(most - out.len());
            out.try_reserve(taken).map_err(|_| NoMemory)?;
            out.extend_from_slice(&piece[skipped..skipped + taken]);
            position += piece.len() as u64;
        }
    }
    Ok(out)
}

/// A layer as bytes.
pub(crate) fn encode(layer: &AnyFilter) -> Result<Encoded<'_>, NoMemory> {
    memory::ask(memory::to_encode(layer))?;
    Ok(layer.encode())
}

/// Cuts bytes that come one after the other into pieces of one length and a last one, and hands
/// these over.
pub(crate) struct Cutter<P: FnMut(&[u8])> {
    piece: Vec<u8>,
    length: usize,
    put: P,
}

impl<P: FnMut(&[u8])> Cutter<P> {
    /// For `bytes` bytes in pieces of `length` bytes.
    pub(crate) fn new(bytes: u64, length: usize, put: P) -> Result<Self, NoMemory> {
        let mut piece = Vec::new();
        let most = usize::try_from(bytes).unwrap_or(length).min(length);
        piece.try_reserve_exact(most).map_err(|_| NoMemory)?;
        Ok(Self { piece, length, put })
    }

    /// Takes the bytes of a layer.
    pub(crate) fn take(&mut self, layer: &Encoded<'_>) {
        layer.pieces().for_each(|bytes| self.take_bytes(bytes));
    }

    /// Takes bytes.
    pub(crate) fn take_bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.length - self.piece.len();
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.piece.extend_from_slice(now);
            bytes = later;
            if self.piece.len() == self.length {
                self.end();
            }
        }
    }

    /// Hands over what is left.
    pub(crate) fn end(&mut self) {
        if !self.piece.is_empty() {
            (self.put)(&self.piece);
            self.piece.clear();
        }
    }
}

/// The announcement of the next layer of a filter: replicas build what it says, and plan nothing.
pub(crate) fn announce(asked: &Asked, layer: &Layer) -> Vec<u8> {
    let mut out = LAYER.to_vec();
    put_asked(&mut out, asked);
    out.extend(layer.capacity.to_le_bytes());
    out.extend(layer.params.kind().id().to_le_bytes());
    out.extend(layer.params.named().iter().flat_map(|(_, value)| value.to_le_bytes()));
    seal(out)
}

/// What an announcement says.
pub(crate) fn decode_announcement(bytes: &[u8]) -> Result<(Asked, Layer), Damaged> {
    let mut fields = Fields(open(bytes, LAYER)?);
    let asked = fields.asked()?;
    let capacity = fields.u64()?;
    let kind = Kind::from_id(fields.u16()?).ok_or(Damaged)?;
    let mut values = Vec::new();
    while !fields.0.is_empty() {
        values.push(fields.u64()?);
    }
    if capacity == 0 || !asked.family.takes(kind) {
        return Err(Damaged);
    }
    let params = AnyParams::from_values(kind, &values).map_err(|_| Damaged)?;
    Ok((asked, Layer { params, capacity }))
}

fn put_asked(out: &mut Vec<u8>, asked: &Asked) {
    out.push(asked.family as u8);
    out.push(asked.hasher.id() as u8);
    out.extend(asked.hasher.seed().to_le_bytes());
    out.extend(asked.rate.to_bits().to_le_bytes());
    out.extend(asked.capacity.to_le_bytes());
    out.extend(asked.expansion.to_le_bytes());
    out.extend(asked.bucket_size.to_le_bytes());
    out.extend(asked.max_iterations.to_le_bytes());
}

/// Ends a header with the checksum of what is before.
fn seal(mut out: Vec<u8>) -> Vec<u8> {
    let checksum = Hasher::default().digest_bytes(&out).0;
    out.extend(checksum.to_le_bytes());
    out
}

/// What stands between the magic and the checksum.
fn open(bytes: &[u8], magic: [u8; 8]) -> Result<&[u8], Damaged> {
    let (body, checksum) = bytes.split_last_chunk::<8>().ok_or(Damaged)?;
    if Hasher::default().digest_bytes(body).0 != u64::from_le_bytes(*checksum) {
        return Err(Damaged);
    }
    body.strip_prefix(&magic).ok_or(Damaged)
}

/// Fields that are left to read.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u16(&mut self) -> Result<u16, Damaged> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Damaged> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Damaged> {
        self.take().map(u64::from_le_bytes)
    }

    fn asked(&mut self) -> Result<Asked, Damaged> {
        let [family, hash] = self.take()?;
        let family = match family {
            0 => Family::Bloom,
            1 => Family::Cuckoo,
            _ => return Err(Damaged),
        };
        let seed = u128::from_le_bytes(self.take()?);
        let hasher = HashId::from_id(hash).and_then(|id| Hasher::from_parts(id, seed));
        let asked = Asked {
            family,
            hasher: hasher.ok_or(Damaged)?,
            rate: f64::from_bits(self.u64()?),
            capacity: self.u64()?,
            expansion: self.u32()?,
            bucket_size: self.u16()?,
            max_iterations: self.u16()?,
        };
        let sane = asked.rate > 0.0 && asked.rate < 1.0 && asked.capacity > 0;
        if sane { Ok(asked) } else { Err(Damaged) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Filters of every size and rate are read back, empty and full: a limit that is too narrow
    /// would keep a server from starting.
    #[test]
    fn whatever_is_planned_can_be_loaded() {
        for family in [Family::Bloom, Family::Cuckoo] {
            for rate in [0.25, 0.01, 1e-4, 1e-9, 1e-13] {
                for capacity in [1, 4, 1000, 300_000] {
                    let asked = Asked {
                        family,
                        rate,
                        capacity,
                        expansion: 0,
                        bucket_size: 2,
                        max_iterations: 20,
                        hasher: Hasher::default(),
                    };
                    let mut filter = Scaling::new(asked);
                    filter.push(asked.plan(0).unwrap().0).unwrap();
                    for fill in [0, 1, capacity] {
                        for key in filter.keys()..fill {
                            filter.insert(filter.digest(&key.to_le_bytes())).unwrap();
                        }
                        let header =
                            Header::decode(&Header::of(&filter).unwrap().encode()).unwrap();
                        let bytes = chunk(&filter, 0, usize::MAX).unwrap();
                        let back = header.assemble(&bytes, u64::MAX).unwrap();
                        let id = |filter: &Scaling| filter.layers()[0].content_id();
                        assert_eq!(id(&back), id(&filter), "{asked:?} {fill}");
                        assert!(header.assemble(&bytes, 0).is_err());
                    }
                }
            }
        }
    }
}
