//! Key streams and experiments, as functions with fixed seeds. `tamis bench` prints their results,
//! tests check them, and the report draws them.

pub mod bench;
pub mod chart;
pub mod churn;
pub mod demo;
pub mod goals;
pub mod keys;
pub mod loads;
pub mod memory;
pub mod papers;
pub mod peers;
pub mod plot;
pub mod reproduce;
pub mod show;
pub mod trials;
