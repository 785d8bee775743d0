//! Filters whose keys expire, beside an exact list of when each key was last seen.

use std::time::Duration;

use tamis::internals::address::reduce;
use tamis::{Aging, BlockedRank, Digest, Goal, Hasher, Stored};

use crate::processor_time;

/// How keys come, and how the clock goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// New keys at an even pace; some are touched again.
    Even,
    /// All keys in one step; the next ones when they have expired.
    OneStep,
    /// Half of all keys at once, and then questions only, until they have expired.
    Burst,
    /// The same keys, each touched once in every step.
    Touched,
    /// As `Even`, but the clock jumps forward now and then, up to a hundred lifetimes.
    Forward,
    /// As `Even`, but the clock goes back now and then, up to three lifetimes.
    Back,
}

/// All of them.
pub const LOADS: [Load; 6] =
    [Load::Even, Load::OneStep, Load::Burst, Load::Touched, Load::Forward, Load::Back];

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How keys come.
    pub load: Load,
    /// Keys that are alive at once, about.
    pub keys: u64,
    /// The rate asked for.
    pub rate: f64,
    /// How long a key lives, in milliseconds.
    pub lifetime: u64,
    /// Into how many steps a lifetime is cut.
    pub steps: u32,
    /// Operations.
    pub operations: u64,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Questions for keys that had been seen within a lifetime.
    pub young: u64,
    /// Those of them that were answered no: there must be none.
    pub missing: u64,
    /// Questions for keys that had to be gone.
    pub old: u64,
    /// Those of them that were answered yes.
    pub found: u64,
    /// How many of them are expected at the rate of the filter at each question.
    pub expected: f64,
    /// The most bits for each key beyond those of a `blocked-rank` filter that was planned for the
    /// same keys and the same rate.
    pub excess_bits: f64,
    /// The same, on average.
    pub mean_excess: f64,
    /// Keys that expired.
    pub expired: u64,
    /// Processor time that was spent where generations were dropped, in nanoseconds.
    pub sweep_ns: u64,
    /// Processor time of the whole run, in nanoseconds.
    pub all_ns: u64,
}

/// When a key was last seen: the time then, and the latest time until then.
type Seen = Option<(u64, u64)>;

struct Run {
    setup: Setup,
    filter: Aging,
    seen: Vec<Seen>,
    now: u64,
    latest: u64,
    drawn: u64,
    outcome: Outcome,
    samples: u64,
}

/// Runs `setup`.
///
/// # Panics
///
/// If the filter cannot be planned, or there is no memory.
pub fn run(setup: Setup) -> Outcome {
    let Setup { keys, steps, rate, lifetime, operations, load } = setup;
    let all = keys + keys.div_ceil(steps.into());
    let filter = Aging::new(Hasher::xxh3(7), all, rate, lifetime, steps).expect("a filter");
    let space = 4 * keys as usize + 64;
    let outcome = Outcome::default();
    let seen = vec![None; space];
    let mut run =
        Run { setup, filter, seen, now: 1 << 40, latest: 0, drawn: 0, outcome, samples: 0 };
    let start = processor_time();
    let every = (operations / 100).max(1);
    for operation in 0..operations {
        let jumps = operation.is_multiple_of(operations / 20 + 1);
        match load {
            Load::Forward if jumps => run.now += run.below(100 * lifetime),
            Load::Back if jumps => run.now -= run.below(3 * lifetime),
            _ => {}
        }
        run.step(operation);
        if operation % every == every / 2 {
            run.sample();
        }
    }
    run.outcome.all_ns = since(start);
    run.outcome.mean_excess /= run.samples.max(1) as f64;
    run.outcome
}

/// Nanoseconds of processor time since `start`.
fn since(start: Duration) -> u64 {
    processor_time().saturating_sub(start).as_nanos() as u64
}

impl Run {
    fn below(&mut self, range: u64) -> u64 {
        self.drawn += 1;
        reduce(Digest(self.drawn).word(1), range)
    }

    fn step(&mut self, operation: u64) {
        let Setup { load, keys, lifetime, steps, .. } = self.setup;
        // Time goes on by the parts of a lifetime that come to the operations until now.
        let part = |done: u64, of: u64| lifetime * (done % of) / of + done / of * lifetime;
        let pace = |of: u64| part(operation + 1, of) - part(operation, of);
        let round = keys.max(1);
        match load {
            Load::Even | Load::Forward | Load::Back => {
                self.now += pace(2 * round);
                match operation % 4 {
                    0 | 2 => self.see(operation / 2),
                    1 => {
                        let number = (operation / 2).saturating_sub(self.below(round));
                        self.touch(number);
                    }
                    _ => self.ask_any(),
                }
            }
            Load::OneStep => {
                if operation.is_multiple_of(2 * round) {
                    self.now += 2 * lifetime;
                }
                if operation.is_multiple_of(2) { self.see(operation / 2) } else { self.ask_any() }
            }
            Load::Burst => {
                if operation % (4 * round) < round / 2 {
                    self.see(operation);
                } else {
                    self.now += pace(round);
                    self.ask_any();
                }
            }
            Load::Touched => {
                self.now += pace(2 * round * u64::from(steps));
                if operation.is_multiple_of(2) {
                    self.see(operation / 2 % round);
                } else {
                    self.ask_any();
                }
            }
        }
    }

    /// Drops what has expired, and notes how long that takes.
    fn sweep(&mut self) {
        let held: u64 = self.filter.ages().sum();
        let alive = self.filter.keys(self.now);
        if alive < held {
            let start = processor_time();
            self.filter.advance(self.now);
            self.outcome.sweep_ns += since(start);
            self.outcome.expired += held - alive;
        }
    }

    fn note(&mut self, number: u64) {
        self.latest = self.latest.max(self.now);
        let at = number as usize % self.seen.len();
        self.seen[at] = Some((self.now, self.latest));
    }

    fn see(&mut self, number: u64) {
        self.sweep();
        let number = number % self.seen.len() as u64;
        self.filter.insert(&number, self.now).expect("memory");
        self.note(number);
    }

    fn touch(&mut self, number: u64) {
        let number = number % self.seen.len() as u64;
        let is_in = self.filter.touch(&number, self.now).expect("memory");
        self.judge(number, is_in);
        if is_in {
            self.note(number);
        }
    }

    fn ask_any(&mut self) {
        let number = self.below(self.seen.len() as u64);
        let is_in = self.filter.contains(&number, self.now);
        self.judge(number, is_in);
    }

    fn judge(&mut self, number: u64, is_in: bool) {
        let Setup { lifetime, steps, .. } = self.setup;
        let seen = self.seen[number as usize];
        let outcome = &mut self.outcome;
        let present = self.now.max(self.latest);
        if seen.is_some_and(|(then, _)| self.now <= then.saturating_add(lifetime)) {
            outcome.young += 1;
            outcome.missing += u64::from(!is_in);
        } else if seen.is_none_or(|(_, then)| {
            u128::from(present - then) * u128::from(steps)
                >= u128::from(lifetime) * u128::from(steps + 1)
        }) {
            outcome.old += 1;
            outcome.found += u64::from(is_in);
            outcome.expected += self.filter.rate(self.now);
        }
    }

    /// Compares the memory with that of a filter without ages.
    fn sample(&mut self) {
        self.filter.advance(self.now);
        let keys = self.filter.keys(self.now);
        if keys < self.setup.keys / 5 || keys == 0 {
            return;
        }
        let goal = Goal::rate(keys, self.filter.rate(self.now));
        let params = BlockedRank::plan(&goal).expect("a plan");
        let plain = BlockedRank::predict(&params, keys).bits_per_key;
        let excess = self.filter.footprint() as f64 / keys as f64 - plain;
        self.outcome.excess_bits = self.outcome.excess_bits.max(excess);
        self.outcome.mean_excess += excess;
        self.samples += 1;
    }
}
