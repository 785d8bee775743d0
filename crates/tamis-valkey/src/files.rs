//! What RDB files and rewritten logs hold of a value.
//!
//! ```text
//! RDB   header | of each chunk the position behind it, and the chunk | 0
//! log   LOADCHUNK of the header and of all chunks, as SCANDUMP gives them
//! ```
//!
//! A value of which chunks are still to come is saved alike, as far as it has come. Writing takes
//! memory for one chunk.

use crate::asked::Family;
use crate::dump::{CHUNK, Header};
use crate::ffi::{Held, Log, Stream, TypeId, limit_on_loading, saves_all};
use crate::incoming;
use crate::memory::{self, NoMemory};
use crate::value::{Filter, Value};

/// Bytes of a chunk: the server compresses each, and takes as much memory for that.
const PIECE: usize = 1 << 16;

/// The header of a value.
fn header(value: &Value) -> Result<Header, NoMemory> {
    match value.as_incoming() {
        Some(incoming) => Ok(incoming.header()),
        None => value.filter().map_or(Err(NoMemory), Header::of),
    }
}

/// Hands over all chunks of a value, with at most `most` bytes each, and the position behind each.
fn each_chunk(value: &Value, most: usize, mut put: impl FnMut(u64, &[u8])) -> Result<(), NoMemory> {
    let mut from = 1;
    loop {
        let next = match (value.as_incoming(), value.filter()) {
            (Some(incoming), _) => incoming.chunk(from, most)?,
            (None, Ok(filter)) => incoming::chunk(filter, from, most)?,
            (None, Err(_)) => None,
        };
        let Some((to, bytes)) = next else { return Ok(()) };
        put(to, &bytes);
        from = to;
    }
}

impl Held for Value {
    fn type_id(&self) -> TypeId {
        match self.family() {
            Family::Bloom => TypeId::Bloom,
            Family::Cuckoo => TypeId::Cuckoo,
        }
    }

    fn memory(&self) -> u64 {
        self.memory()
    }

    fn content(&self) -> Vec<u128> {
        self.filter().map(Filter::content).unwrap_or_default()
    }

    fn save(&self, to: Stream) -> Result<(), NoMemory> {
        if !saves_all() {
            // The dump of one key is in memory twice: while it grows, and once more as the reply.
            memory::ask(self.memory().saturating_mul(3))?;
        }
        memory::ask(4 * PIECE as u64)?; // For a chunk, and for the server, which compresses it.
        to.put(&header(self)?.encode());
        each_chunk(self, PIECE, |position, bytes| {
            to.put_number(position);
            to.put(bytes);
        })?;
        to.put_number(0);
        Ok(())
    }

    fn load(from: Stream) -> Option<Self> {
        let header = Header::decode(from.take()?.bytes()).ok()?;
        let most = limit_on_loading();
        if header.memory() > most {
            return None;
        }
        let mut value = Self::loading(&header).ok()?;
        loop {
            match from.take_number() {
                0 => return (!from.is_broken()).then_some(value),
                position => value.take_chunk(position, from.take()?.bytes(), most).ok()?,
            }
        }
    }

    fn rewrite(&self, to: Log) -> Result<(), NoMemory> {
        let command = match self.family() {
            Family::Bloom => c"BF.LOADCHUNK",
            Family::Cuckoo => c"CF.LOADCHUNK",
        };
        to.put(command, Some(1), &header(self)?.encode());
        each_chunk(self, CHUNK, |iterator, bytes| to.put(command, Some(iterator), bytes))
    }
}
