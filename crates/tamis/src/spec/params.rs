//! The integers that fix a layout.

use alloc::vec::Vec;

/// The validated integers that fix a filter's layout: exactly what the header stores.
pub trait Params: Sized {
    /// Their names, in stored order.
    const NAMES: &'static [&'static str];

    /// Their values, in stored order.
    fn values(&self) -> Vec<u64>;

    /// From as many values as there are names, in stored order; every one is checked.
    fn from_values(values: &[u64]) -> Result<Self, InvalidParam>;
}

/// As many values as a kind has params; the one place where their number is checked.
pub(crate) fn as_stored<const N: usize>(values: &[u64]) -> Result<[u64; N], InvalidParam> {
    let expected = "as many values as the kind has params";
    let refused = InvalidParam { name: "params", value: values.len() as u64, expected };
    values.try_into().map_err(|_| refused)
}

/// A stored value as the type of its field; what does not fit becomes a value that no check accepts.
pub(crate) fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// A parameter has a value that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parameter {name} = {value}: {expected}")]
#[non_exhaustive]
pub struct InvalidParam {
    /// The parameter's name.
    pub name: &'static str,
    /// The value given.
    pub value: u64,
    /// What would be accepted.
    pub expected: &'static str,
}
