//! Paper 003, Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, "An Improved Construction for
//! Counting Bloom Filters", ESA 2006: full insertions before the steady state, moves, keys with
//! equal identities, and what a standard counting filter would do instead.
//!
//! The symbols are those of `dleft/model.rs` in the library, which has the fluid limit, the rate
//! and the loads that plans are made of, and these:
//!
//! | symbol | meaning |
//! |---|---|
//! | k, C | hash functions and counters for each key of a standard counting filter |
//!
//! The tests named below are in `tests/library/papers_dleft.rs` of the testkit.

use std::f64::consts::LN_2;

use tamis::internals::dleft::model::{Loads, MAX_HEIGHTS, flow, full_chance, largest_load, sane};
use tamis::internals::math::gamma::ln_choose;
use tamis::internals::math::ode::rk4;
use tamis::internals::math::tail::{poisson_above, poisson_pmf};

/// Bits of a counter of a standard counting filter.
const COUNTER_BITS: f64 = 4.0;

/// Like [`Loads::steady`] for buckets of `cells` cells, where a key whose choices are all full
/// takes the place of a key in its first bucket, if that can move to another of its own choices.
///
/// The paper reports such moves (section 5.2) without a model. Ours: in a full insertion, of
/// chance F, the c keys of the first bucket are tried in turn, as if each chose its other buckets
/// anew, and the first that finds room takes the leftmost. Above load 7.25 of 8 the choices are
/// less fresh than that, see [`unresolved_chance`]. Keys that find no room are not in the table,
/// so the mean is below `load` where there are many of them. Tested by `moves`.
pub fn steady_with_moves(subtables: usize, cells: usize, load: f64) -> Loads {
    let (load, cells) = (sane(load), cells.clamp(1, MAX_HEIGHTS));
    let mut loads = Loads::empty(subtables, cells);
    loads.balance(load, |loads, j| {
        if j == 0 {
            return 0.0;
        }
        let stuck = loads.others_full(cells);
        // 1 + P + ... + P^(c-1): how many keys are tried.
        let tried = if stuck < 1.0 {
            (1.0 - libm::pow(stuck, cells as f64)) / (1.0 - stuck)
        } else {
            cells as f64
        };
        let before: f64 = (1..j).map(|l| loads.share(cells, l)).product();
        loads.all_full(cells) * before * tried
    });
    loads
}

/// The mean number of occupied cells of a bucket.
pub fn mean(loads: &Loads) -> f64 {
    (1..loads.shares.len() / loads.subtables).map(|i| loads.at_least(i)).sum()
}

/// Expected full insertions in S `updates` that begin right after the insertions: d B times the
/// integral of F over time, up to the time S / (d B).
///
/// The paper takes S times the share of buckets above c in the steady state (section 5.2; notes,
/// erratum). The steady state is reached after a time of a few L, and assumed after 16 L. `load`
/// is the [`effective_load`](tamis::internals::dleft::model::effective_load). Tested by
/// `full_insertions`.
pub fn expected_full(subtables: usize, cells: usize, load: f64, buckets: u64, updates: u64) -> f64 {
    let load = sane(load);
    let start = Loads::inserted(subtables, load);
    let d = start.subtables;
    if load <= 0.0 || buckets == 0 {
        return 0.0;
    }
    let end = updates as f64 / buckets as f64;
    let changing = end.min(16.0 * load);
    // The last component is the integral.
    let mut state = start.shares[d..].to_vec();
    let top = state.len();
    state.push(0.0);
    let slope = |_: f64, x: &[f64], out: &mut [f64]| {
        flow(d, Some(load), &x[..top], &mut out[..top]);
        let full = cells.checked_sub(1).and_then(|i| x[..top].get(i * d..(i + 1) * d));
        out[top] = match (cells, full) {
            (0, _) => 1.0,
            (_, Some(full)) => full.iter().product(),
            (_, None) => 0.0,
        };
    };
    // The fastest rates are d for arrivals and height / L for removals.
    let rates = d as f64 + (top / d) as f64 / load;
    let steps = libm::ceil(changing * 4.0 * rates).min(1e6) as usize;
    rk4(slope, &mut state, 0.0, changing, steps);
    let after = (end - changing) * full_chance(subtables, cells, load);
    buckets as f64 * (state[top] + after)
}

/// The chance that an update finds all choices full and no key of its first bucket can move.
///
/// Not in the paper. Ours: F times the chance that all c keys of a full first bucket are stuck,
/// their other choices P all full, in the state of [`steady_with_moves`]. The number of stuck keys
/// is modelled as a birth-death chain, because a full insertion leaves a stuck key where a free
/// one was; P^c would be ten times too low. Per unit of time a stuck key gets free at the rate
/// mu = (d-1) c / L, at which full buckets lose a key; a free one gets stuck at lambda = mu P /
/// (1-P), which keeps P where it is; a key is replaced at the rate 1 / L by one that found the
/// others no emptier than c - 1 and is stuck with the chance Q = P / prod x\[c-1\]\[j\]; and full
/// insertions come at the rate d P.
///
/// The result is low: simulations of independent choices, for 2, 4 and 8 subtables and buckets of
/// 4, 8 and 15 cells, find 1 to 2 times as many. At a load of 7.5 of 8, a load that is higher by
/// 0.02 has the same effect. Tested by `moves`.
pub fn unresolved_chance(subtables: usize, cells: usize, load: f64) -> f64 {
    let (load, cells) = (sane(load), cells.clamp(1, MAX_HEIGHTS));
    let loads = steady_with_moves(subtables, cells, load);
    let full = loads.all_full(cells);
    let stuck = loads.others_full(cells);
    if stuck <= 0.0 || stuck >= 1.0 {
        return full * stuck;
    }
    let (d, c) = (loads.subtables as f64, cells as f64);
    let on_arrival = stuck / loads.others_full(cells - 1);
    let frees = (d - 1.0) * c / load;
    let sticks = frees * stuck / (1.0 - stuck);
    let (up, down) = (sticks + on_arrival / load, frees + (1.0 - on_arrival) / load);
    let (mut weight, mut sum) = (1.0, 1.0);
    for s in 0..cells {
        let s = s as f64;
        weight *= ((c - s) * up + d * stuck) / ((s + 1.0) * down);
        sum += weight;
    }
    full * weight / sum
}

/// Like [`load_for`](tamis::internals::dleft::model::load_for) with moves: by
/// [`unresolved_chance`]. Tested by `moves`.
pub fn load_with_moves(subtables: usize, cells: usize, promise: f64) -> f64 {
    largest_load(cells, promise, |load| unresolved_chance(subtables, cells, load))
}

/// Expected number of sets of `count` keys with one identity: C(n, count) / U^(count-1), which
/// bounds the chance that there is any.
///
/// Printed with the exponent 5 for 5 keys (section 5.1): an erratum, since the first key's
/// identity is free. Tested by `equal_identities`.
pub fn equal_sets(identities: f64, keys: u64, count: u64) -> f64 {
    if count == 0 || count > keys {
        return 0.0;
    }
    libm::exp(ln_choose(keys, count) - (count - 1) as f64 * libm::log(identities))
}

/// [`equal_sets`] that appear at the start or in one of `updates` updates. Each update completes
/// count / n of the expected sets. Tested by `equal_identities`.
pub fn equal_sets_during(identities: f64, keys: u64, count: u64, updates: u64) -> f64 {
    let each = count as f64 * updates as f64 / keys.max(1) as f64;
    equal_sets(identities, keys, count) * (1.0 + each)
}

/// The bound f <= n / (B R) = d L / R that the paper compares with (section 4: 24 / 2^r). Tested
/// by `against_counting`.
pub fn rate_bound(subtables: usize, load: f64, remainder_bits: f64) -> f64 {
    subtables as f64 * load * libm::exp2(-remainder_bits)
}

/// Bits of the cell array for each key: c / L cells, as printed 4 (r + 2) / 3 (section 4). Tested
/// by `against_counting`.
pub fn bits_per_key(cells: usize, load: f64, cell_bits: f64) -> f64 {
    cells as f64 / load * cell_bits
}

/// Bits for each key at a rate, with remainders of as many bits as [`rate_bound`] needs, whole or
/// not, and two counter bits.
///
/// Printed: (4 log2(1/f) + 20 + 4 log2 3) / 3 (section 4). Tested by `against_counting`.
pub fn bits_for_rate(subtables: usize, cells: usize, load: f64, rate: f64) -> f64 {
    let remainder = libm::log2(subtables as f64 * load / rate);
    bits_per_key(cells, load, remainder + 2.0)
}

/// The rate of a standard counting filter with C counters for each key and k hash functions, in
/// the limit of many keys: (1 - e^(-k/C))^k. Tested by `against_counting`.
pub fn counting_rate(counters_per_key: f64, hashes: u32) -> f64 {
    let k = f64::from(hashes);
    libm::pow(-libm::expm1(-k / counters_per_key), k)
}

/// The rate of a standard counting filter of `bits_per_key` bits for each key, with 4-bit counters
/// and the best k, whole or not: (2^(-ln 2))^C as printed (section 4). Tested by
/// `against_counting`.
pub fn counting_rate_for_bits(bits_per_key: f64) -> f64 {
    libm::exp2(-LN_2 * bits_per_key / COUNTER_BITS)
}

/// The inverse of [`counting_rate_for_bits`]: bits for each key at a rate. Tested by
/// `against_counting`.
pub fn counting_bits_for_rate(rate: f64) -> f64 {
    -libm::log2(rate) * COUNTER_BITS / LN_2
}

/// Expected overflows of a standard counting filter's 4-bit counters, at the start and in
/// `updates` updates: the counters at 16 or more, and the increments of a counter that holds 15.
///
/// Printed: the chance e^(-ln 2) (ln 2)^16 / 16! of one counter (section 5.1), set beside a number
/// for the whole d-left filter (notes, erratum). Tested by `equal_identities`.
pub fn counting_overflows(counters: u64, hashes: u32, keys: u64, updates: u64) -> f64 {
    counters_that_reach(16, counters, hashes, keys, updates)
}

/// The expected number of counters of a standard counting filter that have this height at the
/// start, or are raised to it in `updates` updates. The paper's experiment saw 12 in 16 trials of
/// 10,000, and 13 in one (section 5.1). Counters are taken as Poisson, in the limit of many.
/// Tested by `largest_counters`.
pub fn counters_that_reach(
    height: u64,
    counters: u64,
    hashes: u32,
    keys: u64,
    updates: u64,
) -> f64 {
    let Some(below) = height.checked_sub(1).filter(|_| counters > 0) else {
        return counters as f64;
    };
    let throws = f64::from(hashes) * keys as f64;
    let mean = throws / counters as f64;
    let start = counters as f64 * poisson_above(below, mean);
    start + updates as f64 * f64::from(hashes) * poisson_pmf(below, mean)
}
