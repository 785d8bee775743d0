//! How many bytes a packed snapshot takes on the wire, and a delta after some keys were replaced.
//!
//! The coders take hardly more than the entropy of what they code, so lengths follow from the
//! content. After c n of n keys were replaced:
//!
//! | content | snapshot | delta |
//! |---|---|---|
//! | bits | m bits of which a share is set | m bits of which a share q flips ([`delta_share`]) |
//! | counters | m Poisson counters, plane by plane | which of m differ, and by how much: the difference of two Poisson numbers |
//! | identities | n gaps in a universe U | c n gaps in n (removed), c n gaps in U (inserted) |
//! | positions, choices | as they are | none: a new snapshot |
//!
//! Each key of a blocked filter sets k different bits, and the share of set bits depends on
//! nothing else: so blocked filters count as plain ones. In a block of a balanced kind, of B
//! bits, a key sets B (1 - (1 - 1/B)^k) bits on average: a somewhat smaller load. Its snapshots
//! count as those of blocked filters whose keys are spread evenly. For their deltas a small
//! filter is built twice and compared (`balanced/replace.rs`).
//!
//! The replaced keys are random. The other keys keep their order, and a new key takes the position
//! of the one that it replaces. The order matters to balanced kinds alone. These are built anew,
//! and early keys move more than late ones: replacing the oldest keys takes more bytes than
//! predicted here, replacing the newest fewer. `tests/library/traffic.rs` compares the
//! predictions with snapshots and deltas of every kind.

pub(crate) mod model;

use alloc::vec::Vec;

use self::model::delta_share;
use crate::coder::{self, Effort, sorted_bits};
use crate::math::occupancy::{mean_occupied, variance_occupied};
use crate::math::tail::{poisson_above, poisson_pmf};
use crate::spec::{Bytes, Traffic};
use crate::wire::{self, Encoding};

/// Larger Poisson numbers are too rare to count, up to a mean of [`MANY`].
const MOST_STEP: u64 = 24;
const MANY: f64 = 6.0;
/// Bytes of the content ids of base and result.
const IDS: u64 = 32;

/// A number of bits that varies from filter to filter: its mean and its variance.
#[derive(Clone, Copy)]
pub(crate) struct Coded {
    pub(crate) bits: f64,
    pub(crate) variance: f64,
}

/// An array of bits of which keys set some.
pub(crate) struct Bits {
    /// Params in the header.
    pub(crate) params: usize,
    /// Bits of the array.
    pub(crate) size: u64,
    /// Bits that a key sets, less those that it sets twice.
    pub(crate) each: f64,
    /// The variance of the number of ones.
    pub(crate) variance: f64,
}

impl Bits {
    /// `blocks` blocks of `block` bits; each of `keys` keys has `hashes` bits in one block.
    pub(crate) fn in_blocks(
        params: usize,
        (blocks, block): (u64, u64),
        hashes: u32,
        keys: u64,
    ) -> Self {
        let k = f64::from(hashes);
        let each = -(block as f64) * libm::expm1(k * libm::log1p(-1.0 / block as f64));
        Self { each, ..Self::in_sections(params, blocks.saturating_mul(block), hashes, keys) }
    }

    /// `size` bits of blocks; each of `keys` keys has one bit in each of `hashes` sections of a
    /// block.
    pub(crate) fn in_sections(params: usize, size: u64, hashes: u32, keys: u64) -> Self {
        let each = f64::from(hashes);
        // At most: as if a key set no new bit or k new bits, with equal probability.
        Self { params, size, each, variance: keys as f64 * each * each / 4.0 }
    }

    /// Snapshot and delta of a filter that is an array and nothing else.
    pub(crate) fn traffic(&self, keys: u64, replaced: Option<u64>) -> Traffic {
        let delta = replaced.map(|replaced| {
            let flips = self.flips(keys as f64, replaced as f64) * self.size as f64;
            self.delta(flips, replaced as f64, 1.0, None)
        });
        Traffic { snapshot: self.snapshot(keys as f64, None), delta }
    }

    /// A snapshot with `keys` keys in the array, and the section `beside` it.
    pub(crate) fn snapshot(&self, keys: f64, beside: Option<Coded>) -> Bytes {
        let load = self.each * keys / self.size as f64;
        let ones = -(self.size as f64) * libm::expm1(-load);
        frame(self.params, 0, array(self.size, ones, self.variance), beside)
    }

    /// The share of the bits that flips when `replaced` of `keys` keys are replaced.
    pub(crate) fn flips(&self, keys: f64, replaced: f64) -> f64 {
        let load = |keys: f64| self.each * keys / self.size as f64;
        delta_share(load(keys - replaced), load(replaced), load(replaced)).0
    }

    /// A delta of `flips` times `more` flipped bits after `replaced` keys were replaced, and the
    /// section `beside` it.
    pub(crate) fn delta(
        &self,
        flips: f64,
        replaced: f64,
        more: f64,
        beside: Option<Coded>,
    ) -> Bytes {
        // At most: as if a key that is removed or inserted flipped no bit or all of its bits, with
        // equal probability.
        let variance = 2.0 * replaced * self.each * self.each / 4.0;
        let array = array(self.size, flips * more, variance * more * more);
        frame(self.params, IDS, array, beside)
    }
}

/// Counters of which keys raise some.
pub(crate) struct Counters {
    /// Params in the header.
    pub(crate) params: usize,
    /// How many there are.
    pub(crate) number: u64,
    /// The largest count.
    pub(crate) most: u64,
    pub(crate) hashes: u32,
    /// Standard deviation of the bits of a snapshot.
    pub(crate) deviation: f64,
}

impl Counters {
    pub(crate) fn traffic(&self, keys: u64, replaced: Option<u64>) -> Traffic {
        let load = f64::from(self.hashes) * keys as f64 / self.number as f64;
        let reach = |count: u64| match count {
            0 => self.number as f64,
            _ if count > self.most => 0.0,
            _ => self.number as f64 * poisson_above(count - 1, load),
        };
        let coded = Coded { bits: planes(reach), variance: self.deviation * self.deviation };
        let snapshot = frame(self.params, 0, coded, None);
        Traffic { snapshot, delta: replaced.map(|replaced| self.delta(replaced as f64)) }
    }

    fn delta(&self, replaced: f64) -> Bytes {
        let counters = self.number as f64;
        let load = f64::from(self.hashes) * replaced / counters;
        let changed = counters * (1.0 - difference(0, load));
        // Numbers 0, 1, 2, 3, ... code the steps 1, -1, 2, -2, ...
        let chances: Vec<f64> =
            (0..2 * MOST_STEP).map(|number| difference(number / 2 + 1, load)).collect();
        let reach = |number: u64| {
            let beyond: f64 = chances.iter().skip(number as usize).sum();
            counters * beyond
        };
        let which = numbers(changed, changed, self.number);
        let bits = which.bits + planes(reach);
        // The code of a sign and a size varies by at most a bit.
        let variance = which.variance + changed;
        frame(self.params, IDS, Coded { bits, variance }, None)
    }
}

/// Identities of keys.
pub(crate) struct Identities {
    /// Params in the header of a snapshot, and of a delta.
    pub(crate) params: [usize; 2],
    pub(crate) universe: u64,
    pub(crate) value_bits: u32,
    /// Whether equal identities are kept once.
    pub(crate) set: bool,
}

impl Identities {
    pub(crate) fn traffic(&self, keys: u64, replaced: Option<u64>) -> Traffic {
        let n = keys as f64;
        let universe = self.universe;
        let distinct = mean_occupied(universe, keys);
        let load = n / universe as f64;
        let several = |more: u64| {
            if self.set { 0.0 } else { universe as f64 * poisson_above(more, load) }
        };
        let coded =
            self.entries((distinct, variance_occupied(universe, keys)), [several(1), several(2)]);
        let snapshot = frame(self.params[0], 0, coded, None);
        let delta = replaced.map(|replaced| self.delta(n, distinct, replaced as f64));
        Traffic { snapshot, delta }
    }

    fn delta(&self, n: f64, distinct: f64, r: f64) -> Bytes {
        let all = self.universe as f64;
        // Half of what differs is removed, half is inserted. A set keeps an identity that another
        // key shares.
        let (moved, several) = if self.set {
            (all * delta_share((n - r) / all, r / all, r / all).0 / 2.0, [0.0; 2])
        } else {
            let [same, one, two] = [0, 1, 2].map(|by| difference(by, r / all));
            let above_one = 0.5 - 0.5 * same - one;
            let several = [above_one, above_one - two].map(|share| all * share.max(0.0));
            (all * (1.0 - same) / 2.0, several)
        };
        // The variance is the number of replaced keys that share an identity.
        let goes = numbers(moved, r - moved, libm::round(distinct) as u64);
        let base = 8.0 + leb(distinct);
        let gone = Coded { bits: base + goes.bits + counts(several[0], moved), ..goes };
        let comes = self.entries((moved, r - moved), several);
        frame(self.params[1], IDS, gone, Some(comes))
    }

    /// `count` entries, with the variance of their number, of which `several` are in more than
    /// once and more than twice.
    fn entries(&self, (count, variance): (f64, f64), several: [f64; 2]) -> Coded {
        let [twice, more] = several.map(libm::round);
        let identities = numbers_twice(count, twice, variance, self.universe);
        let values = (libm::round(count) + twice) * f64::from(self.value_bits);
        let bits = identities.bits + values + leb(twice) + counts(more, twice);
        Coded { bits, ..identities }
    }
}

/// The bytes of a header with `params` params, a section of `fixed` bytes if that is not 0, and
/// one or two coded sections.
pub(crate) fn frame(params: usize, fixed: u64, first: Coded, second: Option<Coded>) -> Bytes {
    let bytes = |coded: Coded| (Encoding::Packed, libm::ceil(coded.bits / 8.0) as u64);
    let mut sections = Vec::new();
    if fixed > 0 {
        sections.push((Encoding::Packed, fixed));
    }
    sections.push(bytes(first));
    sections.extend(second.map(bytes));
    let variance = first.variance + second.map_or(0.0, |second| second.variance);
    Bytes {
        mean: wire::planned_sections(params, &sections) as f64,
        // Rounding to whole bytes varies by half a byte.
        deviation: libm::sqrt(variance) / 8.0 + 0.5,
    }
}

/// An array of `bits` bits with `ones` ones on average; `variance` is that of the number of ones.
pub(crate) fn array(bits: u64, ones: f64, variance: f64) -> Coded {
    let coded = |ones: f64| {
        let ones = libm::round(ones.clamp(0.0, bits as f64)) as u64;
        let coder = coder::choose(bits, ones, Effort::Best);
        coder::predicted_bits(coder, bits, ones).unwrap_or(bits as f64)
    };
    let here = coded(ones);
    let off = libm::sqrt(variance);
    let change = libm::fabs(coded(ones + off) - here).max(libm::fabs(coded(ones - off) - here));
    Coded { bits: here, variance: change * change }
}

/// `count` different numbers below `universe`, in order; `variance` is that of their count.
pub(crate) fn numbers(count: f64, variance: f64, universe: u64) -> Coded {
    numbers_twice(count, 0.0, variance, universe)
}

/// As [`numbers`], where `twice` of the numbers are written twice.
fn numbers_twice(count: f64, twice: f64, variance: f64, universe: u64) -> Coded {
    let rounded = libm::round(count).min(universe as f64) as u64;
    if rounded == 0 {
        return Coded { bits: 8.0, variance: 0.0 };
    }
    let gaps = sorted_bits(rounded, twice as u64, universe);
    let each = gaps / rounded as f64;
    // The code of each gap varies by about a bit.
    let variance = count + variance * each * each;
    Coded { bits: leb(count + twice) + leb(gaps / 8.0) + gaps, variance }
}

/// The probability that the first of two Poisson numbers of mean `mean` is larger by exactly `by`.
fn difference(by: u64, mean: f64) -> f64 {
    if mean > MANY {
        // The normal approximation is good enough here.
        let variance = 2.0 * mean;
        let off = by as f64;
        return libm::exp(-off * off / (2.0 * variance))
            / libm::sqrt(core::f64::consts::TAU * variance);
    }
    (0..MOST_STEP).map(|j| poisson_pmf(j, mean) * poisson_pmf(j + by, mean)).sum()
}

/// Bits of the counts of `groups` entries, of which `several` are above one, and mostly two.
fn counts(several: f64, groups: f64) -> f64 {
    let at = numbers(several, several, libm::round(groups).max(1.0) as u64);
    at.bits + 8.0 * libm::round(several)
}

/// A list of `entries` entries on average, eight bytes each; their number is Poisson.
pub(crate) fn list(entries: f64) -> Coded {
    Coded { bits: 64.0 * libm::round(entries), variance: 64.0 * 64.0 * entries }
}

/// Bits of small numbers, plane by plane; `reach(level)` says how many are at least `level`.
fn planes(reach: impl Fn(u64) -> f64) -> f64 {
    let mut bits = 0.0;
    let mut level = 0;
    loop {
        let left = libm::round(reach(level));
        if left < 1.0 {
            return bits;
        }
        let plane = array(left as u64, reach(level + 1).min(left), 0.0).bits;
        bits += leb(plane / 8.0) + plane;
        level += 1;
    }
}

/// Bits of a number that is written seven bits per byte.
fn leb(number: f64) -> f64 {
    let bits = 64 - (number as u64 | 1).leading_zeros();
    f64::from(bits.div_ceil(7) * 8)
}
