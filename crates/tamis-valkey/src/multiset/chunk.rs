//! A multiset as bytes, some leaves at a time, as they lie in memory.
//!
//! ```text
//! chunk     as in `incoming.rs`; its bytes are leaves of one table
//! leaf      start (8) | its words (8 each); the first says how many
//! position  (number of the table << 56 | the start of a leaf) + 1
//! ```

use std::iter;

use super::leaf::{Item, MOST, MOST_BITS, MOST_WORDS};
use super::table::LEAF;
use super::{Multiset, Plan, Table};
use crate::asked::Asked;
use crate::dump::{Header, Parts};
use crate::incoming::{self, BadChunk};
use crate::memory::{self, NoMemory};

/// What it takes to lay out one leaf anew: its items, and its words once more.
const LAID_OUT: u64 = (MOST * size_of::<Item>() + 8 * MOST_WORDS) as u64;

/// The position of a leaf.
fn position(table: usize, start: u64) -> u64 {
    ((table as u64) << MOST_BITS | start) + 1
}

/// The table and the leaf at a position.
fn at(position: u64) -> (usize, u64) {
    let at = position.max(1) - 1;
    ((at >> MOST_BITS) as usize, at & !(u64::MAX << MOST_BITS))
}

/// The first position at `from` or behind it where there is a leaf, or else the end of all.
fn first_at(tables: &[Table], from: u64) -> u64 {
    let (first, start) = at(from);
    let mut starts = tables.iter().enumerate().skip(first).filter_map(|(number, table)| {
        let start = if number == first { start } else { 0 };
        table.leaves_from(start).next().map(|(start, _)| position(number, start))
    });
    starts.next().unwrap_or(position(tables.len(), 0))
}

/// The leaves from a position on, in at most about `most` bytes, and the position behind them;
/// `None` if there are no more.
pub(crate) fn chunk(
    filter: &Multiset,
    from: u64,
    most: usize,
) -> Result<Option<(u64, Vec<u8>)>, NoMemory> {
    let tables = filter.tables();
    let (number, start) = at(first_at(tables, from));
    let Some(table) = tables.get(number) else { return Ok(None) };
    let expected = usize::try_from(table.memory()).unwrap_or(usize::MAX);
    let mut out = incoming::begin(from.max(1), most.min(expected) + 256)?;
    let mut behind = position(number + 1, 0);
    for (start, words) in table.leaves_from(start) {
        let more = 8 * words.len() + 8;
        if out.len() > 8 && out.len() + more > most {
            behind = position(number, start);
            break;
        }
        out.try_reserve(more + 8).map_err(|_| NoMemory)?;
        out.extend(start.to_le_bytes());
        incoming::put_words(&mut out, words);
    }
    Ok(Some((first_at(tables, behind), incoming::end(out))))
}

/// What a header says of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promised {
    pub(crate) plan: Plan,
    pub(crate) distinct: u64,
    pub(crate) keys: u64,
}

impl Promised {
    /// What is to be said of a table.
    pub(crate) fn of(table: &Table) -> Self {
        let plan = Plan { universe: table.universe(), most: table.most() };
        Self { plan, distinct: table.distinct(), keys: table.keys() }
    }
}

/// A multiset of which some chunks are still to come.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    filter: Multiset,
    promised: Vec<Promised>,
    /// Where the next chunk starts, and where the last one did.
    position: u64,
    before: u64,
    /// The identity behind the last that has come of the table where the next chunk starts.
    behind: u64,
}

impl Incoming {
    /// Nothing has come but this.
    pub(crate) fn new(asked: Asked, removed: u64, tables: &[Promised]) -> Result<Self, NoMemory> {
        let mut filter = Multiset::new(asked);
        filter.removed = removed;
        tables.iter().try_for_each(|table| filter.push(table.plan))?;
        Ok(Self { filter, promised: tables.to_vec(), position: 1, before: 0, behind: 0 })
    }

    /// The part that has come.
    pub(crate) fn filter(&self) -> &Multiset {
        &self.filter
    }

    /// Its header.
    pub(crate) fn header(&self) -> Header {
        let (asked, removed) = (*self.filter.asked(), self.filter.removed);
        Header { asked, removed, parts: Parts::Tables(self.promised.clone()) }
    }

    /// A chunk of what has come.
    pub(crate) fn chunk(&self, from: u64, most: usize) -> Result<Option<(u64, Vec<u8>)>, NoMemory> {
        let Some((to, bytes)) = chunk(&self.filter, from, most)? else { return Ok(None) };
        // Behind the last one more is to come, and where that starts is known.
        let is_last = first_at(self.filter.tables(), to) == position(self.promised.len(), 0);
        Ok(Some((if is_last { self.position } else { to }, bytes)))
    }

    /// The filter, if nothing is missing; it is empty afterwards.
    pub(crate) fn complete(&mut self) -> Option<Multiset> {
        if !self.has_all() {
            return None;
        }
        let asked = *self.filter.asked();
        Some(std::mem::replace(&mut self.filter, Multiset::new(asked)))
    }

    fn has_all(&self) -> bool {
        let tables = self.filter.tables().iter().map(Promised::of);
        tables.eq(self.promised.iter().copied())
    }

    /// Takes the chunk that ends at the position `to`. The last one may come again. All may take
    /// `most` bytes of memory. What is refused changes nothing.
    pub(crate) fn take(&mut self, to: u64, data: &[u8], most: u64) -> Result<(), BadChunk> {
        let (from, body) = incoming::open(data)?;
        let tables = self.promised.len();
        if to > position(tables, 0) {
            return Err(BadChunk::TooLong);
        }
        if from == self.before && to == self.position {
            return Ok(());
        }
        if from != self.position || to <= from {
            return Err(BadChunk::Gap);
        }
        // Tables that are empty have no chunk.
        let (first, _) = at(from);
        let skipped = self.promised[first.min(tables)..].iter();
        let number = first + skipped.take_while(|table| table.distinct == 0).count();
        let behind = if number == first { self.behind } else { 0 };
        if number >= tables {
            return Err(BadChunk::TooLong);
        }
        let room = data.len() as u64 + LEAF * leaves(body).count() as u64;
        let memory = self.filter.memory().saturating_add(room);
        if memory > most {
            return Err(BadChunk::Limit(memory));
        }
        memory::ask_for_pieces(room + LAID_OUT)?;
        let (next, limit) = at(to);
        let limit = if next == number { limit } else { u64::MAX };
        let taken = self.take_leaves(number, body, behind, limit).and_then(|behind| {
            self.behind = if next == number { behind } else { 0 };
            let is_last = to == position(tables, 0);
            if is_last && !self.has_all() { Err(BadChunk::Damaged) } else { Ok(()) }
        });
        if let Err(refused) = taken {
            self.behind = behind;
            let start = body.first_chunk().map_or(u64::MAX, |start| u64::from_le_bytes(*start));
            self.filter.tables[number].cut(start.max(behind));
            return Err(refused);
        }
        (self.before, self.position) = (from, to);
        Ok(())
    }

    /// Takes leaves of a table from `behind` on and below `limit`; the identity behind the last.
    fn take_leaves(
        &mut self,
        number: usize,
        body: &[u8],
        mut behind: u64,
        limit: u64,
    ) -> Result<u64, BadChunk> {
        let table = &mut self.filter.tables[number];
        for leaf in leaves(body) {
            let (start, bytes) =
                leaf.filter(|&(start, _)| start >= behind).ok_or(BadChunk::Damaged)?;
            behind = table.append(start, bytes, limit)?.ok_or(BadChunk::Damaged)?;
        }
        Ok(behind)
    }
}

/// The starts of all leaves of a chunk, and their bytes; a `None` is the last, where there is no
/// leaf.
fn leaves(mut body: &[u8]) -> impl Iterator<Item = Option<(u64, &[u8])>> {
    iter::from_fn(move || {
        if body.is_empty() {
            return None;
        }
        let leaf = first_leaf(body);
        body = leaf.map_or(&[], |(.., rest)| rest);
        Some(leaf.map(|(start, bytes, _)| (start, bytes)))
    })
}

/// The first leaf of a chunk: its start, its bytes, and what is behind them.
fn first_leaf(body: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (start, rest) = body.split_first_chunk()?;
    let head = u64::from_le_bytes(*rest.first_chunk()?);
    let (bytes, rest) = rest.split_at_checked(8 * usize::from((head >> 16) as u16).max(1))?;
    Some((u64::from_le_bytes(*start), bytes, rest))
}
