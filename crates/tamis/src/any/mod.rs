//! A filter of any kind, and its params. Other crates that handle all kinds need only these.

mod filter;
mod params;

pub use filter::AnyFilter;
pub use params::AnyParams;

use crate::change::Shape;
use crate::spec::{Kind, Operation};
use crate::stored::Stored;

/// Defines the macros that go through all kinds, and links every type to its variants.
macro_rules! hold {
    ($dollar:tt $($id:literal $kind:ident $name:literal $type:ty,)*) => {
        /// Evaluates one expression for the kind inside, with `F` for the type of the filter:
        /// `each!(AnyFilter: self, F, filter => ...)`.
        macro_rules! each {
            ($dollar any:ident: $dollar value:expr, $dollar F:ident, $dollar inner:ident => $dollar then:expr) => {
                match $dollar value {
                    $($dollar any::$kind($dollar inner) => {
                        #[allow(dead_code, reason = "not every expression needs the type")]
                        type $dollar F = $type;
                        $dollar then
                    })*
                }
            };
        }

        /// Evaluates one expression for a kind, with `F` for the type of its filters:
        /// `by_kind!(kind, F => ...)`.
        macro_rules! by_kind {
            ($dollar value:expr, $dollar F:ident => $dollar then:expr) => {
                match $dollar value {
                    $(Kind::$kind => {
                        type $dollar F = $type;
                        $dollar then
                    })*
                }
            };
        }
        pub(crate) use {by_kind, each};

        $(impl Listed for $type {
            fn hold_params(params: Self::Params) -> AnyParams {
                AnyParams::$kind(params)
            }

            fn inside(any: &AnyFilter) -> Option<&Self> {
                if let AnyFilter::$kind(filter) = any { Some(filter) } else { None }
            }
        }

        impl From<$type> for AnyFilter {
            fn from(filter: $type) -> Self {
                Self::$kind(filter)
            }
        })*
    };
}
kinds!(hold $);

/// A filter type that is in the list of kinds.
pub(crate) trait Listed: Stored + Into<AnyFilter> {
    /// These params as [`AnyParams`].
    fn hold_params(params: Self::Params) -> AnyParams;

    /// The filter inside `any`; `None` if it is of another kind.
    fn inside(any: &AnyFilter) -> Option<&Self>;
}

impl Kind {
    /// Whether filters of this kind can do `operation`.
    pub fn can(self, operation: Operation) -> bool {
        by_kind!(self, F => match operation {
            Operation::Values(_) => F::VALUES.is_some(),
            _ => F::CAN.contains(&operation),
        })
    }

    /// Whether filters of this kind take keys one by one. The others are built once from all
    /// their keys.
    pub fn can_insert(self) -> bool {
        self.can(Operation::Insert)
    }

    /// Whether keys can be removed from filters of this kind.
    pub fn can_remove(self) -> bool {
        self.can(Operation::Remove)
    }

    /// Whether filters of this kind know how often a key is in.
    pub fn can_count(self) -> bool {
        self.can(Operation::Count)
    }

    /// Why one would take this kind, in a sentence.
    pub fn reason(self) -> &'static str {
        by_kind!(self, F => F::REASON)
    }

    /// The name of the param that fixes how many bits of value each key has; `None` if keys
    /// cannot have values.
    pub(crate) fn value_param(self) -> Option<&'static str> {
        by_kind!(self, F => F::VALUES)
    }

    /// Factors for predicted memory and predicted blocks; see [`Stored::MARGINS`].
    pub(crate) fn margins(self) -> [f64; 2] {
        by_kind!(self, F => F::MARGINS)
    }

    /// Bits of each position; see [`Stored::POSITION_BITS`].
    pub(crate) fn position_bits(self) -> f64 {
        by_kind!(self, F => F::POSITION_BITS)
    }
}

/// What changes of filters of `kind` are made of, for content params with the values `content`;
/// `None` if the kind has no such content params, or no deltas.
pub(crate) fn shape(kind: Kind, content: &[u64]) -> Option<Shape> {
    by_kind!(kind, F => F::shape(content))
}
