//! The options that say what a filter must be able to do, what it may take, and what matters most.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tamis::{AtMost, Goal, Minimise, Operation};

use crate::numbers;
use crate::sizing::{Hashing, Sizing};

/// All that decides what a new filter is like.
#[derive(Args)]
pub(crate) struct Wanted {
    #[command(flatten)]
    pub(crate) sizing: Sizing,

    #[command(flatten)]
    pub(crate) wishes: Wishes,

    #[command(flatten)]
    pub(crate) hashing: Hashing,
}

impl Wanted {
    /// What is asked of a filter for `keys` keys.
    pub(crate) fn goal(&self, keys: u64) -> Goal {
        self.wishes.add_to(self.sizing.goal(keys))
    }
}

/// Operations, limits and what to minimise.
#[derive(Args)]
#[command(next_help_heading = "Needs and limits")]
pub(crate) struct Wishes {
    /// What the filter must be able to do beyond answering, separated by commas: insert, remove,
    /// count, merge, grow, value=BITS
    #[arg(long, value_name = "OPS", value_delimiter = ',', value_parser = operation)]
    ops: Vec<Operation>,

    /// Largest memory, in bits per key, such as 12, with a margin for what the model leaves out
    #[arg(long, value_name = "BITS", allow_hyphen_values = true)]
    max_bits_per_key: Option<f64>,

    /// Largest packed snapshot, in bytes, such as 1MB, with a margin because sizes vary
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, allow_hyphen_values = true)]
    max_snapshot: Option<u64>,

    /// Largest delta, in bytes, such as 40kB, after a random --churn of the keys was replaced
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = numbers::bytes,
        requires = "churn",
        allow_hyphen_values = true
    )]
    max_delta: Option<u64>,

    /// Share of the keys that is replaced from one delta to the next, such as 1%. Which keys are
    /// replaced is random; the others stay in order. (The order matters to balanced kinds, which
    /// are built anew: replacing old keys costs more there, replacing new ones less)
    #[arg(long, value_name = "SHARE", value_parser = numbers::share, allow_hyphen_values = true)]
    churn: Option<f64>,

    /// Largest number of blocks (cache lines) that a lookup reads on average, hit or miss, such as
    /// 1.5
    #[arg(long, value_name = "BLOCKS", allow_hyphen_values = true)]
    max_blocks: Option<f64>,

    /// What matters most: memory; wire (a delta with --churn, otherwise a snapshot), plus a
    /// hundredth of a bit for every bit of memory; lookups; or balanced, which is memory plus a
    /// tenth for every further block that a lookup reads [default: balanced]
    #[arg(long, visible_alias = "minimize", value_name = "WHAT", value_parser = minimise_parser())]
    minimise: Option<Minimise>,
}

impl Wishes {
    /// The share of the keys that is replaced from one delta to the next.
    pub(crate) fn churn(&self) -> Option<f64> {
        self.churn
    }

    /// Whether no needs or limits were given.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { ops, churn, minimise, .. } = self;
        ops.is_empty()
            && churn.is_none()
            && minimise.is_none()
            && self.at_most() == AtMost::default()
    }

    /// The goal with these wishes.
    fn add_to(&self, goal: Goal) -> Goal {
        goal.needs(self.ops.clone())
            .at_most(self.at_most())
            .churn(self.churn)
            .minimise(self.minimise.unwrap_or_default())
    }

    fn at_most(&self) -> AtMost {
        let mut at_most = AtMost::default();
        at_most.bits_per_key = self.max_bits_per_key;
        at_most.snapshot_bytes = self.max_snapshot;
        at_most.delta_bytes = self.max_delta;
        at_most.blocks = self.max_blocks;
        at_most
    }
}

fn operation(text: &str) -> Result<Operation, String> {
    if let Some(bits) = text.strip_prefix("value=") {
        let bits = bits.parse().ok().filter(|bits| (1..=32).contains(bits));
        return bits.map(Operation::Values).ok_or("a value has 1 to 32 bits: value=8".to_owned());
    }
    let plain =
        [Operation::Insert, Operation::Remove, Operation::Count, Operation::Merge, Operation::Grow];
    let known = plain.into_iter().find(|operation| operation.name() == text);
    known.ok_or_else(|| {
        "choose from insert, remove, count, merge, grow and value=BITS, for example --ops insert,remove"
            .to_owned()
    })
}

fn minimise_parser() -> impl TypedValueParser<Value = Minimise> {
    PossibleValuesParser::new(Minimise::ALL.map(Minimise::name)).try_map(|name| {
        let known = Minimise::ALL.into_iter().find(|minimise| minimise.name() == name);
        known.ok_or("unknown") // only supported names come this far
    })
}
