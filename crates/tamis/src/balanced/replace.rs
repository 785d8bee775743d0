//! What it takes to bring a filter up to date after some of its keys were replaced.
//!
//! Nothing can be removed from a balanced filter, so it is built anew: from the same keys in the same order, with a new key in the place
//! of each that went. A key that goes lets in another that its block had refused, which leaves its next block, and so on; where the emptier of
//! two blocks takes a key, one bit more or less sends later keys elsewhere, and these again others. No formula is known to us for such
//! chains of moves. They are the same in any filter with as many keys for each block, so a small one is built twice and compared, with
//! the same pseudorandom keys on every machine, in some milliseconds.
//!
//! Tested by `tests/traffic.rs`.

use alloc::vec::Vec;

use super::params::BalancedParams;
use super::{Balanced, Scheme};
use crate::digest::{Digest, Hasher};
use crate::filter::{Insert, Stored};
use crate::spec::Params;

/// Keys of the small filter; of several together, where there are fewer keys.
const KEYS: u64 = 50_000;
const FILTERS: u64 = 200;
/// Replaced keys that say enough, in up to so many sets of them.
const REPLACED: u64 = 1000;
const SETS: u64 = 4;
/// Which pseudorandom keys.
const SEED: Digest = Digest(0x7265_706c_6163_6564);

/// What differs between a filter and its successor.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Replaced {
    /// The share of the keys that was replaced, and how many in all.
    pub(crate) share: f64,
    pub(crate) seen: f64,
    /// Bits of the array that flip, over all bits.
    pub(crate) flips: f64,
    /// Entries that come to the list or go from it, over keys.
    pub(crate) listed: f64,
}

/// What differs after a share `churn` of `keys` keys was replaced.
pub(crate) fn replace<S: Scheme>(
    params: &BalancedParams<S>,
    keys: u64,
    churn: f64,
) -> Option<Replaced> {
    let all = keys.clamp(1, KEYS);
    let going = libm::round(churn.min(1.0) * all as f64).max(1.0) as u64;
    let part = all as f64 / keys.max(1) as f64;
    let mut values = params.values();
    let scaled = |value: u64| libm::round(value as f64 * part) as u64;
    values[0] = scaled(values[0]).max(values[3]);
    values[7] = scaled(values[7]);
    let small = BalancedParams::<S>::from_values(&values).ok()?;
    let filters = (KEYS / all).min(FILTERS);
    let sets = (REPLACED / (filters * going)).clamp(1, SETS);
    let (mut flips, mut listed) = (0, 0);
    for number in 0..filters {
        // Numbers for places, for keys, and for the keys that come in their places.
        let random = Digest(SEED.word(number));
        let build = |places: &[u64], set: u64| {
            let mut filter = Balanced::<S>::new(small, Hasher::default()).ok()?;
            let mut digests: Vec<Digest> = (0..all).map(|at| Digest(random.word(at))).collect();
            for &place in places {
                digests[place as usize] = Digest(random.word((2 * set + 2) * KEYS + place));
            }
            for digest in digests {
                // A list that is full and may not grow takes no more: then this is as full as the filter gets.
                let _ = filter.insert_digest(digest);
            }
            Some(filter)
        };
        let old = build(&[], 0)?;
        let before = old.list.sorted();
        for set in 0..sets {
            let mut places: Vec<u64> = (0..all).collect();
            places.sort_by_cached_key(|place| random.word((2 * set + 1) * KEYS + place));
            let new = build(&places[..going as usize], set)?;
            let words = old.words.as_slice().iter().zip(new.words.as_slice());
            flips += words.map(|(old, new)| u64::from((old ^ new).count_ones())).sum::<u64>();
            let after = new.list.sorted();
            let both = before.iter().filter(|entry| after.binary_search(entry).is_ok()).count();
            listed += before.len() + after.len() - 2 * both;
        }
    }
    let (times, all) = ((filters * sets) as f64, all as f64);
    Some(Replaced {
        share: going as f64 / all,
        seen: going as f64 * times,
        flips: flips as f64 / (times * small.bits() as f64),
        listed: listed as f64 / (times * all),
    })
}
