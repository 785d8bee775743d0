//! What the papers say beside what the library is made of: formulas of their bounds, figures and
//! comparisons, and the structures that they only compare with.
//!
//! The library has the formulas that plan filters; those here are for the report, the tests and
//! the bench. They are built on the library's, which they reach through `tamis::internals`.

pub mod balanced;
pub mod compressed;
pub mod dleft;
pub mod fast_tables;
pub mod rank_indexed;
pub mod statistics;
