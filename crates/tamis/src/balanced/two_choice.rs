//! Predicts filters where the emptier of two blocks takes a key: the distribution of set bits, in
//! the limit of many blocks.
//!
//! | symbol | meaning |
//! |---|---|
//! | v(s) | share of the blocks with s bits set |
//! | phi(s) | (s / B)^k: the chance that such a block holds all bits of an absent key |
//! | t | keys per block so far |
//!
//! A block with s bits set takes a key as its first choice if the second is at least as full, and
//! as its second choice if the first is fuller. It takes it in neither case if the other block
//! holds the key by mistake. This gives the pace at which keys come, and v'(s) follows from k
//! throws for each key. The rate is A + (1 - A) A with A = sum v(s) phi(s).

use alloc::vec;
use alloc::vec::Vec;

use super::chain::Throws;
use super::params::Layout;
use super::profile::Forecast;
use crate::math::occupancy::variance_occupied;
use crate::math::ode::rk4;

/// Steps for each key per block, and the fewest steps in all. With these the rate is accurate to
/// 1e-5.
const STEPS_PER_KEY: f64 = 4.0;
const LEAST_STEPS: f64 = 32.0;
/// Shares of blocks below this are left out.
const NEGLIGIBLE: f64 = 1e-18;

/// The blocks of a filter as it fills.
pub(super) struct Filling {
    bits: u32,
    hashes: u32,
    throws: Throws,
    /// v, then the integral over t of the chance that the second choice is emptier.
    state: Vec<f64>,
    per_block: f64,
}

impl Filling {
    pub(super) fn new(layout: &Layout) -> Self {
        let (bits, hashes) = (layout.block, layout.hashes);
        let mut state = vec![0.0; bits as usize + 2];
        state[0] = 1.0;
        Self { bits, hashes, throws: Throws::new(bits, hashes), state, per_block: 0.0 }
    }

    /// Fills the blocks until there are `per_block` keys for each.
    pub(super) fn advance(&mut self, per_block: f64) {
        // After eight throws for each bit, a block seems to hold every key, and nothing changes
        // any more.
        let per_block = per_block.min(8.0 * f64::from(self.bits) / f64::from(self.hashes));
        let way = per_block - self.per_block;
        let steps = libm::ceil((STEPS_PER_KEY * way).max(LEAST_STEPS * way / per_block.max(1e-9)));
        let (throws, held) = (&self.throws, self.throws.held());
        let last = self.bits as usize + 1;
        let mut thrown = vec![0.0; last];
        let derivative = |_: f64, state: &[f64], slope: &mut [f64]| {
            let law = &state[..last];
            // The share of blocks that are fuller and do not hold the key.
            let mut fuller = 0.0;
            let mut second = 0.0;
            for s in (0..last).rev() {
                let open = law[s] * (1.0 - held[s]);
                thrown[s] = law[s] * (2.0 * fuller + open);
                slope[s] = -thrown[s] * (1.0 - held[s]);
                second += law[s] * fuller;
                fuller += open;
            }
            let counts = |p: &f64| p.abs() > NEGLIGIBLE;
            let low = thrown.iter().position(counts).unwrap_or(0);
            let high = thrown.iter().rposition(counts).unwrap_or(0);
            throws.add(&thrown, low..high + 1, &mut slope[..last]);
            slope[last] = second;
        };
        rk4(derivative, &mut self.state, self.per_block, per_block, steps as usize);
        self.per_block = per_block;
    }

    /// Three numbers: the chance that a block holds the bits of an absent key; how much it rises
    /// with one more set bit in every block; and its variance from block to block beyond that.
    fn found(&self) -> (f64, f64, f64) {
        let (mut mean, mut found, mut square) = (0.0, 0.0, 0.0);
        let (mut bits_square, mut both) = (0.0, 0.0);
        let law = self.state.iter().zip(self.throws.held());
        for (s, (p, held)) in law.enumerate() {
            let s = s as f64;
            mean += p * s;
            found += p * held;
            square += p * held * held;
            bits_square += p * s * s;
            both += p * s * held;
        }
        let (variance, covariance) = (bits_square - mean * mean, both - mean * found);
        let slope = if variance > 1e-9 { covariance / variance } else { 0.0 };
        (found, slope, (square - found * found - slope * covariance).max(0.0))
    }

    /// What a filter with `blocks` blocks will do.
    pub(super) fn forecast(&self, blocks: u64) -> Forecast {
        let (found, slope, variance) = self.found();
        let rate = found * (2.0 - found);
        // The set bits of all blocks vary as those of a plain filter do, and every block has its
        // share of them.
        let bits = blocks.saturating_mul(self.bits.into());
        let keys = self.per_block * blocks as f64;
        let all = variance_occupied(bits, libm::round(keys * f64::from(self.hashes)) as u64);
        let each = variance + slope * slope * all / blocks as f64;
        let deviation = libm::sqrt(each / blocks as f64) * 2.0 * (1.0 - found);
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
