//! The mathematics that the models of filters need: special functions, exact tails, root finding,
//! ordinary differential equations and the distribution of occupied bins.
//!
//! Every transcendental function is that of `libm`, so that results agree bit for bit on every
//! platform. No function panics: an argument outside the stated domain gives NaN or a documented
//! value.

pub mod gamma;
mod legendre;
pub mod occupancy;
pub mod ode;
mod saddle;
pub mod solve;
pub mod tail;
