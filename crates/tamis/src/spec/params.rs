//! The integers that fix a layout.

use alloc::vec::Vec;

/// The integers that fix the layout of a filter, validated: exactly what the header stores.
pub trait Params: Sized {
    /// The names of the params, in stored order.
    const NAMES: &'static [&'static str];

    /// The values, in stored order.
    fn values(&self) -> Vec<u64>;

    /// The params with these values, in stored order. There must be one value for each name, and
    /// every value is checked.
    fn from_values(values: &[u64]) -> Result<Self, InvalidParam>;
}

/// `values` as an array of `N`, the number of params of a kind. This is the one place where their
/// number is checked.
pub(crate) fn as_stored<const N: usize>(values: &[u64]) -> Result<[u64; N], InvalidParam> {
    let expected = "as many values as the kind has params";
    let refused = InvalidParam { name: "params", value: values.len() as u64, expected };
    values.try_into().map_err(|_| refused)
}

/// A stored value as the type of its field. A value that does not fit becomes one that no check
/// accepts.
pub(crate) fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// `Ok` if `fits`, otherwise the error that the param `name` has the value `value` and not what is
/// `expected`.
pub(crate) fn require(
    fits: bool,
    name: &'static str,
    value: impl Into<u64>,
    expected: &'static str,
) -> Result<(), InvalidParam> {
    if fits { Ok(()) } else { Err(InvalidParam { name, value: value.into(), expected }) }
}

/// A param has a value with which no filter can be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parameter {name} = {value}: {expected}")]
#[non_exhaustive]
pub struct InvalidParam {
    /// The name of the param.
    pub name: &'static str,
    /// The value given.
    pub value: u64,
    /// What would be accepted.
    pub expected: &'static str,
}
