//! What the keys that come to one block do to it.
//!
//! | symbol | meaning |
//! |---|---|
//! | B, k | bits of a block that keys set, and how many of them a key sets |
//! | s | set bits of a block |
//! | a | keys that have come to a block |
//! | h | threshold: at h keys a coin decides, at h + 1 the block refuses |
//! | e | keys that a block below its threshold held already when they came: its counter says a - e |
//!
//! A block is a Markov chain over the keys that come to it. For a block that refuses by its set
//! bits, the state is s. For a block that counts its keys, it is (counter, s), and both matter: a
//! block that seemed to hold many keys when they came has counted fewer keys, is fuller, and stays
//! open for longer.
//!
//! The counter is a - e, so blocks below the threshold are kept in rows, one for each e. There are
//! few rows: at low rates, e is 0 for nearly all blocks. In every row only a narrow band of s has
//! blocks.
//!
//! Tested by `tests/library/balanced.rs` and `tests/library/rates.rs`.

use alloc::vec;
use alloc::vec::Vec;

use super::Rule;
use super::params::{Layout, ONE};

/// Chances below this are left out.
const NEGLIGIBLE: f64 = 1e-16;
/// Rows with a smaller share of the blocks than this are left out.
const RARE: f64 = 1e-10;

/// The chances that a key brings j new bits to a block with s set bits, for all j and s.
#[derive(Clone, Debug)]
pub(super) struct Throws {
    bits: u32,
    /// A row for each j from 0 to k, each with s from 0 to B.
    rows: Vec<Vec<f64>>,
}

impl Throws {
    pub(super) fn new(bits: u32, k: u32) -> Self {
        let all = f64::from(bits);
        let mut rows = vec![vec![0.0; bits as usize + 1]; k as usize + 1];
        rows[0].fill(1.0);
        for thrown in 1..=k as usize {
            for new in (1..=thrown).rev() {
                let (below, row) = rows.split_at_mut(new);
                let pairs = row[0].iter_mut().zip(&below[new - 1]);
                // `set` runs through s + j. A throw hits one of the s + j set bits, or its bit is
                // new.
                let mut set = new as f64;
                for (chance, fewer) in pairs {
                    *chance = (*chance * set + fewer * (all - set + 1.0)) / all;
                    set += 1.0;
                }
            }
            let mut set = 0.0;
            for chance in &mut rows[0] {
                *chance *= set / all;
                set += 1.0;
            }
        }
        Self { bits, rows }
    }

    /// The chance that a block holds all bits of a key, for every s: (s / B)^k.
    pub(super) fn held(&self) -> &[f64] {
        &self.rows[0]
    }

    /// The chance that a key brings new bits and that more than `limit` bits would then be set,
    /// for every s.
    pub(super) fn refusals(&self, limit: u32) -> Vec<f64> {
        let beyond = |s: usize| (limit as usize + 1).saturating_sub(s).max(1);
        let chance = |s: usize| self.rows.iter().skip(beyond(s)).map(|row| row[s]).sum();
        (0..=self.bits as usize).map(chance).collect()
    }

    /// Lets every block take a key that it does not hold, and adds the result to `out`. `law` has
    /// the shares of blocks for every s; those outside `band` are zero.
    pub(super) fn add(&self, law: &[f64], band: core::ops::Range<usize>, out: &mut [f64]) {
        for (new, row) in self.rows.iter().enumerate().skip(1) {
            let out = out.iter_mut().skip(band.start + new);
            let chances = law[band.clone()].iter().zip(&row[band.clone()]);
            for (out, (p, chance)) in out.zip(chances) {
                *out += p * chance;
            }
        }
    }
}

/// Shares of blocks, by their number of set bits.
#[derive(Clone, Debug)]
struct Law {
    chances: Vec<f64>,
    /// The range of s outside of which all chances are zero.
    band: core::ops::Range<usize>,
}

impl Law {
    /// No blocks at all.
    fn none(bits: u32) -> Self {
        Self { chances: vec![0.0; bits as usize + 1], band: 0..0 }
    }

    /// All blocks, without set bits.
    fn empty(bits: u32) -> Self {
        let mut law = Self::none(bits);
        law.chances[0] = 1.0;
        law.band = 0..1;
        law
    }

    fn is_none(&self) -> bool {
        self.band.is_empty()
    }

    fn mean(&self, of: &[f64]) -> f64 {
        let band = self.band.clone();
        self.chances[band.clone()].iter().zip(&of[band]).map(|(p, value)| p * value).sum()
    }

    fn sum(&self) -> f64 {
        self.chances[self.band.clone()].iter().sum()
    }

    /// Widens the band so that it includes `band`.
    fn widen(&mut self, band: &core::ops::Range<usize>) {
        if self.is_none() {
            self.band = band.clone();
        } else if !band.is_empty() {
            self.band = self.band.start.min(band.start)..self.band.end.max(band.end);
        }
    }

    /// Drops negligible chances at both ends of the band.
    fn trim(&mut self) {
        while !self.is_none() && self.chances[self.band.start] < NEGLIGIBLE {
            self.chances[self.band.start] = 0.0;
            self.band.start += 1;
        }
        while !self.is_none() && self.chances[self.band.end - 1] < NEGLIGIBLE {
            self.chances[self.band.end - 1] = 0.0;
            self.band.end -= 1;
        }
    }

    /// Drops blocks with more than `limit` set bits.
    fn cut(&mut self, limit: usize) {
        let end = self.band.end.min(limit + 1).max(self.band.start);
        self.chances[end..self.band.end].fill(0.0);
        self.band.end = end;
    }

    fn clear(&mut self) {
        self.chances[self.band.clone()].fill(0.0);
        self.band = 0..0;
    }

    /// Adds the share `share` of all blocks of `other`.
    fn take(&mut self, other: &Self, share: f64) {
        let band = other.band.clone();
        let pairs = self.chances[band.clone()].iter_mut().zip(&other.chances[band.clone()]);
        pairs.for_each(|(mine, p)| *mine += p * share);
        self.widen(&band);
    }

    /// Adds a share of the blocks of `other` that depends on s.
    fn take_by(&mut self, other: &Self, shares: &[f64]) {
        let band = other.band.clone();
        let theirs = other.chances[band.clone()].iter().zip(&shares[band.clone()]);
        let pairs = self.chances[band.clone()].iter_mut().zip(theirs);
        pairs.for_each(|(mine, (p, share))| *mine += p * share);
        self.widen(&band);
    }

    /// Keeps a share of the blocks that depends on s.
    fn keep(&mut self, shares: impl Iterator<Item = f64>) {
        let shares = shares.skip(self.band.start);
        let pairs = self.chances[self.band.clone()].iter_mut().zip(shares);
        pairs.for_each(|(p, share)| *p *= share);
    }

    /// Lets every block take a key that it does not hold, and writes the result to `out`, which
    /// must be empty.
    fn thrown(&self, throws: &Throws, out: &mut Self) {
        if self.is_none() {
            return;
        }
        let end = (self.band.end + throws.rows.len() - 1).min(out.chances.len());
        throws.add(&self.chances, self.band.clone(), &mut out.chances);
        out.band = (self.band.start + 1).min(end)..end;
        out.trim();
    }
}

/// What the next key meets at a block to which a keys have come, for a = 0, 1, ... The last values
/// hold for every greater a.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile(Vec<Met>);

/// What a key meets at a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    /// The chance that the block holds all its bits, and the mean of that chance's square,
    /// E[(s / B)^2k].
    pub(super) found: f64,
    pub(super) square: f64,
    /// The chance that the block refuses it.
    pub(super) refused: f64,
    /// Keys that the block has refused so far.
    pub(super) passed: f64,
}

impl Profile {
    /// Computes the profile for up to `most` keys at a block.
    pub(super) fn new(layout: &Layout, throws: &Throws, most: usize) -> Self {
        // After six throws for each bit, a block seems to hold nearly every key, and changes no
        // more.
        let constant = 6 * layout.block / layout.hashes + layout.threshold + 2;
        let most = most.min(constant as usize);
        let mut profile = Self::default();
        match layout.rule {
            Rule::Counter => profile.fill_by_counter(layout, throws, most),
            Rule::Ones => profile.fill_by_ones(throws, layout.threshold, most),
            Rule::Least => profile.fill_by_ones(throws, layout.block, most),
        }
        profile
    }

    fn push(&mut self, found: f64, square: f64, refused: f64) {
        let passed = self.0.last().map_or(0.0, |before| before.passed + before.refused);
        self.0.push(Met { found, square, refused, passed });
    }

    fn fill_by_counter(&mut self, layout: &Layout, throws: &Throws, most: usize) {
        let (bits, h) = (throws.bits, layout.threshold as usize);
        let coin = layout.coin as f64 / ONE as f64;
        let held = throws.held();
        let squares: Vec<f64> = held.iter().map(|held| held * held).collect();
        // Blocks below the threshold for each e, at it, and above it.
        let mut open = vec![Law::empty(bits)];
        let (mut waiting, mut full) = (Law::none(bits), Law::none(bits));
        let mut spare = Law::none(bits);
        for a in 0..=most {
            if let Some(reached) = a.checked_sub(h).and_then(|e| open.get_mut(e)) {
                waiting.take(reached, 1.0);
                reached.clear();
            }
            let below = || open.iter().filter(|law| !law.is_none());
            let ends = || [&waiting, &full].into_iter();
            let found = |law: &Law| law.mean(held);
            let refused = |law: &Law| law.sum() - found(law);
            self.push(
                below().chain(ends()).map(found).sum(),
                below().chain(ends()).map(|law| law.mean(&squares)).sum(),
                (1.0 - coin) * refused(&waiting) + refused(&full),
            );
            if below().next().is_none() && (coin == 0.0 || waiting.sum() < RARE) {
                break;
            }
            waiting.thrown(throws, &mut spare);
            full.take(&spare, coin);
            spare.clear();
            waiting.keep(held.iter().map(|held| 1.0 - coin * (1.0 - held)));
            for e in (0..open.len()).rev() {
                if open[e].is_none() {
                    continue;
                }
                // A counter that never reaches the threshold need not be followed.
                let counts = h <= most && (e + 1 < open.len() || open[e].mean(held) > RARE);
                open[e].thrown(throws, &mut spare);
                let before = core::mem::replace(&mut open[e], spare);
                if counts {
                    if e + 1 == open.len() {
                        open.push(Law::none(bits));
                    }
                    open[e + 1].take_by(&before, held);
                } else {
                    open[e].take_by(&before, held);
                }
                spare = before;
                spare.clear();
            }
        }
    }

    /// As [`new`](Self::new) for blocks that count, in a hundredth of the time, but only accurate
    /// to a few per cent. It serves a search among many shapes, whose result is then computed by
    /// the chain.
    ///
    /// It assumes that every block is as full as the mean block, and that its counter lags behind
    /// the keys that came by the number that a mean block seemed to hold already.
    pub(super) fn sketch(layout: &Layout, most: usize) -> Self {
        let (all, k) = (f64::from(layout.key_bits()), f64::from(layout.hashes));
        let (h, coin) = (f64::from(layout.threshold), layout.coin as f64 / ONE as f64);
        let (one, two) = (libm::log1p(-1.0 / all), libm::log1p(-2.0 / all));
        // The means of (s / B)^k and of its square after a keys, as if s and its logarithm were
        // normally distributed.
        let held = |a: usize| {
            let throws = a as f64 * k;
            let free = libm::exp(throws * one);
            let pairs = libm::exp(throws * two);
            let variance = (free / all + pairs * (1.0 - 1.0 / all) - free * free).max(0.0);
            let (fill, spread) = (1.0 - free, variance / ((1.0 - free) * (1.0 - free)));
            let power = |k: f64| {
                libm::exp(k * libm::log(fill) + (0.5 * k * (k - 1.0) * spread).min(k)).min(1.0)
            };
            if a == 0 { (0.0, 0.0) } else { (power(k), power(2.0 * k)) }
        };
        let mut profile = Self::default();
        let mut counter = 0.0;
        // The shares of blocks at the threshold and above, and the chances that they hold a key.
        let (mut reached, mut full) = (0.0, 0.0);
        let (mut waits, mut ends) = ((0.0, 0.0), (0.0, 0.0));
        let (mut now, mut next) = (held(0), held(1));
        for a in 0..=most {
            let before = reached;
            reached = (counter - h + 1.0).clamp(before, 1.0);
            let part = if reached > 0.0 { (reached - before) / reached } else { 0.0 };
            let blend = |old: (f64, f64), new: (f64, f64)| {
                (old.0 + part * (new.0 - old.0), old.1 + part * (new.1 - old.1))
            };
            (waits, ends) = (blend(waits, now), blend(ends, next));
            let waiting = reached - full;
            profile.push(
                (1.0 - reached) * now.0 + waiting * waits.0 + full * ends.0,
                (1.0 - reached) * now.1 + waiting * waits.1 + full * ends.1,
                (1.0 - coin) * waiting * (1.0 - waits.0) + full * (1.0 - ends.0),
            );
            full += coin * waiting * (1.0 - waits.0);
            counter += 1.0 - now.0;
            (now, next) = (next, held(a + 2));
        }
        profile
    }

    fn fill_by_ones(&mut self, throws: &Throws, limit: u32, most: usize) {
        let held = throws.held();
        let squares: Vec<f64> = held.iter().map(|held| held * held).collect();
        let refusals = throws.refusals(limit);
        let mut law = Law::empty(throws.bits);
        let mut spare = Law::none(throws.bits);
        for _ in 0..=most {
            self.push(law.mean(held), law.mean(&squares), law.mean(&refusals));
            law.thrown(throws, &mut spare);
            spare.cut(limit as usize);
            law.keep(held.iter().zip(&refusals).map(|(held, refused)| held + refused));
            law.take(&spare, 1.0);
            law.trim();
            spare.clear();
        }
    }

    /// The values after `a` keys.
    pub(super) fn at(&self, a: usize) -> Met {
        let i = a.min(self.0.len() - 1);
        let met = self.0[i];
        Met { passed: met.passed + (a - i) as f64 * met.refused, ..met }
    }
}
