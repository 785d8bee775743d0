//! What a caller asks of a filter: the words of the command line as keyword arguments.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use tamis::{AnyParams, Goal, HashId, Hasher, Kind, Minimise, Operation, Plan, Size};

use crate::errors::{Error, Refused};

/// The rate where nothing else is said, as on the command line.
const DEFAULT_RATE: f64 = 0.01;

/// The arguments that decide what a filter is like.
pub(crate) struct Wish<'py> {
    pub(crate) rate: Option<f64>,
    pub(crate) bits_per_key: Option<f64>,
    pub(crate) memory: Option<u64>,
    pub(crate) kind: &'py str,
    pub(crate) ops: Option<Bound<'py, PyAny>>,
    pub(crate) params: Option<Bound<'py, PyDict>>,
    pub(crate) minimise: Option<&'py str>,
}

/// How a key is hashed.
pub(crate) fn hasher(hash: &str, seed: u128) -> PyResult<Hasher> {
    let id = HashId::ALL.iter().find(|id| id.name() == hash).ok_or_else(|| {
        let all: Vec<&str> = HashId::ALL.iter().map(|id| id.name()).collect();
        let all = all.join(", ");
        PyValueError::new_err(format!("hash: {hash:?} is unknown; choose one of {all}"))
    })?;
    Hasher::from_parts(*id, seed).ok_or_else(|| {
        PyValueError::new_err(format!(
            "seed: {hash} takes 64 bits; use a smaller seed, or hash=\"sip13\""
        ))
    })
}

impl Wish<'_> {
    fn size(&self) -> PyResult<Size> {
        match (self.rate, self.bits_per_key, self.memory) {
            (rate, None, None) => Ok(Size::Rate(rate.unwrap_or(DEFAULT_RATE))),
            (None, Some(bits), None) => Ok(Size::BitsPerKey(bits)),
            (None, None, Some(bytes)) => Ok(Size::Memory(bytes)),
            _ => Err(PyValueError::new_err("give one of rate, bits_per_key and memory")),
        }
    }

    /// The kind that is named; `None` to choose the best.
    fn kind(&self) -> PyResult<Option<Kind>> {
        match self.kind {
            "auto" => Ok(None),
            name => Kind::from_name(name).map(Some).ok_or_else(|| {
                let all: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
                let all = all.join(", ");
                PyValueError::new_err(format!(
                    "kind: {name:?} is unknown; choose auto or one of {all}"
                ))
            }),
        }
    }

    /// What the filter must be able to do. Where nothing is said it must take keys, as a set
    /// does, unless a kind is named.
    fn needs(&self) -> PyResult<Vec<Operation>> {
        match &self.ops {
            None if self.kind()?.is_some() => Ok(Vec::new()),
            None => Ok(vec![Operation::Insert]),
            Some(ops) if ops.is_instance_of::<PyString>() => {
                Err(PyTypeError::new_err("ops: give a list, such as [\"insert\", \"remove\"]"))
            }
            Some(ops) => {
                ops.try_iter()?.map(|name| operation(&name?.extract::<String>()?)).collect()
            }
        }
    }

    pub(crate) fn goal(&self, keys: u64) -> PyResult<Goal> {
        let mut goal = Goal::sized(keys, self.size()?).needs(self.needs()?);
        if let Some(params) = &self.params {
            let params: Vec<(String, u64)> = params
                .iter()
                .map(|(name, value)| Ok((name.extract()?, value.extract()?)))
                .collect::<PyResult<_>>()?;
            goal = goal.params(params);
        }
        if let Some(name) = self.minimise {
            let known = Minimise::ALL.into_iter().find(|minimise| minimise.name() == name);
            let known = known.ok_or_else(|| {
                let all = Minimise::ALL.map(Minimise::name).join(", ");
                PyValueError::new_err(format!("minimise: {name:?} is unknown; choose from {all}"))
            })?;
            goal = goal.minimise(known);
        }
        Ok(goal)
    }

    /// The plans that meet the goal, best first; one where a kind is named.
    pub(crate) fn plans(&self, py: Python<'_>, keys: u64) -> PyResult<Vec<Plan>> {
        let (goal, kind) = (self.goal(keys)?, self.kind()?);
        let plans = py.detach(|| match kind {
            Some(kind) => Plan::of(kind, &goal).map(|plan| vec![plan]),
            None => tamis::choose(&goal),
        });
        plans.map_err(Refused::refused)
    }

    /// The params of the best plan.
    pub(crate) fn params(&self, py: Python<'_>, keys: u64) -> PyResult<AnyParams> {
        let best = self.plans(py, keys)?.into_iter().next();
        best.map(|plan| plan.params).ok_or_else(|| Error::new_err("no filter meets the goal"))
    }
}

fn operation(text: &str) -> PyResult<Operation> {
    if let Some(bits) = text.strip_prefix("value=") {
        let bits = bits.parse().ok().filter(|bits| (1..=32).contains(bits));
        return bits.map(Operation::Values).ok_or_else(|| {
            PyValueError::new_err("ops: a value has 1 to 32 bits, such as value=8")
        });
    }
    let plain =
        [Operation::Insert, Operation::Remove, Operation::Count, Operation::Merge, Operation::Grow];
    plain.into_iter().find(|operation| operation.name() == text).ok_or_else(|| {
        PyValueError::new_err(format!(
            "ops: {text:?} is unknown; choose from insert, remove, count, merge, grow and value=BITS"
        ))
    })
}

/// How many keys to plan for, if that is what `keys` says; `None` if it holds the keys.
pub(crate) fn count(keys: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    if keys.is_instance_of::<PyBool>() || keys.is_instance_of::<PyFloat>() {
        return Err(PyTypeError::new_err("keys: give a number of keys as an int, or the keys"));
    }
    if !keys.is_instance_of::<PyInt>() {
        return Ok(None);
    }
    keys.extract()
        .map(Some)
        .map_err(|_| PyValueError::new_err("keys: a number of keys lies from 0 to 2^64 - 1"))
}
