//! A multiset that grows and shrinks with its keys: what CF.* works on.
//!
//! A key is kept as its identity, as in the library: a number below the universe U. A table holds
//! identities in order, in short leaves (`table.rs`, `leaf.rs`), so that every command works on a
//! few hundred bytes, a filter takes the memory of the keys that are in, and nothing is planned.
//!
//! # Rates
//!
//! The rate of a table is n / U with n identities. U is eight times what the capacity needs (three
//! bits a key), and the table is full when it has half of the asked rate. Then another is opened
//! with a larger universe, for eight times as many keys as are in: it may use a share of the rate
//! that is left, one over the number of tables plus one. So all together stay below the asked
//! rate, however many there are. Tables that hold nothing any more are dropped, and what they used
//! of the rate is free again. A filter that may not grow has one table with all of the rate.
//!
//! # Removal is exact across tables
//!
//! A key goes to the oldest table that already holds its identity, or else to the newest. So a
//! table that is not the newest never gets a new identity, and the oldest table that holds a key's
//! identity stays the same while the key is in: counting and removing there never touches what
//! another key relies on.

mod bits;
mod chunk;
mod leaf;
mod machine;
mod table;

use std::iter;

use tamis::Digest;

pub(crate) use self::chunk::{Incoming, Promised, chunk};
pub(crate) use self::leaf::MOST_BITS;
pub(crate) use self::table::{Refused, Table};
use crate::asked::Asked;
use crate::memory::NoMemory;

/// The most tables: an iterator of SCANDUMP has room for their number beside an identity.
pub(crate) const MOST_TABLES: usize = 64;
/// What commands call the kind of a table.
pub(crate) const KIND: &str = "sorted";
/// How many times the capacity a table has room for.
const HEADROOM: f64 = 8.0;

/// The universe of a table that is to be made, and how many identities it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) universe: u64,
    pub(crate) most: u64,
}

/// The identities that it would take are more than can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooFine;

impl Plan {
    /// Bytes of memory when it is full, at most: an identity takes two bits more than its low
    /// part, and leaves have room for a sixteenth more.
    pub(crate) fn bytes(&self) -> u64 {
        let bits = (self.universe as f64 / self.most.max(1) as f64).max(1.0).log2() + 3.0;
        (self.most as f64 * bits / 8.0 * 1.2) as u64
    }

    /// A power of two near `identities`, and not above the highest.
    fn near(identities: f64) -> u64 {
        let bits = identities.max(1.0).log2().round().min(MOST_BITS.into());
        1 << bits as u32
    }

    /// A table for `capacity` identities and no more.
    pub(crate) fn exact(capacity: u64, rate: f64) -> Result<Self, TooFine> {
        let bits = (capacity as f64 / rate).log2().ceil();
        let plan = |bits| Self { universe: 1 << bits as u32, most: capacity };
        if bits <= MOST_BITS.into() { Ok(plan(bits)) } else { Err(TooFine) }
    }

    /// The first table of a filter.
    pub(crate) fn first(asked: &Asked) -> Result<Self, TooFine> {
        let (capacity, rate) = (asked.capacity as f64, asked.rate);
        if asked.expansion == 0 {
            return Self::exact(asked.capacity, rate);
        }
        let universe = Self::near(HEADROOM * capacity / rate);
        let most = (universe as f64 * rate / 2.0) as u64;
        if most < asked.capacity { Err(TooFine) } else { Ok(Self { universe, most }) }
    }

    /// The next table of a filter that is full.
    pub(crate) fn next(filter: &Multiset) -> Result<Self, TooFine> {
        let Some(newest) = filter.tables.last() else { return Self::first(&filter.asked) };
        let rate = filter.asked.rate;
        let left = (rate - filter.rate()).max(rate / 8.0); // Merging may have used all of it.
        let share = left / (filter.tables.len() + 2) as f64;
        let keys = (filter.distinct() as f64).max(filter.asked.capacity as f64);
        let universe = Self::near(HEADROOM * keys / share);
        let most = (universe as f64 * share) as u64;
        // One that would be no larger does not help.
        if most <= newest.most() / 2 { Err(TooFine) } else { Ok(Self { universe, most }) }
    }
}

/// Why a key could not be inserted; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// Another table, or another layer of a set, is needed first.
    NeedsPart,
    /// There is no memory.
    Memory,
    /// It is in as often as can be counted.
    Count,
}

impl From<Refused> for Full {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Memory => Self::Memory,
            Refused::Count => Self::Count,
        }
    }
}

/// A multiset of one table or more, the oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Multiset {
    asked: Asked,
    tables: Vec<Table>,
    /// Keys removed so far.
    removed: u64,
}

impl Multiset {
    /// A filter without a table yet.
    pub(crate) fn new(asked: Asked) -> Self {
        Self { asked, tables: Vec::new(), removed: 0 }
    }

    /// A filter of tables that come from elsewhere.
    pub(crate) fn of_tables(asked: Asked, mut tables: Vec<Table>, removed: u64) -> Self {
        tables.shrink_to_fit();
        Self { asked, tables, removed }
    }

    /// What was asked for.
    pub(crate) fn asked(&self) -> &Asked {
        &self.asked
    }

    /// The tables, the oldest first.
    pub(crate) fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Opens a table.
    pub(crate) fn push(&mut self, plan: Plan) -> Result<(), NoMemory> {
        self.tables.try_reserve_exact(1).map_err(|_| NoMemory)?;
        self.tables.push(Table::new(plan));
        Ok(())
    }

    /// Keys in: insertions less removals.
    pub(crate) fn keys(&self) -> u64 {
        self.tables.iter().map(Table::keys).fold(0, u64::saturating_add)
    }

    /// Identities in.
    fn distinct(&self) -> u64 {
        self.tables.iter().map(Table::distinct).sum()
    }

    /// Keys removed so far.
    pub(crate) fn removed(&self) -> u64 {
        self.removed
    }

    /// The probability that an absent key is answered yes, at most.
    pub(crate) fn rate(&self) -> f64 {
        self.tables.iter().map(Table::rate).sum()
    }

    /// Bytes of memory held, beside this struct.
    pub(crate) fn memory(&self) -> u64 {
        let leaves: u64 = self.tables.iter().map(Table::memory).sum();
        leaves + (self.tables.capacity() * size_of::<Table>()) as u64
    }

    /// The oldest table that holds the identity of a key: the only one where its copies are.
    #[inline]
    fn home(&self, digest: Digest) -> Option<usize> {
        self.tables.iter().position(|table| table.contains(digest))
    }

    /// Whether the key may be in.
    pub(crate) fn contains(&self, digest: Digest) -> bool {
        // The newest has most of the keys.
        self.tables.iter().rev().any(|table| table.contains(digest))
    }

    /// An upper bound on the count of a key.
    pub(crate) fn count(&self, digest: Digest) -> u64 {
        let counts = self.tables.iter().map(|table| table.count(table.identity(digest)));
        counts.into_iter().find(|&count| count > 0).unwrap_or(0)
    }

    /// Inserts `copies` copies of a key.
    pub(crate) fn insert(&mut self, digest: Digest, copies: u64) -> Result<(), Full> {
        let newest = self.tables.len().checked_sub(1).ok_or(Full::NeedsPart)?;
        // One table with room takes old and new keys alike.
        let table = if newest == 0 && !self.tables[0].is_full() {
            0
        } else {
            match self.home(digest) {
                Some(home) => home,
                None if self.tables[newest].is_full() => return Err(Full::NeedsPart),
                None => newest,
            }
        };
        let table = &mut self.tables[table];
        table.add(table.identity(digest), copies)?;
        Ok(())
    }

    /// Inserts a key unless it seems to be in; true if it was not.
    pub(crate) fn insert_new(&mut self, digest: Digest) -> Result<bool, Full> {
        if self.contains(digest) {
            return Ok(false);
        }
        self.insert(digest, 1)?;
        Ok(true)
    }

    /// Removes at most `copies` copies of a key; how many.
    pub(crate) fn remove(&mut self, digest: Digest, copies: u64) -> u64 {
        let home = if self.tables.len() == 1 { Some(0) } else { self.home(digest) };
        let Some(home) = home else { return 0 };
        let table = &mut self.tables[home];
        let removed = table.remove(table.identity(digest), copies);
        self.removed = self.removed.saturating_add(removed);
        if self.tables[home].distinct() == 0 && self.tables.len() > 1 {
            // The newest is what new keys are planned for: it stays.
            if home + 1 < self.tables.len() {
                self.tables.remove(home);
                self.tables.shrink_to_fit();
            }
        }
        removed
    }

    /// One table with all that some filters hold, below the least of their universes: finer
    /// identities lose low bits, so that what was exact stays exact. `None` if a universe is not a
    /// multiple of the least by a power of two.
    pub(crate) fn merged(asked: Asked, filters: &[&Self]) -> Result<Option<Self>, Refused> {
        let tables = || filters.iter().flat_map(|filter| &filter.tables);
        let Some(universe) = tables().map(Table::universe).min() else { return Ok(None) };
        let fits =
            |finer: u64| finer.is_multiple_of(universe) && (finer / universe).is_power_of_two();
        if !tables().all(|table| fits(table.universe())) {
            return Ok(None);
        }
        let most = if asked.expansion == 0 {
            asked.capacity
        } else {
            (universe as f64 * asked.rate / 2.0) as u64
        };
        let lists = tables().map(|table| {
            let dropped = (table.universe() / universe).trailing_zeros();
            table.items().map(move |(identity, count)| (identity >> dropped, count)).peekable()
        });
        let mut lists: Vec<_> = lists.collect();
        let items = iter::from_fn(|| {
            let first = lists.iter_mut().filter_map(|list| Some((list.peek()?.0, list)));
            first.min_by_key(|&(identity, _)| identity)?.1.next()
        });
        let merged = Table::of_items(Plan { universe, most }, items)?;
        let removed = filters.iter().map(|filter| filter.removed).fold(0, u64::saturating_add);
        Ok(Some(Self::of_tables(asked, vec![merged], removed)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tamis::Hasher;

    use super::*;
    use crate::asked::Family;

    fn asked(capacity: u64, rate: f64, expansion: u32) -> Asked {
        Asked {
            family: Family::Cuckoo,
            rate,
            capacity,
            expansion,
            bucket_size: 2,
            max_iterations: 20,
            hasher: Hasher::default(),
        }
    }

    fn digest(key: u64) -> Digest {
        Hasher::default().digest_bytes(&key.to_le_bytes())
    }

    fn insert(filter: &mut Multiset, key: u64, copies: u64) {
        while let Err(full) = filter.insert(digest(key), copies) {
            assert_eq!(full, Full::NeedsPart);
            let plan = Plan::next(filter).unwrap();
            filter.push(plan).unwrap();
        }
    }

    /// A thousandfold past what was reserved and back: no key is lost, copies are exact for keys
    /// that share no identity, the rate holds at every step, and tables come and go.
    #[test]
    fn growth_keeps_the_rate_and_every_key() {
        for (capacity, rate) in [(4, 0.01), (100, 0.001), (1, 0.3)] {
            let mut filter = Multiset::new(asked(capacity, rate, 1));
            let keys = 1_000 * capacity.min(40);
            for key in 0..keys {
                insert(&mut filter, key, 1 + key % 3);
                assert!(filter.rate() <= rate, "{key}");
            }
            assert!(filter.tables().len() > 1);
            assert!((0..keys).all(|key| filter.count(digest(key)) > key % 3));
            let asked_for = 400_000;
            let wrong =
                (0..asked_for).filter(|key| filter.contains(digest(u64::MAX - key))).count();
            let expected = filter.rate() * f64::from(asked_for as u32);
            assert!((wrong as f64) < expected + 5.0 * expected.sqrt() + 5.0, "{wrong} {expected}");
            for key in 0..keys {
                for _ in 0..=key % 3 {
                    assert_eq!(filter.remove(digest(key), 1), 1, "{key} of {keys}");
                }
            }
            assert_eq!((filter.keys(), filter.tables().len()), (0, 1));
            assert!(filter.memory() <= 400, "{}", filter.memory());
        }
    }

    /// A window of keys over a filter reserved for fewer, for many generations.
    #[test]
    fn churn_never_fills_a_filter() {
        let mut filter = Multiset::new(asked(1_000, 0.01, 1));
        for key in 0..100_000u64 {
            insert(&mut filter, key, 1);
            if let Some(old) = key.checked_sub(1_500) {
                assert_eq!(filter.remove(digest(old), 1), 1);
            }
        }
        assert_eq!((filter.keys(), filter.tables().len()), (1_500, 1));
        assert!((98_500..100_000).all(|key| filter.contains(digest(key))));
    }

    #[test]
    fn merging_adds_counts_across_tables() {
        let (mut left, mut right) =
            (Multiset::new(asked(10, 0.001, 1)), Multiset::new(asked(300, 0.001, 1)));
        let mut truth: HashMap<u64, u64> = HashMap::new();
        for key in 0..5_000 {
            for (filter, keys) in [(&mut left, 0..3_000), (&mut right, 2_000..5_000)] {
                if keys.contains(&key) {
                    insert(filter, key, 1 + key % 2);
                    *truth.entry(key).or_default() += 1 + key % 2;
                }
            }
        }
        assert!(left.tables().len() > 1);
        let merged = Multiset::merged(*left.asked(), &[&left, &right]).unwrap();
        let mut merged = merged.unwrap();
        assert_eq!(merged.keys(), left.keys() + right.keys());
        for (&key, &count) in &truth {
            assert!(merged.count(digest(key)) >= count);
        }
        for (&key, &count) in &truth {
            assert_eq!(merged.remove(digest(key), count), count);
        }
        assert_eq!(merged.keys(), 0);
    }

    /// Plans take no time, whatever is asked for, and say so when there is none.
    #[test]
    fn every_plan_meets_its_rate() {
        for expansion in [0, 1] {
            for capacity in [1, 2, 1_000, 1 << 20, 1 << 30] {
                for rate in [0.9, 0.25, 0.01, 1e-4, 1e-7, 1e-13, 1e-300] {
                    let asked = asked(capacity, rate, expansion);
                    let Ok(plan) = Plan::first(&asked) else {
                        assert!(capacity as f64 / rate > (1u64 << (MOST_BITS - 2)) as f64);
                        continue;
                    };
                    assert!(plan.universe <= 1 << MOST_BITS && plan.most >= capacity);
                    assert!(plan.most as f64 / plan.universe as f64 <= rate * 1.000_001);
                }
            }
        }
    }
}
