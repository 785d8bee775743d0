//! Why a goal cannot be planned for.

use alloc::format;
use alloc::string::String;

use super::proportion::two_digits_up;
use super::{InvalidParam, Limited};

/// Why a goal cannot be planned for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The rate is not between 0 and 1.
    #[error("rate {rate} is not between 0 and 1; write for example 1% or 0.001")]
    Rate {
        /// The rate asked for.
        rate: f64,
    },
    /// The bits per key make no sense.
    #[error("bits per key must be above 0 and at most 4096; {bits} was given")]
    BitsPerKey {
        /// The bits asked for.
        bits: f64,
    },
    /// Less memory than any filter takes.
    #[error("{bytes} bytes of memory are too few: a filter takes at least 64, one cache line")]
    Memory {
        /// The bytes asked for.
        bytes: u64,
    },
    /// The margin is not a share of the bytes: from 0 up to, but not including, 1.
    #[error("margin {margin} is not at least 0 and below 1; write for example 1% or 0.01")]
    Margin {
        /// The margin asked for.
        margin: f64,
    },
    /// A kind alone was asked to plan for bytes on the wire.
    #[error(
        "{kind} alone does not know what goes over the wire; use AnyParams::plan, Plan::of or choose"
    )]
    Message {
        /// The kind.
        kind: &'static str,
    },
    /// Not even the largest filter of this kind reaches the rate.
    #[error(
        "{kind}: rate {} cannot be reached with {keys} keys; the nearest is {}{}",
        shown(*asked), shown(two_digits_up(*nearest)), cause(*asked, *nearest, *keys)
    )]
    Unreachable {
        /// The kind.
        kind: &'static str,
        /// The rate asked for.
        asked: f64,
        /// The keys asked for.
        keys: u64,
        /// The lowest rate that can be had.
        nearest: f64,
    },
    /// Not even the largest filter of this kind takes as many keys at this rate.
    #[error("{kind}: {keys} keys are too many for rate {}; it takes {most:e} at most", shown(*asked))]
    TooManyKeys {
        /// The kind.
        kind: &'static str,
        /// The rate asked for.
        asked: f64,
        /// The keys asked for.
        keys: u64,
        /// The most keys that it takes at this rate, or somewhat fewer.
        most: u64,
    },
    /// For this rate the kind would take memory out of all proportion.
    #[error(
        "{kind}: rate {} would take {bits:.0} bits per key, which is out of all proportion; ask for {} or more{instead}",
        shown(*asked), shown(*nearest)
    )]
    OutOfProportion {
        /// The kind.
        kind: &'static str,
        /// The rate asked for.
        asked: f64,
        /// The bits of memory per key that it would take.
        bits: f64,
        /// The lowest rate that is in proportion, or somewhat more.
        nearest: f64,
        /// Which kind to take instead, in words; empty where there is none.
        instead: String,
    },
    /// Not even a filter with the highest rate keeps within these bits.
    #[error("{kind}: {asked:.2} bits per key are too few; it takes {least:.2} at least")]
    TooFewBits {
        /// The kind.
        kind: &'static str,
        /// The bits per key asked for.
        asked: f64,
        /// The fewest that will do.
        least: f64,
    },
    /// The share of keys that is replaced makes no sense.
    #[error("churn {churn} is not above 0 and at most 1; write for example 1% or 0.01")]
    Churn {
        /// The share asked for.
        churn: f64,
    },
    /// Deltas are limited, but the goal does not say how many keys change between two of them.
    #[error(
        "a limit on deltas needs to know how much changes between two of them: say it with a churn, such as 1%"
    )]
    NoChurn,
    /// A limit makes no sense.
    #[error("at most {asked} {what} makes no sense: it must be above 0")]
    BadLimit {
        /// What is limited.
        what: &'static str,
        /// The limit.
        asked: f64,
    },
    /// The kind cannot do all that is asked for.
    #[error("{kind} cannot {missing}; of all kinds {able} can do what is asked for")]
    Unable {
        /// The kind.
        kind: &'static str,
        /// What it cannot do.
        missing: String,
        /// The kinds that can do all of it.
        able: String,
    },
    /// No kind can do all that is asked for.
    #[error("no kind can {needs} in one; leave one of these out ({able})")]
    Operations {
        /// What is asked for.
        needs: String,
        /// Which kinds can do each.
        able: String,
    },
    /// No filter keeps within a limit.
    #[error(
        "at most {} {} cannot be had{beside}; the nearest is {} ({kind}, with its margin)",
        limited.write(*asked), limited.name(), limited.write(*nearest)
    )]
    Limit {
        /// What is limited.
        limited: Limited,
        /// The limit.
        asked: f64,
        /// The least with which there is a filter, with the margin of a promise, rounded up.
        nearest: f64,
        /// The kind that would do it.
        kind: &'static str,
        /// Whether it could be had without the other limits.
        beside: &'static str,
    },
    /// A param was fixed twice.
    #[error("param {name} is fixed twice")]
    RepeatedParam {
        /// Its name.
        name: String,
    },
    /// The kind has no param of this name.
    #[error("{kind} has no param {name}; it has {known}")]
    UnknownParam {
        /// The kind.
        kind: &'static str,
        /// The unknown name.
        name: String,
        /// The names it has.
        known: String,
    },
    /// A fixed param is out of range.
    #[error(transparent)]
    Param(#[from] InvalidParam),
    /// The planned filter does not fit into memory.
    #[error(transparent)]
    OutOfMemory(#[from] crate::bits::OutOfMemory),
}

/// A rate as people write it.
fn shown(rate: f64) -> String {
    if rate >= 0.001 { format!("{rate}") } else { format!("{rate:e}") }
}

/// Why no rate below `nearest` can be had, where every kind has this reason.
fn cause(asked: f64, nearest: f64, keys: u64) -> &'static str {
    /// 2^59: some kinds cannot use all 64 bits of a digest.
    const NEARLY_ALL: f64 = (1_u64 << 59) as f64;
    if asked < nearest && nearest * NEARLY_ALL <= keys as f64 {
        " (digests have 64 bits)"
    } else {
        ""
    }
}
