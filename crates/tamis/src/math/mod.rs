//! The numerical ground under the filter models: special functions, exact tails, root
//! finding, ordinary differential equations and the law of occupied bins.
//!
//! Every transcendental goes through `libm`, so results agree bit for bit on every platform, and
//! no function panics: an argument outside the stated domain gives NaN or a documented value.

pub mod gamma;
mod legendre;
pub mod occupancy;
pub mod ode;
mod saddle;
pub mod solve;
pub mod tail;
