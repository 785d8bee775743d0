//! The memory that reading may take. This is the one place where it is counted, before it is
//! allocated.

use alloc::vec::Vec;

use super::{Limits, WireError};
use crate::bits::{self, OutOfMemory, Words};

/// Bytes that reading has taken, and the most that it may take.
///
/// Nothing is given back while a filter is read. What is needed only for a while, such as the
/// stored bytes of a packed section, is held until the filter is nearly done; and a sum that only
/// grows is easy to trust.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    taken: u64,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limit: limits.memory, taken: 0 }
    }

    /// Counts `bytes` bytes that are about to be allocated. It is an error if they exceed the
    /// limit.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<(), WireError> {
        let need = self.taken.saturating_add(bytes);
        if need > self.limit {
            return Err(WireError::Limit { field: "sections", need, limit: self.limit });
        }
        self.taken = need;
        Ok(())
    }

    /// Bytes that may still be taken.
    pub(crate) fn left(&self) -> u64 {
        self.limit - self.taken
    }

    /// An empty vector with room for `len` elements.
    pub(crate) fn vec<T>(&mut self, len: u64) -> Result<Vec<T>, WireError> {
        self.take(len.saturating_mul(size_of::<T>() as u64))?;
        Ok(bits::with_room(len)?)
    }

    /// `len` zeros.
    pub(crate) fn zeros<T: Clone + Default>(&mut self, len: u64) -> Result<Vec<T>, WireError> {
        let mut zeros = self.vec(len)?;
        zeros.resize(len as usize, T::default());
        Ok(zeros)
    }

    /// `len` words of zero.
    pub(crate) fn words(&mut self, len: u64) -> Result<Words, WireError> {
        self.take(len.saturating_mul(8))?;
        Ok(Words::zeroed(len)?)
    }

    /// Makes room in `vec` for `more` elements.
    pub(crate) fn reserve<T>(&mut self, vec: &mut Vec<T>, more: usize) -> Result<(), WireError> {
        if vec.capacity() - vec.len() >= more {
            return Ok(());
        }
        // Doubled, so that all that was ever taken is twice what is there in the end. The old and
        // the new memory are held at once.
        let room = (2 * vec.capacity()).max(vec.len() + more);
        let bytes = (room as u64).saturating_mul(size_of::<T>() as u64);
        self.take(bytes)?;
        vec.try_reserve_exact(room - vec.len()).map_err(|_| no_memory(bytes))
    }
}

/// The error where the limit allows `bytes` bytes and the system does not.
fn no_memory(bytes: u64) -> WireError {
    WireError::Limit { field: "sections", need: bytes, limit: usize::MAX as u64 }
}

impl From<OutOfMemory> for WireError {
    fn from(refused: OutOfMemory) -> Self {
        no_memory(refused.bytes)
    }
}
