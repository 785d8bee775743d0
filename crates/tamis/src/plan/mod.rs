//! From a goal to a plan: each kind's model bids with the integer params that it would build, every bit
//! counted, and the choice explains itself. Pure, and the same on every machine.

mod choose;
mod explain;
mod limits;
pub(crate) mod message;
mod traffic;

pub use choose::{Plan, choose};
pub(crate) use limits::in_proportion;
