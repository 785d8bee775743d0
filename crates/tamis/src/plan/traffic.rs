//! How many bytes go over the wire: of a packed snapshot, and of a delta after some keys were replaced.
//!
//! What is sent is coded within a hair of its entropy, so its length follows from how much there is to say. After c n of n keys were
//! replaced, as many coming as going:
//!
//! | content | snapshot | delta |
//! |---|---|---|
//! | bits | m bits of which a share is set | m bits of which a share q flips ([`delta_share`]) |
//! | counters | m Poisson counters, plane by plane | which of m differ, and by how much: two Poisson numbers' difference |
//! | identities | n gaps in a universe U | c n gaps in n (what goes), c n gaps in U (what comes) |
//! | positions, choices | as they are | none: a new snapshot |
//!
//! In a block of B bits a key sets B (1 - (1 - 1/B)^k) of them on average, which is all that matters to the share of all bits: so
//! blocked filters are plain ones with a somewhat smaller load. Snapshots of balanced kinds are taken for those of blocked ones whose keys are
//! spread evenly; for their deltas a small filter is built twice and compared (`balanced/replace.rs`).
//!
//! The keys that are replaced are any, at random: the other keys keep their order, and new keys come in the places of those that went.
//! This matters to balanced kinds alone, which are built anew, and where early keys move more than late ones: replacing the oldest
//! keys costs more than is said here, replacing the newest less. Tested against snapshots and deltas of every kind by
//! `tests/traffic.rs`.

use alloc::vec::Vec;

use crate::any::AnyParams;
use crate::balanced;
use crate::coder::{self, Effort, sorted_bits};
use crate::compressed::model::delta_share;
use crate::math::occupancy::{mean_occupied, variance_occupied};
use crate::math::tail::{poisson_above, poisson_pmf};
use crate::partitioned;
use crate::spec::{Bytes, Kind, Prediction, Traffic};
use crate::wire::{self, Encoding};

/// Standard deviations of what the model of balanced kinds leaves out, in shares of snapshots and of deltas.
const UNEVEN: [f64; 2] = [0.0015, 0.005];
/// Standard deviation of what a single replaced key moves, in shares of the mean.
const FEW: f64 = 0.7;
/// Numbers of a Poisson law beyond this are too rare to count, up to a mean of [`MANY`].
const MOST_STEP: u64 = 24;
const MANY: f64 = 6.0;

impl AnyParams {
    /// What a filter with this layout and so many keys takes on the wire; its deltas after a share `churn` of the keys was replaced.
    pub fn traffic(&self, keys: u64, churn: Option<f64>) -> Traffic {
        self.traffic_as_predicted(keys, churn, &self.predict(keys))
    }

    /// As [`traffic`](Self::traffic), for whoever has the prediction already.
    pub(super) fn traffic_as_predicted(
        &self,
        keys: u64,
        churn: Option<f64>,
        predicted: &Prediction,
    ) -> Traffic {
        let content = Content::of(self, keys, predicted);
        let snapshot = content.snapshot(self, keys, predicted);
        let delta = churn.map(|churn| {
            let replaced = libm::round(churn.clamp(0.0, 1.0) * keys as f64) as u64;
            content.delta(self, keys, replaced).unwrap_or(snapshot)
        });
        Traffic { snapshot, delta }
    }
}

/// Bits that vary.
#[derive(Clone, Copy)]
struct Coded {
    bits: f64,
    variance: f64,
}

/// The list of a balanced kind.
#[derive(Clone, Copy)]
struct Balanced {
    /// Entries of the list.
    listed: f64,
    /// Whether a snapshot has a section for them.
    has_list: bool,
}

/// What a filter holds, as far as its entropy goes.
enum Content {
    Bits {
        bits: u64,
        /// Bits that a key sets, less those that it sets twice.
        each: f64,
        /// The variance of the number of ones.
        variance: f64,
        balanced: Option<Balanced>,
    },
    Counters {
        counters: u64,
        hashes: u32,
    },
    Identities {
        universe: u64,
        value_bits: u64,
        /// Whether equal identities are kept once.
        set: bool,
    },
    Positions {
        positions: u64,
        hashes: u32,
    },
    Chosen {
        bits: u64,
        ones: f64,
        choices: u64,
    },
}

impl Content {
    fn of(params: &AnyParams, keys: u64, predicted: &Prediction) -> Self {
        let identities = |universe, value_bits: u32| Self::Identities {
            universe,
            value_bits: value_bits.into(),
            set: params.kind() == Kind::RankSet,
        };
        let in_blocks = |blocks: u64, block: u64, hashes: u32, balanced: Option<Balanced>| {
            let k = f64::from(hashes);
            let each = -(block as f64) * libm::expm1(k * libm::log1p(-1.0 / block as f64));
            // As if every key brought any number of new bits from none to k.
            let variance = keys as f64 * k * k / 4.0;
            Self::Bits { bits: blocks.saturating_mul(block), each, variance, balanced }
        };
        match params {
            AnyParams::Bloom(params) => {
                let (bits, hashes) = (params.bits(), params.hashes());
                let variance = variance_occupied(bits, keys.saturating_mul(hashes.into()));
                // A throw that meets one of the same key is one of the meetings of all throws.
                Self::Bits { bits, each: hashes.into(), variance, balanced: None }
            }
            AnyParams::Blocked(params) => {
                in_blocks(params.blocks(), params.block().into(), params.hashes(), None)
            }
            AnyParams::Counting(params) => {
                Self::Counters { counters: params.counters(), hashes: params.hashes() }
            }
            AnyParams::RankIndexed(params)
            | AnyParams::RankSet(params)
            | AnyParams::RankCounting(params) => identities(params.universe(), 0),
            AnyParams::RankMap(params) => identities(params.universe(), params.layout().extra),
            AnyParams::BlockedRank(params) => identities(params.universe(), 0),
            AnyParams::DLeft(params) => identities(params.universe(), params.value()),
            AnyParams::Partitioned(params) => Self::Chosen {
                bits: params.bits(),
                ones: partitioned::model::expected_fill(params, keys) * params.bits() as f64,
                choices: params.choice_bits(),
            },
            AnyParams::Compressed(params) => {
                Self::Positions { positions: params.positions(), hashes: params.hashes() }
            }
            AnyParams::BalancedSingle(_)
            | AnyParams::BalancedSequential(_)
            | AnyParams::BalancedMht(_)
            | AnyParams::BalancedPopcount(_)
            | AnyParams::BalancedTwoChoice(_) => {
                let value = |at: usize| params.named()[at].1;
                let [blocks, block, hashes, room] = [0, 1, 2, 7].map(value);
                let listed = predicted.overflow.unwrap_or(0.0);
                let balanced = Balanced { listed, has_list: room > 0 || listed >= 0.5 };
                in_blocks(blocks, block, hashes as u32, Some(balanced))
            }
        }
    }

    fn snapshot(&self, params: &AnyParams, keys: u64, predicted: &Prediction) -> Bytes {
        let n = keys as f64;
        let names = params.named().len();
        match *self {
            Self::Bits { bits, each, variance, balanced } => {
                let listed = balanced.map_or(0.0, |balanced| balanced.listed);
                let load = each * (n - listed) / bits as f64;
                let array = array(bits, -(bits as f64) * libm::expm1(-load), variance);
                let has_list = balanced.is_some_and(|balanced| balanced.has_list);
                let bytes = frame(names, 0, array, has_list.then(|| list(listed)));
                if balanced.is_some() { bytes.less_sure(UNEVEN[0]) } else { bytes }
            }
            Self::Counters { counters, hashes } => {
                let load = f64::from(hashes) * n / counters as f64;
                let reach = |count: u64| match count {
                    0 => counters as f64,
                    _ => counters as f64 * poisson_above(count - 1, load),
                };
                let shape = crate::compressed::model::Shape { positions: counters, hashes, keys };
                let deviation = shape.deviation_bits(crate::compressed::model::Message::Counters);
                let bits = planes(reach);
                frame(names, 0, Coded { bits, variance: deviation * deviation }, None)
            }
            Self::Identities { universe, value_bits, set } => {
                let distinct = mean_occupied(universe, keys);
                let counts =
                    if set { counts(0.0, distinct) } else { counts(shared(universe, n), distinct) };
                let variance = variance_occupied(universe, keys);
                let identities = numbers(distinct, variance, universe);
                let bits = identities.bits + distinct * value_bits as f64 + counts;
                let packed = frame(names, 0, Coded { bits, ..identities }, None);
                let trimmed = predicted.wire_bits_per_key * n.max(1.0) / 8.0;
                if params.kind() != Kind::BlockedRank && trimmed < packed.mean {
                    return Bytes { mean: trimmed, ..packed };
                }
                packed
            }
            Self::Positions { positions, hashes } => {
                let throws = keys.saturating_mul(hashes.into());
                let ones = mean_occupied(positions, throws);
                let variance = variance_occupied(positions, throws);
                frame(names, 0, numbers(ones, variance, positions), None)
            }
            Self::Chosen { bits, ones, choices } => {
                let k = params.named()[4].1 as f64;
                let array = array(bits, ones, n * k * k / 4.0);
                // They look random: as they are, behind a byte.
                let choices = (choices > 0)
                    .then(|| Coded { bits: 8.0 * (1 + choices.div_ceil(8)) as f64, variance: 0.0 });
                frame(names, 0, array, choices)
            }
        }
    }

    /// `None` for kinds that have none.
    fn delta(&self, params: &AnyParams, keys: u64, replaced: u64) -> Option<Bytes> {
        /// Content ids of base and result.
        const IDS: u64 = 32;
        let (n, r) = (keys as f64, replaced as f64);
        let names = params.named().len();
        Some(match *self {
            Self::Bits { bits, each, balanced, .. } => {
                let load = |keys: f64| each * keys / bits as f64;
                let plain = |keys: f64| delta_share(load(n - keys), load(keys), load(keys)).0;
                let flips = plain(r) * bits as f64;
                // As if every key that goes or comes flipped any number of bits from none to k.
                let variance = 2.0 * r * each * each / 4.0;
                let Some(_) = balanced else {
                    return Some(frame(names, IDS, array(bits, flips, variance), None));
                };
                let seen = replaced_keys(params, keys, r / n.max(1.0))?;
                // Every key that goes or comes moves others, and they flip so much more.
                let more = seen.flips / plain(seen.share * n.max(1.0)).max(f64::MIN_POSITIVE);
                let array = array(bits, flips * more, variance * more * more);
                let toggled = list(seen.listed * r / seen.share);
                // So far as a few keys speak for others.
                let unsure = UNEVEN[1] + FEW / libm::sqrt(seen.seen);
                frame(names, IDS, array, Some(toggled)).less_sure(unsure)
            }
            Self::Counters { counters, hashes } => {
                let load = f64::from(hashes) * r / counters as f64;
                let changed = counters as f64 * (1.0 - difference(0, load));
                // Numbers 0, 1, 2, 3, ... stand for steps 1, -1, 2, -2, ...
                let chances: Vec<f64> =
                    (0..2 * MOST_STEP).map(|number| difference(number / 2 + 1, load)).collect();
                let reach = |number: u64| {
                    let beyond: f64 = chances.iter().skip(number as usize).sum();
                    counters as f64 * beyond
                };
                let which = numbers(changed, changed, counters);
                let bits = which.bits + planes(reach);
                // Signs and sizes vary by a bit each at most.
                let variance = which.variance + changed;
                frame(names, IDS, Coded { bits, variance }, None)
            }
            Self::Identities { universe, value_bits, set } => {
                let distinct = mean_occupied(universe, keys);
                let all = universe as f64;
                // Half of what differs goes, half comes. What others share stays in a set.
                let (moved, several) = if set {
                    (all * delta_share((n - r) / all, r / all, r / all).0 / 2.0, 0.0)
                } else {
                    let [same, one] = [0, 1].map(|by| difference(by, r / all));
                    (all * (1.0 - same) / 2.0, all * (0.5 - 0.5 * same - one).max(0.0))
                };
                // As many more or fewer as meet others, give or take the root of that.
                let goes = numbers(moved, r - moved, libm::round(distinct) as u64);
                let comes = numbers(moved, r - moved, universe);
                let base = 8.0 + leb(distinct);
                let gone = Coded { bits: base + goes.bits + counts(several, moved), ..goes };
                let bits = comes.bits + moved * value_bits as f64 + counts(several, moved);
                let names = if params.kind() == Kind::BlockedRank { 1 } else { 2 };
                frame(names, IDS, gone, Some(Coded { bits, ..comes }))
            }
            Self::Positions { .. } | Self::Chosen { .. } => return None,
        })
    }
}

/// What differs between a balanced filter and its successor; `None` for other kinds.
fn replaced_keys(params: &AnyParams, keys: u64, share: f64) -> Option<balanced::Replaced> {
    match params {
        AnyParams::BalancedSingle(params) => balanced::replace(params, keys, share),
        AnyParams::BalancedSequential(params) => balanced::replace(params, keys, share),
        AnyParams::BalancedMht(params) => balanced::replace(params, keys, share),
        AnyParams::BalancedPopcount(params) => balanced::replace(params, keys, share),
        AnyParams::BalancedTwoChoice(params) => balanced::replace(params, keys, share),
        _ => None,
    }
}

/// A header with so many params, the bytes of fixed length, and one or two coded sections.
fn frame(params: usize, fixed: u64, first: Coded, second: Option<Coded>) -> Bytes {
    let bytes = |coded: Coded| (Encoding::Packed, libm::ceil(coded.bits / 8.0) as u64);
    let mut sections = Vec::new();
    if fixed > 0 {
        sections.push((Encoding::Packed, fixed));
    }
    sections.push(bytes(first));
    sections.extend(second.map(bytes));
    let variance = first.variance + second.map_or(0.0, |second| second.variance);
    Bytes {
        mean: wire::planned_sections(params, &sections) as f64,
        // Half a byte is rounded away in each section.
        deviation: libm::sqrt(variance) / 8.0 + 0.5,
    }
}

/// An array with so many ones, whose number varies.
fn array(bits: u64, ones: f64, variance: f64) -> Coded {
    let coded = |ones: f64| {
        let ones = libm::round(ones.clamp(0.0, bits as f64)) as u64;
        let coder = coder::choose(bits, ones, Effort::Best);
        coder::predicted_bits(coder, bits, ones).unwrap_or(bits as f64)
    };
    let here = coded(ones);
    let off = libm::sqrt(variance);
    let change = libm::fabs(coded(ones + off) - here).max(libm::fabs(coded(ones - off) - here));
    Coded { bits: here, variance: change * change }
}

/// Numbers below a universe, all different and in order, with the variance of their count.
fn numbers(count: f64, variance: f64, universe: u64) -> Coded {
    let rounded = libm::round(count).min(universe as f64) as u64;
    if rounded == 0 {
        return Coded { bits: 8.0, variance: 0.0 };
    }
    let gaps = sorted_bits(rounded, universe);
    let each = gaps / rounded as f64;
    // Each gap's code varies by a bit or so.
    let variance = count + variance * each * each;
    Coded { bits: leb(count) + leb(gaps / 8.0) + gaps, variance }
}

/// The chance that the first of two Poisson numbers of this mean is so much larger.
fn difference(by: u64, mean: f64) -> f64 {
    if mean > MANY {
        // As the normal law has it, and as good as that must be.
        let variance = 2.0 * mean;
        let off = by as f64;
        return libm::exp(-off * off / (2.0 * variance))
            / libm::sqrt(core::f64::consts::TAU * variance);
    }
    (0..MOST_STEP).map(|j| poisson_pmf(j, mean) * poisson_pmf(j + by, mean)).sum()
}

/// Counts of so many groups, of which `several` are above one and two mostly.
fn counts(several: f64, groups: f64) -> f64 {
    let at = numbers(several, several, libm::round(groups).max(1.0) as u64);
    at.bits + 8.0 * libm::round(several)
}

/// How many identities several of so many keys share.
fn shared(universe: u64, keys: f64) -> f64 {
    universe as f64 * poisson_above(1, keys / universe as f64)
}

/// Entries of a list, eight bytes each; as many as there happen to be.
fn list(entries: f64) -> Coded {
    Coded { bits: 64.0 * libm::round(entries), variance: 64.0 * 64.0 * entries }
}

/// Small numbers plane by plane; `reach` says how many are at least so large.
fn planes(reach: impl Fn(u64) -> f64) -> f64 {
    let mut bits = 0.0;
    let mut level = 0;
    loop {
        let left = libm::round(reach(level));
        if left < 1.0 {
            return bits;
        }
        let plane = array(left as u64, reach(level + 1).min(left), 0.0).bits;
        bits += leb(plane / 8.0) + plane;
        level += 1;
    }
}

/// Bits of a number in bytes of seven bits.
fn leb(number: f64) -> f64 {
    let bits = 64 - (number as u64 | 1).leading_zeros();
    f64::from(bits.div_ceil(7) * 8)
}
