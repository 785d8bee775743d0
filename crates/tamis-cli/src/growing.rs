//! Filters that are built anew, larger, when they hold the keys they were planned for.

use anyhow::Result;
use tamis::{AnyFilter, AnyParams, Digest, Filter, Goal, Hasher, Insert, Kind};

use crate::runs::Runs;
use crate::sizing::{self, one_too_many};

/// Keys that a filter is planned for when nothing is known.
pub(crate) const START: u64 = 1 << 16;

/// What takes digests, some at a time.
pub(crate) type Take<'a> = dyn FnMut(&[Digest]) -> Result<()> + 'a;

/// What hands on all digests of an input.
pub(crate) type Each<'a> = dyn FnMut(&mut Take) -> Result<()> + 'a;

/// What happens when more keys come than were planned for.
pub(crate) enum Growth {
    /// The filter is built anew for twice as many, from the digests of its keys.
    Doubles(Runs),
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
        if let Growth::Doubles(runs) = &mut self.growth {
            runs.push(digest)?;
        }
        self.filter.insert_digest(digest)?;
        Ok(())
    }

    /// Inserts those of `digests` that are new, and counts lines.
    fn note(&mut self, digests: &[Digest], line: &mut u64) -> Result<()> {
        for &digest in digests {
            *line += 1;
            if !self.filter.contains_digest(digest) {
                self.insert(digest, *line)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn make_room(&mut self, line: u64) -> Result<()> {
        let capacity = self.filter.capacity();
        match &mut self.growth {
            Growth::Crowds => Ok(()),
            Growth::Stops => Err(one_too_many(line, capacity)),
            Growth::Doubles(runs) => {
                // The old filter goes first: both at once would take half as much memory again.
                self.filter = (self.empty)(0)?;
                self.filter = (self.empty)(capacity.saturating_mul(2))?;
                runs.read(|digests| Ok(self.filter.insert_many(digests)?))
            }
        }
    }
}

/// A filter that tells new keys from repeats, but for one in a million.
fn empty(hasher: Hasher, keys: u64) -> Result<AnyFilter> {
    let params = AnyParams::plan(Kind::BlockedRank, &Goal::rate(keys, 1e-6))?;
    Ok(params.build(sizing::label(hasher, keys))?)
}

/// How many different digests `each` hands on.
pub(crate) fn distinct(hasher: Hasher, each: &mut Each) -> Result<u64> {
    let empty = |keys| empty(hasher, keys);
    let mut seen = Growing::new(empty(START)?, Growth::Doubles(Runs::default()), &empty);
    each(&mut |digests| seen.note(digests, &mut 0))?;
    Ok(seen.filter.keys())
}

/// Hands on what `each` does. More than `most` different digests are an error with the number of
/// the line.
pub(crate) fn at_most(most: u64, hasher: Hasher, each: &mut Each, take: &mut Take) -> Result<()> {
    let empty = |keys| empty(hasher, keys);
    let mut seen = Growing::new(empty(most)?, Growth::Stops, &empty);
    let mut line = 0;
    each(&mut |digests| {
        seen.note(digests, &mut line)?;
        take(digests)
    })
}
