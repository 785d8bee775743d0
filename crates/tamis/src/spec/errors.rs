//! What can go wrong with a filter in memory.

use alloc::format;
use alloc::string::String;

use super::{InvalidParam, Params, PlanError};
use crate::bits::OutOfMemory;
use crate::digest::Hasher;

/// The filter cannot take the key, and is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the filter is full at {keys} keys; build a larger one or allow it to grow")]
#[non_exhaustive]
pub struct Full {
    /// Keys in the filter.
    pub keys: u64,
    /// How many keys of a batch went in before this one.
    pub inserted: u64,
}

/// The key to remove is not in the filter, which has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key is not in the filter")]
pub struct Absent;

/// The value of a key was not changed; the filter is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The key is not in the filter with the old value.
    #[error(transparent)]
    Absent(#[from] Absent),
    /// There is no memory for the new value.
    #[error(transparent)]
    Full(#[from] Full),
}

/// Two filters cannot be combined. Neither has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the filters differ in {field}: {left} and {right}")]
#[non_exhaustive]
pub struct Mismatch {
    /// The header field or param that differs.
    pub field: &'static str,
    /// Its value in the filter that was to change.
    pub left: String,
    /// Its value in the other filter.
    pub right: String,
}

impl Mismatch {
    /// `Ok` if both are equal, otherwise the error that names `field`.
    pub(crate) fn check<T: PartialEq + core::fmt::Display + ?Sized>(
        field: &'static str,
        left: &T,
        right: &T,
    ) -> Result<(), Self> {
        if left == right {
            return Ok(());
        }
        Err(Self { field, left: format!("{left}"), right: format!("{right}") })
    }

    /// `Ok` if all params are equal, otherwise the error that names the first one that differs.
    pub(crate) fn check_params<P: Params>(left: &P, right: &P) -> Result<(), Self> {
        let values = left.values().into_iter().zip(right.values());
        P::NAMES
            .iter()
            .zip(values)
            .try_for_each(|(name, (left, right))| Self::check(name, &left, &right))
    }

    /// `Ok` if both hashers are equal.
    pub(crate) fn check_hashers(left: Hasher, right: Hasher) -> Result<(), Self> {
        Self::check("hash", left.id().name(), right.id().name())?;
        Self::check("seed", &left.seed(), &right.seed())
    }
}

/// Why filters cannot be merged. Neither has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// They differ in something that must agree.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// There is not enough memory for the merged filter.
    #[error("there is not enough memory for the merged filter")]
    OutOfMemory,
    /// Filters of this kind are built once from all keys.
    #[error("{0} filters are built once from all keys; build one from the keys of both")]
    BuiltOnce(&'static str),
}

impl MergeError {
    /// The header field or param that differs; `None` if the reason is another.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::Mismatch(mismatch) => Some(mismatch.field),
            _ => None,
        }
    }
}

/// Why a filter cannot be laid out anew. It has not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResizeError {
    /// Filters of this kind keep the layout that they were built with.
    #[error("{0} filters cannot be laid out anew; build one from the keys")]
    Fixed(&'static str),
    /// There is no such layout.
    #[error(transparent)]
    Params(#[from] InvalidParam),
    /// There is not enough memory.
    #[error(transparent)]
    Full(#[from] Full),
}

/// A structure breaks one of its own invariants, so its bytes were not made by this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid content: {0}")]
pub struct Invalid(pub &'static str);

/// Why a filter was not built from its keys.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No params meet the goal.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no memory for it.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// It took no more keys.
    #[error(transparent)]
    Full(#[from] Full),
}
