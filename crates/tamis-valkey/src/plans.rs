//! Plans that were made: a plan takes milliseconds, and servers make many filters alike.

use std::collections::VecDeque;
use std::sync::Mutex;

use tamis::{Kind, PlanError};

use crate::scaling::Layer;

/// How many plans are kept.
const KEPT: usize = 64;

/// What was asked for, and what came of it: layout and bytes.
type Plan = ((Kind, u64, u64), (Layer, u64));

static PLANS: Mutex<VecDeque<Plan>> = Mutex::new(VecDeque::new());

/// The plan for this kind, rate and capacity: made now, or before.
pub(crate) fn recall(
    kind: Kind,
    rate: f64,
    capacity: u64,
    plan: impl FnOnce() -> Result<(Layer, u64), PlanError>,
) -> Result<(Layer, u64), PlanError> {
    let asked = (kind, rate.to_bits(), capacity);
    // Only one thread runs commands. If planning panicked, the plans kept would still be right.
    let mut plans = PLANS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(&(_, planned)) = plans.iter().find(|(known, _)| *known == asked) {
        return Ok(planned);
    }
    let planned = plan()?;
    plans.truncate(KEPT - 1);
    plans.push_front((asked, planned));
    Ok(planned)
}
