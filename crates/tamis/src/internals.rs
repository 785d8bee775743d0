//! Mathematics, models and parts, for the report, the tests and the benchmarks of this project,
//! and for `tamis-gpu`.
//!
//! This is not part of the interface: anything here may change or go in any version.
#![allow(missing_docs, reason = "what is inside has its own documentation")]

/// Modules with all that modules of the crate have: `show! { model: balanced::model }`.
macro_rules! show {
    ($($name:ident: $($path:ident)::+),*) => {
        $(pub mod $name {
            pub use crate::$($path::)+*;
        })*
    };
}

show! { address: address, bits: bits, coder: coder, math: math, permutation: permutation }

pub mod balanced {
    show! { model: balanced::model }
}

pub mod blocked_rank {
    pub use crate::blocked_rank::parts::*;
    show! { model: blocked_rank::model }
}

pub mod bloom {
    show! { model: bloom::model }
}

pub mod compressed {
    show! {
        elias_fano: compressed::elias_fano,
        model: traffic::model,
        optimise: compressed::optimise
    }
}

pub mod dleft {
    show! { model: dleft::model }
}

pub mod fast_table {
    pub use crate::fast_table::basic::Basic;
    pub use crate::fast_table::layout::Place;
    pub use crate::fast_table::lists::*;
    pub use crate::fast_table::params::*;
    pub use crate::fast_table::*;
}

pub mod partitioned {
    show! {
        assign: partitioned::assign,
        functions: partitioned::functions,
        model: partitioned::model
    }
}

pub mod rank_indexed {
    show! { model: rank_indexed::model, optimise: rank_indexed::optimise }
}

pub mod ribbon {
    show! { model: ribbon::model }
}
