//! Second computations: by enumeration, search or integration over time, of what the library has
//! in closed form or solves for. Nothing here calls the library's mathematics, so that a mistake
//! there shows here.

/// ln n!, as a sum.
fn ln_factorial(n: u64) -> f64 {
    (2..=n).map(|factor| (factor as f64).ln()).sum()
}

/// The chance that a Poisson variable is above `most`: its terms, one by one.
pub(super) fn poisson_above(most: u64, mean: f64) -> f64 {
    let mut term = ((most + 1) as f64 * mean.ln() - mean - ln_factorial(most + 1)).exp();
    let mut sum = 0.0;
    for load in most + 1..most + 10_000 {
        sum += term;
        term *= mean / (load + 1) as f64;
    }
    sum
}

/// The chance that a binomial variable is above `most`: its terms, one by one.
pub(super) fn binomial_above(trials: u64, chance: f64, most: u64) -> f64 {
    let first = most + 1;
    if first > trials {
        return 0.0;
    }
    let ways = ln_factorial(trials) - ln_factorial(first) - ln_factorial(trials - first);
    let odds = chance / (1.0 - chance);
    let mut term =
        (ways + first as f64 * chance.ln() + (trials - first) as f64 * (1.0 - chance).ln()).exp();
    let mut sum = 0.0;
    for successes in first..=trials {
        sum += term;
        term *= odds * (trials - successes) as f64 / (successes + 1) as f64;
    }
    sum
}

/// The least bits per key of a standard filter with this rate and any real number of functions. It
/// searches for the best number, and then for the size.
pub(super) fn standard_bits(rate: f64) -> f64 {
    let best = |bits: f64| {
        let at = |hashes: f64| hashes * (1.0 - (-hashes / bits).exp()).ln();
        let (mut low, mut high) = (0.01 * bits, 3.0 * bits);
        for _ in 0..200 {
            let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if at(left) < at(right) {
                high = right;
            } else {
                low = left;
            }
        }
        at(low)
    };
    halve(|bits| best(bits) <= rate.ln(), 0.1, 1000.0)
}

/// The best whole number of functions of a standard filter with `bits` bits per key.
pub(super) fn best_hashes(bits: f64) -> u32 {
    let at = |hashes: u32| f64::from(hashes) * (1.0 - (-f64::from(hashes) / bits).exp()).ln();
    (1..200).min_by(|&a, &b| at(a).total_cmp(&at(b))).unwrap_or(1)
}

/// Bits of a remainder of the d-left example at which the union of `cells` chances of agreement is
/// this rate.
pub(super) fn remainder_bits(cells: f64, rate: f64) -> f64 {
    halve(|bits| cells * 0.5_f64.powf(bits) <= rate, 0.0, 200.0)
}

/// Bits of a Bloom filter for each key that takes `packed` bits per key when compressed, and has
/// this rate.
pub(super) fn uncompressed_bits(rate: f64, packed: f64) -> f64 {
    // With more bits, and the functions that fill them to the same compressed size, the rate
    // falls.
    let rate_at = |bits: f64| {
        let coded = |ones: f64| {
            -bits * (ones * ones.ln() + (1.0 - ones) * (1.0 - ones).ln()) / std::f64::consts::LN_2
        };
        let ones = halve(|ones| coded(ones) >= packed, 0.0, 0.5);
        let hashes = -bits * (1.0 - ones).ln();
        hashes * ones.ln()
    };
    halve(|bits| rate_at(bits) <= rate.ln(), packed * 1.0001, 1e5)
}

/// The least number from `low` to `high` for which `holds`.
fn halve(holds: impl Fn(f64) -> bool, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// How many heights of a d-left bucket are followed.
const HEIGHTS: usize = 14;
/// `loads[i][j]`: the share of buckets of subtable i with j keys and more.
pub(super) type FluidLoads = Vec<[f64; HEIGHTS]>;

/// The steady loads of d-left buckets whose keys come and go: integrated over time from empty
/// buckets.
pub(super) fn stationary(subtables: usize, load: f64) -> FluidLoads {
    // Keys that were there at first leave as e^(-t / load).
    over_time(subtables, load, 40.0 * load, |_, _| {})
}

/// How many new keys, for each bucket, find `cells` keys in all of their buckets. Buckets are
/// filled to `load` first, and then `updates` keys for each bucket come and go.
pub(super) fn met_full(subtables: usize, load: f64, cells: usize, updates: f64) -> f64 {
    let mut met = 0.0;
    over_time(subtables, load, updates, |loads, keys| {
        met += keys * loads.iter().map(|subtable| subtable[cells]).product::<f64>();
    });
    met
}

/// Fills buckets to `load`, lets `updates` keys for each bucket come and go, and returns the
/// loads. Calls `watch` before each step with the loads, and with how many keys for each bucket
/// come in it.
fn over_time(
    subtables: usize,
    load: f64,
    updates: f64,
    mut watch: impl FnMut(&FluidLoads, f64),
) -> FluidLoads {
    let mut loads: FluidLoads = vec![[0.0; HEIGHTS]; subtables];
    for subtable in &mut loads {
        subtable[0] = 1.0;
    }
    let tables = subtables as f64;
    let filling = (load / 0.01).ceil() as usize;
    for _ in 0..filling {
        let keys = load / filling as f64;
        watch(&loads, keys);
        loads = runge_kutta(&loads, keys * tables, |loads| d_left_change(loads, 0.0));
    }
    let steps = (updates / 0.05).ceil() as usize;
    for _ in 0..steps {
        let keys = updates / steps as f64;
        watch(&loads, keys);
        let leaving = 1.0 / (load * tables);
        loads = runge_kutta(&loads, keys * tables, |loads| d_left_change(loads, leaving));
    }
    loads
}

fn d_left_change(loads: &FluidLoads, leaving: f64) -> FluidLoads {
    let mut change = vec![[0.0; HEIGHTS]; loads.len()];
    for (table, change) in change.iter_mut().enumerate() {
        for (height, change) in change.iter_mut().enumerate().skip(1) {
            let at = |table: usize, height: usize| loads[table].get(height).copied().unwrap_or(0.0);
            // Strictly fuller on the left, as full or fuller on the right.
            let left: f64 = (0..table).map(|other| at(other, height)).product();
            let right: f64 = (table + 1..loads.len()).map(|other| at(other, height - 1)).product();
            let comes = left * (at(table, height - 1) - at(table, height)) * right;
            let goes = leaving * height as f64 * (at(table, height) - at(table, height + 1));
            *change = comes - goes;
        }
    }
    change
}

fn runge_kutta(
    state: &FluidLoads,
    step: f64,
    change: impl Fn(&FluidLoads) -> FluidLoads,
) -> FluidLoads {
    let moved = |by: &FluidLoads, step: f64| -> FluidLoads {
        let rows = state.iter().zip(by);
        rows.map(|(row, by)| std::array::from_fn(|index| row[index] + step * by[index])).collect()
    };
    let first = change(state);
    let second = change(&moved(&first, 0.5 * step));
    let third = change(&moved(&second, 0.5 * step));
    let fourth = change(&moved(&third, step));
    let mut next = state.clone();
    for (table, row) in next.iter_mut().enumerate() {
        for (index, value) in row.iter_mut().enumerate() {
            let middle = second[table][index] + third[table][index];
            *value += step / 6.0 * (first[table][index] + 2.0 * middle + fourth[table][index]);
        }
    }
    next
}

/// The share of all buckets with `height` keys or more.
pub(super) fn at_least(loads: &FluidLoads, height: usize) -> f64 {
    loads.iter().map(|subtable| subtable[height]).sum::<f64>() / loads.len() as f64
}

/// The mean number of sets of `count` keys that share one of `cells` values: cell by cell, with
/// Poisson loads.
pub(super) fn equal_sets(cells: f64, keys: f64, count: u64) -> f64 {
    let mean = keys / cells;
    // A cell with L keys has C(L, count) sets.
    (count..count + 20)
        .map(|load| {
            let chance = (load as f64 * mean.ln() - mean - ln_factorial(load)).exp();
            let sets = ln_factorial(load) - ln_factorial(count) - ln_factorial(load - count);
            cells * chance * sets.exp()
        })
        .sum()
}

/// Shares of blocks with 0 to 3 keys by the equations of document 001 for SINGLE with h = 2, as
/// they are printed: what leaves f2 for f3 is counted from f1. Integrated up to `load` keys for
/// each block.
pub(super) fn printed_single(p: f64, load: f64) -> [f64; 4] {
    let mut shares: FluidLoads = vec![[0.0; HEIGHTS]];
    shares[0][0] = 1.0;
    let steps = 20_000;
    for _ in 0..steps {
        shares = runge_kutta(&shares, load / f64::from(steps), |now| {
            let f = now[0];
            let mut change = [0.0; HEIGHTS];
            change[0] = -f[0];
            change[1] = f[0] - f[1];
            change[2] = f[1] - p * f[2];
            change[3] = p * f[1];
            vec![change]
        });
    }
    std::array::from_fn(|height| shares[0][height])
}

/// The entropy in bits of a message of independent positions; `ones` is the chance of a one.
pub(super) fn message_bits(positions: u64, ones: f64) -> f64 {
    -(positions as f64) * (ones * ones.log2() + (1.0 - ones) * (1.0 - ones).log2())
}

/// The share of ones after `throws` throws, position by position and throw by throw.
pub(super) fn ones_after(positions: u64, throws: u64) -> f64 {
    let stays = 1.0 - 1.0 / positions as f64;
    let mut zeros = 1.0;
    for _ in 0..throws {
        zeros *= stays;
    }
    1.0 - zeros
}

/// The entropy of a Poisson number in bits: a sum over all counts.
pub(super) fn poisson_entropy(mean: f64) -> f64 {
    (0..200)
        .map(|count| (count as f64 * mean.ln() - mean - ln_factorial(count)).exp())
        .filter(|&chance| chance > 0.0)
        .map(|chance| -chance * chance.log2())
        .sum()
}

/// Bits of a delta after `replaced` of `keys` keys were replaced. A position differs if the keys
/// that stayed left it zero, and either those that went or those that came set it, but not both.
pub(super) fn delta_bits(positions: u64, hashes: u64, keys: u64, replaced: u64) -> f64 {
    let stayed_zero = 1.0 - ones_after(positions, hashes * (keys - replaced));
    let changed = ones_after(positions, hashes * replaced);
    message_bits(positions, stayed_zero * 2.0 * changed * (1.0 - changed))
}
