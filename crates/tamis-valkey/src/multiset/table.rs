//! All identities below one universe, in leaves: a tree of short sorted lists.
//!
//! A leaf holds the identities from its start up to the start of the next. One that is full is
//! split at its middle; one that gets small is joined with a neighbour. So a command works on two
//! leaves at most, whatever keys come, and memory follows what is in.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::{iter, mem};

use tamis::Digest;

use super::Plan;
use super::leaf::{Added, Item, Leaf, MOST, MOST_COUNT};
use crate::memory::{self, NoMemory};

/// A leaf of fewer identities looks for a neighbour to join.
const FEW: usize = MOST / 5;
/// Two leaves are joined into one of at most as many.
const JOINED: usize = MOST * 5 / 8;
/// Bytes that the tree takes for a leaf beside its words: its nodes are two thirds full. Also what
/// an allocation costs.
pub(super) const LEAF: u64 = 48;
/// What a new node of the tree may take.
const NODE: u64 = 1024;

/// Why an identity could not be added; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is no memory.
    Memory,
    /// It would be in more often than can be counted.
    Count,
}

impl From<NoMemory> for Refused {
    fn from(_: NoMemory) -> Self {
        Self::Memory
    }
}

/// A multiset of identities below a universe.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    universe: u64,
    /// How many identities it may hold.
    most: u64,
    distinct: u64,
    keys: u64,
    /// Words of all leaves.
    words: u64,
    /// The leaf that starts at 0: small filters have no other.
    first: Leaf,
    /// The others by their start.
    rest: BTreeMap<u64, Leaf>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(plan: Plan) -> Self {
        let Plan { universe, most } = plan;
        let (first, rest) = (Leaf::default(), BTreeMap::new());
        Self { universe, most, distinct: 0, keys: 0, words: 0, first, rest }
    }

    pub(crate) fn universe(&self) -> u64 {
        self.universe
    }

    /// How many identities it may hold.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// How many identities are in.
    pub(crate) fn distinct(&self) -> u64 {
        self.distinct
    }

    /// The sum of all counts.
    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }

    /// Whether no further identity belongs here.
    pub(crate) fn is_full(&self) -> bool {
        self.distinct >= self.most
    }

    /// The probability that an absent key has an identity that is in.
    pub(crate) fn rate(&self) -> f64 {
        self.distinct as f64 / self.universe as f64
    }

    /// Bytes of memory held, beside this struct.
    pub(crate) fn memory(&self) -> u64 {
        8 * self.words + LEAF * self.rest.len() as u64
    }

    /// The leaf where an identity belongs, and its start.
    #[inline]
    fn leaf(&self, identity: u64) -> (u64, &Leaf) {
        let last =
            if self.rest.is_empty() { None } else { self.rest.range(..=identity).next_back() };
        last.map_or((0, &self.first), |(&start, leaf)| (start, leaf))
    }

    #[inline]
    fn leaf_mut(&mut self, identity: u64) -> (u64, &mut Leaf) {
        if self.rest.is_empty() {
            return (0, &mut self.first);
        }
        let last = self.rest.range_mut(..=identity).next_back();
        last.map_or((0, &mut self.first), |(&start, leaf)| (start, leaf))
    }

    /// Where the leaf behind the one that starts at `start` starts.
    fn next(&self, start: u64) -> Option<u64> {
        self.rest.range((Excluded(start), Unbounded)).next().map(|(&next, _)| next)
    }

    /// How many identities belong to the leaf that starts at `start`.
    fn span(&self, start: u64) -> u64 {
        self.next(start).unwrap_or(self.universe) - start
    }

    /// The identity of a key: the library's rule, so that files can be exchanged with it.
    #[inline]
    pub(crate) fn identity(&self, digest: Digest) -> u64 {
        ((u128::from(digest.0) * u128::from(self.universe)) >> 64) as u64
    }

    /// Whether the identity of a key is in.
    #[inline]
    pub(crate) fn contains(&self, digest: Digest) -> bool {
        self.count(self.identity(digest)) > 0
    }

    /// How often an identity is in.
    pub(crate) fn count(&self, identity: u64) -> u64 {
        let (start, leaf) = self.leaf(identity);
        leaf.count(identity - start)
    }

    /// Adds `copies` copies of an identity; true if it was not in.
    pub(crate) fn add(&mut self, identity: u64, copies: u64) -> Result<bool, Refused> {
        let (start, leaf) = self.leaf_mut(identity);
        let added = match leaf.add(identity - start, copies) {
            Added::New => true,
            Added::More => false,
            Added::NoRoom => self.make_room(start, identity - start, copies)?,
        };
        self.distinct += u64::from(added);
        self.keys = self.keys.saturating_add(copies);
        Ok(added)
    }

    /// Adds to a leaf that has no room: lays it out anew, or splits it.
    fn make_room(&mut self, start: u64, offset: u64, copies: u64) -> Result<bool, Refused> {
        let span = self.span(start);
        let (_, leaf) = self.leaf(start);
        let mut items = collect(leaf.items(), leaf.distinct() + 1)?;
        let place = items.binary_search_by_key(&offset, |&(identity, _)| identity);
        match place {
            Ok(at) => {
                items[at].1 = items[at].1.saturating_add(copies);
                if items[at].1 > MOST_COUNT {
                    return Err(Refused::Count);
                }
            }
            Err(at) => items.insert(at, (offset, copies)),
        }
        if items.len() <= MOST {
            let leaf = Leaf::of(&items, span)?;
            self.replace(start, leaf);
            return Ok(place.is_err());
        }
        memory::ask(NODE)?;
        let (low, high) = items.split_at_mut(MOST / 2);
        let middle = high[0].0;
        for (identity, _) in high.iter_mut() {
            *identity -= middle;
        }
        let (low, high) = (Leaf::of(low, middle)?, Leaf::of(high, span - middle)?);
        self.replace(start, low);
        self.push(start + middle, high);
        Ok(true)
    }

    /// Exchanges a leaf.
    fn replace(&mut self, start: u64, leaf: Leaf) {
        self.words += leaf.words().len() as u64;
        let old = mem::replace(self.leaf_mut(start).1, leaf);
        self.words -= old.words().len() as u64;
    }

    /// Takes in a leaf that starts where none does.
    fn push(&mut self, start: u64, leaf: Leaf) {
        self.words += leaf.words().len() as u64;
        if start == 0 {
            self.first = leaf;
        } else {
            self.rest.insert(start, leaf);
        }
    }

    /// Removes at most `copies` copies of an identity; how many were removed.
    pub(crate) fn remove(&mut self, identity: u64, copies: u64) -> u64 {
        let (start, leaf) = self.leaf_mut(identity);
        let (count, left) = leaf.remove(identity - start, copies);
        let (distinct, roomy) = (leaf.distinct(), leaf.is_roomy());
        self.keys = self.keys.saturating_sub(count - left);
        if count > 0 && left == 0 {
            self.distinct -= 1;
            if distinct < FEW || roomy {
                // Without memory for it the leaf stays as it is.
                let _ = self.tidy(start, distinct);
            }
        }
        count - left
    }

    /// Drops, joins or lays out anew a leaf that got small.
    fn tidy(&mut self, start: u64, distinct: usize) -> Result<(), NoMemory> {
        if distinct == 0 {
            self.take(start);
            return Ok(());
        }
        let left = match self.next(start) {
            Some(_) => Some(start),
            None if start > 0 => Some(self.leaf(start - 1).0),
            None => None,
        };
        if distinct < FEW
            && let Some(left) = left
            && let Some(right) = self.next(left)
        {
            let both = self.leaf(left).1.distinct() + self.leaf(right).1.distinct();
            if both <= JOINED {
                let span = self.span(left) + self.span(right);
                let theirs = self.leaf(right).1.items();
                let theirs = theirs.map(|(identity, count)| (identity + right - left, count));
                let items = collect(self.leaf(left).1.items().chain(theirs), both)?;
                let leaf = Leaf::of(&items, span)?;
                self.take(right);
                self.replace(left, leaf);
                return Ok(());
            }
        }
        if self.leaf(start).1.is_roomy() {
            let items = collect(self.leaf(start).1.items(), distinct)?;
            let leaf = Leaf::of(&items, self.span(start))?;
            self.replace(start, leaf);
        }
        Ok(())
    }

    /// Takes out a leaf; what belongs there then belongs to the one before.
    fn take(&mut self, start: u64) {
        let leaf = match start {
            0 => Some(mem::take(&mut self.first)),
            _ => self.rest.remove(&start),
        };
        self.words -= leaf.map_or(0, |leaf| leaf.words().len() as u64);
    }

    /// The leaves that start at `from` or behind it, with their start and their words.
    pub(crate) fn leaves_from(&self, from: u64) -> impl Iterator<Item = (u64, &[u64])> {
        let first = (from == 0 && self.first.distinct() > 0).then_some((0, self.first.words()));
        let rest = self.rest.range(from.max(1)..).map(|(&start, leaf)| (start, leaf.words()));
        first.into_iter().chain(rest)
    }

    /// Takes in the leaf with these bytes, behind all that are in, whose identities are below
    /// `end`; the identity behind its last. `None` if it is not a leaf, or not behind them. There
    /// must be memory for a node of the tree.
    pub(crate) fn append(
        &mut self,
        start: u64,
        bytes: &[u8],
        end: u64,
    ) -> Result<Option<u64>, NoMemory> {
        let Some((mut leaf, last, keys)) = Leaf::of_bytes(bytes)? else { return Ok(None) };
        let behind = start.checked_add(last).filter(|&behind| behind <= end.min(self.universe));
        let Some(behind) = behind else { return Ok(None) };
        if leaf.is_roomy() {
            leaf = Leaf::of(&collect(leaf.items(), leaf.distinct())?, last)?;
        }
        self.distinct += leaf.distinct() as u64;
        self.keys = self.keys.saturating_add(keys);
        self.push(start, leaf);
        Ok(Some(behind))
    }

    /// Takes out all leaves that start at `start` or behind it.
    pub(super) fn cut(&mut self, start: u64) {
        if start == 0 {
            *self = Self::new(Plan { universe: self.universe, most: self.most });
            return;
        }
        for leaf in self.rest.split_off(&start).into_values() {
            self.words -= leaf.words().len() as u64;
            self.distinct -= leaf.distinct() as u64;
            let keys: u64 = leaf.items().map(|(_, count)| count).fold(0, u64::saturating_add);
            self.keys = self.keys.saturating_sub(keys);
        }
    }

    /// All identities, in order, with their counts.
    pub(crate) fn items(&self) -> impl Iterator<Item = Item> {
        let leaves =
            iter::once((0, &self.first)).chain(self.rest.iter().map(|(&s, leaf)| (s, leaf)));
        leaves.flat_map(|(start, leaf)| {
            leaf.items().map(move |(identity, count)| (start + identity, count))
        })
    }

    /// A name of what is in: the same for the same identities, however they are laid out.
    pub(crate) fn content(&self) -> u64 {
        self.items().fold(self.universe, |name, (identity, count)| {
            [identity, count].into_iter().fold(name, |name, number| {
                (name ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
            })
        })
    }

    /// A table of these items, which are in order; counts of equal identities are added. Leaf by
    /// leaf, not identity by identity: millions come in one command.
    pub(crate) fn of_items(
        plan: Plan,
        mut items: impl Iterator<Item = Item>,
    ) -> Result<Self, Refused> {
        let mut table = Self::new(plan);
        let mut leaf = collect(iter::empty(), JOINED)?;
        let (mut start, mut next) = (0, items.next());
        while let Some((identity, mut count)) = next {
            loop {
                next = items.next();
                match next {
                    Some((same, more)) if same == identity => count = count.saturating_add(more),
                    _ => break,
                }
            }
            if count > MOST_COUNT {
                return Err(Refused::Count);
            }
            debug_assert!(next.is_none_or(|(next, _)| next > identity));
            leaf.push((identity - start, count));
            table.keys = table.keys.saturating_add(count);
            if leaf.len() == JOINED || next.is_none() {
                let behind = next.map_or(plan.universe, |(next, _)| next);
                memory::ask(NODE)?;
                table.distinct += leaf.len() as u64;
                table.push(start, Leaf::of(&leaf, behind - start)?);
                leaf.clear();
                start = behind;
            }
        }
        Ok(table)
    }
}

/// A list of at most `most` items.
fn collect(items: impl Iterator<Item = Item>, most: usize) -> Result<Vec<Item>, NoMemory> {
    let mut list = Vec::new();
    list.try_reserve_exact(most).map_err(|_| NoMemory)?;
    list.extend(items);
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(mut state: u64) -> impl FnMut() -> u64 {
        move || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state ^ state >> 29
        }
    }

    fn check(table: &Table, model: &BTreeMap<u64, u64>) {
        assert!(table.items().eq(model.iter().map(|(&identity, &count)| (identity, count))));
        assert_eq!(table.distinct(), model.len() as u64);
        assert_eq!(table.keys(), model.values().sum::<u64>());
        let leaves: Vec<_> = table.leaves_from(0).collect();
        assert_eq!(table.words, leaves.iter().map(|(_, words)| words.len() as u64).sum::<u64>());
        let mut read = Table::new(Plan { universe: table.universe, most: table.most });
        let mut behind = 0;
        for (start, words) in leaves {
            assert!(start >= behind);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            behind = read.append(start, &bytes, u64::MAX).unwrap().unwrap();
        }
        assert!(read.items().eq(table.items()));
        assert_eq!((read.distinct, read.keys), (table.distinct, table.keys));
    }

    /// Beside a sorted map: keys that are spread, keys that lie together, and one that comes
    /// often; up, down and up again.
    #[test]
    fn a_table_is_a_sorted_multiset() {
        for narrow in [1u64 << 30, 1 << 14, 3_000] {
            let mut draw = draws(narrow);
            let mut table = Table::new(Plan { universe: 1 << 30, most: 1 << 20 });
            let mut model = BTreeMap::new();
            for round in 0..4 {
                for _ in 0..6_000 {
                    let identity = draw() % narrow;
                    if draw() % 8 < if round % 2 == 0 { 7 } else { 1 } {
                        let copies = if draw().is_multiple_of(50) { draw() % 1000 + 1 } else { 1 };
                        let new = table.add(identity, copies).unwrap();
                        assert_eq!(new, !model.contains_key(&identity));
                        *model.entry(identity).or_insert(0) += copies;
                    } else {
                        let near = *model.range(identity..).next().map_or(&identity, |(at, _)| at);
                        let count = model.get(&near).copied().unwrap_or(0);
                        assert_eq!(table.remove(near, u64::MAX), count);
                        model.remove(&near);
                    }
                    let asked = draw() % narrow;
                    assert_eq!(table.count(asked), model.get(&asked).copied().unwrap_or(0));
                }
                check(&table, &model);
            }
            for (identity, count) in mem::take(&mut model) {
                assert_eq!(table.remove(identity, count), count);
            }
            check(&table, &model);
            assert_eq!(table.memory(), 0);
        }
    }

    /// Memory follows the keys that are in: after a thousand generations a table is hardly larger
    /// than one that was just filled.
    #[test]
    fn memory_follows_what_is_in() {
        for window in [10, 100, 1_500, 20_000] {
            let mut draw = draws(window);
            let universe = window * 1_600;
            let mut keys: Vec<u64> = (0..window).map(|_| draw() % universe).collect();
            let mut table = Table::new(Plan { universe, most: universe });
            let fresh = |keys: &[u64]| {
                let mut fresh = Table::new(Plan { universe, most: universe });
                for &key in keys {
                    assert!(fresh.add(key, 1).is_ok());
                }
                fresh.memory()
            };
            for &key in &keys {
                table.add(key, 1).unwrap();
            }
            for step in 0..100_000 {
                let at = if step % 2 == 0 { step / 2 } else { draw() as usize } % keys.len();
                assert_eq!(table.remove(keys[at], 1), 1);
                keys[at] = draw() % universe;
                table.add(keys[at], 1).unwrap();
            }
            let (now, then) = (table.memory(), fresh(&keys));
            assert!(now * 10 <= then * 13 + 400, "{window}: {now} bytes, {then} when fresh");
            // And down to a tenth.
            for &key in &keys[keys.len() / 10..] {
                assert_eq!(table.remove(key, 1), 1);
            }
            let (now, then) = (table.memory(), fresh(&keys[..keys.len() / 10]));
            assert!(now * 2 <= then * 3 + 200, "{window}: {now} bytes, {then} when fresh");
        }
    }
}
