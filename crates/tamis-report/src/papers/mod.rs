//! What the papers say and no filter needs: formulas of their bounds, figures and comparisons, and
//! the structures that they only compare with.
//!
//! The library has the formulas that filters are planned with. Those here are for the report, the
//! tests and the bench. They use those of the library, through `tamis::internals`.

pub mod balanced;
pub mod compressed;
pub mod dleft;
pub mod fast_tables;
pub mod occupancy;
pub mod rank_indexed;
pub mod solve;
pub mod statistics;
