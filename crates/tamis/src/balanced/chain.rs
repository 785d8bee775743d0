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
use core::cell::RefCell;
use core::ops::Range;

use super::Rule;
use super::params::{Layout, ONE};
use super::profile::Looks;

/// Chances below this are left out.
const NEGLIGIBLE: f64 = 1e-13;
/// Rows with a smaller share of the blocks than this are left out.
const RARE: f64 = 1e-9;
/// Throws that are followed at once: more take longer to prepare than they save.
const AT_ONCE: usize = 7;
/// Laws begin with zeros, so that the states before any state can be read.
const BEFORE: usize = AT_ONCE;

/// Some throws: the chances that they take a block from s - j set bits to s, a row for each j.
type Part = Vec<Vec<f64>>;

/// What the throws of a key do to a block with s set bits, for every s.
#[derive(Clone, Debug)]
pub(super) struct Throws {
    /// The throws of a key: [`AT_ONCE`] of them, how often, and the rest.
    whole: (Part, usize),
    rest: Part,
    held: Vec<f64>,
    squares: Vec<f64>,
}

impl Throws {
    pub(super) fn new(bits: u32, k: u32) -> Self {
        let len = bits as usize + 1;
        // The chances that a throw hits one of s set bits, and that its bit is the s-th.
        let stays: Vec<f64> = (0..=bits).map(|s| f64::from(s) / f64::from(bits)).collect();
        let goes: Vec<f64> =
            (0..=bits).map(|s| f64::from(bits - s + 1) / f64::from(bits)).collect();
        let (times, rest) = (k as usize / AT_ONCE, k as usize % AT_ONCE);
        let mut part = vec![vec![1.0; len]];
        let mut last = Part::new();
        for thrown in 1..=if times > 0 { AT_ONCE } else { rest } {
            part.push(vec![0.0; len]);
            for new in (0..=thrown).rev() {
                let (below, row) = part.split_at_mut(new);
                row[0].iter_mut().zip(&stays).for_each(|(chance, stays)| *chance *= stays);
                if let Some(fewer) = below.last() {
                    let pairs = row[0][1..].iter_mut().zip(fewer.iter().zip(&goes[1..]));
                    pairs.for_each(|(chance, (fewer, goes))| *chance += fewer * goes);
                }
            }
            if thrown == rest {
                last.clone_from(&part);
            }
        }
        let mut held = vec![1.0; len];
        for _ in 0..k {
            held.iter_mut().zip(&stays).for_each(|(held, stays)| *held *= stays);
        }
        let squares = held.iter().map(|held| held * held).collect();
        Self { whole: (part, times), rest: last, held, squares }
    }

    /// All throws of a key.
    fn parts(&self) -> impl DoubleEndedIterator<Item = &Part> {
        let rest = (!self.rest.is_empty()).then_some(&self.rest);
        core::iter::repeat_n(&self.whole.0, self.whole.1).chain(rest)
    }

    /// The chance that a block holds all bits of a key, for every s: (s / B)^k.
    pub(super) fn held(&self) -> &[f64] {
        &self.held
    }

    /// The chance that a key brings new bits and that more than `limit` bits would then be set,
    /// for every s.
    pub(super) fn refusals(&self, limit: u32) -> Vec<f64> {
        let most = self.held.len();
        let full = (limit as usize + 1).min(most);
        let mut beyond = vec![0.0; most];
        beyond[full..].fill(1.0);
        let nearest = full.saturating_sub(AT_ONCE * (self.whole.1 + 1));
        let mut chances = self.mean_after(&beyond, nearest);
        let known = chances[full..].iter_mut().zip(&self.held[full..]);
        known.for_each(|(chance, held)| *chance -= held);
        chances
    }

    /// The mean of `of` after the throws of a key, for blocks with s set bits now, from
    /// s = `start` on.
    fn mean_after(&self, of: &[f64], start: usize) -> Vec<f64> {
        let mut means = of.to_vec();
        for part in self.parts().rev() {
            // Upwards, so that what is read is as it was before this part.
            for s in start..of.len() {
                let after = part.iter().zip(s..of.len());
                means[s] = after.map(|(row, after)| row[after] * means[after]).sum();
            }
        }
        means
    }
}

/// Shares of blocks, by their number of set bits.
#[derive(Clone, Debug)]
pub(super) struct Law {
    /// Behind [`BEFORE`] zeros, and zero outside the band.
    chances: Vec<f64>,
    /// The range of s outside of which all chances are zero.
    band: Range<usize>,
}

impl Law {
    /// No blocks at all.
    pub(super) fn none(bits: u32) -> Self {
        Self { chances: vec![0.0; BEFORE + bits as usize + 1], band: 0..0 }
    }

    /// All blocks, without set bits.
    pub(super) fn empty(bits: u32) -> Self {
        let mut law = Self::none(bits);
        law.chances[BEFORE] = 1.0;
        law.band = 0..1;
        law
    }

    fn is_none(&self) -> bool {
        self.band.is_empty()
    }

    /// The range of s outside of which all chances are zero.
    pub(super) fn band(&self) -> Range<usize> {
        self.band.clone()
    }

    /// The chances in the band.
    pub(super) fn shares(&self) -> &[f64] {
        &self.chances[BEFORE + self.band.start..BEFORE + self.band.end]
    }

    fn shares_mut(&mut self) -> &mut [f64] {
        &mut self.chances[BEFORE + self.band.start..BEFORE + self.band.end]
    }

    /// The sum of the chances times `of`.
    pub(super) fn mean(&self, of: &[f64]) -> f64 {
        sum_of_products(self.shares(), &of[self.band.clone()])
    }

    fn sum(&self) -> f64 {
        sum(self.shares())
    }

    /// Drops chances below `low` at the lower end of the band, and negligible ones at the upper.
    pub(super) fn trim(&mut self, low: f64) {
        while !self.is_none() && self.chances[BEFORE + self.band.start] < low {
            self.chances[BEFORE + self.band.start] = 0.0;
            self.band.start += 1;
        }
        while !self.is_none() && self.chances[BEFORE + self.band.end - 1] < NEGLIGIBLE {
            self.chances[BEFORE + self.band.end - 1] = 0.0;
            self.band.end -= 1;
        }
    }

    pub(super) fn clear(&mut self) {
        self.shares_mut().fill(0.0);
        self.band = 0..0;
    }

    /// Adds the blocks of `other`.
    fn take(&mut self, other: &Self) {
        self.gain(other.shares(), 1.0, other.band.clone());
    }

    /// Adds `factor` times such shares of blocks with s set bits, for each s in `band`.
    pub(super) fn gain(&mut self, shares: &[f64], factor: f64, band: Range<usize>) {
        let mine = &mut self.chances[BEFORE + band.start..BEFORE + band.end];
        mine.iter_mut().zip(shares).for_each(|(mine, p)| *mine += factor * p);
        if self.is_none() {
            self.band = band;
        } else if !band.is_empty() {
            self.band = self.band.start.min(band.start)..self.band.end.max(band.end);
        }
    }

    /// Takes such blocks away, from s = `start` on.
    fn lose(&mut self, shares: &[f64], start: usize) {
        let mine = self.chances[BEFORE + start..].iter_mut().zip(shares);
        mine.for_each(|(mine, p)| *mine = (*mine - p).max(0.0));
    }

    /// Writes the share `of` of the blocks with s set bits, for each s in the band, to `seen`.
    fn seen(&self, of: &[f64], seen: &mut Vec<f64>) {
        seen.clear();
        seen.extend(self.shares().iter().zip(&of[self.band.clone()]).map(|(p, of)| p * of));
    }

    /// Throws the bits of a key into every block. Blocks with more than `limit` set bits are
    /// dropped. `spare` has no blocks, before and after.
    pub(super) fn throw(&mut self, throws: &Throws, limit: usize, spare: &mut Self) {
        for part in throws.parts() {
            let start = self.band.start;
            let end = (self.band.end + part.len() - 1).min(limit + 1);
            let after = &mut spare.chances[BEFORE + start..BEFORE + end];
            match part.len() {
                2 => gather::<2>(part, &self.chances, start..end, after),
                3 => gather::<3>(part, &self.chances, start..end, after),
                4 => gather::<4>(part, &self.chances, start..end, after),
                5 => gather::<5>(part, &self.chances, start..end, after),
                6 => gather::<6>(part, &self.chances, start..end, after),
                7 => gather::<7>(part, &self.chances, start..end, after),
                _ => gather::<8>(part, &self.chances, start..end, after),
            }
            spare.band = start..end;
            self.clear();
            core::mem::swap(self, spare);
        }
        self.trim(NEGLIGIBLE);
    }
}

/// Blocks with s set bits after a part of the throws, for s in `band`: those that had s - j before
/// and gained j.
#[inline]
fn gather<const ROWS: usize>(
    part: &[Vec<f64>],
    before: &[f64],
    band: Range<usize>,
    after: &mut [f64],
) {
    let len = after.len();
    let rows: [&[f64]; ROWS] = core::array::from_fn(|j| &part[j][band.clone()][..len]);
    let fewer: [&[f64]; ROWS] = core::array::from_fn(|j| &before[BEFORE + band.start - j..][..len]);
    for (s, after) in after.iter_mut().enumerate() {
        *after = (0..ROWS).map(|j| rows[j][s] * fewer[j][s]).sum();
    }
}

fn sum(of: &[f64]) -> f64 {
    let fours = of.chunks_exact(4);
    let rest: f64 = fours.remainder().iter().sum();
    let mut sums = [0.0; 4];
    for four in fours {
        for lane in 0..4 {
            sums[lane] += four[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// In four sums, so that no addition waits for the one before.
fn sum_of_products(a: &[f64], b: &[f64]) -> f64 {
    let (fours, others) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = fours.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; 4];
    for (a, b) in fours.zip(others) {
        for lane in 0..4 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// What the next key meets at a block to which a keys have come, for a = 0, 1, ... The last values
/// hold for every greater a.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    met: Vec<Met>,
    /// The first a after which a block may refuse.
    first: usize,
    /// What has been computed of one table with several choices.
    pub(super) looks: RefCell<Vec<Looks>>,
}

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
            Rule::Ones => profile.fill_by_ones(layout.block, throws, layout.threshold, most),
            Rule::Least => profile.fill_by_ones(layout.block, throws, layout.block, most),
        }
        profile
    }

    fn push(&mut self, found: f64, square: f64, refused: f64) {
        let passed = self.met.last().map_or(0.0, |before| before.passed + before.refused);
        if self.first == self.met.len() && refused + passed < NEGLIGIBLE {
            self.first += 1;
        }
        self.met.push(Met { found, square, refused, passed });
    }

    fn fill_by_counter(&mut self, layout: &Layout, throws: &Throws, most: usize) {
        let (bits, h) = (layout.key_bits(), layout.threshold as usize);
        let coin = layout.coin as f64 / ONE as f64;
        let Throws { held, squares, .. } = throws;
        // Blocks below the threshold for each e, and at it.
        let mut open = vec![Law::empty(bits)];
        let (mut waiting, mut spare) = (Law::none(bits), Law::none(bits));
        // Blocks above the threshold change no more. So sums suffice: of them, of the chances that
        // they hold a key, and of their squares. The last two are means after a key that was not
        // held before.
        let mut full = [0.0; 3];
        let mut last: Option<[Vec<f64>; 2]> = None;
        let mut stay = Vec::new();
        let mut seen = Vec::new();
        for a in 0..=most {
            if let Some(reached) = a.checked_sub(h).and_then(|e| open.get_mut(e)) {
                waiting.take(reached);
                reached.clear();
            }
            waiting.seen(held, &mut seen);
            let (blocks, finds) = (waiting.sum(), sum(&seen));
            let mut found = finds + full[1];
            let mut square = sum_of_products(&seen, &held[waiting.band.clone()]) + full[2];
            let refused = (1.0 - coin) * (blocks - finds) + full[0] - full[1];
            let done = open.iter().all(Law::is_none) && (coin == 0.0 || blocks < RARE);
            if coin > 0.0 && !waiting.is_none() {
                let [after, square_after] = last.get_or_insert_with(|| {
                    let start = waiting.band.start;
                    stay = held.iter().map(|held| 1.0 - coin * (1.0 - held)).collect();
                    [held, squares].map(|of| {
                        let mut after = throws.mean_after(of, start);
                        let known = after.iter_mut().zip(of).zip(held);
                        known.for_each(|((after, of), held)| *after -= of * held);
                        after
                    })
                });
                full[0] += coin * (blocks - finds);
                full[1] += coin * waiting.mean(after);
                full[2] += coin * waiting.mean(square_after);
                let band = waiting.band.clone();
                let pairs = waiting.shares_mut().iter_mut().zip(&stay[band]);
                pairs.for_each(|(p, stay)| *p *= stay);
            }
            for e in (0..open.len()).rev() {
                if open[e].is_none() {
                    continue;
                }
                let band = open[e].band.clone();
                open[e].seen(held, &mut seen);
                let finds = sum(&seen);
                found += finds;
                square += sum_of_products(&seen, &held[band.clone()]);
                open[e].throw(throws, bits as usize, &mut spare);
                // A counter that never reaches the threshold need not be followed.
                if h <= most && (e + 1 < open.len() || finds > RARE) {
                    if e + 1 == open.len() {
                        open.push(Law::none(bits));
                    }
                    // What was held counts one key less.
                    open[e].lose(&seen, band.start);
                    open[e + 1].gain(&seen, 1.0, band);
                }
            }
            self.push(found, square, refused);
            if done {
                break;
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

    fn fill_by_ones(&mut self, bits: u32, throws: &Throws, limit: u32, most: usize) {
        let Throws { held, squares, .. } = throws;
        let refusals = throws.refusals(limit);
        let mut law = Law::empty(bits);
        let (mut spare, mut refused) = (Law::none(bits), Vec::new());
        for _ in 0..=most {
            self.push(law.mean(held), law.mean(squares), law.mean(&refusals));
            let band = law.band.clone();
            law.seen(&refusals, &mut refused);
            law.throw(throws, limit as usize, &mut spare);
            law.gain(&refused, 1.0, band);
            law.trim(NEGLIGIBLE);
        }
    }

    /// For how many a there are values.
    pub(super) fn len(&self) -> usize {
        self.met.len()
    }

    /// The first a after which a block may refuse a key; beyond the last if none does.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// The values after `a` keys.
    pub(super) fn at(&self, a: usize) -> Met {
        let i = a.min(self.met.len() - 1);
        let met = self.met[i];
        Met { passed: met.passed + (a - i) as f64 * met.refused, ..met }
    }
}
