//! What all kinds have in common: names of kinds, goals, predictions, labels, params and errors.

mod at_most;
mod budget;
mod errors;
mod goal;
mod kind;
mod label;
mod lines;
mod params;
mod plan_error;
mod prediction;
mod proportion;
mod reading;

pub use at_most::{AtMost, Limited};
pub(crate) use budget::Budget;
pub use errors::{
    Absent, BuildError, Full, Invalid, MergeError, Mismatch, ResizeError, UpdateError,
};
pub use goal::{Goal, Minimise, Operation, Size};
pub use kind::Kind;
pub use label::Label;
pub(crate) use lines::{Lines, explain};
pub use params::{InvalidParam, Params};
pub(crate) use params::{as_stored, narrow, params, require};
pub use plan_error::PlanError;
pub use prediction::{Bytes, Prediction, Traffic};
pub(crate) use prediction::{digest_floor, per_key};
pub(crate) use proportion::{fits, in_proportion};
pub use reading::{Limits, WireError};
