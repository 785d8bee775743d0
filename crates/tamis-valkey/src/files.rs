//! What RDB files and rewritten logs hold of a value.
//!
//! ```text
//! RDB   0 | header | of each layer its bytes, in pieces    a filter
//!       1 | header | bytes that have come                  one that is still coming in by chunks
//! log   LOADCHUNK of the header and of all bytes, as SCANDUMP gives them
//! ```
//!
//! Writing takes memory for one piece. Layers that are arrays are not copied; the others are
//! encoded first, if there is memory for that.

use tamis::wire::Source;

use crate::dump::{self, CHUNK, Cutter, Header};
use crate::ffi::{Loaded, Stream, saves_all};
use crate::memory::{self, NoMemory};
use crate::value::{Loading, Value};

/// Bytes of a piece: the server compresses each, and takes as much memory for that. A shorter
/// layer is one piece.
const PIECE: usize = 1 << 16;

/// Saves a value.
pub(crate) fn save(to: Stream, value: &Value) -> Result<(), NoMemory> {
    // The dump of one key is in memory twice: while it grows, and once more as the reply.
    let room_to_dump = |bytes: u64| memory::ask(if saves_all() { 0 } else { 3 * bytes });
    if let Some(Loading { header, received }) = value.as_loading() {
        let bytes = received.len() as u64;
        room_to_dump(bytes)?;
        memory::ask(bytes)?; // The server compresses a string into another.
        to.put_number(1);
        to.put(&header.encode());
        to.put(received);
    } else if let Ok(filter) = value.filter() {
        let header = Header::of(filter)?;
        room_to_dump(header.total())?;
        to.put_number(0);
        to.put(&header.encode());
        for (layer, &bytes) in filter.layers().iter().zip(&header.lengths) {
            let encoded = dump::encode(layer)?;
            let mut pieces = Cutter::new(bytes, PIECE, |piece| to.put(piece))?;
            memory::ask(2 * PIECE as u64)?; // For the server, which compresses a piece.
            pieces.take(&encoded);
            pieces.end();
        }
    }
    Ok(())
}

/// Loads a value; `None` if the bytes are not one, or if there is no memory for it.
pub(crate) fn load(from: Stream) -> Option<Value> {
    let state = from.take_number();
    let header = Header::decode(from.take()?.bytes()).ok()?;
    match state {
        0 => {
            memory::ask(header.total()).ok()?;
            let mut layers = Vec::new();
            for &length in &header.lengths {
                let mut pieces = Pieces { from, left: length, piece: None, read: 0 };
                layers.push(dump::read_layer(&mut pieces, u64::MAX).ok()?);
            }
            header.assemble_layers(layers).ok().map(Value::ready)
        }
        1 => {
            let loaded = from.take()?;
            let mut received = Vec::new();
            received.try_reserve_exact(loaded.bytes().len()).ok()?;
            received.extend_from_slice(loaded.bytes());
            let partial = (received.len() as u64) < header.total();
            partial.then(|| Value::loaded(Loading { header, received }))
        }
        _ => None,
    }
}

/// Hands over the chunks that make a value anew, each with its iterator.
pub(crate) fn rewrite(value: &Value, mut emit: impl FnMut(u64, &[u8])) -> Result<(), NoMemory> {
    let header = match value.as_loading() {
        Some(loading) => loading.header.clone(),
        None => value.filter().map_or(Err(NoMemory), Header::of)?,
    };
    emit(1, &header.encode());
    let mut end = 0;
    let mut chunks = Cutter::new(header.total(), CHUNK, |chunk: &[u8]| {
        end += chunk.len() as u64;
        emit(end + 1, chunk);
    })?;
    if let Some(loading) = value.as_loading() {
        chunks.take_bytes(&loading.received);
    } else if let Ok(filter) = value.filter() {
        for layer in filter.layers() {
            chunks.take(&dump::encode(layer)?);
        }
    }
    chunks.end();
    Ok(())
}

/// The pieces of a layer, as a source of bytes.
struct Pieces {
    from: Stream,
    /// Bytes of the layer that were not read yet.
    left: u64,
    piece: Option<Loaded>,
    /// Bytes of the piece that were read.
    read: usize,
}

impl Source for Pieces {
    fn remaining(&self) -> u64 {
        self.left
    }

    fn read(&mut self, mut buffer: &mut [u8]) -> Result<(), String> {
        while !buffer.is_empty() {
            let bytes = self.piece.as_ref().map(Loaded::bytes).unwrap_or_default();
            let now = (bytes.len() - self.read).min(buffer.len());
            if now == 0 {
                let next = self.from.take().ok_or("no piece, or no memory for it")?;
                if !(1..=self.left).contains(&(next.bytes().len() as u64)) {
                    return Err("a piece ends where no layer does".into());
                }
                (self.piece, self.read) = (Some(next), 0);
                continue;
            }
            let (filled, rest) = buffer.split_at_mut(now);
            filled.copy_from_slice(&bytes[self.read..self.read + now]);
            self.read += now;
            self.left -= now as u64;
            buffer = rest;
        }
        Ok(())
    }
}
