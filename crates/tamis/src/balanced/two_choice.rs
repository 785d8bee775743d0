//! Two choices, both always read, the emptier one taken: the law of set bits, in the limit of many blocks.
//!
//! | symbol | meaning |
//! |---|---|
//! | v(s) | share of the blocks with s bits set |
//! | phi(s) | (s / B)^k: the chance that such a block holds all bits of a stranger |
//! | t | keys per block so far |
//!
//! A block with s bits takes a key as its first choice if the second is at least as full, as its second if the first is
//! fuller, and in neither case if the other one holds the key by mistake: v'(s) follows from k throws at every block at that
//! pace. The rate is A + (1 - A) A with A = sum v(s) phi(s).

use alloc::vec;
use alloc::vec::Vec;

use super::params::Layout;
use super::profile::{Forecast, throw};
use crate::math::ode::rk4;

/// Steps for each key per block, and at least so many in all: the rate is then good to 1e-5.
const STEPS_PER_KEY: f64 = 4.0;
const LEAST_STEPS: f64 = 32.0;

/// The blocks of a filter as it fills.
pub(super) struct Filling {
    bits: u32,
    hashes: u32,
    powers: Vec<f64>,
    /// v, then the integral over t of the chance that the second choice is emptier.
    state: Vec<f64>,
    per_block: f64,
}

impl Filling {
    pub(super) fn new(layout: &Layout) -> Self {
        let (bits, hashes) = (layout.block, layout.hashes);
        let share = |s: u32| f64::from(s) / f64::from(bits);
        let powers = (0..=bits).map(|s| libm::pow(share(s), hashes.into())).collect();
        let mut state = vec![0.0; bits as usize + 2];
        state[0] = 1.0;
        Self { bits, hashes, powers, state, per_block: 0.0 }
    }

    /// Goes on to so many keys per block.
    pub(super) fn advance(&mut self, per_block: f64) {
        // At eight throws a bit a block holds everything, and nothing changes any more.
        let per_block = per_block.min(8.0 * f64::from(self.bits) / f64::from(self.hashes));
        let way = per_block - self.per_block;
        let steps = libm::ceil((STEPS_PER_KEY * way).max(LEAST_STEPS * way / per_block.max(1e-9)));
        let (bits, hashes, powers) = (self.bits, self.hashes, &self.powers);
        let last = bits as usize + 1;
        let mut thrown = vec![0.0; last];
        let derivative = |_: f64, state: &[f64], slope: &mut [f64]| {
            let law = &state[..last];
            // Blocks that are fuller, and do not hold the key.
            let mut fuller = 0.0;
            let mut second = 0.0;
            for s in (0..last).rev() {
                let open = law[s] * (1.0 - powers[s]);
                thrown[s] = law[s] * (2.0 * fuller + open);
                second += law[s] * fuller;
                fuller += open;
            }
            for (slope, thrown) in slope.iter_mut().zip(&thrown) {
                *slope = -thrown;
            }
            throw(&mut thrown, bits, hashes);
            for (slope, thrown) in slope.iter_mut().zip(&thrown) {
                *slope += thrown;
            }
            slope[last] = second;
        };
        rk4(derivative, &mut self.state, self.per_block, per_block, steps as usize);
        self.per_block = per_block;
    }

    /// The chance that a block holds the bits of a stranger, and the variance of its share from block to block.
    fn found(&self) -> (f64, f64) {
        let law = self.state.iter().zip(&self.powers);
        let (first, second) = law.fold((0.0, 0.0), |(first, second), (p, power)| {
            (first + p * power, second + p * power * power)
        });
        (first, (second - first * first).max(0.0))
    }

    /// What a filter with so many blocks will do.
    pub(super) fn forecast(&self, blocks: u64) -> Forecast {
        let (found, variance) = self.found();
        let rate = found * (2.0 - found);
        let deviation = libm::sqrt(variance / blocks as f64) * 2.0 * (1.0 - found);
        let second = self.state[self.bits as usize + 1] / self.per_block.max(1e-9);
        Forecast {
            rate,
            spread: if rate > 0.0 { deviation / rate } else { 0.0 },
            insert: 2.0,
            hit: 1.0 + second,
            miss: 2.0 - found,
            ..Forecast::default()
        }
    }
}
