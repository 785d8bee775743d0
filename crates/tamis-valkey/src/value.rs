//! What a key holds: a filter, or one that is still coming in by chunks.

use std::cell::RefCell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use tamis::Digest;

use crate::asked::{Asked, Family};
use crate::dump::Header;
use crate::incoming::{BadChunk, Incoming};
use crate::memory::NoMemory;
use crate::multiset::Multiset;
use crate::remembered::Remembered;
use crate::reply::Refusal;
use crate::scaling::{Layer, Scaling};

/// Filters in memory, by family: for INFO.
pub(crate) static ALIVE: [AtomicI64; 2] = [AtomicI64::new(0), AtomicI64::new(0)];

/// What a key holds.
#[derive(Debug)]
pub(crate) struct Value {
    state: State,
    /// Not part of the content: asking for a delta changes no filter.
    pub(crate) remembered: RefCell<Remembered>,
}

#[derive(Clone, Debug)]
enum State {
    Ready(Filter),
    Loading(Box<Incoming>),
}

/// A filter of either family.
#[derive(Clone, Debug)]
pub(crate) enum Filter {
    Set(Scaling),
    Multiset(Multiset),
}

impl Filter {
    /// What was asked for.
    pub(crate) fn asked(&self) -> &Asked {
        match self {
            Self::Set(set) => set.asked(),
            Self::Multiset(multiset) => multiset.asked(),
        }
    }

    /// The set, if it is one.
    pub(crate) fn set(&self) -> Result<&Scaling, Refusal> {
        match self {
            Self::Set(set) => Ok(set),
            Self::Multiset(_) => Err(Refusal::WrongType),
        }
    }

    /// The multiset, if it is one.
    pub(crate) fn multiset(&self) -> Result<&Multiset, Refusal> {
        match self {
            Self::Multiset(multiset) => Ok(multiset),
            Self::Set(_) => Err(Refusal::WrongType),
        }
    }

    /// The multiset, if it is one, to change.
    pub(crate) fn multiset_mut(&mut self) -> Result<&mut Multiset, Refusal> {
        match self {
            Self::Multiset(multiset) => Ok(multiset),
            Self::Set(_) => Err(Refusal::WrongType),
        }
    }

    /// Keys in: insertions less removals.
    pub(crate) fn keys(&self) -> u64 {
        match self {
            Self::Set(set) => set.keys(),
            Self::Multiset(multiset) => multiset.keys(),
        }
    }

    /// Bytes of memory held, beside this struct.
    pub(crate) fn memory(&self) -> u64 {
        match self {
            Self::Set(set) => set.memory(),
            Self::Multiset(multiset) => multiset.memory(),
        }
    }

    /// A name of what each layer or table holds; this reads all of it.
    pub(crate) fn content(&self) -> Vec<u128> {
        match self {
            Self::Set(set) => set
                .layers()
                .iter()
                .map(|layer| match layer {
                    Layer::Small(table) => table.content().into(),
                    Layer::Large(filter) => filter.content_id().0,
                })
                .collect(),
            Self::Multiset(multiset) => {
                multiset.tables().iter().map(|table| table.content().into()).collect()
            }
        }
    }

    /// Whether the item may be in.
    pub(crate) fn contains(&self, item: &[u8]) -> bool {
        let digest = self.digest(item);
        match self {
            Self::Set(set) => set.contains(digest),
            Self::Multiset(multiset) => multiset.contains(digest),
        }
    }

    /// An upper bound on the count of an item; of a set 0 or 1.
    pub(crate) fn count(&self, item: &[u8]) -> u64 {
        let digest = self.digest(item);
        match self {
            Self::Set(set) => set.contains(digest).into(),
            Self::Multiset(multiset) => multiset.count(digest),
        }
    }

    /// The digest of an item.
    pub(crate) fn digest(&self, item: &[u8]) -> Digest {
        self.asked().digest(item)
    }
}

impl Value {
    /// A filter that is ready.
    pub(crate) fn ready(filter: Filter) -> Self {
        Self::new(State::Ready(filter))
    }

    /// A filter of which only the header is known; it may be all of it.
    pub(crate) fn loading(header: &Header) -> Result<Self, NoMemory> {
        let mut value = Self::new(State::Loading(Box::new(Incoming::new(header)?)));
        value.end_if_complete();
        Ok(value)
    }

    fn new(state: State) -> Self {
        let value = Self { state, remembered: RefCell::default() };
        ALIVE[value.family() as usize].fetch_add(1, Relaxed);
        value
    }

    pub(crate) fn family(&self) -> Family {
        match &self.state {
            State::Ready(filter) => filter.asked().family,
            State::Loading(incoming) => incoming.asked().family,
        }
    }

    /// The filter, if it is complete.
    pub(crate) fn filter(&self) -> Result<&Filter, Refusal> {
        match &self.state {
            State::Ready(filter) => Ok(filter),
            State::Loading(_) => Err(INCOMPLETE.into()),
        }
    }

    /// The filter, if it is complete, to change.
    pub(crate) fn filter_mut(&mut self) -> Result<&mut Filter, Refusal> {
        match &mut self.state {
            State::Ready(filter) => Ok(filter),
            State::Loading(_) => Err(INCOMPLETE.into()),
        }
    }

    /// The part of a filter that has come so far, if it is not complete.
    pub(crate) fn as_incoming(&self) -> Option<&Incoming> {
        match &self.state {
            State::Ready(_) => None,
            State::Loading(incoming) => Some(incoming),
        }
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> u64 {
        let held = match &self.state {
            State::Ready(filter) => filter.memory(),
            State::Loading(incoming) => incoming.memory() + size_of::<Incoming>() as u64,
        };
        held + size_of::<Self>() as u64 + self.remembered.borrow().bytes()
    }

    /// Takes the chunk that ends at the position `to`. The last one may come again. All may take
    /// `most` bytes of memory.
    pub(crate) fn take_chunk(&mut self, to: u64, data: &[u8], most: u64) -> Result<(), BadChunk> {
        let State::Loading(incoming) = &mut self.state else { return Err(BadChunk::Gap) };
        incoming.take(to, data, most)?;
        self.end_if_complete();
        Ok(())
    }

    fn end_if_complete(&mut self) {
        if let State::Loading(incoming) = &mut self.state
            && let Some(filter) = incoming.complete()
        {
            self.state = State::Ready(filter);
        }
    }
}

const INCOMPLETE: &str = "ERR the filter is still being loaded: chunks are missing";

impl Clone for Value {
    fn clone(&self) -> Self {
        ALIVE[self.family() as usize].fetch_add(1, Relaxed);
        Self { state: self.state.clone(), remembered: self.remembered.clone() }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        ALIVE[self.family() as usize].fetch_sub(1, Relaxed);
    }
}
