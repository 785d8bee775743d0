//! Random goals: what the planner promises, next to what the filter that is built then does.

use serde::Serialize;
use tamis::math::interval::{exact_interval, normal_quantile};
use tamis::{
    AnyFilter, Delta, Digest, Effort, Filter, Goal, Hasher, Label, Minimise, Operation, Plan,
    PlanError, Size, choose,
};

use crate::keys::KeyStream;

/// A promise that is kept is called broken once in so many times.
const DOUBT: f64 = 1e-5;
/// Lookups whose blocks are counted, of members and of strangers.
const COUNTED: u64 = 20_000;

/// Numbers that look random, one after the other.
struct Random {
    seed: Digest,
    drawn: u64,
}

impl Random {
    fn new(number: u64) -> Self {
        Self { seed: Digest(number), drawn: 0 }
    }

    /// From 0 to 1.
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

    /// As many of each magnitude.
    fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }
}

/// Goal number `number`: up to so many keys, a rate of at least `least_rate`, any operations and limits. Limits are drawn around what the
/// information bound asks for, so that some goals are easy, some hard and some impossible.
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

/// The best plan for a goal, and the goal with limits given way to the nearest that can be had, as often as there is one more in the way.
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

/// A promise and the truth.
#[derive(Clone, Debug, Serialize)]
pub struct Promise {
    /// What was promised.
    pub what: &'static str,
    /// At most this.
    pub limit: f64,
    /// The model's word for it.
    pub predicted: f64,
    /// As it came out.
    pub measured: f64,
    /// The least that the truth can be, given what chance does to measurements.
    pub low: f64,
}

impl Promise {
    /// Whether it was kept, as far as can be told.
    pub fn is_kept(&self) -> bool {
        self.low <= self.limit
    }
}

/// Builds what was planned and measures everything that the goal limits.
pub fn measure(
    goal: &Goal,
    plan: &Plan,
    key_seed: u64,
    most_queries: u64,
) -> Result<Vec<Promise>, tamis::BuildError> {
    let (keys, hasher) = (goal.keys, Hasher::default());
    let stream = KeyStream::new(key_seed);
    let build = |members: &mut dyn Iterator<Item = u64>| {
        let digests: Vec<Digest> =
            members.map(|index| hasher.digest(&stream.member(index))).collect();
        plan.params.build_from(Label::planned(hasher, keys), &digests)
    };
    let filter = build(&mut (0..keys))?;
    let mut promises = Vec::new();
    let mut exactly = |what, limit: Option<f64>, predicted: f64, measured: f64| {
        if let Some(limit) = limit {
            promises.push(Promise { what, limit, predicted, measured, low: measured });
        }
    };
    let at_most = goal.at_most;
    let lost = stream.members(hasher, 0..keys).filter(|&key| !filter.contains_digest(key)).count();
    exactly("lost keys", Some(0.0), 0.0, lost as f64);
    let bits = filter.footprint() as f64 / keys.max(1) as f64;
    exactly("bits per key", at_most.bits_per_key, plan.predicted.bits_per_key, bits);
    let bytes = |limit: Option<u64>| limit.map(|bytes| bytes as f64);
    if at_most.snapshot_bytes.is_some() {
        let packed = filter.pack(Effort::Best).len() as f64;
        let predicted = plan.traffic.snapshot.mean;
        exactly("snapshot bytes", bytes(at_most.snapshot_bytes), predicted, packed);
    }
    if let (Some(churn), Some(delta)) = (goal.churn, plan.traffic.delta)
        && at_most.delta_bytes.is_some()
    {
        let replaced = (churn * keys as f64).round() as u64;
        let newer = build(&mut (0..keys - replaced).chain(keys..keys + replaced))?;
        let sent = match Delta::between(&filter, &newer) {
            Ok(delta) => delta.encode().len(),
            Err(_) => newer.pack(Effort::Best).len(),
        };
        exactly("delta bytes", bytes(at_most.delta_bytes), delta.mean, sent as f64);
    }
    if let Some(limit) = at_most.blocks {
        let read = |what, predicted, digests: &mut dyn Iterator<Item = Digest>| {
            let (measured, low) = mean_blocks(&filter, digests);
            Promise { what, limit, predicted, measured, low }
        };
        let members = &mut stream.members(hasher, 0..keys.min(COUNTED));
        promises.push(read("blocks per hit", plan.predicted.blocks_per_hit, members));
        let strangers = &mut stream.strangers(hasher, 0..COUNTED);
        promises.push(read("blocks per miss", plan.predicted.blocks_per_miss, strangers));
    }
    if let Size::Rate(limit) = goal.size {
        let queries = ((4000.0 / limit) as u64).min(most_queries);
        let passed = stream.strangers(hasher, 0..queries);
        let passed = passed.filter(|&key| filter.contains_digest(key)).count() as u64;
        let (low, _) = exact_interval(passed, queries, 1.0 - DOUBT);
        // Filters differ from each other, and the promise is about their mean.
        let spread = -normal_quantile(DOUBT / 2.0) * plan.predicted.rate_spread;
        promises.push(Promise {
            what: "rate",
            limit,
            predicted: plan.predicted.rate,
            measured: passed as f64 / queries.max(1) as f64,
            low: low / spread.exp(),
        });
    }
    Ok(promises)
}

/// The mean blocks of lookups, and the least that it can be for all lookups.
fn mean_blocks(filter: &AnyFilter, digests: &mut dyn Iterator<Item = Digest>) -> (f64, f64) {
    let read: Vec<f64> =
        digests.map(|digest| f64::from(filter.blocks_to_contain(digest))).collect();
    let count = read.len().max(1) as f64;
    let mean = read.iter().sum::<f64>() / count;
    let variance = read.iter().map(|blocks| (blocks - mean).powi(2)).sum::<f64>() / count;
    // Few lookups say little about the variance: then Hoeffding's bound, for up to twice the blocks that were seen.
    let range = 2.0 * read.iter().copied().fold(1.0, f64::max);
    let few = range * (-DOUBT.ln() / (2.0 * count)).sqrt();
    let many = -normal_quantile(DOUBT) * (variance / count).sqrt();
    (mean, mean - if count < 1000.0 { few } else { many })
}
