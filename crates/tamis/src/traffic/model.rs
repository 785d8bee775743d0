//! The model of a Bloom filter as a message: its size when coded, how this size varies, and the
//! rate that it buys.
//!
//! Source: Mitzenmacher, "Compressed Bloom Filters", IEEE/ACM Transactions on Networking 2002,
//! with the recomputation and the errata of `checked-dleft-compressed-partitioned.md` ("the
//! notes").
//!
//! | symbol | meaning |
//! |---|---|
//! | n | keys |
//! | m | bits or counters of the array |
//! | k | positions of a key |
//! | x | load, kn / m: throws for each position |
//! | p | share of positions that are zero |
//! | f | the rate |
//! | H | binary entropy, in bits |
//! | z | size of the message, in bits |
//! | c | share of the keys that have been replaced since the last message |
//! | q | share of ones in a delta, the exclusive or of the old and the new array |
//!
//! Everything holds for k n independent throws, and in the limit of many positions unless said
//! otherwise.

use core::f64::consts::{E, LN_2, TAU};

use crate::math::gamma::ln_choose;
use crate::math::occupancy::variance_occupied;
use crate::math::tail::ln_poisson_pmf;

/// Bits that a static range coder writes beyond the entropy. (Notes, section 2.1: one byte, two
/// for a delta.)
const CODER_END_BITS: f64 = 16.0;
/// Counters of a larger load are as good as normal.
const LARGE: f64 = 1e6;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message {
    /// The bits of a filter.
    Snapshot,
    /// The bits that differ after a share c of the n keys was replaced by as many others.
    Delta {
        /// c, from 0 to 1.
        changed: f64,
    },
    /// The counters of a counting filter.
    Counters,
}

/// A filter and its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// m, at least 1.
    pub positions: u64,
    /// k.
    pub hashes: u32,
    /// n.
    pub keys: u64,
}

impl Shape {
    /// x = kn / m.
    pub fn load(&self) -> f64 {
        f64::from(self.hashes) * self.keys as f64 / self.positions as f64
    }

    /// kn.
    pub fn throws(&self) -> u64 {
        self.keys.saturating_mul(self.hashes.into())
    }

    /// The exact mean share of zeros, for every m and n: (1 - 1/m)^(kn), as printed (section II-A)
    /// before the limit is taken. Tested by `limits`.
    pub fn exact_zeros(&self) -> f64 {
        libm::exp(self.throws() as f64 * libm::log1p(-1.0 / self.positions as f64))
    }

    /// f = (1 - p)^k, as printed (section II-A). This is the limit of
    /// [`bloom::model::rate`](crate::bloom::model::rate), which is exact and higher. The printed
    /// tables use the limit. Tested by `tables_one_to_three`, `tables_four_and_five`.
    pub fn limit_rate(&self) -> f64 {
        limit_rate(self.load(), self.hashes.into())
    }

    /// z, the entropy of the message.
    ///
    /// Printed: m H(p) for a filter (section II-B), m H(q) for a delta (section IV,
    /// [`delta_share`]). Of counters the paper only says that they can be coded too; ours is m
    /// times [`counter_entropy`]. Tested by `tables_one_to_three`, `tables_six_and_seven`,
    /// `counting_filters`.
    pub fn entropy_bits(&self, message: Message) -> f64 {
        let each = match message {
            Message::Snapshot => entropy(-libm::expm1(-self.load())),
            Message::Delta { changed } => entropy(self.even_delta(changed).0),
            Message::Counters => counter_entropy(self.load()),
        };
        self.positions as f64 * each
    }

    /// The mean length of the message from an ideal coder, accurate to a bit or two:
    /// [`adaptive_bits`] at the mean number of ones; for counters, the entropy and two bytes for
    /// the end of a static coder. Tested by `sizes`.
    pub fn coded_bits(&self, message: Message) -> f64 {
        let zeros = match message {
            Message::Snapshot => self.exact_zeros(),
            Message::Delta { changed } => 1.0 - self.even_delta(changed).0,
            Message::Counters => return self.entropy_bits(message) + CODER_END_BITS,
        };
        adaptive_bits(self.positions, libm::round(self.positions as f64 * zeros) as u64)
    }

    /// The standard deviation of the message's length from one filter to the next, in bits.
    ///
    /// The paper bounds it by Azuma's inequality (Theorem 1), which is too weak to say anything at
    /// these sizes. Ours: the length is nearly linear in the number of ones, with the slope
    /// log2((1-q)/q). So its deviation is that slope times the deviation of the number of ones,
    /// which is exact for a filter, and a limit for a delta ([`delta_share`]) and for counters. At
    /// q = 1/2 the slope is 0, and the length varies by a fraction of a bit, downwards. Tested by
    /// `sizes`, `counter_lengths`.
    pub fn deviation_bits(&self, message: Message) -> f64 {
        let m = self.positions as f64;
        match message {
            Message::Snapshot => {
                let ones = -libm::expm1(-self.load());
                slope(ones) * libm::sqrt(variance_occupied(self.positions, self.throws()))
            }
            Message::Delta { changed } => {
                let (ones, variance) = self.even_delta(changed);
                slope(ones) * libm::sqrt(m * variance)
            }
            Message::Counters => libm::sqrt(m * counter_code(self.load()).1),
        }
    }

    /// [`delta_share`] after the share `changed` of the keys was replaced.
    fn even_delta(&self, changed: f64) -> (f64, f64) {
        let load = self.load();
        delta_share((1.0 - changed) * load, changed * load, changed * load)
    }
}

/// H(q) = -q log2 q - (1-q) log2(1-q), as printed (section II-B), with H(0) = H(1) = 0. It is
/// accurate for small q, so for a sparse array pass the share of ones. Tested by `limits`.
pub fn entropy(share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    -(share * libm::log(share) + (1.0 - share) * libm::log1p(-share)) / LN_2
}

/// |log2((1-q)/q)|: how many bits longer the message is with one more of the rarer bit.
fn slope(share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    libm::fabs(libm::log1p(-share) - libm::log(share)) / LN_2
}

/// f = (1 - e^-x)^k at the load x = kn/m. k need not be whole; Figures 1 and 2 are drawn so.
pub fn limit_rate(load: f64, hashes: f64) -> f64 {
    libm::pow(-libm::expm1(-load), hashes)
}

/// q, the share of ones in a delta, and the variance of their number for each position. `stayed`,
/// `removed` and `added` are the loads of the keys that stayed, went and came.
///
/// Printed (section IV): q = 2p(1 - p^c), for a set that keeps its size. Ours: q = `p_old` +
/// `p_new` - 2 Pr[both 0], which is the same where as many keys came as went. It is computed
/// without a difference of nearly equal numbers: a bit differs if no key that stayed set it, and
/// either a key that went or a key that came did, but not both.
///
/// The variance is q(1-q), as for independent positions, less a part because the number of throws
/// is given: the sum of load times (dq/dload)^2 over the three loads. With one load it is the
/// known p(1-p) - x p^2 of empty bins. Tested by `tables_six_and_seven`, `sizes`, `uneven_deltas`.
pub fn delta_share(stayed: f64, removed: f64, added: f64) -> (f64, f64) {
    let free = libm::exp(-stayed);
    let (no_old, no_new) = (libm::exp(-removed), libm::exp(-added));
    let (old, new) = (-libm::expm1(-removed), -libm::expm1(-added));
    let share = free * (no_old * new + no_new * old);
    let by_removed = free * no_old * (no_new - new);
    let by_added = free * no_new * (no_old - old);
    let explained =
        stayed * share * share + removed * by_removed * by_removed + added * by_added * by_added;
    (share, (share * (1.0 - share) - explained).max(0.0))
}

/// L = ceil(log2((m+1)! / (x! (m-x)!))) + 1, as printed (appendix), where x is the number of
/// zeros: the bits that an ideal adaptive coder writes if both counts start at 1. It is
/// log2(m+1) + log2 C(m, x), about 9 bits above m H(p) at m = 140000, and two bits for the ceiling
/// and the end. It holds for every m, and x up to m. Tested by `sizes`.
pub fn adaptive_bits(positions: u64, zeros: u64) -> f64 {
    let ways = ln_choose(positions, zeros) + libm::log(positions as f64 + 1.0);
    libm::ceil(ways / LN_2) + 1.0
}

/// The entropy of a counter of load x, Poisson in the limit: -sum `P_j` log2 `P_j`, `P_j` = e^-x
/// x^j / j!. The paper does not have it, and only says that it is small (section V). It takes
/// about sqrt(x) terms. Tested by `counting_filters`.
pub fn counter_entropy(load: f64) -> f64 {
    counter_code(load).0
}

/// The mean and the variance of the bits that an ideal static code spends on a counter. The
/// variance is reduced because the sum of all counters is given.
fn counter_code(load: f64) -> (f64, f64) {
    if load > LARGE {
        // The normal distribution's.
        let variance = 0.5 / (LN_2 * LN_2);
        return (0.5 * libm::log2(TAU * E * load), variance);
    }
    let reach = 12.0 * libm::sqrt(load) + 24.0;
    let first = (load - reach).max(0.0) as u64;
    let last = (load + reach) as u64;
    let (mut mean, mut square, mut product) = (0.0, 0.0, 0.0);
    for count in first..=last {
        let ln_chance = ln_poisson_pmf(count, load);
        let chance = libm::exp(ln_chance);
        if chance > 0.0 {
            let spent = -ln_chance / LN_2;
            mean += chance * spent;
            square += chance * spent * spent;
            product += chance * spent * (count as f64 - load);
        }
    }
    let explained = if load > 0.0 { product * product / load } else { 0.0 };
    (mean, (square - mean * mean - explained).max(0.0))
}
