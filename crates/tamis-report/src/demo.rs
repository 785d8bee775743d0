//! Three stories: filters that are planned, built and measured on realistic keys, beside a plain
//! Bloom filter and a hash set.

use std::collections::HashSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use askama::Template;
use serde::Serialize;
use tamis::{
    AnyFilter, Delta, DeltaError, Digest, Effort, Filter, Goal, Hasher, Kind, Label, Minimise,
    Operation, Plan,
};

use crate::bench::Failure;
use crate::chart;
use crate::keys::TextStream;
use crate::memory;
use crate::papers::statistics::exact_interval;
use crate::plot::STYLE;
use crate::show;

/// The share of the keys that is replaced before a delta is sent.
const CHURN: f64 = 0.01;
/// Lookups of a round, half of them hits; and rounds, of which the fastest counts.
const LOOKUPS: usize = 200_000;
const ROUNDS: usize = 5;

/// What a user may want.
struct Need {
    title: &'static str,
    text: &'static str,
    goal: Goal,
    matters: Matters,
}

/// What a story is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matters {
    /// Memory for each key.
    Memory,
    /// Bytes that are sent when keys change.
    Delta,
}

fn needs(keys: u64) -> [Need; 3] {
    let goal = |rate, needs: &[Operation], minimise| {
        Goal::rate(keys, rate).needs(needs.to_vec()).minimise(minimise).churn(CHURN)
    };
    let (insert, remove) = (Operation::Insert, Operation::Remove);
    [
        Need {
            title: "A stream without repeats",
            text: "Each line is to be printed once, as tamis uniq does: one new line in a million may be dropped.",
            goal: goal(1e-6, &[insert], Minimise::Balanced),
            matters: Matters::Memory,
        },
        Need {
            title: "A set that changes, and its peers",
            text: "Keys come and go, and peers hold copies: when 1% of the keys were replaced, they get a delta. 1% of the absent keys may pass.",
            goal: goal(0.01, &[insert, remove], Minimise::Wire),
            matters: Matters::Delta,
        },
        Need {
            title: "A set that never changes",
            text: "Built once, and then only asked: the least memory. 0.1% of the absent keys may pass.",
            goal: goal(0.001, &[], Minimise::Memory),
            matters: Matters::Memory,
        },
    ]
}

/// What the demo found.
#[derive(Debug, Serialize)]
pub struct Demo {
    /// Keys of every set.
    pub keys: u64,
    /// The first few of them.
    pub examples: Vec<String>,
    /// One for every need.
    pub needs: Vec<Met>,
}

/// A page of its own.
#[derive(Template)]
#[template(path = "demo.html")]
struct Page<'a> {
    demo: &'a Demo,
    style: &'static str,
    plot: String,
}

impl Page<'_> {
    fn keys(&self) -> String {
        show::count(self.demo.keys)
    }
}

impl Demo {
    /// The same as a page in one file.
    pub fn page(&self) -> Result<String, askama::Error> {
        let goal = Goal::rate(self.keys, 0.01);
        let rows = self.needs.iter().flat_map(|need| &need.rows);
        let shown: Vec<_> = rows.filter_map(|row| Kind::from_name(row.name)).collect();
        let plot = chart::bits_against_rate(&goal, &shown, &|_| ()).inline();
        Page { demo: self, style: STYLE, plot }.render()
    }
}

/// A need and how it was met.
#[derive(Debug, Serialize)]
pub struct Met {
    /// What it is called.
    pub title: &'static str,
    /// What is wanted.
    pub text: &'static str,
    /// Why the chosen kind was chosen.
    pub reason: &'static str,
    /// What it is about.
    pub matters: Matters,
    /// The chosen kind, a plain Bloom filter, a hash set.
    pub rows: Vec<Row>,
}

impl Met {
    /// What matters, of each row: its text, and its share of the largest in percent.
    fn bars(&self) -> Vec<(&'static str, String, String)> {
        let value = |row: &Row| match self.matters {
            Matters::Memory => row.bits_per_key.measured,
            Matters::Delta => row.delta_bytes.measured,
        };
        let most = self.rows.iter().map(value).fold(0.0, f64::max);
        let bar = |row: &Row| {
            let text = match self.matters {
                Matters::Memory => format!("{:.1} bits a key", value(row)),
                Matters::Delta => show::bytes(value(row)),
            };
            (row.name, text, format!("{:.2}", 100.0 * value(row) / most.max(1.0)))
        };
        self.rows.iter().map(bar).collect()
    }
}

/// A structure: promised and measured.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The kind of filter, or a hash set.
    pub name: &'static str,
    /// Whether it is what the planner chose.
    pub chosen: bool,
    /// The rate.
    pub rate: Pair,
    /// The 95% interval of the measured rate.
    pub rate_interval: (f64, f64),
    /// Bits of memory for each key, by a counting allocator.
    pub bits_per_key: Pair,
    /// Bytes of a packed snapshot; of the keys as lines, for the hash set.
    pub snapshot_bytes: Pair,
    /// Bytes of a delta.
    pub delta_bytes: Pair,
    /// Lookups in a second, half of them hits, hashing included.
    pub lookups_per_second: f64,
    /// Whether keys can be removed.
    pub removes: bool,
}

impl Row {
    /// Each column: its title, the measured value, and the promised one below it.
    fn cells(&self) -> [(&'static str, String, String); 6] {
        let pair = |title, pair: Pair, write: fn(f64) -> String| {
            let promised = pair.promised.map(|promised| format!("promised {}", write(promised)));
            (title, write(pair.measured), promised.unwrap_or_default())
        };
        let alone = |title, text: String| (title, text, String::new());
        let mut rate = pair("false positives", self.rate, show::rate);
        if self.rate.promised.is_some() {
            let (low, high) = self.rate_interval;
            rate.1 = format!("{} ({} to {})", rate.1, show::rate(low), show::rate(high));
        }
        [
            rate,
            pair("bits per key", self.bits_per_key, |bits| format!("{bits:.2}")),
            alone("lookups per second", show::per_second(self.lookups_per_second)),
            pair("snapshot", self.snapshot_bytes, show::bytes),
            pair("delta of 1%", self.delta_bytes, show::bytes),
            alone("removes keys", if self.removes { "yes" } else { "no" }.to_owned()),
        ]
    }
}

/// A predicted value, where there is one, and the measured one.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pair {
    /// What the model said.
    pub promised: Option<f64>,
    /// What was measured.
    pub measured: f64,
}

impl Pair {
    fn of(promised: f64, measured: f64) -> Self {
        Self { promised: Some(promised), measured }
    }

    fn measured(measured: f64) -> Self {
        Self { promised: None, measured }
    }
}

/// The keys of the demo.
struct Keys {
    members: Vec<String>,
    /// The keys that replace the first of the members.
    newcomers: Vec<String>,
    absent: Vec<String>,
    /// Members and absent keys, alternating.
    asked: Vec<String>,
}

impl Keys {
    fn new(count: u64, seed: u64) -> Self {
        let stream = TextStream::new(seed);
        let replaced = (CHURN * count as f64).round() as u64;
        let members: Vec<String> = (0..count).map(|index| stream.member(index)).collect();
        let absent: Vec<String> =
            (0..count.clamp(200_000, 1_000_000)).map(|index| stream.absent_key(index)).collect();
        // In an order that caches cannot profit from.
        let member = |index: usize| &members[index * 7919 % members.len().max(1)];
        let asked = (0..LOOKUPS.min(2 * members.len()))
            .map(|index| if index % 2 == 0 { member(index) } else { &absent[index] }.clone())
            .collect();
        let newcomers = (count..count + replaced).map(|index| stream.member(index)).collect();
        Self { members, newcomers, absent, asked }
    }

    /// The members after the newcomers have replaced as many of them.
    fn later(&self) -> impl Iterator<Item = &String> {
        self.members.iter().skip(self.newcomers.len()).chain(&self.newcomers)
    }
}

/// Runs the demo on `keys` keys. Calls `progress` with the share that is done.
pub fn run(keys: u64, seed: u64, progress: &mut dyn FnMut(f64)) -> Result<Demo, Failure> {
    let keys = keys.max(1);
    let all = Keys::new(keys, seed);
    progress(0.1);
    let exact = hash_set(&all)?;
    progress(0.2);
    let mut met = Vec::new();
    for (number, need) in needs(keys).into_iter().enumerate() {
        let mut share = |part: f64| progress(0.2 + 0.8 * (number as f64 + part) / 3.0);
        let chosen = tamis::choose(&need.goal)?.swap_remove(0);
        share(0.1);
        let mut rows = vec![measured(&chosen, true, &need.goal, &all)?];
        share(0.6);
        if chosen.params.kind() != Kind::Bloom {
            let plain =
                Plan::of(Kind::Bloom, &need.goal.clone().needs([]).minimise(Minimise::Memory))?;
            rows.push(measured(&plain, false, &need.goal, &all)?);
        }
        rows.push(exact.row());
        share(1.0);
        let Need { title, text, matters, .. } = need;
        met.push(Met { title, text, reason: chosen.reason, matters, rows });
    }
    let examples = all.members.iter().take(4).cloned().collect();
    Ok(Demo { keys, examples, needs: met })
}

fn measured(plan: &Plan, chosen: bool, goal: &Goal, keys: &Keys) -> Result<Row, Failure> {
    let hasher = Hasher::default();
    let digests = |keys: &mut dyn Iterator<Item = &String>| -> Vec<Digest> {
        keys.map(|key| hasher.digest(key.as_str())).collect()
    };
    let label = Label::planned(hasher, goal.keys);
    let members = digests(&mut keys.members.iter());
    let filter = plan.params.build_from(label, &members)?;
    // Several threads may have built the filter, so the memory of a copy is counted, made here.
    let before = memory::held();
    let filter = filter.clone();
    let held = memory::held() - before;
    if held <= 0 {
        return Err(Failure::NotCounting);
    }
    if members.iter().any(|&key| !filter.contains_digest(key)) {
        return Err(Failure::Lost);
    }
    let passed = keys.absent.iter().filter(|key| filter.contains(key.as_str())).count();
    let later = later(&filter, plan, keys, &mut |keys| digests(keys), label)?;
    let sent = match Delta::between(&filter, &later) {
        Err(DeltaError::BuiltOnce(_)) => later.pack(Effort::Best).len(),
        delta => delta?.encode().len(),
    };
    let delta = plan.traffic.delta.unwrap_or(plan.traffic.snapshot);
    Ok(Row {
        name: plan.params.kind().name(),
        chosen,
        rate: Pair::of(plan.predicted.rate, passed as f64 / keys.absent.len() as f64),
        rate_interval: exact_interval(passed as u64, keys.absent.len() as u64, 0.95),
        bits_per_key: Pair::of(plan.predicted.bits_per_key, held as f64 * 8.0 / goal.keys as f64),
        snapshot_bytes: Pair::of(
            plan.traffic.snapshot.mean,
            filter.pack(Effort::Best).len() as f64,
        ),
        delta_bytes: Pair::of(delta.mean, sent as f64),
        lookups_per_second: per_second(&keys.asked, |key| filter.contains(key)),
        removes: plan.params.kind().can_remove(),
    })
}

/// The filter after some keys were replaced: by removing and inserting where the kind can,
/// otherwise built anew.
fn later(
    filter: &AnyFilter,
    plan: &Plan,
    keys: &Keys,
    digests: &mut dyn FnMut(&mut dyn Iterator<Item = &String>) -> Vec<Digest>,
    label: Label,
) -> Result<AnyFilter, Failure> {
    let mut later = filter.clone();
    let Some(changing) = later.as_remove() else {
        return Ok(plan.params.build_from(label, &digests(&mut keys.later()))?);
    };
    let goers = digests(&mut keys.members.iter().take(keys.newcomers.len()));
    changing.remove_many(&goers);
    changing.insert_many(&digests(&mut keys.newcomers.iter()))?;
    Ok(later)
}

/// Lookups in a second, in the fastest of several rounds.
fn per_second(asked: &[String], contains: impl Fn(&str) -> bool) -> f64 {
    let round = |_| {
        let start = Instant::now();
        black_box(asked.iter().filter(|key| contains(key)).count());
        start.elapsed()
    };
    let quickest = (0..ROUNDS).map(round).min().unwrap_or(Duration::MAX);
    asked.len() as f64 / quickest.as_secs_f64().max(1e-9)
}

/// What the exact answer costs.
struct Exact {
    bits_per_key: f64,
    snapshot: f64,
    delta: f64,
    per_second: f64,
}

fn hash_set(keys: &Keys) -> Result<Exact, Failure> {
    let before = memory::held();
    let set: HashSet<String> = keys.members.iter().cloned().collect();
    let held = memory::held() - before;
    if held <= 0 {
        return Err(Failure::NotCounting);
    }
    let lines = |keys: &mut dyn Iterator<Item = &String>| -> f64 {
        keys.map(|key| key.len() + 1).sum::<usize>() as f64
    };
    let replaced = keys.newcomers.len();
    Ok(Exact {
        bits_per_key: held as f64 * 8.0 / set.len() as f64,
        snapshot: lines(&mut keys.members.iter()),
        delta: lines(&mut keys.members.iter().take(replaced).chain(&keys.newcomers)),
        per_second: per_second(&keys.asked, |key| set.contains(key)),
    })
}

impl Exact {
    fn row(&self) -> Row {
        Row {
            name: "hash set",
            chosen: false,
            rate: Pair::measured(0.0),
            rate_interval: (0.0, 0.0),
            bits_per_key: Pair::measured(self.bits_per_key),
            snapshot_bytes: Pair::measured(self.snapshot),
            delta_bytes: Pair::measured(self.delta),
            lookups_per_second: self.per_second,
            removes: true,
        }
    }
}
