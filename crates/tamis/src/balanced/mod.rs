//! Balanced Bloom filters.

pub mod bound;
pub mod model;
