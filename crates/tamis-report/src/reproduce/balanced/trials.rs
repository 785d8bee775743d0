//! The designs of document 001: by models, by throwing keys, and by building filters.

use std::f64::consts::LN_2;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tamis::balanced::{Balanced, BalancedParams, Mht, Scheme, Sequential, Single as OneChoice};
use tamis::bloom::BloomParams;
use tamis::internals::address::{BlockProbes, reduce};
use tamis::internals::balanced::model::{counter_bits, mht_sizes};
use tamis::internals::bloom::model::rate as plain_rate;
use tamis::internals::compressed::model::limit_rate;
use tamis::internals::math::tail::binomial_pmf;
use tamis::{Bloom, Digest, Filter, Hasher, Insert, Label, Params, Stored};

use crate::keys::KeyStream;
use crate::loads::{Walk, thrown_and_levelled};
use crate::papers::balanced::{
    AbsentKey, Bound, Single, approximate_block_rate, block_rates, mean_cost, mht_least_overflow,
    mht_share, sequential_least_overflow,
};
use crate::papers::solve::bisect;
use crate::reproduce::{Effort, Experiment, Trouble};

/// Choices of a key, and blocks read for an insertion, in the paper's examples.
pub(super) const CHOICES: u32 = 3;
pub(super) const ACCESSES: f64 = 1.2;
pub(super) const BLOCKS: u64 = 12_000;
const BLOCK: u32 = 256;

/// A balancing scheme of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Single,
    Sequential,
    Mht,
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Single => "SINGLE",
            Self::Sequential => "SEQUENTIAL",
            Self::Mht => "MHT",
        }
    }

    fn least_overflow(self, accesses: f64, load: f64) -> Option<f64> {
        match self {
            Self::Single => None,
            Self::Sequential => sequential_least_overflow(accesses, CHOICES, load),
            Self::Mht => mht_least_overflow(accesses, CHOICES),
        }
    }
}

/// Load and budget, and the threshold and coin that follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Design {
    pub(super) way: Way,
    pub(super) load: f64,
    pub(super) accesses: f64,
    pub(super) overflow: f64,
}

impl Design {
    /// On the boundary of the scheme's optimality region.
    pub(super) fn boundary(way: Way, load: f64, accesses: f64) -> Result<Self, Trouble> {
        let overflow = way.least_overflow(accesses, load).ok_or("no such design")?;
        Ok(Self { way, load, accesses, overflow })
    }

    pub(super) fn bound(&self) -> Bound {
        Bound::new(self.load, self.accesses, self.overflow)
    }

    pub(super) fn single(&self) -> Result<Single, Trouble> {
        let reached = Single::reaching(&self.bound(), self.accesses * self.load);
        reached.ok_or_else(|| "no threshold reaches the bound".into())
    }

    fn walk(&self) -> Result<Walk, Trouble> {
        let Single { h, p } = self.single()?;
        let (subtables, shared) = match self.way {
            Way::Single => (vec![BLOCKS], true),
            Way::Sequential => (vec![BLOCKS; CHOICES as usize], true),
            Way::Mht => {
                let share = mht_share(self.accesses, CHOICES).ok_or("no such design")?;
                let sizes = mht_sizes(share, CHOICES);
                let blocks = sizes.iter().map(|size| (size * BLOCKS as f64).round() as u64);
                (blocks.collect(), false)
            }
        };
        Ok(Walk { subtables, shared, threshold: h, coin: p })
    }

    pub(super) fn name(&self) -> String {
        format!("walk {} {} {}", self.way.name(), self.load, self.accesses)
    }
}

/// One trial in which all keys walk.
#[derive(Serialize, Deserialize)]
pub(super) struct Walked {
    pub(super) keys: u64,
    pub(super) read: u64,
    pub(super) refused: u64,
    pub(super) variance: f64,
}

fn walked(design: &Design, seed: u64) -> Result<Walked, Trouble> {
    let walk = design.walk()?;
    let blocks = if walk.shared { walk.subtables[0] } else { walk.subtables.iter().sum() };
    let keys = (design.load * blocks as f64).round() as u64;
    let walked = walk.run(keys, seed, |_, _| {});
    let loads: Vec<f64> = walked.loads.iter().map(|&load| load.into()).collect();
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    let squares: f64 = loads.iter().map(|load| (load - mean).powi(2)).sum();
    let variance = squares / loads.len() as f64;
    Ok(Walked { keys, read: walked.read, refused: walked.refused, variance })
}

/// Figure 3a's budgets and Figure 3b's loads.
pub(super) fn budgets() -> impl Iterator<Item = f64> {
    (1..=10).map(|step| f64::from(100 + 2 * step) / 100.0)
}

pub(super) const LOADS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 40.0, 48.0, 64.0];
pub(super) const LOAD: f64 = 8.0;

fn designs() -> Result<Vec<Design>, Trouble> {
    let mut all = Vec::new();
    for way in [Way::Sequential, Way::Mht] {
        for accesses in budgets() {
            all.push(Design::boundary(way, LOAD, accesses)?);
        }
        for load in LOADS.into_iter().filter(|&load| load != LOAD) {
            all.push(Design::boundary(way, load, ACCESSES)?);
        }
    }
    all.push(Design { way: Way::Single, load: LOAD, accesses: 1.0, overflow: listed()? });
    Ok(all)
}

/// The list of the headline: 0.498% of the keys.
pub(super) fn listed() -> Result<f64, Trouble> {
    mht_least_overflow(ACCESSES, CHOICES).ok_or_else(|| "no such design".into())
}

/// Bits per key of Figure 4.
pub(super) const BITS: [u32; 10] = [8, 12, 16, 20, 24, 28, 32, 36, 38, 40];

/// One column of Figure 4: its bits per key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) bits: u32,
}

/// The schemes of Figure 4. SEQUENTIAL has the same list as MHT, and so a smaller budget.
pub(super) const STANDARD: &str = "standard";
pub(super) const BLOCKED: &str = "blocked";
pub(super) const SCHEMES: [&str; 5] = [STANDARD, BLOCKED, "SINGLE", "SEQUENTIAL", "MHT"];

impl Line {
    pub(super) fn load(self) -> f64 {
        f64::from(BLOCK) / f64::from(self.bits)
    }

    pub(super) fn keys(self) -> u64 {
        (self.load() * BLOCKS as f64).round() as u64
    }

    /// Erratum 6: k = beta ln 2, not r ln 2.
    fn hashes(self) -> u32 {
        (f64::from(self.bits) * LN_2).round() as u32
    }

    fn design(self, way: Way) -> Result<Design, Trouble> {
        let overflow = listed()?;
        let accesses = match way {
            Way::Single => 1.0,
            Way::Mht => ACCESSES,
            Way::Sequential => {
                let load = self.load();
                let excess = |accesses: f64| {
                    sequential_least_overflow(accesses, CHOICES, load).unwrap_or(0.0) - overflow
                };
                bisect(excess, 1.01, 1.3, 1e-5).ok_or("no budget for this list")?
            }
        };
        Ok(Design { way, load: self.load(), accesses, overflow })
    }

    /// log10 of the rate by the paper's formulas for phi and the union bound.
    fn printed_model(self, scheme: &str) -> Result<f64, Trouble> {
        let hashes = self.hashes();
        let rate = match scheme {
            STANDARD => limit_rate(f64::from(hashes) / f64::from(self.bits), hashes.into()),
            BLOCKED => {
                let loads = Bound::new(self.load(), 1.0, 0.0).loads;
                mean_cost(&loads, |load| approximate_block_rate(BLOCK, hashes, load))
            }
            _ => {
                let design = self.design(way(scheme))?;
                let (bound, single) = (design.bound(), design.single()?);
                let bits = BLOCK - counter_bits(single.h);
                let phi: Vec<f64> = (0..=bound.loads.len())
                    .map(|load| approximate_block_rate(bits, hashes, load))
                    .collect();
                let choices = if design.way == Way::Single { 1 } else { CHOICES };
                AbsentKey::new(&bound.loads, &single, &phi, choices).bound
            }
        };
        Ok(rate.log10())
    }

    pub(super) fn balanced<S: Scheme>(self, way: Way) -> Result<BalancedParams<S>, Trouble> {
        self.laid_out(&self.design(way)?)
    }

    /// The filter of a design.
    fn laid_out<S: Scheme>(self, design: &Design) -> Result<BalancedParams<S>, Trouble> {
        let way = design.way;
        let Single { h, p } = design.single()?;
        let parts = |share: f64| (share * 4_294_967_296.0).round() as u64;
        let choices = if way == Way::Single { 1 } else { CHOICES.into() };
        let ratio = match way {
            Way::Mht => parts(mht_share(ACCESSES, CHOICES).ok_or("no such design")?),
            Way::Single | Way::Sequential => 0,
        };
        let list = (design.overflow * self.keys() as f64) as u64;
        let hashes = self.hashes().into();
        let values = [BLOCKS, BLOCK.into(), hashes, choices, ratio, h.into(), parts(p), list, 0];
        Ok(BalancedParams::from_values(&values)?)
    }

    fn plain(self) -> Result<BloomParams, Trouble> {
        Ok(BloomParams::new(BLOCKS * u64::from(BLOCK), self.hashes())?)
    }

    /// The paper's blocked filter has the bits of a key anywhere in a block. (Those of
    /// `BlockedBloom` are one in each section.)
    fn blocked_rate(self) -> f64 {
        let (keys, share) = (self.keys(), 1.0 / BLOCKS as f64);
        let most = 8 * self.load() as usize + 100;
        let rates = block_rates(BLOCK, self.hashes(), most);
        (0..).zip(rates).map(|(load, rate)| binomial_pmf(keys, share, load) * rate).sum()
    }

    /// Builds such a filter, looks up every key, and returns the rate from the fill of every
    /// block.
    fn built_blocked(self, seed: u64) -> Result<f64, Trouble> {
        const WORDS: usize = BLOCK as usize / 64;
        let digests: Vec<Digest> =
            KeyStream::new(seed).members(Hasher::xxh3(seed), 0..self.keys()).collect();
        let mut blocks = vec![[0_u64; WORDS]; BLOCKS as usize];
        let block = |digest: Digest| reduce(digest.0, BLOCKS) as usize;
        let probes = |digest| BlockProbes::new(digest, self.hashes(), BLOCK).positions();
        for &digest in &digests {
            probes(digest).for_each(|at| blocks[block(digest)][at / 64] |= 1 << (at % 64));
        }
        let held = |digest: Digest| {
            probes(digest).all(|at| blocks[block(digest)][at / 64] >> (at % 64) & 1 == 1)
        };
        if !digests.iter().all(|&digest| held(digest)) {
            return Err("a blocked filter lost a key".into());
        }
        let fill = |block: &[u64; WORDS]| {
            f64::from(block.iter().map(|word| word.count_ones()).sum::<u32>()) / f64::from(BLOCK)
        };
        let rate = |block| fill(block).powi(self.hashes() as i32);
        Ok(blocks.iter().map(rate).sum::<f64>() / BLOCKS as f64)
    }

    /// log10 of the rate of a filter that is built, by the exact models.
    fn exact_model(self, scheme: &str) -> Result<f64, Trouble> {
        let keys = self.keys();
        let rate = match scheme {
            STANDARD => plain_rate(BLOCKS * u64::from(BLOCK), self.hashes(), keys),
            BLOCKED => self.blocked_rate(),
            "SINGLE" => Balanced::predict(&self.balanced::<OneChoice>(Way::Single)?, keys).rate,
            "MHT" => Balanced::predict(&self.balanced::<Mht>(Way::Mht)?, keys).rate,
            _ => Balanced::predict(&self.balanced::<Sequential>(Way::Sequential)?, keys).rate,
        };
        Ok(rate.log10())
    }

    /// Builds a filter, looks up every key, and returns the rate from the fill of every block.
    /// `design` is that of a balanced scheme.
    fn built(self, scheme: &str, design: &Design, seed: u64) -> Result<f64, Trouble> {
        Ok(match scheme {
            STANDARD => self.filled::<Bloom>(self.plain()?, seed)?.rate(),
            BLOCKED => self.built_blocked(seed)?,
            "SINGLE" => self.filled::<Balanced<OneChoice>>(self.laid_out(design)?, seed)?.rate(),
            "MHT" => self.filled::<Balanced<Mht>>(self.laid_out(design)?, seed)?.rate(),
            _ => self.filled::<Balanced<Sequential>>(self.laid_out(design)?, seed)?.rate(),
        })
    }

    fn filled<F: Stored + Insert>(self, params: F::Params, seed: u64) -> Result<F, Trouble> {
        let label = Label::planned(Hasher::xxh3(seed), self.keys());
        let digests: Vec<Digest> =
            KeyStream::new(seed).members(label.hasher, 0..self.keys()).collect();
        let mut filter = F::new(params, label)?;
        filter.insert_many(&digests)?;
        if digests.iter().all(|&digest| filter.contains_digest(digest)) {
            Ok(filter)
        } else {
            Err("a balanced filter lost a key".into())
        }
    }
}

pub(super) fn way(scheme: &str) -> Way {
    match scheme {
        "SINGLE" => Way::Single,
        "MHT" => Way::Mht,
        _ => Way::Sequential,
    }
}

/// Blocks that one filter reads for insertions, members and absent keys; entries of its list.
#[derive(Serialize, Deserialize)]
pub(super) struct Reads {
    pub(super) insert: f64,
    pub(super) hit: f64,
    pub(super) miss: f64,
    pub(super) listed: f64,
}

/// The headline's example: 24 bits per key.
pub(super) const HEADLINE: Line = Line { bits: 24 };

pub(super) fn headline_params() -> Result<BalancedParams<Mht>, Trouble> {
    HEADLINE.balanced(Way::Mht)
}

pub(super) fn reads(seed: u64) -> Result<Reads, Trouble> {
    let (keys, hasher) = (HEADLINE.keys(), Hasher::xxh3(seed));
    let stream = KeyStream::new(seed);
    let mut filter = Balanced::new(headline_params()?, Label::planned(hasher, keys))?;
    let mut insert = 0;
    for digest in stream.members(hasher, 0..keys) {
        insert += u64::from(filter.blocks_to_insert(digest));
        filter.insert_digest(digest)?;
    }
    let read = |digest: Digest| u64::from(filter.blocks_to_contain(digest));
    let hit: u64 = stream.members(hasher, 0..keys).map(read).sum();
    let miss: u64 = stream.absent_keys(hasher, 0..keys).map(read).sum();
    let each = |sum: u64| sum as f64 / keys as f64;
    let listed = each(filter.overflow().unwrap_or(0));
    Ok(Reads { insert: each(insert), hit: each(hit), miss: each(miss), listed })
}

/// Figure 2: shares of blocks by load.
pub(super) const BOUND_BUDGETS: [f64; 3] = [1.0, 1.1, 1.2];

fn levelled(accesses: f64, seed: u64) -> Vec<f64> {
    let keys = LOAD as u64 * BLOCKS;
    let loads = thrown_and_levelled(BLOCKS, (accesses * keys as f64).round() as u64, keys, seed);
    let most = loads.iter().copied().max().unwrap_or(0);
    let share = |load| loads.iter().filter(|&&other| other == load).count() as f64 / BLOCKS as f64;
    (0..=most).map(share).collect()
}

/// Figure 5: r = 2.5, p = 0.5, h = 2, and the paper's 25,000 keys and 10,000 blocks.
pub(super) const SHOWN: Single = Single { h: 2, p: 0.5 };
pub(super) const SHOWN_KEYS: u64 = 25_000;
pub(super) const SHOWN_BLOCKS: u64 = 10_000;
pub(super) const STEPS: u64 = 20;

fn shares_over_time(seed: u64) -> Vec<[f64; 4]> {
    let walk =
        Walk { subtables: vec![SHOWN_BLOCKS], shared: true, threshold: SHOWN.h, coin: SHOWN.p };
    let mut shares = vec![[1.0, 0.0, 0.0, 0.0]];
    walk.run(SHOWN_KEYS, seed, |keys, loads| {
        if keys % (SHOWN_KEYS / STEPS) == 0 {
            let share = |load| {
                loads.iter().filter(|&&other| other == load).count() as f64 / SHOWN_BLOCKS as f64
            };
            shares.push([0, 1, 2, 3].map(share));
        }
    });
    shares
}

pub(in crate::reproduce) fn experiments(effort: Effort) -> Vec<Experiment> {
    let mut all = Vec::new();
    let trials = effort.pick(6, 60, 400);
    for accesses in BOUND_BUDGETS {
        let run = move |seed| Ok(levelled(accesses, seed));
        all.push(Experiment::new(format!("bound {accesses}"), trials, 5e-3, run));
    }
    // If a design fails, the missing experiment is reported when its results are needed.
    for design in designs().unwrap_or_default() {
        let run = move |seed| walked(&design, seed);
        let keys: f64 = match design.way {
            // Few keys are refused, and often several together.
            Way::Mht => effort.pick(48.0, 4000.0, 12_000.0),
            Way::Sequential | Way::Single => effort.pick(48.0, 500.0, 5000.0),
        };
        let walks = (keys / design.load).max(effort.pick(6.0, 40.0, 200.0)) as u64;
        all.push(Experiment::new(design.name(), walks, 2e-4 * design.load, run));
    }
    for bits in BITS {
        let run = move |_| models(bits);
        all.push(Experiment::new(format!("figure-4-models {bits}"), 1, 0.3, run));
        for scheme in SCHEMES {
            // The budget of a design is searched for, which takes longer than building a filter.
            let design = OnceLock::new();
            let run = move |seed| {
                let line = Line { bits };
                let design = design.get_or_init(|| line.design(way(scheme)).ok());
                line.built(scheme, &design.ok_or("no such design")?, seed)
            };
            let (trials, cost) = (filters(bits, scheme), 0.6 / f64::from(bits));
            // A quick run builds the others only where a claim depends on them, and only as many
            // as the claim needs.
            let in_figure = effort == Effort::Full || bits <= 24;
            let is_claimed = matches!(
                (bits, scheme),
                (32, STANDARD | "MHT") | (36, BLOCKED | "MHT") | (40, BLOCKED | "SINGLE" | "MHT")
            );
            if in_figure {
                let name = format!("figure-4 {bits} {scheme}");
                let trials = effort.pick(4, trials, 6 * trials);
                all.push(Experiment::new(name, trials, cost, run));
            } else if is_claimed {
                let name = format!("claimed {bits} {scheme}");
                all.push(Experiment::new(name, effort.pick(4, trials, 0), cost, run));
            }
        }
    }
    all.push(Experiment::new("headline", effort.pick(3, 30, 300), 0.1, reads));
    let run = |seed| Ok(shares_over_time(seed));
    all.push(Experiment::new("figure-5", trials, 1e-3, run));
    all.extend(super::filters::experiments(effort));
    all
}

/// How many filters of Figure 4 are built. The fewer keys a block has, the more the rate depends
/// on few full blocks, and the more filters it takes to know its mean; blocked filters most of
/// all.
fn filters(bits: u32, scheme: &str) -> u64 {
    match (scheme, bits) {
        (BLOCKED | "SINGLE", 16) => 64,
        (STANDARD, _) | (_, 0..=16) => 24,
        (BLOCKED, 17..=20) => 60,
        (BLOCKED, _) => 180,
        (_, 17..=24) => 30,
        _ => 60,
    }
}

/// log10 of the rates of all schemes at one number of bits per key: by the paper's formula, and
/// exact.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Models {
    pub(super) formula: [f64; 5],
    pub(super) exact: [f64; 5],
}

pub(super) fn models(bits: u32) -> Result<Models, Trouble> {
    let mut models = Models { formula: [0.0; 5], exact: [0.0; 5] };
    for (index, scheme) in SCHEMES.into_iter().enumerate() {
        models.formula[index] = Line { bits }.printed_model(scheme)?;
        models.exact[index] = Line { bits }.exact_model(scheme)?;
    }
    Ok(models)
}
