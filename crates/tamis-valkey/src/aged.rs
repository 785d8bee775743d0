//! What a key holds whose items expire, and what RDB files hold of it.
//!
//! ```text
//! RDB   length | bytes of the filter in the wire format, in pieces
//! log   TAMIS.AGES with the same bytes
//! ```

use std::cell::RefCell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use tamis::{Aging, Limits};

use crate::ffi::{Held, Log, Stream, TypeId};
use crate::memory::{self, NoMemory, SPARE};
use crate::remembered::Remembered;

/// Such filters in memory: for INFO.
pub(crate) static ALIVE: AtomicI64 = AtomicI64::new(0);

/// Bytes of a piece: the server compresses each, and takes as much memory for that.
const PIECE: usize = 1 << 16;

/// A filter whose items expire.
#[derive(Debug)]
pub(crate) struct Aged {
    pub(crate) filter: Aging,
    /// Not part of the content: asking for a delta changes no filter.
    pub(crate) remembered: RefCell<Remembered>,
}

impl Aged {
    pub(crate) fn new(filter: Aging) -> Self {
        ALIVE.fetch_add(1, Relaxed);
        Self { filter, remembered: RefCell::default() }
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> u64 {
        let remembered = self.remembered.borrow().bytes();
        self.filter.footprint() / 8 + size_of::<Self>() as u64 + remembered
    }

    /// Bytes that it takes to encode it, to pack it, or to merge it into another.
    pub(crate) fn work(&self) -> u64 {
        SPARE + 4 * self.memory()
    }

    /// The bytes of the filter, if there is memory for them.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, NoMemory> {
        memory::ask(self.work())?;
        Ok(self.filter.encode().to_vec())
    }

    /// The filter of bytes that [`encode`](Self::encode) made; `None` if they are none, or stand
    /// for far more memory than they have bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        // A copy of each generation, its table, and what found no cell.
        let most = SPARE + 4 * bytes.len() as u64;
        memory::ask(most).ok()?;
        Aging::decode(bytes, Limits::memory(most)).ok().map(Self::new)
    }
}

impl Held for Aged {
    fn type_id(&self) -> TypeId {
        TypeId::Aging
    }

    fn memory(&self) -> u64 {
        self.memory()
    }

    fn content(&self) -> Vec<u128> {
        vec![self.filter.content_id().0]
    }

    fn save(&self, to: Stream) -> Result<(), NoMemory> {
        let bytes = self.encode()?;
        memory::ask(2 * PIECE as u64)?; // For the server, which compresses a piece.
        to.put_number(bytes.len() as u64);
        bytes.chunks(PIECE).for_each(|piece| to.put(piece));
        Ok(())
    }

    fn load(from: Stream) -> Option<Self> {
        let length = usize::try_from(from.take_number()).ok()?;
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let piece = from.take()?;
            if piece.bytes().is_empty() || piece.bytes().len() > length - bytes.len() {
                return None;
            }
            bytes.try_reserve(piece.bytes().len()).ok()?;
            bytes.extend_from_slice(piece.bytes());
        }
        Self::decode(&bytes)
    }

    fn rewrite(&self, to: Log) -> Result<(), NoMemory> {
        to.put(c"TAMIS.AGES", None, &self.encode()?);
        Ok(())
    }
}

impl Clone for Aged {
    fn clone(&self) -> Self {
        Self::new(self.filter.clone())
    }
}

impl Drop for Aged {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Relaxed);
    }
}
