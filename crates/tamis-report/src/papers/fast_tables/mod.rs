//! Document 002, fast hash tables: how many nodes are read for a hit and for a miss, in theory;
//! and the layouts of the paper beside the practical one, for its experiments.
//!
//! - [`Basic`](tamis::internals::fast_table::Basic): an item in all its k buckets. The practical
//!   layout is built on it.
//! - [`Shared`]: the same with lists that share their ends.
//! - [`Chained`]: one bucket a key and no filter, a baseline.
//! - [`DLeft`]: the shortest of d lists, a baseline.
//!
//! | symbol | meaning |
//! |---|---|
//! | n | keys in the table |
//! | m | buckets |
//! | k | buckets of a key |
//! | λ | mean counter, nk/m |
//! | U | nodes read for a key that is not in (unsuccessful) |
//! | S | nodes read for a key that is in (successful), averaged over the keys |
//!
//! **Basic.** Counters are Poisson with mean λ, and the k counters of an absent key are
//! independent; a lookup reads the list of the least counter. So U = Σ over s >= 1 of P(counter >=
//! s)^k. A key of the table raises its own counters, and may be anywhere among the others in its
//! list: S = 1 + U/2. These hold for n and m that are large compared with k; they ignore that two
//! functions may agree. The shared-node table reads as many nodes for a miss, and slightly more
//! for a hit, because nodes that are put in front of a list are not in order of age.
//!
//! **Chained.** U = n/m, S = 1 + (n - 1)/(2m), exactly.
//!
//! **Pruned.** No closed form is known; U and S lie below those of the basic table. A miss reads
//! no node unless all k counters, which are on chip, are above 0.
//!
//! The forms are checked against tables by `tests/library/papers_fast_table.rs` of the testkit.

mod chained;
mod dleft;
mod shared;

pub use chained::Chained;
pub use dleft::DLeft;
pub use shared::Shared;
use tamis::internals::fast_table::MAX_HASHES;
use tamis::internals::math::tail::poisson_above;

use crate::papers::solve::bisect;

/// U of the basic table: the mean of the least of `k` Poisson counters with mean `lambda`.
fn least_of(k: u32, lambda: f64) -> f64 {
    if lambda > 1e8 {
        return lambda; // The least of 16 is less by 1.8 standard deviations, which is 0.02% here.
    }
    // Counters are certainly above the mean less 40 standard deviations.
    let sure = libm::floor((lambda - 40.0 * libm::sqrt(lambda)).max(0.0));
    let mut sum = sure;
    for s in sure as u64.. {
        let term = libm::pow(poisson_above(s, lambda), k.into());
        sum += term;
        // Beyond the mean the terms fall faster than any geometric series.
        if term.is_nan() || term <= 1e-18 * sum {
            break;
        }
    }
    sum
}

/// Nodes that a basic table of m buckets reads for a key that is not among its n.
pub fn basic_miss(n: u64, m: u64, k: u32) -> f64 {
    if n == 0 || m == 0 {
        return 0.0;
    }
    least_of(k, n as f64 * f64::from(k) / m as f64)
}

/// Nodes that a basic table reads for one of its keys.
pub fn basic_hit(n: u64, m: u64, k: u32) -> f64 {
    1.0 + 0.5 * basic_miss(n, m, k)
}

/// Nodes that a chained table reads for a key that is not among its n.
pub fn chained_miss(n: u64, m: u64) -> f64 {
    if m == 0 { 0.0 } else { n as f64 / m as f64 }
}

/// Nodes that a chained table reads for one of its keys.
pub fn chained_hit(n: u64, m: u64) -> f64 {
    1.0 + 0.5 * chained_miss(n.saturating_sub(1), m)
}

/// The share of absent keys for which all counters are above 0, in a basic, pruned or shared-node
/// table.
pub fn pass_rate(n: u64, m: u64, k: u32) -> f64 {
    let lambda = if m == 0 { 0.0 } else { n as f64 * f64::from(k) / m as f64 };
    libm::pow(-libm::expm1(-lambda), k.into())
}

/// Items that an insertion into a pruned table of `n` items reads: those in `k` lists of n/m
/// items.
pub fn pruned_insert_work(n: u64, m: u64, k: u32) -> f64 {
    f64::from(k) * chained_miss(n, m)
}

/// Items that a removal from a pruned table reads: those in `k` full lists of nk/m items.
pub fn pruned_remove_work(n: u64, m: u64, k: u32) -> f64 {
    f64::from(k) * pruned_insert_work(n, m, k)
}

/// The k with which a basic table of `buckets_per_key` buckets for each key reads the fewest
/// nodes. It is close to ln 2 m/n, and 1 where there are no more buckets than keys.
pub fn best_hashes(buckets_per_key: f64) -> u32 {
    let miss = |k: u32| least_of(k, f64::from(k) / buckets_per_key);
    (1..=MAX_HASHES).min_by(|&a, &b| miss(a).total_cmp(&miss(b))).unwrap_or(1)
}

/// The buckets for each key, m/n, above which a basic table with `k` hash functions reads fewer
/// nodes than a chained table of as many buckets. `None` for k below 2: with one function the two
/// are the same.
pub fn beats_chaining_above(k: u32) -> Option<f64> {
    if k < 2 {
        return None;
    }
    // In α = n/m: the chained table reads α, the basic one more than that at α = 1 and less
    // near 0.
    let excess = |alpha: f64| least_of(k, f64::from(k) * alpha) - alpha;
    bisect(excess, 1e-3, 1.0, 1e-12).map(|alpha| 1.0 / alpha)
}
