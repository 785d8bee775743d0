//! Filters that are built anew, larger, when they hold the keys they were planned for.

use anyhow::Result;
use tamis::{AnyFilter, Digest, Filter, Insert};

use crate::sizing::one_too_many;
use crate::spool::Spool;

/// Keys that a filter is planned for when nothing is known.
pub(crate) const START: u64 = 1 << 16;

/// What happens when more keys come than were planned for.
pub(crate) enum Growth {
    /// The filter is built anew for twice as many, from the digests of its keys.
    Doubles(Spool),
    /// An error (`--fixed`).
    Stops,
    /// The rate rises: the size is fixed by other options, or the keys are not known any more.
    Crowds,
}

/// A filter that keeps its promise while keys come.
pub(crate) struct Growing<'a> {
    pub(crate) filter: AnyFilter,
    growth: Growth,
    /// An empty filter for a number of keys.
    empty: &'a dyn Fn(u64) -> Result<AnyFilter>,
}

impl<'a> Growing<'a> {
    pub(crate) fn new(
        filter: AnyFilter,
        growth: Growth,
        empty: &'a dyn Fn(u64) -> Result<AnyFilter>,
    ) -> Self {
        Self { filter, growth, empty }
    }

    /// Inserts the key of a digest, which stands on line `line`. There is room for it afterwards.
    pub(crate) fn insert(&mut self, digest: Digest, line: u64) -> Result<()> {
        if self.filter.keys() >= self.filter.capacity() {
            self.make_room(line)?;
        }
        if let Growth::Doubles(spool) = &mut self.growth {
            spool.extend(&[digest])?;
        }
        self.filter.insert_digest(digest)?;
        Ok(())
    }

    #[cold]
    fn make_room(&mut self, line: u64) -> Result<()> {
        let capacity = self.filter.capacity();
        match &mut self.growth {
            Growth::Crowds => Ok(()),
            Growth::Stops => Err(one_too_many(line, capacity)),
            Growth::Doubles(spool) => {
                // The old filter goes first: both at once would take half as much memory again.
                self.filter = (self.empty)(0)?;
                self.filter = (self.empty)(capacity.saturating_mul(2))?;
                spool.read(|digests| Ok(self.filter.insert_many(digests)?))
            }
        }
    }
}
