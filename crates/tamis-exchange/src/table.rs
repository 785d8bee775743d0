//! The table of objects, and the cheapest path through them.
//!
//! It is published in two parts: what a follower needs that is a few versions behind, and the
//! rest. Otherwise the table would take more bytes than the deltas that such a follower looks for.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::error::Error;
use crate::object::{Hash, Object};

/// The first bytes of every table. Frozen.
const MAGIC: [u8; 8] = *b"tamis\x1atb";
/// No table has more bytes.
pub(crate) const MOST_BYTES: u64 = 1 << 22;
/// The version that a snapshot starts from.
pub(crate) const SNAPSHOT: u64 = 0;

/// An object, and what it is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The version that a delta starts from, or [`SNAPSHOT`].
    pub(crate) from: u64,
    /// The version that it leads to.
    pub(crate) to: u64,
    pub(crate) object: Object,
}

impl Row {
    pub(crate) fn is_snapshot(&self) -> bool {
        self.from == SNAPSHOT
    }
}

/// All objects of an epoch, or a part of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// The first version of the epoch.
    pub(crate) first: u64,
    /// A follower with this version or a later one needs no other part.
    pub(crate) since: u64,
    /// The other part.
    pub(crate) rest: Option<Object>,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// A table that is all in one part.
    pub(crate) fn new(first: u64, rows: Vec<Row>) -> Self {
        Self { first, since: first, rest: None, rows }
    }

    /// The part for followers of version `since` and later, and the rest; `newest` is the newest
    /// version.
    pub(crate) fn split(&self, since: u64, newest: u64) -> (Self, Self) {
        let is_near =
            |row: &Row| if row.is_snapshot() { row.to == newest } else { row.from >= since };
        let (near, rest) = self.rows.iter().copied().partition(is_near);
        let since = since.max(self.first);
        (Self { since, ..Self::new(self.first, near) }, Self::new(self.first, rest))
    }

    /// The rows in order. Numbers have seven bits in each byte, the lowest first, and the top bit
    /// where more follow.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::from(MAGIC);
        put(&mut bytes, self.first);
        put(&mut bytes, self.since);
        put(&mut bytes, self.rest.map_or(0, |rest| rest.bytes));
        bytes.extend(self.rest.iter().flat_map(|rest| rest.hash.0));
        for row in &self.rows {
            // The distance of a delta is short; a snapshot has none.
            let distance = if row.is_snapshot() { 0 } else { row.to - row.from };
            for number in [row.to, distance, row.object.bytes] {
                put(&mut bytes, number);
            }
            bytes.extend(row.object.hash.0);
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let read = || -> Option<Self> {
            let mut rest = bytes.strip_prefix(&MAGIC)?;
            let (first, since) = (take(&mut rest)?, take(&mut rest)?);
            let other = match take(&mut rest)? {
                0 => None,
                bytes => Some(Object { bytes, hash: take_hash(&mut rest)? }),
            };
            let mut table = Self { first, since, rest: other, rows: Vec::new() };
            while !rest.is_empty() {
                let (to, distance) = (take(&mut rest)?, take(&mut rest)?);
                let bytes = take(&mut rest)?;
                let hash = take_hash(&mut rest)?;
                let from = if distance == 0 { 0 } else { to.checked_sub(distance)? };
                // (A delta from nowhere would be a snapshot.)
                if from >= to || from == 0 && distance > 0 {
                    return None;
                }
                table.rows.push(Row { from, to, object: Object { bytes, hash } });
            }
            Some(table)
        };
        read().ok_or_else(|| Error::format("table", "it is not what a publisher writes"))
    }

    /// Adds the other part, if there is one, which `read` fetches.
    pub(crate) fn complete(
        mut self,
        read: impl FnOnce(&Object) -> Result<Vec<u8>, Error>,
    ) -> Result<Self, Error> {
        if let Some(rest) = self.rest {
            self.rows.extend(Self::decode(&read(&rest)?)?.rows);
        }
        Ok(self)
    }

    /// The objects that lead to version `to` in the fewest bytes: a snapshot in front, unless the
    /// path starts at version `held`. `None` if there is no path.
    pub(crate) fn path(&self, held: Option<u64>, to: u64) -> Option<Vec<Row>> {
        let ways = self.ways(to);
        let held = held.filter(|&held| self.first <= held);
        let starts = held.into_iter().chain([SNAPSHOT]).filter_map(|at| Some((at, ways.get(&at)?)));
        let (mut at, _) = starts.min_by_key(|(_, way)| way.bytes)?;
        let mut path = Vec::new();
        while let Some(&row) = ways.get(&at)?.first {
            path.push(row);
            at = row.to;
        }
        Some(path)
    }

    /// The cheapest way to version `to` from every version that has one.
    pub(crate) fn ways(&self, to: u64) -> HashMap<u64, Way<'_>> {
        // Rows lead upwards, so from the newest down every way is known when it is needed.
        let mut rows: Vec<&Row> = self.rows.iter().filter(|row| row.to <= to).collect();
        rows.sort_by_key(|row| Reverse(row.from));
        let mut ways = HashMap::from([(to, Way { bytes: 0, first: None })]);
        for row in rows {
            let rest = ways.get(&row.to);
            let Some(bytes) = rest.and_then(|rest| rest.bytes.checked_add(row.object.bytes)) else {
                continue;
            };
            if ways.get(&row.from).is_none_or(|way| bytes < way.bytes) {
                ways.insert(row.from, Way { bytes, first: Some(row) });
            }
        }
        ways
    }
}

/// Objects that lead from one version to another.
pub(crate) struct Way<'a> {
    pub(crate) bytes: u64,
    /// The first of them, unless there is nothing to do.
    first: Option<&'a Row>,
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn take_hash(bytes: &mut &[u8]) -> Option<Hash> {
    let (&hash, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(Hash(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(from: u64, to: u64, bytes: u64) -> Row {
        let hash = Object::of(&[from, to].map(u64::to_le_bytes).concat()).hash;
        Row { from, to, object: Object { bytes, hash } }
    }

    #[test]
    fn the_cheapest_path_wins() {
        let mut rows: Vec<Row> = (1..20).map(|from| row(from, from + 1, 10)).collect();
        rows.extend([row(0, 20, 120), row(4, 12, 50), row(12, 20, 50)]);
        let table = Table::new(1, rows);
        let bytes = |held| {
            let path = table.path(held, 20).unwrap();
            let ends: Vec<_> = path.iter().map(|row| (row.from, row.to)).collect();
            (path.iter().map(|row| row.object.bytes).sum::<u64>(), ends)
        };
        assert_eq!(bytes(Some(19)), (10, vec![(19, 20)]));
        assert_eq!(bytes(Some(20)), (0, vec![]));
        assert_eq!(bytes(Some(12)), (50, vec![(12, 20)]));
        assert_eq!(bytes(Some(3)), (110, vec![(3, 4), (4, 12), (12, 20)]));
        assert_eq!(bytes(Some(1)).1, [(0, 20)]);
        assert_eq!(bytes(None).1, [(0, 20)]);
        assert_eq!(bytes(Some(21)).1, [(0, 20)]);
        assert_eq!(table.path(Some(3), 22), None);
        assert_eq!(Table::decode(&table.encode()).unwrap(), table);

        let (mut near, rest) = table.split(12, 20);
        near.rest = Some(Object::of(&rest.encode()));
        let near = Table::decode(&near.encode()).unwrap();
        let whole = near.clone().complete(|object| {
            assert_eq!(*object, Object::of(&rest.encode()));
            Ok(rest.encode())
        });
        let whole = whole.unwrap();
        for held in 1..=20 {
            let bytes = |table: &Table| {
                let path = table.path(Some(held), 20).unwrap();
                path.iter().map(|row| row.object.bytes).sum::<u64>()
            };
            let part = if held < near.since { &whole } else { &near };
            assert_eq!(bytes(part), bytes(&table), "{held}");
        }
    }
}
