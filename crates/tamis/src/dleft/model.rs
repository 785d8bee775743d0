//! What theory says of d-left counting filters: how full the buckets get, how often all choices of a key are full, the
//! rate, and what a standard counting filter would do instead.
//!
//! Source: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, "An Improved Construction for Counting Bloom Filters", ESA
//! 2006, with the recomputation and the errata of `checked-dleft-compressed-partitioned.md` ("the notes"), sections
//! 1 and 3. The tests named below are in `tests/papers_dleft.rs`.
//!
//! | symbol | meaning |
//! |---|---|
//! | n | keys (m in the paper) |
//! | d | subtables, and choices of a key: one bucket in each |
//! | B | buckets of a subtable |
//! | R | remainders; r bits each |
//! | U | identities, B R |
//! | c | cells of a bucket |
//! | L | load: occupied cells for each bucket, n / (d B) where no two keys share an identity |
//! | x\[i\]\[j\] | share of the buckets of subtable j that hold i cells or more; x\[0\]\[j\] = 1 |
//! | A\[i\]\[j\] | chance that the other choices let a key into subtable j at height i |
//! | F | chance that all d choices of a key are full |
//! | t | time: insertions for each bucket |
//! | S | updates, each the removal of a random key and the insertion of a new one |
//! | k, C | hash functions and counters for each key of a standard counting filter |
//! | f | the rate |
//!
//! **Fluid limit.** A key enters subtable j at height i when its bucket there holds i - 1 cells, every choice to the left
//! holds i or more (a tie would go left), and every choice to the right i - 1 or more:
//!
//! ```text
//! A[i][j]     = prod over l < j of x[i][l]  *  prod over l > j of x[i-1][l]
//! dx[i][j]/dt = d (x[i-1][j] - x[i][j]) A[i][j]                                    insertions only
//! dx[i][j]/dt = d (x[i-1][j] - x[i][j]) A[i][j] - (i/L) (x[i][j] - x[i+1][j])      updates
//! ```
//!
//! The paper (section 2.3) names these equations without printing them; they are the notes', section 3.1. They hold for many
//! buckets and independent choices, and for buckets without a limit: where F is small, c cells make no difference.
//! Keys with one identity share a cell, so that L is [`effective_load`], not n / (d B).

use alloc::vec;
use alloc::vec::Vec;
use core::f64::consts::LN_2;

use crate::math::gamma::ln_choose;
use crate::math::ode::rk4;
use crate::math::solve::first_true;
use crate::math::tail::{binomial_above, poisson_above, poisson_pmf};

/// The most subtables that the equations are solved for.
pub const MAX_SUBTABLES: usize = 8;

/// Loads beyond this are taken for this.
const MAX_LOAD: f64 = 64.0;

/// The most heights: enough for the Poisson tail of one choice at that load.
const MAX_HEIGHTS: usize = 160;

/// Runge-Kutta steps for each unit of load and each subtable, and at the least.
const INSERT_STEPS: f64 = 96.0;

/// Recommended loads are multiples of one part in so many.
const LOAD_STEPS: f64 = 1024.0;

/// What a standard counting filter spends on a counter.
const COUNTER_BITS: f64 = 4.0;

/// How full the buckets are: x\[i\]\[j\] of the symbol table.
#[derive(Clone, Debug, PartialEq)]
pub struct Loads {
    subtables: usize,
    /// Rows of `subtables` shares for heights 0, 1, ...; the row of height 0 is all ones.
    shares: Vec<f64>,
}

impl Loads {
    /// After insertions only, at this load.
    ///
    /// Equations: module docs. Solved by Runge-Kutta steps from the empty table; their error is below 1e-6 of a share above
    /// 1e-10, 1e-4 at 1e-37, and 1% at 1e-138. Tested by `insertions_only`.
    pub fn inserted(subtables: usize, load: f64) -> Self {
        let load = sane(load);
        let mut loads = Self::empty(subtables, heights(subtables, load));
        let d = loads.subtables;
        let steps = libm::ceil((1.0 + load * d as f64) * INSERT_STEPS) as usize;
        let slope = |_: f64, x: &[f64], out: &mut [f64]| flow(d, None, x, out);
        rk4(slope, &mut loads.shares[d..], 0.0, load, steps);
        loads
    }

    /// After many updates at this load, which they leave alone: the steady state.
    ///
    /// Printed: Table 1 at load 6, from the equations run until they seem to rest. Ours: where nothing changes, every
    /// height is in balance, i (x\[i\]\[j\] - x\[i+1\]\[j\]) = d L A\[i\]\[j\] (x\[i-1\]\[j\] - x\[i\]\[j\]). With A held that is a chain of
    /// products, solved for one subtable after the other until nothing moves: sums of positive terms, so that the
    /// smallest share has all its digits. Tested by `table_one`, `rest_of_the_equations`.
    pub fn steady(subtables: usize, load: f64) -> Self {
        let load = sane(load);
        let mut loads = Self::empty(subtables, heights(subtables, load));
        loads.balance(load, |_, _| 0.0);
        loads
    }

    /// Like [`steady`](Self::steady) for buckets of `cells`, where a key whose choices are all full takes the place
    /// of a key in its first bucket that can move to another of its own choices.
    ///
    /// The paper reports such moves (section 5.2) without a model. Ours: in a full insertion, of chance F, the c keys of the
    /// first bucket are tried in turn, as if each chose its other buckets anew, and the first that finds room takes the
    /// leftmost. Above load 7.25 of 8 the choices are less fresh than that, see [`unresolved_chance`]. Keys that find no
    /// room are not in the table, so that the mean falls behind `load` where they are many. Tested by `moves`.
    pub fn steady_with_moves(subtables: usize, cells: usize, load: f64) -> Self {
        let (load, cells) = (sane(load), cells.clamp(1, MAX_HEIGHTS));
        let mut loads = Self::empty(subtables, cells);
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

    fn empty(subtables: usize, heights: usize) -> Self {
        let subtables = subtables.clamp(1, MAX_SUBTABLES);
        let mut shares = vec![0.0; (heights + 1) * subtables];
        shares[..subtables].fill(1.0);
        Self { subtables, shares }
    }

    /// Fixed point of the balance at every height; `lift` is what a subtable receives at every height beyond A.
    fn balance(&mut self, load: f64, lift: impl Fn(&Self, usize) -> f64) {
        let d = self.subtables;
        let heights = self.shares.len() / d - 1;
        for i in 1..=heights {
            // Any start will do; this one is near.
            self.shares[i * d..(i + 1) * d].fill((load + 1.0 - i as f64).clamp(0.0, 1.0));
        }
        let mut right = vec![1.0; (heights + 1) * d];
        let mut left = vec![1.0; heights + 1];
        let mut weights = vec![1.0; heights + 1];
        // Some 100 rounds for 4 subtables, some 300 for 8.
        for _ in 0..4000 {
            for (products, shares) in right.chunks_exact_mut(d).zip(self.shares.chunks_exact(d)) {
                for j in (1..d).rev() {
                    products[j - 1] = products[j] * shares[j];
                }
            }
            left.fill(1.0);
            let mut moved = false;
            for j in 0..d {
                let lifted = lift(self, j);
                let mut sum = 1.0;
                for i in 1..=heights {
                    let enter = left[i] * right[(i - 1) * d + j] + lifted;
                    weights[i] = weights[i - 1] * (d as f64 * load / i as f64) * enter;
                    sum += weights[i];
                }
                let mut above = 0.0;
                for i in (1..=heights).rev() {
                    above += weights[i];
                    let share = above / sum;
                    let old = core::mem::replace(&mut self.shares[i * d + j], share);
                    // Below, denormals have no digits to settle.
                    moved |= share > 1e-290 && libm::fabs(share - old) > 1e-11 * share;
                    left[i] *= share;
                }
            }
            if !moved {
                break;
            }
        }
    }

    /// d.
    pub fn subtables(&self) -> usize {
        self.subtables
    }

    /// x\[i\]\[j\], with subtables counted from 0; 0 for heights and subtables that do not exist.
    pub fn share(&self, height: usize, subtable: usize) -> f64 {
        if subtable >= self.subtables {
            return 0.0;
        }
        self.shares.get(height * self.subtables + subtable).copied().unwrap_or(0.0)
    }

    /// Share of all buckets that hold so many cells or more: the mean over the subtables.
    pub fn at_least(&self, height: usize) -> f64 {
        let sum: f64 = (0..self.subtables).map(|j| self.share(height, j)).sum();
        sum / self.subtables as f64
    }

    /// Mean number of occupied cells of a bucket.
    pub fn mean(&self) -> f64 {
        (1..self.shares.len() / self.subtables).map(|i| self.at_least(i)).sum()
    }

    /// Keys for each bucket that find none of its cells: those above them, unless one of the keys in a full first bucket moves,
    /// each as if it chose its other buckets anew (as [`steady_with_moves`](Self::steady_with_moves) has it).
    pub(super) fn homeless(&self, cells: usize) -> f64 {
        let heights = self.shares.len() / self.subtables;
        let above: f64 = (cells + 1..heights).map(|i| self.at_least(i)).sum();
        above * libm::pow(self.others_full(cells), cells as f64)
    }

    /// F, the chance that the d choices of a new key all hold so many cells or more: the product over the subtables
    /// of x\[c\]\[j\]. Not the share of buckets above c, from which the paper argues (section 5.2; notes, erratum).
    pub fn all_full(&self, cells: usize) -> f64 {
        (0..self.subtables).map(|j| self.share(cells, j)).product()
    }

    /// The same for all choices but the first.
    fn others_full(&self, cells: usize) -> f64 {
        (1..self.subtables).map(|j| self.share(cells, j)).product()
    }
}

/// Heights above which nothing happens. One choice alone leaves Poisson tails; d choices divide their reach at least by d.
fn heights(subtables: usize, load: f64) -> usize {
    let beyond = (10.0 * libm::sqrt(load) + 12.0) / subtables.max(1) as f64;
    (libm::ceil(load + beyond) as usize + 3).min(MAX_HEIGHTS)
}

/// Nothing for negative loads and NaN.
fn sane(load: f64) -> f64 {
    if load > 0.0 { load.min(MAX_LOAD) } else { 0.0 }
}

/// The slopes of x from height 1 on; `load` is given where keys are also removed.
fn flow(d: usize, load: Option<f64>, x: &[f64], out: &mut [f64]) {
    let mut below = [1.0; MAX_SUBTABLES];
    for (i, slopes) in out.chunks_exact_mut(d).enumerate() {
        let here = &x[i * d..(i + 1) * d];
        let above = x.get((i + 1) * d..(i + 2) * d);
        let mut right = 1.0;
        for j in (0..d).rev() {
            slopes[j] = right;
            right *= below[j];
        }
        let mut left = 1.0;
        for j in 0..d {
            let enter = slopes[j] * left * d as f64 * (below[j] - here[j]);
            let leave = load.map_or(0.0, |load| {
                (i + 1) as f64 / load * (here[j] - above.map_or(0.0, |above| above[j]))
            });
            slopes[j] = enter - leave;
            left *= here[j];
        }
        below[..d].copy_from_slice(here);
    }
}

/// F in the steady state: the chance that an update finds all choices of its new key full.
///
/// Holds for many buckets and while F is small; keys that were moved or set aside are not counted back. Tested by
/// `full_insertions`.
pub fn full_chance(subtables: usize, cells: usize, load: f64) -> f64 {
    Loads::steady(subtables, load).all_full(cells)
}

/// Expected full insertions in S `updates` that begin right after the insertions: d B times the integral of F over
/// time, with S / (d B) to its end.
///
/// The paper takes S times the share of buckets above c in the steady state (section 5.2; notes, erratum). The steady state is
/// reached within a few L of time, and taken for granted after 16 L. `load` is the [`effective_load`].
/// Tested by `full_insertions`.
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

/// The chance that at least one of so many independent updates does what one does with this chance: 1 - (1 - chance)^S.
/// Overflow for each million updates is `chance_within(full_chance(d, c, load), 1e6)`. Tested by `recommended_loads`.
pub fn chance_within(chance: f64, updates: f64) -> f64 {
    if chance >= 1.0 {
        return if updates > 0.0 { 1.0 } else { 0.0 };
    }
    -libm::expm1(updates * libm::log1p(-chance))
}

/// The largest load, in steps of 1/1024 and at most c, at which an update finds all choices full with at most the chance
/// `promise`. Tested by `recommended_loads`.
pub fn load_for(subtables: usize, cells: usize, promise: f64) -> f64 {
    largest_load(cells, promise, |load| full_chance(subtables, cells, load))
}

/// The chance that an update finds all choices full and no key of its first bucket can move.
///
/// Not in the paper. Ours: F times the chance that all c keys of a full first bucket are stuck, their other choices P all
/// full, in the state of [`Loads::steady_with_moves`]. The number of stuck keys is taken for a birth-death chain, because a full
/// insertion leaves a stuck key where a free one was, so that P^c would be ten times too low. Per unit of time a
/// stuck key gets free at the rate mu = (d-1) c / L, at which full buckets lose a key; a free one gets stuck at
/// lambda = mu P / (1-P), which keeps P where it is; a key is replaced at the rate 1 / L by one that found the others no emptier
/// than c - 1 and is stuck with the chance Q = P / prod x\[c-1\]\[j\]; and full insertions come at the rate d P.
///
/// Low: simulations of independent choices, for 2, 4 and 8 subtables and buckets of 4, 8 and 15 cells, find 1 to 2 times
/// as many, which is what 0.02 of load do at 7.5 of 8. Tested by `moves`.
pub fn unresolved_chance(subtables: usize, cells: usize, load: f64) -> f64 {
    let (load, cells) = (sane(load), cells.clamp(1, MAX_HEIGHTS));
    let loads = Loads::steady_with_moves(subtables, cells, load);
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

/// Like [`load_for`] with moves: by [`unresolved_chance`]. Tested by `moves`.
pub fn load_with_moves(subtables: usize, cells: usize, promise: f64) -> f64 {
    largest_load(cells, promise, |load| unresolved_chance(subtables, cells, load))
}

fn largest_load(cells: usize, promise: f64, chance: impl Fn(f64) -> f64) -> f64 {
    let most = cells.min(MAX_HEIGHTS) as f64 * LOAD_STEPS;
    let broken = |steps: u64| chance(steps as f64 / LOAD_STEPS) > promise;
    let kept = first_true(1, most as u64, broken).map_or(most, |first| (first - 1) as f64);
    kept / LOAD_STEPS
}

/// The rate: the chance that a stranger has the identity of one of the keys.
///
/// Printed: 1 - (1 - 1/(B R))^n (section 3.2), exact for random identities, kept or not. `identities` is U: B R, or
/// B (R - 1) where remainder 0 marks an empty cell. Tested by `rates`.
pub fn rate(identities: f64, keys: u64) -> f64 {
    chance_within(1.0 / identities, keys as f64)
}

/// Expected number of different identities among the keys: U times the [`rate`]. Tested by `effective_loads`.
pub fn distinct(identities: f64, keys: u64) -> f64 {
    identities * rate(identities, keys)
}

/// Occupied cells for each bucket: [`distinct`] over the buckets of all subtables.
///
/// Not in the paper, whose simulation lies below its fluid limit for this reason (notes, section 3.1). Tested by
/// `effective_loads`.
pub fn effective_load(identities: f64, keys: u64, buckets: u64) -> f64 {
    distinct(identities, keys) / buckets.max(1) as f64
}

/// Expected number of identities that `count` keys or more share. Tested by `equal_identities`.
pub fn shared_by(identities: f64, keys: u64, count: u64) -> f64 {
    match count.checked_sub(1) {
        None => identities,
        Some(below) => identities * binomial_above(keys, 1.0 / identities, below),
    }
}

/// Expected number of sets of `count` keys with one identity: C(n, count) / U^(count-1), which bounds the chance that
/// there is any.
///
/// Printed with the exponent 5 for 5 keys (section 5.1): an erratum, since the first key's identity is free.
/// Tested by `equal_identities`.
pub fn equal_sets(identities: f64, keys: u64, count: u64) -> f64 {
    if count == 0 || count > keys {
        return 0.0;
    }
    libm::exp(ln_choose(keys, count) - (count - 1) as f64 * libm::log(identities))
}

/// [`equal_sets`] that appear at the start or in one of so many updates, each of which completes count / n of what
/// there is. Tested by `equal_identities`.
pub fn equal_sets_during(identities: f64, keys: u64, count: u64, updates: u64) -> f64 {
    let each = count as f64 * updates as f64 / keys.max(1) as f64;
    equal_sets(identities, keys, count) * (1.0 + each)
}

/// The bound f <= n / (B R) = d L / R that the paper compares with (section 4: 24 / 2^r). Tested by `against_counting`.
pub fn rate_bound(subtables: usize, load: f64, remainder_bits: f64) -> f64 {
    subtables as f64 * load * libm::exp2(-remainder_bits)
}

/// Bits of the cell array for each key: c / L cells, as printed 4 (r + 2) / 3 (section 4). Tested by
/// `against_counting`.
pub fn bits_per_key(cells: usize, load: f64, cell_bits: f64) -> f64 {
    cells as f64 / load * cell_bits
}

/// Bits for each key at a rate, with remainders of as many bits as [`rate_bound`] needs, whole or not, and two counter
/// bits.
///
/// Printed: (4 log2(1/f) + 20 + 4 log2 3) / 3 (section 4). Tested by `against_counting`.
pub fn bits_for_rate(subtables: usize, cells: usize, load: f64, rate: f64) -> f64 {
    let remainder = libm::log2(subtables as f64 * load / rate);
    bits_per_key(cells, load, remainder + 2.0)
}

/// The rate of a standard counting filter with C counters for each key and k hash functions, in the limit of many keys:
/// (1 - e^(-k/C))^k. Tested by `against_counting`.
pub fn counting_rate(counters_per_key: f64, hashes: u32) -> f64 {
    let k = f64::from(hashes);
    libm::pow(-libm::expm1(-k / counters_per_key), k)
}

/// The rate of a standard counting filter of so many bits for each key, with 4-bit counters and the best k, whole or
/// not: (2^(-ln 2))^C as printed (section 4). Tested by `against_counting`.
pub fn counting_rate_for_bits(bits_per_key: f64) -> f64 {
    libm::exp2(-LN_2 * bits_per_key / COUNTER_BITS)
}

/// Its inverse: bits for each key at a rate. Tested by `against_counting`.
pub fn counting_bits_for_rate(rate: f64) -> f64 {
    -libm::log2(rate) * COUNTER_BITS / LN_2
}

/// Expected overflows of a standard counting filter's 4-bit counters, at the start and in so many updates: the counters
/// at 16 or more, and the increments of a counter that holds 15.
///
/// Printed: the chance e^(-ln 2) (ln 2)^16 / 16! of one counter (section 5.1), set beside a number for the whole d-left
/// filter (notes, erratum). Tested by `equal_identities`.
pub fn counting_overflows(counters: u64, hashes: u32, keys: u64, updates: u64) -> f64 {
    counters_that_reach(16, counters, hashes, keys, updates)
}

/// Expected counters of a standard counting filter that have this height at the start, and that are raised to it in so many updates.
/// The paper's experiment saw 12 in 16 trials of 10,000, and 13 in one (section 5.1). Poisson counters, in the limit of many.
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
