//! Random layouts and histories of every kind, with an exact multiset beside each filter.
//!
//! A case is a kind, a layout that the kind accepts, and a history: inserts, removals, counts,
//! values, batches, merges, shards, growth far past the plan, coarser identities, writing,
//! packing, opening in place, patching. After every step the laws of [`tamis::Filter`] must hold,
//! and the promises about memory and time. A case that fails is shortened, and printed as a call
//! of [`replay`].

pub(crate) mod clock;
mod dice;
mod history;
mod layouts;
mod shrink;
mod subject;
mod trial;
mod truth;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tamis::Kind;

pub use self::history::{Keys, Partner, Shape, Step};

use self::clock::Watch;
use self::dice::Dice;
use self::trial::{Broken, Trial};

/// One case in this number is large.
const LARGE: u64 = 400;

/// A kind, a layout and a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The kind.
    pub kind: Kind,
    /// Its params, in stored order.
    pub values: Vec<u64>,
    /// Decides hash, seed and planned keys.
    pub seed: u64,
    /// What is done.
    pub steps: Vec<Step>,
}

/// A case that broke a law.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The case, as short as it could be made.
    pub case: Case,
    /// The law that it broke.
    pub law: &'static str,
    /// What was seen.
    pub detail: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { kind, values, seed, steps } = &self.case;
        writeln!(f, "{}: {}: {}", kind.name(), self.law, self.detail)?;
        writeln!(f, "    replay(Kind::{kind:?}, &{values:?}, {seed}, &[")?;
        for step in steps {
            writeln!(f, "        {step:?},")?;
        }
        write!(f, "    ]);")
    }
}

/// How much was run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran {
    /// Cases.
    pub cases: u64,
    /// Operations: single ones, and calls that work on a whole filter.
    pub operations: u64,
}

/// Runs case after case, starting with number `first`, until `operations` operations are done or a
/// case fails.
///
/// # Errors
///
/// The first case that breaks a law, as short as it could be made.
pub fn run(first: u64, operations: u64) -> Result<Ran, Box<Failure>> {
    let mut ran = Ran::default();
    while ran.operations < operations {
        let case = draw(first + ran.cases);
        let done = judge(&case).map_err(|failure| Box::new(failure.shortened()))?;
        ran.operations += done.max(1);
        ran.cases += 1;
    }
    Ok(ran)
}

/// Runs one case, and returns how many operations went well.
///
/// # Errors
///
/// The law that it broke, with the case as it is.
pub fn judge(case: &Case) -> Result<u64, Box<Failure>> {
    attempt(case)
        .map_err(|Broken { law, detail }| Box::new(Failure { case: case.clone(), law, detail }))
}

impl Failure {
    /// The shortest case found that breaks the same law.
    #[must_use]
    pub fn shortened(self) -> Self {
        shrink::shortest(self)
    }
}

/// The case with this number.
pub fn draw(number: u64) -> Case {
    let mut dice = Dice::new(number);
    let kind = dice.pick(Kind::ALL);
    // Kinds that keep identities have the most operations, so they are drawn more often. Kinds
    // that are built once are drawn less often, because building takes long.
    let kind = match kind {
        Kind::Partitioned if !dice.once_in(4) => Kind::BlockedRank,
        Kind::Compressed if !dice.once_in(2) => Kind::DLeft,
        kind => kind,
    };
    let large = dice.once_in(LARGE);
    let keys = match dice.below(10) {
        _ if large => dice.between(1000, 50_000),
        0 => dice.below(3),
        1..=4 => dice.small(100),
        _ => dice.small(4000),
    };
    let values = layouts::draw(kind, keys, &mut dice);
    let past = dice.pick(&[1, 2, 3, 10, 100]);
    let most = match kind {
        // Building takes long: it tries candidates for every key.
        Kind::Partitioned => (keys * past).min(1500),
        _ if large => (keys * past).clamp(100_000, 300_000),
        _ => (keys * past).clamp(16, 8000),
    };
    let steps = history::draw(kind, keys, most, &mut dice);
    Case { kind, values, seed: dice.below(10_000), steps }
}

/// Runs one case. Tests call it with cases that once failed.
///
/// # Panics
///
/// When it fails again.
pub fn replay(kind: Kind, values: &[u64], seed: u64, steps: &[Step]) {
    let case = Case { kind, values: values.to_vec(), seed, steps: steps.to_vec() };
    if let Err(Broken { law, detail }) = attempt(&case) {
        panic!("{}", Failure { case, law, detail });
    }
}

/// How many operations went well, or which law was broken.
fn attempt(case: &Case) -> Result<u64, Broken> {
    let (operations, slow) = once(case, Watch::Runs)?;
    if slow.is_none() {
        return Ok(operations);
    }
    // Runs the case twice more, and times every operation in processor time: on a busy machine,
    // the wall clock says nothing about the filter.
    let mut slowest = None;
    for _ in 0..2 {
        slowest = once(case, Watch::Each)?.1;
        if slowest.is_none() {
            return Ok(operations);
        }
    }
    let detail = slowest.map_or_else(String::new, |(spent, name)| format!("{name}: {spent:?}"));
    Err(Broken { law: "no operation takes long", detail })
}

type Slow = Option<(std::time::Duration, &'static str)>;

fn once(case: &Case, watch: Watch) -> Result<(u64, Slow), Broken> {
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut trial = Trial::new(case.kind, &case.values, case.seed, watch)?;
        for &step in &case.steps {
            trial.step(step)?;
        }
        trial.check()?;
        trial.memory()?;
        Ok((trial.operations, trial.slow))
    }));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(Broken { law: "no panic", detail: text.unwrap_or_default() })
    })
}
