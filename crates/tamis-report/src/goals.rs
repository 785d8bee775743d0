//! Random goals: what the planner promises, next to what the filter that is built then does.

use serde::Serialize;
use tamis::{
    Delta, Digest, Effort, Filter, Goal, Hasher, Kind, Label, Minimise, Operation, Plan, PlanError,
    Prediction, Size, choose,
};

use crate::bench::Failure;
use crate::keys::KeyStream;
use crate::memory;
use crate::papers::statistics::beta_i;

/// The chance that a promise which is kept is reported as broken.
const DOUBT: f64 = 1e-5;
/// Lookups whose blocks are counted, of members and of absent keys, over all filters.
const COUNTED: u64 = 20_000;
/// Filters built for a goal: fewer of the kind that takes long, and more where the rates of
/// filters differ by more than [`SPREAD`] times the root of their number.
const FILTERS: u64 = 24;
const SLOW_FILTERS: u64 = 12;
const MOST_FILTERS: u64 = 20_000;
const SPREAD: f64 = 0.04;
/// How many false positives are expected of the lookups, over all filters.
const PASSED: f64 = 1000.0;

/// A stream of pseudorandom numbers.
struct Random {
    seed: Digest,
    drawn: u64,
}

impl Random {
    fn new(number: u64) -> Self {
        Self { seed: Digest(number), drawn: 0 }
    }

    /// A number from 0 to 1.
    fn share(&mut self) -> f64 {
        self.drawn += 1;
        (self.seed.word(self.drawn) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + self.share() * (high - low)
    }

    fn chance(&mut self, chance: f64) -> bool {
        self.share() < chance
    }

    /// A number from `low` to `high`, of every magnitude with the same chance.
    fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }
}

/// Goal number `number`: up to `most_keys` keys, a rate of at least `least_rate`, any operations
/// and limits. Limits are drawn around the information bound, so that some goals are easy, some
/// hard and some impossible.
pub fn random_goal(number: u64, most_keys: u64, least_rate: f64) -> Goal {
    let mut random = Random::new(number);
    let keys = random.magnitude(1.0, most_keys as f64).round() as u64;
    let rate = random.magnitude(least_rate, 0.3);
    let mut goal = Goal::rate(keys, rate);
    let operations = [
        (Operation::Insert, 0.5),
        (Operation::Remove, 0.4),
        (Operation::Count, 0.2),
        (Operation::Merge, 0.2),
        (Operation::Grow, 0.2),
        (Operation::Values(1 + (random.share() * 12.0) as u32), 0.1),
    ];
    for (operation, chance) in operations {
        if random.chance(chance) {
            goal.needs.push(operation);
        }
    }
    let minimise = (random.share() * Minimise::ALL.len() as f64) as usize;
    goal.minimise = Minimise::ALL[minimise];
    let bound = -rate.log2();
    if random.chance(0.4) {
        goal.at_most.bits_per_key = Some(bound * random.between(1.2, 3.0));
    }
    if random.chance(0.4) {
        let bits = keys as f64 * (bound + 1.44) * random.between(0.9, 2.0);
        goal.at_most.snapshot_bytes = Some((bits / 8.0 + random.between(100.0, 400.0)) as u64);
    }
    if random.chance(0.5) {
        let churn = random.magnitude(0.001, 1.0);
        goal.churn = Some(churn);
        if random.chance(0.7) {
            let bits = churn * keys as f64 * (bound - churn.log2() + 3.0);
            let bits = bits * random.between(0.9, 3.0);
            goal.at_most.delta_bytes = Some((bits / 8.0 + random.between(200.0, 500.0)) as u64);
        }
    }
    if random.chance(0.4) {
        goal.at_most.blocks = Some(random.between(0.9, 4.0));
    }
    goal
}

/// The best plan for a goal. Where a limit cannot be met, it is replaced by the nearest that can,
/// again and again; the goal with these limits is returned too.
pub fn nearest_plan(mut goal: Goal) -> Result<(Plan, Goal), PlanError> {
    loop {
        match choose(&goal) {
            Ok(mut plans) => return Ok((plans.swap_remove(0), goal)),
            Err(PlanError::Limit { limited, nearest, .. }) => {
                goal.at_most = goal.at_most.with(limited, nearest);
            }
            Err(PlanError::Operations { .. }) => {
                goal.needs.pop();
            }
            Err(other) => return Err(other),
        }
    }
}

/// What was promised, and what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Promise {
    /// What was promised.
    pub what: &'static str,
    /// The limit that was promised.
    pub limit: f64,
    /// What the model predicts.
    pub predicted: f64,
    /// What was measured: the most of all filters, or their mean where the mean was promised.
    pub measured: f64,
    /// The lower end of the interval of what was measured.
    pub low: f64,
}

impl Promise {
    /// Whether the measurements agree with the promise.
    pub fn is_kept(&self) -> bool {
        self.low <= self.limit
    }

    /// Whether the measurement says enough: `times` as much would be told from it, or would still
    /// be within the limit.
    pub fn is_telling(&self, times: f64) -> bool {
        let high = 2.0 * self.measured - self.low;
        self.low * times >= self.measured || high * times <= self.limit
    }

    /// A promise about every filter.
    fn most(what: &'static str, limit: f64, predicted: f64, values: &[f64]) -> Self {
        let measured = values.iter().copied().fold(0.0, f64::max);
        Self { what, limit, predicted, measured, low: measured }
    }

    /// A promise about the mean of all filters, of which `values` are a sample.
    fn mean(what: &'static str, limit: f64, predicted: f64, values: &[f64]) -> Self {
        let (measured, low) = mean_and_low(values);
        Self { what, limit, predicted, measured, low }
    }
}

/// The mean of a sample, and Student's lower bound on the mean of its distribution. Where a few
/// values are far above the rest, as with small filters, the bound is lower than it need be.
fn mean_and_low(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, mean - student(count - 1.0) * (variance / count).sqrt())
}

/// The value that Student's t with `degrees` degrees of freedom exceeds with the chance [`DOUBT`].
fn student(degrees: f64) -> f64 {
    let above = |t: f64| 0.5 * beta_i(0.5 * degrees, 0.5, degrees / (degrees + t * t));
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if above(middle) > DOUBT { low = middle } else { high = middle }
    }
    high
}

/// How many filters are built: more where filters differ much.
fn filters(plan: &Plan) -> u64 {
    let least = if plan.params.kind() == Kind::Partitioned { SLOW_FILTERS } else { FILTERS };
    let many = (plan.predicted.rate_spread / SPREAD).powi(2).ceil() as u64;
    many.clamp(least, MOST_FILTERS)
}

/// What was measured of one filter.
#[derive(Default)]
struct Seen {
    lost: f64,
    bits_per_key: f64,
    snapshot: f64,
    delta: f64,
    hit: f64,
    miss: f64,
    rate: f64,
}

/// Builds the planned filter several times with other keys, and measures everything that the goal
/// limits. The counting allocator must be installed.
pub fn measure(
    goal: &Goal,
    plan: &Plan,
    key_seed: u64,
    most_queries: u64,
) -> Result<Vec<Promise>, Failure> {
    let filters = filters(plan);
    let queries = (PASSED / plan.predicted.rate) as u64;
    let queries = queries.min(most_queries).div_ceil(filters);
    let seen = (0..filters)
        .map(|number| see(goal, plan, KeyStream::new(key_seed << 20 | number), filters, queries))
        .collect::<Result<Vec<Seen>, Failure>>()?;
    let all = |fact: fn(&Seen) -> f64| -> Vec<f64> { seen.iter().map(fact).collect() };
    let Prediction { bits_per_key, blocks_per_hit, blocks_per_miss, .. } = plan.predicted;
    let mut promises = vec![Promise::most("lost keys", 0.0, 0.0, &all(|seen| seen.lost))];
    if let Some(limit) = goal.at_most.bits_per_key {
        let bits = all(|seen| seen.bits_per_key);
        promises.push(Promise::most("bits per key", limit, bits_per_key, &bits));
    }
    if let Some(limit) = goal.at_most.snapshot_bytes {
        let (predicted, bytes) = (plan.traffic.snapshot.mean, all(|seen| seen.snapshot));
        promises.push(Promise::most("snapshot bytes", limit as f64, predicted, &bytes));
    }
    if let (Some(limit), Some(delta)) = (goal.at_most.delta_bytes, plan.traffic.delta) {
        let bytes = all(|seen| seen.delta);
        promises.push(Promise::most("delta bytes", limit as f64, delta.mean, &bytes));
    }
    if let Some(limit) = goal.at_most.blocks {
        let (hits, misses) = (all(|seen| seen.hit), all(|seen| seen.miss));
        promises.push(Promise::mean("blocks per hit", limit, blocks_per_hit, &hits));
        promises.push(Promise::mean("blocks per miss", limit, blocks_per_miss, &misses));
    }
    if let Size::Rate(limit) = goal.size {
        let rates = all(|seen| seen.rate);
        promises.push(Promise::mean("rate", limit, plan.predicted.rate, &rates));
    }
    Ok(promises)
}

/// Builds one filter and measures it.
fn see(
    goal: &Goal,
    plan: &Plan,
    stream: KeyStream,
    filters: u64,
    queries: u64,
) -> Result<Seen, Failure> {
    let (keys, hasher) = (goal.keys, Hasher::default());
    let label = Label::planned(hasher, keys);
    let digests: Vec<Digest> = stream.members(hasher, 0..keys).collect();
    let before = memory::held();
    let filter = plan.params.build_from(label, &digests)?;
    let mut held = memory::held() - before;
    if !plan.params.kind().can_insert() {
        // Several threads may have built the filter, and only memory of this thread is counted. So
        // a copy is made here.
        let before = memory::held();
        let copy = filter.clone();
        held = memory::held() - before;
        drop(copy);
    }
    if held <= 0 {
        return Err(Failure::NotCounting);
    }
    let lost = digests.iter().filter(|&&key| !filter.contains_digest(key)).count();
    let mut seen = Seen {
        lost: lost as f64,
        bits_per_key: held as f64 * 8.0 / keys.max(1) as f64,
        ..Seen::default()
    };
    if goal.at_most.snapshot_bytes.is_some() {
        seen.snapshot = filter.pack(Effort::Best).len() as f64;
    }
    if let (Some(churn), Some(_)) = (goal.churn, goal.at_most.delta_bytes) {
        let newer = plan.params.build_from(label, &replaced(&digests, churn, stream, hasher))?;
        let sent = match Delta::between(&filter, &newer) {
            Ok(delta) => delta.encode().len(),
            Err(_) => newer.pack(Effort::Best).len(),
        };
        seen.delta = sent as f64;
    }
    if goal.at_most.blocks.is_some() {
        let blocks = |digests: &[Digest]| {
            let read = digests.iter().map(|&digest| u64::from(filter.blocks_to_contain(digest)));
            read.sum::<u64>() as f64 / digests.len().max(1) as f64
        };
        let counted = COUNTED.div_ceil(filters);
        seen.hit = blocks(&digests[..keys.min(counted) as usize]);
        seen.miss = blocks(&stream.absent_keys(hasher, 0..counted).collect::<Vec<_>>());
    }
    let absent = stream.absent_keys(hasher, 0..queries);
    let passed = absent.filter(|&key| filter.contains_digest(key)).count();
    seen.rate = passed as f64 / queries.max(1) as f64;
    Ok(seen)
}

/// The digests after a share `churn` of them, anywhere among them, was replaced by new ones.
pub fn replaced(digests: &[Digest], churn: f64, stream: KeyStream, hasher: Hasher) -> Vec<Digest> {
    let keys = digests.len() as u64;
    let mut places: Vec<u64> = (0..keys).collect();
    let random = hasher.digest(&stream.member(0));
    places.sort_by_cached_key(|&place| random.word(place));
    let mut newer = digests.to_vec();
    for &place in &places[..(churn * keys as f64).round() as usize] {
        newer[place as usize] = hasher.digest(&stream.member(keys + place));
    }
    newer
}
