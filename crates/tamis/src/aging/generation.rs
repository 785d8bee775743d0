//! The keys of one age: a table that is laid out anew as they come and go.

use alloc::boxed::Box;

use crate::blocked_rank::{BlockedRank, ladder};
use crate::digest::Hasher;
use crate::entry::Entry;
use crate::filter::Filter as _;
use crate::identities::Table as _;
use crate::spec::{Full, Invalid};
use crate::stored::Stored as _;

/// A table without room for more keys is laid out for an eighth more. So a key is moved about
/// eight times while a generation fills.
const GROWTH: u64 = 8;
/// The fewest keys that a table is laid out for: about those of one block.
const FEWEST: u64 = 24;

/// The identities of one age, each once; at least one.
#[derive(Clone, Debug)]
pub(super) struct Generation {
    filter: BlockedRank,
}

impl Generation {
    /// A generation of one identity.
    pub(super) fn of(hasher: Hasher, universe: u64, identity: u64) -> Result<Self, Full> {
        let none = Full { keys: 0, inserted: 0 };
        let params = ladder::layout(universe, FEWEST).map_err(|_| none)?;
        let mut filter = BlockedRank::new(params, hasher).map_err(|_| none)?;
        filter.insert_identity(identity)?;
        Ok(Self { filter })
    }

    /// A generation that was read, if it is one of a filter with this hasher and universe.
    pub(super) fn from_filter(
        filter: BlockedRank,
        hasher: Hasher,
        universe: u64,
    ) -> Result<Self, Invalid> {
        if filter.hasher() != hasher || filter.capacity() != 0 {
            return Err(Invalid("a generation has another label than its filter"));
        }
        if filter.params().universe() != universe {
            return Err(Invalid("a generation has another universe than its filter"));
        }
        if filter.keys() == 0 {
            return Err(Invalid("a generation has no keys"));
        }
        Ok(Self { filter })
    }

    pub(super) fn filter(&self) -> &BlockedRank {
        &self.filter
    }

    pub(super) fn keys(&self) -> u64 {
        self.filter.keys()
    }

    #[inline]
    pub(super) fn contains(&self, identity: u64) -> bool {
        self.filter.contains_identity(identity)
    }

    /// Inserts an identity that is not in.
    pub(super) fn insert(&mut self, identity: u64) -> Result<(), Full> {
        let keys = self.keys();
        if keys >= self.filter.params().capacity() {
            self.lay_out(keys + keys / GROWTH + 1);
        }
        self.filter.insert_identity(identity).map(drop)
    }

    /// Removes an identity, and returns whether it was in. The table is laid out anew when its
    /// room exceeds its keys by more than a share of them, 1/`share`.
    pub(super) fn remove(&mut self, identity: u64, share: u64) -> bool {
        let is_in = self.filter.remove_identity(identity).is_ok();
        if is_in {
            self.fit(share);
        }
        is_in
    }

    /// Lays the table out for its keys, if it has room for more than 1/`share` more of them.
    pub(super) fn fit(&mut self, share: u64) {
        let keys = self.keys().max(FEWEST);
        if self.filter.params().capacity() > keys + keys / share {
            self.lay_out(keys);
        }
    }

    /// Lays the table out anew for `keys` keys. Without memory for it the table stays as it is: it
    /// takes more keys, in more memory each.
    #[cold]
    fn lay_out(&mut self, keys: u64) {
        let params = ladder::layout(self.filter.params().universe(), keys.max(FEWEST));
        if let Ok(params) = params {
            let _ = self.filter.lay_out_anew(params);
        }
    }

    /// All identities, in order.
    pub(super) fn identities(&self) -> impl Iterator<Item = u64> {
        self.filter.table.entries().map(|entry| entry.identity)
    }

    /// All identities, in order, as entries.
    pub(super) fn entries(&self) -> Box<dyn Iterator<Item = Entry> + '_> {
        Box::new(self.filter.table.entries())
    }

    /// Checks that every identity is in once, and that the keys are counted.
    pub(super) fn validate(&self) -> Result<(), Invalid> {
        self.filter.validate()?;
        let mut keys = 0;
        for entry in self.filter.table.entries() {
            if entry.count != 1 {
                return Err(Invalid("an identity is in a generation twice"));
            }
            keys += 1;
        }
        if keys == self.keys() {
            return Ok(());
        }
        Err(Invalid("a generation says another number of keys than it has"))
    }
}
