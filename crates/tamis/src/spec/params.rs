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

/// Defines params that are integers and nothing else: their names, a method for each, and how they
/// are stored. The type has a `new` of its own, which takes all of them in order and checks them.
macro_rules! params {
    ($(#[$about:meta])* pub struct $name:ident {
        $($(#[$doc:meta])* $vis:vis $param:ident: $type:ident,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($param: $type,)*
        }

        impl $name {
            $($(#[$doc])* $vis fn $param(&self) -> $type {
                self.$param
            })*
        }

        impl crate::spec::Params for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($param)),*];

            fn values(&self) -> alloc::vec::Vec<u64> {
                alloc::vec![$(self.$param.into()),*]
            }

            fn from_values(values: &[u64]) -> Result<Self, crate::spec::InvalidParam> {
                let [$($param),*] = crate::spec::as_stored(values)?;
                // A value that does not fit becomes one that no check accepts.
                Self::new($($type::try_from($param).unwrap_or($type::MAX)),*)
            }
        }
    };
}
pub(crate) use params;

/// `values` as an array of `N`, the number of params of a kind. This is the one place where their
/// number is checked.
pub(crate) fn as_stored<const N: usize>(values: &[u64]) -> Result<[u64; N], InvalidParam> {
    let expected = "as many as the kind has";
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
#[error("param {name} must be {expected}, not {value}")]
#[non_exhaustive]
pub struct InvalidParam {
    /// The name of the param.
    pub name: &'static str,
    /// The value given.
    pub value: u64,
    /// What would be accepted.
    pub expected: &'static str,
}
