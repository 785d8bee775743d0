//! A filter as bytes, piece by piece: what SCANDUMP, LOADCHUNK, RDB files and rewritten logs carry
//! behind a header.
//!
//! ```text
//! chunk     position where it starts (8) | bytes | checksum of all before (8)
//! position  of a set: 1 and the bytes of all layers before; of a multiset see `multiset/chunk.rs`
//! ```
//!
//! Bytes are words as they lie in memory, so that nothing is encoded, and nothing is read twice. A
//! chunk is checked when it comes. Layers of kinds that are no arrays, which came by TAMIS.LOAD,
//! are in the wire format of the library, and a chunk each.

use tamis::wire::{Encoding, Frame};
use tamis::{AnyFilter, Hasher, Label, Limits};

use crate::asked::Asked;
use crate::dump::{Form, Header, LayerPart, Parts};
use crate::memory::{self, NoMemory};
use crate::multiset::{self, Table};
use crate::scaling::{Layer, Scaling};
use crate::value::Filter;

/// Why a chunk is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadChunk {
    /// It does not start where the last one ended, or the filter is complete.
    Gap,
    /// It ends after the filter does.
    TooLong,
    /// It is not what this module writes, or the filter changed while it was dumped.
    Damaged,
    /// There is no memory for it.
    Memory,
    /// The filter would take this many bytes, which the settings do not allow.
    Limit(u64),
}

impl From<NoMemory> for BadChunk {
    fn from(_: NoMemory) -> Self {
        Self::Memory
    }
}

/// Starts a chunk of at most `most` bytes.
pub(crate) fn begin(from: u64, most: usize) -> Result<Vec<u8>, NoMemory> {
    let mut out = Vec::new();
    out.try_reserve_exact(most + 16).map_err(|_| NoMemory)?;
    out.extend(from.to_le_bytes());
    Ok(out)
}

/// Adds words to a chunk.
pub(crate) fn put_words(out: &mut Vec<u8>, words: &[u64]) {
    let start = out.len();
    out.resize(start + 8 * words.len(), 0);
    for (bytes, word) in out[start..].chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

/// Ends a chunk.
pub(crate) fn end(mut out: Vec<u8>) -> Vec<u8> {
    let checksum = checksum(&out);
    out.extend(checksum.to_le_bytes());
    out
}

/// Where a chunk starts, and its bytes.
pub(crate) fn open(chunk: &[u8]) -> Result<(u64, &[u8]), BadChunk> {
    let (body, sum) = chunk.split_last_chunk::<8>().ok_or(BadChunk::Damaged)?;
    let (from, bytes) = body.split_first_chunk::<8>().ok_or(BadChunk::Damaged)?;
    if checksum(body) != u64::from_le_bytes(*sum) {
        return Err(BadChunk::Damaged);
    }
    Ok((u64::from_le_bytes(*from), bytes))
}

fn checksum(bytes: &[u8]) -> u64 {
    Hasher::default().digest_bytes(bytes).0
}

/// The words that bytes are.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}

/// A chunk of a filter from a position on, with at most `most` bytes, and the position behind it;
/// `None` if there is no more.
pub(crate) fn chunk(
    filter: &Filter,
    from: u64,
    most: usize,
) -> Result<Option<(u64, Vec<u8>)>, NoMemory> {
    match filter {
        Filter::Set(set) => set_chunk(set.layers(), &[], u64::MAX, from, most),
        Filter::Multiset(multiset) => multiset::chunk(multiset, from, most),
    }
}

/// The same for layers and bytes behind them, of which `come` bytes have come.
fn set_chunk(
    layers: &[Layer],
    tail: &[u8],
    come: u64,
    from: u64,
    most: usize,
) -> Result<Option<(u64, Vec<u8>)>, NoMemory> {
    let from = from.max(1);
    let mut at = from - 1;
    let left = come.saturating_sub(at).min(most as u64 / 8 * 8);
    for layer in layers {
        let length = length(layer)?;
        if at >= length {
            at -= length;
            continue;
        }
        let taken = (length - at).min(left) as usize;
        let Some(words) = words_of(layer) else {
            // All that is left, however long: encoding it for each piece would take for ever.
            let encoded = encode(layer)?;
            return piece(from, encoded.get(at as usize..).unwrap_or_default());
        };
        if taken == 0 || !at.is_multiple_of(8) {
            return Ok(None); // No position that was handed out.
        }
        let mut out = begin(from, taken)?;
        let start = (at / 8) as usize;
        put_words(&mut out, &words[start..start + taken / 8]);
        return Ok(Some((from + taken as u64, end(out))));
    }
    let tail = usize::try_from(at).ok().and_then(|at| tail.get(at..)).unwrap_or_default();
    piece(from, &tail[..tail.len().min(most)])
}

/// These bytes as a chunk, if there are any.
fn piece(from: u64, bytes: &[u8]) -> Result<Option<(u64, Vec<u8>)>, NoMemory> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut out = begin(from, bytes.len())?;
    out.extend(bytes);
    Ok(Some((from + bytes.len() as u64, end(out))))
}

/// The words of a layer that is stored as they are.
fn words_of(layer: &Layer) -> Option<&[u64]> {
    match layer {
        Layer::Small(table) => Some(table.leaves_from(0).next().map_or(&[], |(_, words)| words)),
        Layer::Large(filter) => filter.words(),
    }
}

/// Bytes of a layer in chunks.
pub(crate) fn length(layer: &Layer) -> Result<u64, NoMemory> {
    match words_of(layer) {
        Some(words) => Ok(8 * words.len() as u64),
        None => Ok(encode(layer)?.len() as u64),
    }
}

/// A layer in the wire format.
fn encode(layer: &Layer) -> Result<Vec<u8>, NoMemory> {
    let Layer::Large(filter) = layer else { return Ok(Vec::new()) };
    memory::ask(memory::to_encode(filter).saturating_add(memory::bytes(filter)))?;
    Ok(filter.encode().to_vec())
}

/// A filter of which some chunks are still to come.
#[derive(Clone, Debug)]
pub(crate) enum Incoming {
    Set(IncomingSet),
    Multiset(multiset::Incoming),
}

impl Incoming {
    /// Nothing has come but a header.
    pub(crate) fn new(header: &Header) -> Result<Self, NoMemory> {
        let Header { asked, removed, parts } = header;
        Ok(match parts {
            Parts::Layers(layers) => {
                let mut set = IncomingSet {
                    asked: *asked,
                    parts: layers.clone(),
                    layers: Vec::new(),
                    filled: 0,
                    received: Vec::new(),
                    position: 1,
                    before: 0,
                };
                set.make_empty();
                Self::Set(set)
            }
            Parts::Tables(tables) => {
                Self::Multiset(multiset::Incoming::new(*asked, *removed, tables)?)
            }
        })
    }

    /// What was asked for.
    pub(crate) fn asked(&self) -> &Asked {
        match self {
            Self::Set(set) => &set.asked,
            Self::Multiset(multiset) => multiset.filter().asked(),
        }
    }

    /// Its header.
    pub(crate) fn header(&self) -> Header {
        match self {
            Self::Set(set) => {
                Header { asked: set.asked, removed: 0, parts: Parts::Layers(set.parts.clone()) }
            }
            Self::Multiset(multiset) => multiset.header(),
        }
    }

    /// Bytes of memory held, beside this struct.
    pub(crate) fn memory(&self) -> u64 {
        match self {
            Self::Set(set) => set.memory(),
            Self::Multiset(multiset) => multiset.filter().memory(),
        }
    }

    /// Bytes that the next chunk takes at once, if it is the first of an array.
    pub(crate) fn opens(&self) -> u64 {
        match self {
            Self::Set(set) if set.filled == 0 => match set.parts.get(set.layers.len()) {
                Some(LayerPart { form: Form::Array(_), bytes, .. }) => *bytes,
                _ => 0,
            },
            _ => 0,
        }
    }

    /// Takes the chunk that ends at the position `to`. The last one may come again. All may take
    /// `most` bytes of memory. What is refused changes nothing.
    pub(crate) fn take(&mut self, to: u64, chunk: &[u8], most: u64) -> Result<(), BadChunk> {
        match self {
            Self::Set(set) => set.take(to, chunk, most),
            Self::Multiset(multiset) => multiset.take(to, chunk, most),
        }
    }

    /// The filter, if nothing is missing; it is empty afterwards.
    pub(crate) fn complete(&mut self) -> Option<Filter> {
        match self {
            Self::Set(set) => set.complete().map(Filter::Set),
            Self::Multiset(multiset) => multiset.complete().map(Filter::Multiset),
        }
    }

    /// A chunk of what has come; as [`chunk`].
    pub(crate) fn chunk(&self, from: u64, most: usize) -> Result<Option<(u64, Vec<u8>)>, NoMemory> {
        match self {
            Self::Set(set) => set_chunk(&set.layers, &set.received, set.position - 1, from, most),
            Self::Multiset(multiset) => multiset.chunk(from, most),
        }
    }
}

/// Layers of which some bytes are still to come.
#[derive(Clone, Debug)]
pub(crate) struct IncomingSet {
    asked: Asked,
    parts: Vec<LayerPart>,
    /// The layers that are complete, and one that is not if it is an array.
    layers: Vec<Layer>,
    /// Bytes that have come of the layer that is not complete.
    filled: u64,
    /// The same bytes, if it is no array.
    received: Vec<u8>,
    /// Where the next chunk starts, and where the last one did.
    position: u64,
    before: u64,
}

impl IncomingSet {
    fn memory(&self) -> u64 {
        let layers: u64 = self.layers.iter().map(Layer::memory).sum();
        layers + self.received.capacity() as u64
    }

    /// How many layers are complete.
    fn done(&self) -> usize {
        let open = self.filled > 0 && self.received.is_empty();
        self.layers.len() - usize::from(open)
    }

    /// Makes the layers that have no bytes, where they are next.
    fn make_empty(&mut self) {
        while self.filled == 0
            && let Some(part) = self.parts.get(self.layers.len())
            && let (Form::Small(plan), 0) = (part.form, part.bytes)
        {
            self.layers.push(Layer::Small(Table::new(plan)));
        }
    }

    fn take(&mut self, to: u64, chunk: &[u8], most: u64) -> Result<(), BadChunk> {
        let (from, bytes) = open(chunk)?;
        let total = self.parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add);
        if to > total.saturating_add(1) {
            return Err(BadChunk::TooLong);
        }
        if from == self.before && to == self.position {
            return Ok(());
        }
        if from != self.position || to.checked_sub(from) != Some(bytes.len() as u64) {
            return Err(BadChunk::Gap);
        }
        let part = self.parts.get(self.done()).ok_or(BadChunk::Gap)?;
        let end = self.filled + bytes.len() as u64;
        if bytes.is_empty() || end > part.bytes {
            return Err(BadChunk::TooLong);
        }
        let is_last = end == part.bytes;
        let memory = self.memory().saturating_add(match part.form {
            Form::Array(_) if self.filled > 0 => 0,
            Form::Array(_) => part.bytes,
            Form::Small(_) | Form::Encoded => 2 * bytes.len() as u64,
        });
        if memory > most {
            return Err(BadChunk::Limit(memory));
        }
        if let Form::Array(params) = part.form {
            if bytes.len() % 8 != 0 {
                return Err(BadChunk::Damaged);
            }
            if self.filled == 0 {
                memory::ask(part.bytes)?;
                let mut label = Label::planned(self.asked.hasher, part.capacity);
                label.keys = part.keys;
                let layer = params.build(label).map_err(|_| BadChunk::Memory)?;
                if layer.words().map(|words| 8 * words.len() as u64) != Some(part.bytes) {
                    return Err(BadChunk::Damaged);
                }
                self.layers.push(Layer::Large(Box::new(layer)));
            }
            let Some(Layer::Large(layer)) = self.layers.last_mut() else {
                return Err(BadChunk::Gap);
            };
            let place = layer.words_mut().unwrap_or_default().iter_mut();
            let place = place.skip((self.filled / 8) as usize);
            place.zip(words(bytes)).for_each(|(place, word)| *place = word);
            if is_last && layer.validate().is_err() {
                return Err(BadChunk::Damaged);
            }
        } else {
            self.received.try_reserve(bytes.len()).map_err(|_| BadChunk::Memory)?;
            self.received.extend_from_slice(bytes);
            if is_last {
                let layer = read_layer(part, &self.received, most.saturating_sub(memory));
                let layer = layer.inspect_err(|_| self.received.truncate(self.filled as usize))?;
                self.layers.push(layer);
                self.received = Vec::new();
            }
        }
        self.filled = if is_last { 0 } else { end };
        (self.before, self.position) = (from, to);
        self.make_empty();
        Ok(())
    }

    fn complete(&mut self) -> Option<Scaling> {
        if self.done() < self.parts.len() {
            return None;
        }
        Scaling::of_layers(self.asked, std::mem::take(&mut self.layers))
    }
}

/// A layer that is no array, from all of its bytes, in at most `most` bytes of memory.
fn read_layer(part: &LayerPart, mut bytes: &[u8], most: u64) -> Result<Layer, BadChunk> {
    /// How many times its bytes a layer may take: empty buckets are stored in a few bits each. The
    /// packed form, in which few bytes may stand for any number of cells, is for transfer and not
    /// written here.
    const EMPTINESS: u64 = 256;
    if let Form::Small(plan) = part.form {
        let mut table = Table::new(plan);
        let read = table.append(0, bytes, u64::MAX)?.is_some();
        let right = read && table.distinct() == part.keys;
        return if right { Ok(Layer::Small(table)) } else { Err(BadChunk::Damaged) };
    }
    let memory = (bytes.len() as u64).saturating_mul(EMPTINESS).saturating_add(memory::SPARE);
    let most = most.min(memory);
    let frame = Frame::read(&mut bytes, Limits::memory(most));
    let frame = frame.map_err(|_| BadChunk::Damaged)?;
    if frame.header().sections.iter().any(|section| section.encoding == Encoding::Packed) {
        return Err(BadChunk::Damaged);
    }
    memory::ask(memory::to_decode(frame.header()).min(most))?;
    let layer = AnyFilter::read_behind(frame).map_err(|_| BadChunk::Damaged)?;
    if bytes.is_empty() { Ok(Layer::Large(Box::new(layer))) } else { Err(BadChunk::Damaged) }
}
