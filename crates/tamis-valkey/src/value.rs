//! What a key holds: a filter, or one that is still coming in by chunks.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::dump::{Header, Refused};
use crate::reply::Refusal;
use crate::scaling::{Family, Scaling};

/// Filters in memory, by family: for INFO.
pub(crate) static ALIVE: [AtomicI64; 2] = [AtomicI64::new(0), AtomicI64::new(0)];

/// What a key holds.
#[derive(Debug)]
pub(crate) struct Value {
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Ready(Scaling),
    Loading(Loading),
}

/// A filter of which some chunks are still to come.
#[derive(Clone, Debug)]
pub(crate) struct Loading {
    pub(crate) header: Header,
    pub(crate) received: Vec<u8>,
}

/// Why a chunk is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadChunk {
    /// It starts after what has come, or the filter is complete.
    Gap,
    /// It ends after the filter does.
    TooLong,
    /// The filter that is now complete is not one.
    Damaged,
    /// There is no memory for it.
    Memory,
}

impl Value {
    /// A filter that is ready.
    pub(crate) fn ready(filter: Scaling) -> Self {
        ALIVE[filter.asked().family as usize].fetch_add(1, Relaxed);
        Self { state: State::Ready(filter) }
    }

    /// A filter of which only the header is known.
    pub(crate) fn loading(header: Header) -> Self {
        Self::loaded(Loading { header, received: Vec::new() })
    }

    /// A filter of which some chunks are known.
    pub(crate) fn loaded(loading: Loading) -> Self {
        ALIVE[loading.header.asked.family as usize].fetch_add(1, Relaxed);
        Self { state: State::Loading(loading) }
    }

    pub(crate) fn family(&self) -> Family {
        match &self.state {
            State::Ready(filter) => filter.asked().family,
            State::Loading(loading) => loading.header.asked.family,
        }
    }

    /// The filter, if it is complete.
    pub(crate) fn filter(&self) -> Result<&Scaling, Refusal> {
        match &self.state {
            State::Ready(filter) => Ok(filter),
            State::Loading(_) => Err(INCOMPLETE.into()),
        }
    }

    /// The filter, if it is complete, to change.
    pub(crate) fn filter_mut(&mut self) -> Result<&mut Scaling, Refusal> {
        match &mut self.state {
            State::Ready(filter) => Ok(filter),
            State::Loading(_) => Err(INCOMPLETE.into()),
        }
    }

    /// The part of a filter that has come so far, if it is not complete.
    pub(crate) fn as_loading(&self) -> Option<&Loading> {
        match &self.state {
            State::Ready(_) => None,
            State::Loading(loading) => Some(loading),
        }
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> u64 {
        let held = match &self.state {
            State::Ready(filter) => filter.memory(),
            State::Loading(loading) => loading.received.capacity() as u64,
        };
        held + size_of::<Self>() as u64
    }

    /// Takes the chunk that ends at `end`. One that was taken already may come again. A layer may
    /// take `most` bytes of memory.
    pub(crate) fn take_chunk(&mut self, end: u64, data: &[u8], most: u64) -> Result<(), BadChunk> {
        let State::Loading(loading) = &mut self.state else { return Err(BadChunk::Gap) };
        let start = end.checked_sub(data.len() as u64).ok_or(BadChunk::Gap)?;
        if end > loading.header.total() {
            return Err(BadChunk::TooLong);
        }
        let start = usize::try_from(start).map_err(|_| BadChunk::Gap)?;
        if data.is_empty() || start > loading.received.len() {
            return Err(BadChunk::Gap);
        }
        loading.received.truncate(start);
        loading.received.try_reserve(data.len()).map_err(|_| BadChunk::Memory)?;
        loading.received.extend_from_slice(data);
        if end == loading.header.total() {
            match loading.header.assemble(&loading.received, most) {
                Ok(filter) => self.state = State::Ready(filter),
                Err(refused) => {
                    loading.received.truncate(start);
                    return Err(match refused {
                        Refused::Damaged => BadChunk::Damaged,
                        Refused::Memory => BadChunk::Memory,
                    });
                }
            }
        }
        Ok(())
    }
}

const INCOMPLETE: &str = "ERR the filter is still being loaded: chunks are missing";

impl Clone for Value {
    fn clone(&self) -> Self {
        ALIVE[self.family() as usize].fetch_add(1, Relaxed);
        Self { state: self.state.clone() }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        ALIVE[self.family() as usize].fetch_sub(1, Relaxed);
    }
}
