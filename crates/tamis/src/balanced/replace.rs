//! Predicts the length of a delta after some of the keys were replaced.
//!
//! Nothing can be removed from a balanced filter, so it is built anew: from the same keys in the
//! same order, with a new key in the place of each that went. A key that goes makes room for
//! another that its block had refused. This one leaves its next block, and so on. Where the
//! emptier of two blocks takes a key, one bit more or less sends later keys elsewhere, and these
//! again others.
//!
//! We know no formula for such chains of moves. They are alike in all filters with the same number
//! of keys for each block. So a small filter is built twice and compared, which takes some
//! milliseconds. Its keys are pseudorandom, and the same on every machine.
//!
//! Tested by `tests/library/traffic.rs`.

use alloc::vec::Vec;

use super::params::BalancedParams;
use super::{Balanced, Scheme};
use crate::digest::{Digest, Hasher};
use crate::filter::Insert;
use crate::spec::{Params, Prediction, Traffic};
use crate::stored::Stored;
use crate::traffic;

/// Keys of the small filter. Where the filter has fewer, several are built with this many keys in
/// all, but at most `FILTERS`.
const KEYS: u64 = 50_000;
const FILTERS: u64 = 200;
/// As many replaced keys are enough. They are replaced in up to `SETS` sets.
const REPLACED: u64 = 1000;
const SETS: u64 = 4;
/// Bits of all the small filters, at most: those for few keys may be as large as the one that is
/// planned. One that alone has more is not built, and its deltas are not predicted.
const MOST_BITS: u64 = 1 << 30;
/// Fixes the pseudorandom keys.
const SEED: Digest = Digest(0x7265_706c_6163_6564);

/// What the models of snapshots and of deltas leave out: its standard deviation, as a share of the
/// length.
const UNEVEN: [f64; 2] = [0.0015, 0.005];
/// The standard deviation of what one replaced key moves, as a share of the mean.
const FEW: f64 = 0.7;

/// What differs between a filter and its successor.
#[derive(Clone, Copy, Debug, Default)]
struct Replaced {
    /// The share of the keys that was replaced, and how many keys were replaced in all.
    share: f64,
    seen: f64,
    /// Bits of the array that flip, over all bits.
    flips: f64,
    /// Entries that come to the list or go from it, over keys.
    listed: f64,
}

/// Lengths of a snapshot, and of a delta after `replaced` of `keys` keys were replaced.
pub(super) fn traffic<S: Scheme>(
    params: &BalancedParams<S>,
    keys: u64,
    predicted: &Prediction,
    replaced: Option<u64>,
) -> Traffic {
    let layout = params.layout();
    let blocks = (layout.blocks, layout.block.into());
    let names = BalancedParams::<S>::NAMES.len();
    let bits = traffic::Bits::in_blocks(names, blocks, layout.hashes, keys);
    let n = keys as f64;
    let listed = predicted.overflow.unwrap_or(0.0);
    let has_list = layout.list > 0 || listed >= 0.5;
    let list = has_list.then(|| traffic::list(listed));
    let snapshot = bits.snapshot(n - listed, list).less_sure(UNEVEN[0]);
    let delta = replaced.and_then(|replaced| {
        let r = replaced as f64;
        let seen = replace(params, keys, r / n.max(1.0))?;
        // Every key that goes or comes moves others: `more` is how many times as many bits flip.
        let plain = bits.flips(n, seen.share * n.max(1.0));
        let more = seen.flips / plain.max(f64::MIN_POSITIVE);
        let toggled = traffic::list(seen.listed * r / seen.share);
        let flips = bits.flips(n, r) * params.bits() as f64;
        // Few replaced keys say less about others.
        let unsure = UNEVEN[1] + FEW / libm::sqrt(seen.seen);
        Some(bits.delta(flips, r, more, Some(toggled)).less_sure(unsure))
    });
    Traffic { snapshot, delta }
}

/// What differs after a share `churn` of `keys` keys was replaced.
fn replace<S: Scheme>(params: &BalancedParams<S>, keys: u64, churn: f64) -> Option<Replaced> {
    let all = keys.clamp(1, KEYS);
    let going = libm::round(churn.min(1.0) * all as f64).max(1.0) as u64;
    let part = all as f64 / keys.max(1) as f64;
    let scaled = |value: u64| libm::round(value as f64 * part) as u64;
    let small = params.scaled(scaled);
    let filters = (KEYS / all).min(FILTERS).min(MOST_BITS / small.bits().max(1));
    if filters == 0 {
        return None;
    }
    let sets = (REPLACED / (filters * going)).clamp(1, SETS);
    let (mut flips, mut listed) = (0, 0);
    for number in 0..filters {
        // The words of `random` are keys, the order in which places are replaced, and the new
        // keys.
        let random = Digest(SEED.word(number));
        let build = |places: &[u64], set: u64| {
            let mut filter = Balanced::<S>::new(small, Hasher::default()).ok()?;
            let mut digests: Vec<Digest> = (0..all).map(|at| Digest(random.word(at))).collect();
            for &place in places {
                digests[place as usize] = Digest(random.word((2 * set + 2) * KEYS + place));
            }
            for digest in digests {
                // A full list that may not grow refuses the key: then the filter is as full as it
                // gets.
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
