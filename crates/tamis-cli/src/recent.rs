//! Which keys were seen lately: filters whose keys expire, with room for as many as come.

use anyhow::{Context, Result};
use tamis::{Aging, Digest, Hasher};

/// Keys that the first filter is planned for, unless the user says more. What is planned for and
/// does not come takes hardly any memory.
const START: u64 = 1 << 18;
/// How many times as many keys the next filter is planned for.
const GROWTH: u64 = 4;

/// What was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) hasher: Hasher,
    /// The probability that a new key is taken for one that was seen.
    pub(crate) rate: f64,
    /// Keys that are alive at once, if the user knows.
    pub(crate) keys: Option<u64>,
    /// How long a key is known, in milliseconds.
    pub(crate) lifetime: u64,
    pub(crate) steps: u32,
}

/// The keys that were seen within a lifetime.
///
/// A filter cannot become finer without its keys. So when more keys are alive than it was planned
/// for, a larger one takes those that come. The old one is still asked, and goes when its keys
/// have expired. Each filter gets half of the rate that those before it have left.
pub(crate) struct Recent {
    asked: Asked,
    /// The filters with their shares of the rate, the one that takes keys last.
    filters: Vec<(Aging, f64)>,
}

impl Recent {
    pub(crate) fn new(asked: Asked) -> Result<Self> {
        let mut recent = Self { asked, filters: Vec::new() };
        recent.plan(asked.keys.unwrap_or(START))?;
        Ok(recent)
    }

    pub(crate) fn hasher(&self) -> Hasher {
        self.asked.hasher
    }

    /// Begins a filter for `keys` keys.
    fn plan(&mut self, keys: u64) -> Result<()> {
        let Asked { hasher, rate, lifetime, steps, .. } = self.asked;
        let share = (rate - self.filters.iter().map(|(_, share)| share).sum::<f64>()) / 2.0;
        let filter = Aging::new(hasher, keys, share, lifetime, steps)
            .context("too many lines are alive at once; say more --keys, or a higher --rate")?;
        self.filters.push((filter, share));
        Ok(())
    }

    /// Starts fetching the memory that [`is_new`](Self::is_new) reads.
    pub(crate) fn prefetch(&self, digest: Digest) {
        self.filters.iter().for_each(|(filter, _)| filter.prefetch(digest));
    }

    /// Whether a key was not seen within a lifetime before `now`. Then it is seen now.
    pub(crate) fn is_new(&mut self, digest: Digest, now: u64) -> Result<bool> {
        if self.filters.iter().any(|(filter, _)| filter.contains_digest(digest, now)) {
            return Ok(false);
        }
        if let Some((filter, _)) = self.filters.last()
            && filter.keys(now) >= filter.capacity()
        {
            let larger = filter.capacity().saturating_mul(GROWTH);
            self.filters.retain(|(filter, _)| filter.keys(now) > 0);
            self.plan(larger)?;
        }
        if let Some((filter, _)) = self.filters.last_mut() {
            filter.insert_digest(digest, now)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Far more keys than planned for: none is forgotten within its lifetime, hardly any new one
    /// is taken for an old one, and filters whose keys have expired go.
    #[test]
    fn filters_follow_the_keys_that_are_alive() {
        let hasher = Hasher::default();
        let asked = Asked { hasher, rate: 1e-4, keys: Some(10), lifetime: 1000, steps: 4 };
        let mut recent = Recent::new(asked).unwrap();
        // Taken for others that were seen; they come back when those have expired.
        let mut dropped = BTreeSet::new();
        for key in 0..100_000_u64 {
            let now = key / 50;
            if !recent.is_new(hasher.digest(&key), now).unwrap() {
                dropped.insert(key);
            }
            let again = key.saturating_sub(50 * (key % 1000));
            if !dropped.contains(&again) {
                assert!(!recent.is_new(hasher.digest(&again), now).unwrap(), "{key} {again}");
            }
        }
        // Ten are expected, and more than thirty in one of 10^7 runs.
        assert!(dropped.len() <= 30, "{dropped:?}");
        assert!(recent.filters.len() > 2);
        let rates: f64 = recent.filters.iter().map(|(filter, _)| filter.rate(2000)).sum();
        assert!(rates <= 1e-4, "{rates}");
        // All have expired; the next one that is full takes no others along.
        let late = 10_000;
        for key in 0..1_000_000_u64 {
            recent.is_new(hasher.digest(&(key, "late")), late + key / 500).unwrap();
        }
        assert!(recent.filters.len() <= 2, "{}", recent.filters.len());
    }
}
