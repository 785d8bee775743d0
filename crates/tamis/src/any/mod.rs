//! A filter of any kind, and its layout: what lies outside this library knows only these.

mod filter;
mod params;

pub use filter::AnyFilter;
pub use params::AnyParams;

use crate::change::Shape;
use crate::spec::{Kind, Operation};
use crate::stored::Stored;

/// Defines the enums and the macros that go through them.
macro_rules! hold {
    ($dollar:tt $($id:literal $kind:ident $name:literal $type:ty,)*) => {
        /// The same expression for whichever kind is inside: `each!(AnyFilter: self, F, filter => ...)`, with `F` for its type.
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

        /// The same expression for the type of whichever kind this is: `by_kind!(kind, F => ...)`.
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
            fn hold(self) -> AnyFilter {
                AnyFilter::$kind(self)
            }

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

/// A kind that is in the list.
pub(crate) trait Listed: Stored {
    /// The filter as one of any kind.
    fn hold(self) -> AnyFilter;

    /// The layout as one of any kind.
    fn hold_params(params: Self::Params) -> AnyParams;

    /// The filter, if it is of this kind.
    fn inside(any: &AnyFilter) -> Option<&Self>;
}

impl Kind {
    /// Whether filters of this kind can do this.
    pub fn can(self, operation: Operation) -> bool {
        by_kind!(self, F => match operation {
            Operation::Values(_) => F::VALUES.is_some(),
            _ => F::CAN.contains(&operation),
        })
    }

    /// Whether filters of this kind take keys one by one; others are built once from all their keys.
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

    /// Why one would take it, in a sentence.
    pub fn reason(self) -> &'static str {
        by_kind!(self, F => F::REASON)
    }

    /// The param that says how many bits of value a key has, if it can have any.
    pub(crate) fn value_param(self) -> Option<&'static str> {
        by_kind!(self, F => F::VALUES)
    }

    /// What promises of memory and of blocks must leave to what the model does not know.
    pub(crate) fn margins(self) -> [f64; 2] {
        by_kind!(self, F => F::MARGINS)
    }

    /// Bits of each position.
    pub(crate) fn position_bits(self) -> f64 {
        by_kind!(self, F => F::POSITION_BITS)
    }
}

/// What the changes of a kind with these content params are made of; `None` if there is no such filter.
pub(crate) fn shape(kind: Kind, content: &[u64]) -> Option<Shape> {
    by_kind!(kind, F => F::shape(content))
}
