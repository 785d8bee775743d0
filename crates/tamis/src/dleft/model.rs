//! The model of d-left counting filters: how full the buckets get, how often all choices of a key
//! are full, and the rate.
//!
//! Source: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, "An Improved Construction for
//! Counting Bloom Filters", ESA 2006, with the recomputation and the errata of
//! `checked-dleft-compressed-partitioned.md` ("the notes"), sections 1 and 3. The tests named
//! below are in `tests/library/papers_dleft.rs`.
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
//! | f | the rate |
//!
//! **Fluid limit.** A key enters subtable j at height i under three conditions. Its bucket there
//! holds i - 1 cells. Every choice to the left holds at least i, because a tie goes to the left.
//! Every choice to the right holds at least i - 1:
//!
//! ```text
//! A[i][j]     = prod over l < j of x[i][l]  *  prod over l > j of x[i-1][l]
//! dx[i][j]/dt = d (x[i-1][j] - x[i][j]) A[i][j]                             insertions only
//! dx[i][j]/dt = d (x[i-1][j] - x[i][j]) A[i][j] - (i/L) (x[i][j] - x[i+1][j])      updates
//! ```
//!
//! The paper (section 2.3) mentions these equations but does not print them; they are in the
//! notes, section 3.1. They hold for many buckets, independent choices, and buckets without a
//! limit. Where F is small, a limit of c cells makes no difference. Keys of one identity share a
//! cell, so L is [`effective_load`], not n / (d B).

use alloc::vec;
use alloc::vec::Vec;

use crate::math::ode::rk4;
use crate::math::solve::first_true;
use crate::math::tail::binomial_above;

/// The most subtables that the equations are solved for.
pub const MAX_SUBTABLES: usize = 8;

/// Greater loads are treated as this load.
const MAX_LOAD: f64 = 64.0;

/// The most heights: enough for the Poisson tail of one choice at that load.
pub const MAX_HEIGHTS: usize = 160;

/// Runge-Kutta steps for each unit of load and each subtable; also the fewest steps.
const INSERT_STEPS: f64 = 96.0;

/// Recommended loads are multiples of 1 / `LOAD_STEPS`.
const LOAD_STEPS: f64 = 1024.0;

/// How full the buckets are: x\[i\]\[j\] of the symbol table.
#[derive(Clone, Debug, PartialEq)]
pub struct Loads {
    /// d.
    pub subtables: usize,
    /// Rows of `subtables` shares for heights 0, 1, ...; the row of height 0 is all ones.
    pub shares: Vec<f64>,
}

impl Loads {
    /// The shares after insertions only, at the load `load`.
    ///
    /// The equations are in the module's documentation. They are solved by Runge-Kutta steps from
    /// the empty table. The relative error is below 1e-6 for shares above 1e-10; it is 1e-4 at
    /// 1e-37 and 1% at 1e-138. Tested by `insertions_only`.
    pub fn inserted(subtables: usize, load: f64) -> Self {
        let load = sane(load);
        let mut loads = Self::empty(subtables, heights(subtables, load));
        let d = loads.subtables;
        let steps = libm::ceil((1.0 + load * d as f64) * INSERT_STEPS) as usize;
        let slope = |_: f64, x: &[f64], out: &mut [f64]| flow(d, None, x, out);
        rk4(slope, &mut loads.shares[d..], 0.0, load, steps);
        loads
    }

    /// The steady state: the shares after many updates at the load `load`, which updates do not
    /// change.
    ///
    /// Printed: Table 1 at load 6, from the equations run until nothing seems to change. Ours: in
    /// the steady state every height is in balance, i (x\[i\]\[j\] - x\[i+1\]\[j\]) = d L
    /// A\[i\]\[j\] (x\[i-1\]\[j\] - x\[i\]\[j\]). For given A this is a chain of products. It is
    /// solved for one subtable after the other until nothing changes. All terms are positive, so
    /// the smallest share keeps all its digits. Tested by `table_one`, `rest_of_the_equations`.
    pub fn steady(subtables: usize, load: f64) -> Self {
        let load = sane(load);
        let mut loads = Self::empty(subtables, heights(subtables, load));
        loads.balance(load, |_, _| 0.0);
        loads
    }

    /// Empty buckets, with shares for heights up to `heights`.
    pub fn empty(subtables: usize, heights: usize) -> Self {
        let subtables = subtables.clamp(1, MAX_SUBTABLES);
        let mut shares = vec![0.0; (heights + 1) * subtables];
        shares[..subtables].fill(1.0);
        Self { subtables, shares }
    }

    /// Solves the balance at every height as a fixed point. `lift` returns what a subtable
    /// receives at every height beside A.
    pub fn balance(&mut self, load: f64, lift: impl Fn(&Self, usize) -> f64) {
        let d = self.subtables;
        let heights = self.shares.len() / d - 1;
        for i in 1..=heights {
            // Any start leads to the solution; this one is near it.
            self.shares[i * d..(i + 1) * d].fill((load + 1.0 - i as f64).clamp(0.0, 1.0));
        }
        let mut right = vec![1.0; (heights + 1) * d];
        let mut left = vec![1.0; heights + 1];
        let mut weights = vec![1.0; heights + 1];
        // It takes about 100 rounds for 4 subtables, and 300 for 8.
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
                    // Smaller shares are nearly denormal, and their digits do not come to rest.
                    moved |= share > 1e-290 && libm::fabs(share - old) > 1e-11 * share;
                    left[i] *= share;
                }
            }
            if !moved {
                break;
            }
        }
    }

    /// x\[i\]\[j\], with subtables counted from 0; 0 for heights and subtables that do not exist.
    pub fn share(&self, height: usize, subtable: usize) -> f64 {
        if subtable >= self.subtables {
            return 0.0;
        }
        self.shares.get(height * self.subtables + subtable).copied().unwrap_or(0.0)
    }

    /// The share of all buckets that hold `height` cells or more: the mean over the subtables.
    pub fn at_least(&self, height: usize) -> f64 {
        let sum: f64 = (0..self.subtables).map(|j| self.share(height, j)).sum();
        sum / self.subtables as f64
    }

    /// How many keys find no cell, for each bucket of `cells` cells. These are the keys above
    /// `cells`, unless one of the keys of a full first bucket can move. Each of those is taken to
    /// choose its other buckets anew.
    pub(super) fn homeless(&self, cells: usize) -> f64 {
        let heights = self.shares.len() / self.subtables;
        let above: f64 = (cells + 1..heights).map(|i| self.at_least(i)).sum();
        above * libm::pow(self.others_full(cells), cells as f64)
    }

    /// F, the chance that all d choices of a new key hold `cells` cells or more: the product over
    /// the subtables of x\[c\]\[j\]. The paper argues from the share of buckets above c instead
    /// (section 5.2; notes, erratum).
    pub fn all_full(&self, cells: usize) -> f64 {
        (0..self.subtables).map(|j| self.share(cells, j)).product()
    }

    /// The same for all choices but the first.
    pub fn others_full(&self, cells: usize) -> f64 {
        (1..self.subtables).map(|j| self.share(cells, j)).product()
    }
}

/// The height above which no bucket need be followed. With one choice the loads have Poisson
/// tails; d choices make the tails at least d times shorter.
fn heights(subtables: usize, load: f64) -> usize {
    let beyond = (10.0 * libm::sqrt(load) + 12.0) / subtables.max(1) as f64;
    (libm::ceil(load + beyond) as usize + 3).min(MAX_HEIGHTS)
}

/// The load, limited to what the equations are solved for; 0 for negative loads and NaN.
pub fn sane(load: f64) -> f64 {
    if load > 0.0 { load.min(MAX_LOAD) } else { 0.0 }
}

/// Writes the slopes of `x` to `out`, from height 1 on. `load` is given if keys are also removed.
pub fn flow(d: usize, load: Option<f64>, x: &[f64], out: &mut [f64]) {
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
/// Holds for many buckets and while F is small. Keys that were moved, or that went to the
/// overflow, are not taken account of. Tested by `full_insertions`.
pub fn full_chance(subtables: usize, cells: usize, load: f64) -> f64 {
    Loads::steady(subtables, load).all_full(cells)
}

/// The chance that something happens in at least one of `updates` independent updates, if it
/// happens in one with the chance `chance`: 1 - (1 - chance)^S. The chance of overflow in a
/// million updates is `chance_within(full_chance(d, c, load), 1e6)`. Tested by
/// `recommended_loads`.
pub fn chance_within(chance: f64, updates: f64) -> f64 {
    if chance >= 1.0 {
        return if updates > 0.0 { 1.0 } else { 0.0 };
    }
    -libm::expm1(updates * libm::log1p(-chance))
}

/// The largest load, in steps of 1/1024 and at most c, at which the chance that an update finds
/// all choices full is at most `promise`. Tested by `recommended_loads`.
pub fn load_for(subtables: usize, cells: usize, promise: f64) -> f64 {
    largest_load(cells, promise, |load| full_chance(subtables, cells, load))
}

/// The largest load, in steps of 1/1024 and at most c, at which `chance` is at most `promise`.
pub fn largest_load(cells: usize, promise: f64, chance: impl Fn(f64) -> f64) -> f64 {
    let most = cells.min(MAX_HEIGHTS) as f64 * LOAD_STEPS;
    let broken = |steps: u64| chance(steps as f64 / LOAD_STEPS) > promise;
    let kept = first_true(1, most as u64, broken).map_or(most, |first| (first - 1) as f64);
    kept / LOAD_STEPS
}

/// The rate: the chance that an absent key has the identity of one of the keys.
///
/// Printed: 1 - (1 - 1/(B R))^n (section 3.2), exact for random identities, whether their keys are
/// in cells or in the overflow. `identities` is U: B R, or B (R - 1) where remainder 0 marks an
/// empty cell. Tested by `rates`.
pub fn rate(identities: f64, keys: u64) -> f64 {
    chance_within(1.0 / identities, keys as f64)
}

/// The expected number of different identities among `keys` keys: U times the [`rate`]. Tested by
/// `effective_loads`.
pub fn distinct(identities: f64, keys: u64) -> f64 {
    identities * rate(identities, keys)
}

/// Occupied cells for each bucket: [`distinct`] divided by the buckets of all subtables.
///
/// The paper does not have this, and so its simulation lies below its fluid limit (notes, section
/// 3.1). Tested by `effective_loads`.
pub fn effective_load(identities: f64, keys: u64, buckets: u64) -> f64 {
    distinct(identities, keys) / buckets.max(1) as f64
}

/// The expected number of identities that `count` keys or more share. Tested by
/// `equal_identities`.
pub fn shared_by(identities: f64, keys: u64, count: u64) -> f64 {
    match count.checked_sub(1) {
        None => identities,
        Some(below) => identities * binomial_above(keys, 1.0 / identities, below),
    }
}
