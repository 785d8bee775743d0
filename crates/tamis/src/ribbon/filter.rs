//! The filter.

use alloc::vec;

use super::build::build_level;
use super::level::{BUCKET, BUMPED_BELOW, Level, ROWS};
use super::model;
use super::params::{LEVELS, RibbonParams, UNIT};
use crate::bits::{Line, OutOfMemory, Words};
use crate::digest::Digest;
use crate::filter::Filter;
use crate::spec::{
    BuildError, Goal, Invalid, Kind, Label, Lines, Operation, Params, PlanError, Prediction,
    Traffic, WireError, digest_floor, explain,
};
use crate::stored::{ARRAY, Stored};
use crate::traffic;
use crate::wire::Frame;

/// A filter of a set that never changes, in hardly more bits than the rate needs. Keys cannot be
/// added or removed.
///
/// See [the module](super) for how it works. There is no `insert`: rows are solved for all keys
/// together.
///
/// ```compile_fail,E0599
/// use tamis::{Insert, Ribbon};
/// let mut filter = Ribbon::from_keys(["apple"], 0.01).unwrap();
/// filter.insert("apple");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ribbon {
    params: RibbonParams,
    label: Label,
    levels: [Level; LEVELS],
    /// Rows of all levels, their codes, and the list of the digests that all levels bumped, in
    /// rising order.
    words: Words,
}

impl Ribbon {
    fn of(params: RibbonParams, label: Label, words: Words) -> Self {
        Self { params, label, levels: params.levels(), words }
    }

    /// The digests that all levels bumped, in rising order.
    fn list(&self) -> &[u64] {
        &self.words.as_slice()[self.params.fixed_words() as usize..]
    }

    /// The level that a digest was not bumped from, and where it starts there; `None` if it was
    /// bumped from all.
    #[inline]
    fn place(&self, words: &[u64], digest: Digest) -> Option<(&Level, u64)> {
        self.levels.iter().enumerate().find_map(|(number, level)| {
            if level.starts == 0 {
                return None;
            }
            let start = level.start(digest, number);
            (!level.is_bumped(words, start)).then_some((level, start))
        })
    }
}

impl Filter for Ribbon {
    fn label(&self) -> Label {
        self.label
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        let words = self.words.as_slice();
        match self.place(words, digest) {
            Some((level, start)) => level.satisfies(words, start, digest).0,
            None => self.list().binary_search(&digest.0).is_ok(),
        }
    }

    /// Fetches the rows of the first level.
    #[inline]
    fn prefetch(&self, digest: Digest) {
        let [first, ..] = &self.levels;
        if first.starts > 0 {
            first.prefetch(self.words.as_slice(), digest, 0);
        }
    }

    fn footprint(&self) -> u64 {
        self.words.footprint()
    }

    /// Exact: the share of the starts of each level that are not bumped, times 2^-c for the c
    /// columns that are compared there.
    fn rate(&self) -> f64 {
        let words = self.words.as_slice();
        let (mut rate, mut reached) = (0.0, 1.0);
        for level in self.levels.iter().filter(|level| level.starts > 0) {
            let (mut kept, mut wide) = (0, 0);
            for bucket in 0..level.buckets() {
                let first = bucket * BUCKET;
                let below = BUMPED_BELOW[level.code(words, bucket) as usize];
                let kept_below = |end: u64| (first + BUCKET).min(end).saturating_sub(first + below);
                kept += kept_below(level.starts);
                wide += kept_below(level.wide_starts());
            }
            let share = kept as f64 / level.starts as f64;
            if kept > 0 {
                rate += reached * share * model::yes(level, kept, wide);
            }
            reached *= 1.0 - share;
        }
        (rate + digest_floor(self.label.keys)).min(1.0)
    }

    /// The share of the rows that keys determine.
    fn fill(&self) -> f64 {
        let rows: u64 = self.params.rows().iter().sum();
        let keys = self.label.keys.saturating_sub(self.params.listed());
        if rows == 0 { 0.0 } else { (keys as f64 / rows as f64).min(1.0) }
    }

    fn overflow(&self) -> Option<u64> {
        Some(self.params.listed())
    }

    /// The lines of the codes, and those of the columns that are compared.
    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        let words = self.words.as_slice();
        // A search of the list reads about the logarithm of its lines.
        let lines = self.params.listed().div_ceil(Line::WORDS as u64);
        let mut searched = lines.checked_ilog2().map_or(0, |log| log + 1);
        let mut read = vec![];
        for (number, level) in self.levels.iter().enumerate().filter(|(_, level)| level.starts > 0)
        {
            let start = level.start(digest, number);
            read.push(level.code_at(start / BUCKET));
            if level.is_bumped(words, start) {
                continue;
            }
            let (_, columns) = level.satisfies(words, start, digest);
            for block in [start / ROWS, start / ROWS + 1] {
                read.extend((0..columns).map(|column| level.block_at(block) + u64::from(column)));
            }
            searched = 0;
            break;
        }
        Line::distinct(read.into_iter().map(|word| word / Line::WORDS as u64)) + searched
    }
}

impl Stored for Ribbon {
    const KIND: Kind = Kind::Ribbon;
    type Params = RibbonParams;
    const CAN: &'static [Operation] = &[];
    const REASON: &'static str =
        "built once, a million keys in 0.2 s; the least memory of all from 2,000 keys on";

    fn least(goal: &Goal) -> Result<RibbonParams, PlanError> {
        model::plan(goal)
    }

    fn predict(params: &RibbonParams, keys: u64) -> Prediction {
        model::predict(params, keys)
    }

    /// Solved rows look random: half of their bits are set.
    fn traffic(
        params: &RibbonParams,
        keys: u64,
        predicted: &Prediction,
        _: Option<u64>,
    ) -> Traffic {
        let listed = predicted.overflow.unwrap_or(0.0);
        let bits = params.fixed_words() * 64 + 64 * libm::round(listed) as u64;
        let solved = model::loaded(params, keys).map(|loaded| {
            let columns = params.columns() as f64 / UNIT as f64;
            loaded.keys * (1.0 - loaded.bumped) * columns
        });
        let ones = 0.5 * (solved.into_iter().sum::<f64>() + 64.0 * listed);
        let array = traffic::array(bits, ones, 0.25 * bits as f64);
        Traffic { snapshot: traffic::frame(RibbonParams::NAMES.len(), 0, array, None), delta: None }
    }

    fn explain(params: &RibbonParams, n: u64, predicted: &Prediction, out: &mut Lines) {
        let columns = params.columns() as f64 / UNIT as f64;
        let [first, second, third] = params.rows();
        explain! { out;
            "symbols": "n = {n} keys, m = {first} + {second} + {third} rows in three levels, \
                r = {columns:.4} bits a row";
        }
        for (name, loaded) in ["first", "second", "third"].iter().zip(model::loaded(params, n)) {
            let model::Loaded { level, keys, bumped, .. } = loaded;
            if level.starts > 0 {
                let load = keys / level.starts as f64;
                out.add(name, format_args!("{keys:.0} keys, load {load:.3}, {:.0} bumped; {} of {} blocks have {} columns, the others {}", keys * bumped, level.wide, level.blocks(), level.columns + 1, level.columns));
            }
        }
        let ideal = -libm::log2(predicted.rate.max(f64::MIN_POSITIVE));
        explain! { out;
            "rate": "f = mean of 2^-columns + n / 2^64 = {:.4e}", predicted.rate;
            "memory": "m r + 2 bits for every 128 rows + 64 bits for each of {:.0} listed keys \
                = {:.4} bits a key, log2(1/f) = {ideal:.4}",
                predicted.overflow.unwrap_or(0.0), predicted.bits_per_key;
        }
    }

    fn build_in_parallel(
        params: RibbonParams,
        label: impl Into<Label>,
        keys: &[Digest],
        threads: usize,
    ) -> Result<Self, BuildError> {
        let label = Label { keys: keys.len() as u64, ..label.into() };
        let mut words = Words::zeroed(params.with_listed(0).words())?;
        let mut bumped = None;
        for (number, level) in params.levels().iter().enumerate() {
            let keys = bumped.as_deref().unwrap_or(keys);
            bumped = Some(build_level(level, number, words.as_mut_slice(), keys, threads)?);
        }
        let mut list = bumped.unwrap_or_default();
        list.sort_unstable();
        list.dedup();
        let params = params.with_listed(list.len() as u64);
        if !list.is_empty() {
            let mut longer = Words::zeroed(params.words())?;
            let (fixed, rest) = longer.as_mut_slice().split_at_mut(words.len());
            fixed.copy_from_slice(words.as_slice());
            rest.iter_mut().zip(&list).for_each(|(word, key)| *word = key.0);
            words = longer;
        }
        Ok(Self::of(params, label, words))
    }

    fn params(&self) -> RibbonParams {
        self.params
    }

    /// An empty filter, which stays empty. To make one with keys, use [`build`](Stored::build).
    fn new(params: RibbonParams, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        let params = params.with_listed(0);
        Ok(Self::of(params, label.into(), Words::zeroed(params.words())?))
    }

    fn clear(&mut self) {
        if let Ok(empty) = Self::new(self.params, Label { keys: 0, ..self.label }) {
            *self = empty;
        }
    }

    fn validate(&self) -> Result<(), Invalid> {
        if !self.list().is_sorted_by(|a, b| a < b) {
            return Err(Invalid("the list of digests does not rise"));
        }
        let words = self.words.as_slice();
        if self.levels.iter().any(|level| level.has_stray_codes(words)) {
            return Err(Invalid("codes are set beyond the last bucket"));
        }
        Ok(())
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        let (label, params) = Self::begin(frame)?;
        let words = frame.array(ARRAY, params.words() * 64)?;
        Ok(Self::of(params, label, words))
    }

    fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    fn array(&self) -> Option<(&Words, u64)> {
        Some((&self.words, self.words.len() as u64 * 64))
    }
}

face!(Ribbon);
