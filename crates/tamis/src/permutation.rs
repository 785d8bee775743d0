//! Permutations of identities: h -> a h mod U, and the multipliers that spread.
//!
//! Frozen: stored filters depend on which multipliers a universe gets.

use crate::address::reduce;
use crate::digest::Digest;

/// Two multipliers a and b are related if c a + d b = 0 mod U for small c and d. Then many
/// identities have the same choices, and buckets overflow. Multipliers with a relation shorter
/// than this are not taken. (The paper's example would have 2193 full insertions in 2^20 steps
/// with multipliers that have one of length 2, and 3.6 with 1, 3, 5, 7.)
pub const SHORTEST_RELATION: u64 = 100;
/// In a small universe almost no pair keeps that distance. There the shortest relation must have
/// this share of the longest possible one, the square root of U.
pub const SMALL_UNIVERSE_SHARE: u64 = 4;
/// How many multipliers are tried before the best of them is taken.
const TRIES: u64 = 256;
/// Multipliers are drawn from this: digits of pi. Frozen: stored filters depend on it.
const SOURCE: Digest = Digest(0x243f_6a88_85a3_08d3);

/// h -> factor h mod universe, for a universe below 2^63.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permutation {
    factor: u64,
    /// floor(factor 2^64 / universe), which saves the division.
    quotient: u64,
}

impl Permutation {
    /// By this factor, which has none in common with the universe.
    pub fn new(factor: u64, universe: u64) -> Self {
        Self { factor, quotient: ((u128::from(factor) << 64) / u128::from(universe)) as u64 }
    }

    /// Where a number below the universe goes.
    #[inline]
    pub fn apply(self, number: u64, universe: u64) -> u64 {
        // The quotient is at most one too small, so one subtraction is enough.
        let whole = reduce(self.quotient, number);
        let rest = self.factor.wrapping_mul(number).wrapping_sub(whole.wrapping_mul(universe));
        if rest >= universe { rest - universe } else { rest }
    }
}

/// The multipliers for a universe. Each has no factor in common with it, and no short relation
/// with those before it or with 1, so that consecutive identities spread as well as random ones.
pub fn multipliers<const N: usize>(count: usize, universe: u64) -> [u64; N] {
    let long_enough = (SHORTEST_RELATION * SHORTEST_RELATION)
        .min(universe / (SMALL_UNIVERSE_SHARE * SMALL_UNIVERSE_SHARE));
    let mut chosen = [1; N];
    for at in 0..count.min(N) {
        let earlier = |factor: u64| {
            let to_one = relation(1, factor, universe);
            chosen[..at]
                .iter()
                .map(|&other| relation(other, factor, universe))
                .fold(to_one, u64::min)
        };
        let mut best = (0, 1);
        for turn in 0..TRIES {
            let factor = reduce(SOURCE.word(at as u64 * TRIES + turn), universe);
            if gcd(factor, universe) != 1 {
                continue;
            }
            let distance = earlier(factor);
            if distance > best.0 {
                best = (distance, factor);
            }
            if distance >= long_enough {
                break;
            }
        }
        chosen[at] = best.1;
    }
    chosen
}

/// The square of the length of the shortest (c, d), not both 0, with c a + d b = 0 mod U: the
/// spectral test in two dimensions. Lagrange's reduction of the lattice that (U, 0) and (-b/a, 1)
/// span.
pub fn relation(a: u64, b: u64, universe: u64) -> u64 {
    let slope = Permutation::new(inverse(a, universe), universe).apply(b % universe, universe);
    let mut long = (i128::from(universe), 0_i128);
    let mut short = (-i128::from(slope), 1_i128);
    let square = |v: (i128, i128)| v.0 * v.0 + v.1 * v.1;
    if square(short) > square(long) {
        core::mem::swap(&mut long, &mut short);
    }
    loop {
        let length = square(short);
        let dot = long.0 * short.0 + long.1 * short.1;
        let times = (2 * dot + length).div_euclid(2 * length);
        let next = (long.0 - times * short.0, long.1 - times * short.1);
        if square(next) >= length {
            return u64::try_from(length).unwrap_or(u64::MAX);
        }
        (long, short) = (short, next);
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The number that times `factor` is 1 modulo the universe, with which it has no factor in common.
pub fn inverse(factor: u64, universe: u64) -> u64 {
    let (mut rest, mut next) = (i128::from(universe), i128::from(factor));
    let (mut times, mut next_times) = (0_i128, 1_i128);
    while next != 0 {
        let quotient = rest / next;
        (rest, next) = (next, rest - quotient * next);
        (times, next_times) = (next_times, times - quotient * next_times);
    }
    times.rem_euclid(i128::from(universe)) as u64
}
