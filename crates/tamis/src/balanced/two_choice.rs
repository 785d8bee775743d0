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

use alloc::rc::Rc;
use alloc::vec::Vec;

use super::chain::{Law, Throws};
use super::params::Layout;
use super::profile::Forecast;
use crate::math::occupancy::variance_occupied;

/// Keys for each block in a whole step. With this the rate is accurate to 1e-4; steps above 0.69
/// would not be stable.
const STEP: f64 = 0.5;
/// Shares of nearly empty blocks below this are left out: they hold no absent key.
const RARE: f64 = 1e-9;

/// The blocks of a filter as it fills.
#[derive(Clone, Debug)]
pub(super) struct Filling {
    bits: u32,
    hashes: u32,
    throws: Rc<Throws>,
    /// v.
    law: Law,
    /// The integral over t of the chance that the second choice is emptier.
    second: f64,
    per_block: f64,
    scratch: Scratch,
}

/// What a step needs, kept from one to the next.
#[derive(Clone, Debug)]
struct Scratch {
    total: Law,
    probe: Law,
    taken: Law,
    spare: Law,
    thrown: Vec<f64>,
}

impl Filling {
    pub(super) fn new(layout: &Layout) -> Self {
        let (bits, hashes) = (layout.block, layout.hashes);
        let throws = Rc::new(Throws::new(bits, hashes));
        let none = || Law::none(bits);
        let [total, probe, taken, spare] = [none(), none(), none(), none()];
        let scratch = Scratch { total, probe, taken, spare, thrown: Vec::new() };
        Self { bits, hashes, throws, law: Law::empty(bits), second: 0.0, per_block: 0.0, scratch }
    }

    /// Keys for each block so far.
    pub(super) fn per_block(&self) -> f64 {
        self.per_block
    }

    /// The rate, without the chance of equal digests.
    pub(super) fn rate(&self) -> f64 {
        let found = self.law.mean(self.throws.held());
        found * (2.0 - found)
    }

    /// Fills the blocks by a whole step.
    pub(super) fn advance_by_step(&mut self) {
        self.advance(self.per_block + STEP);
    }

    /// Fills the blocks until there are `per_block` keys for each, in whole steps and a last one
    /// that may be shorter.
    pub(super) fn advance(&mut self, per_block: f64) {
        // After eight throws for each bit, a block seems to hold every key, and nothing changes
        // any more.
        let per_block = per_block.min(8.0 * f64::from(self.bits) / f64::from(self.hashes));
        while self.per_block < per_block {
            let way = (per_block - self.per_block).min(STEP);
            self.step(way);
            self.per_block += way;
        }
    }

    /// One step of the classic Runge-Kutta method, over the states that have blocks.
    fn step(&mut self, way: f64) {
        // For each slope: how far the next probe goes along it, and its weight.
        let stages =
            [(0.5 * way, way / 6.0), (0.5 * way, way / 3.0), (way, way / 3.0), (0.0, way / 6.0)];
        let Scratch { total, probe, taken, spare, thrown } = &mut self.scratch;
        for law in [&mut *total, &mut *probe] {
            law.clear();
            law.gain(self.law.shares(), 1.0, self.law.band());
        }
        for (reach, weight) in stages {
            let band = probe.band();
            let held = &self.throws.held()[band.clone()];
            thrown.clear();
            thrown.resize(held.len(), 0.0);
            // The share of blocks that are fuller and do not hold the key.
            let mut fuller = 0.0;
            let mut second = 0.0;
            for ((thrown, p), held) in thrown.iter_mut().zip(probe.shares()).zip(held).rev() {
                let open = p * (1.0 - held);
                *thrown = p * (2.0 * fuller + open);
                second += p * fuller;
                fuller += open;
            }
            self.second += weight * second;
            taken.gain(thrown, 1.0, band.clone());
            taken.throw(&self.throws, self.bits as usize, spare);
            probe.clear();
            probe.gain(self.law.shares(), 1.0, self.law.band());
            for (law, length) in [(&mut *total, weight), (&mut *probe, reach)] {
                law.gain(thrown, -length, band.clone());
                law.gain(taken.shares(), length, taken.band());
            }
            taken.clear();
        }
        total.trim(RARE);
        core::mem::swap(&mut self.law, total);
    }

    /// Three numbers: the chance that a block holds the bits of an absent key; how much it rises
    /// with one more set bit in every block; and its variance from block to block beyond that.
    fn found(&self) -> (f64, f64, f64) {
        let (mut mean, mut found, mut square) = (0.0, 0.0, 0.0);
        let (mut bits_square, mut both) = (0.0, 0.0);
        let band = self.law.band();
        let held = &self.throws.held()[band.clone()];
        for (s, (p, held)) in band.zip(self.law.shares().iter().zip(held)) {
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
        let second = self.second / self.per_block.max(1e-9);
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
