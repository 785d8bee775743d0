//! The Python package `tamis`: the library's filters for Python, fed by Arrow, NumPy or any
//! iterable. `docs/python.md` is its guide.

// Macros of pyo3 make items that no other crate sees.
#![allow(unreachable_pub, missing_docs, reason = "only an interpreter loads this crate")]
#![allow(
    clippy::doc_markdown,
    clippy::doc_link_with_quotes,
    reason = "comments of items that Python sees are its docstrings"
)]

mod batch;
mod column;
mod dlpack;
mod errors;
mod file;
mod filter;
mod foreign;
mod goal;
mod gpu;
mod key;
mod parts;
mod progress;
mod shared;
mod whole;

use pyo3::prelude::*;

/// Filters for set membership. The package `tamis` is the public face of this module.
#[pymodule(gil_used = false)]
mod _tamis {
    use std::path::PathBuf;

    use pyo3::prelude::*;
    use pyo3::types::{PyDict, PyList};

    #[pymodule_export]
    use crate::errors::{
        Error, FormatError, FullError, GoalError, MismatchError, UnsupportedError,
    };
    #[pymodule_export]
    use crate::filter::Filter;
    use crate::goal::Wish;
    #[pymodule_export]
    use crate::gpu::{_give_back, DeviceError, GpuArray, GpuFilter};
    #[pymodule_export]
    use crate::parts::{_contains, _cut, _of_digests, _part_of};
    use crate::whole;

    /// A filter from a file, which stays where it is: questions read it in place (mapped=True),
    /// so that many processes share one copy. Of a filter that is read in place only the header
    /// is checked: damage behind it goes unnoticed, and answers may be wrong. mapped=False reads
    /// the whole file and checks every byte, and so does `tamis verify`.
    ///
    /// A filter that is changed gets memory of its own; the file never changes. While it is
    /// mapped nothing else may write into the file either: write a new one and rename it, as
    /// `save` does.
    ///
    /// Examples:
    ///     >>> import os, tempfile
    ///     >>> path = os.path.join(tempfile.mkdtemp(), "seen.tamis")
    ///     >>> tamis.Filter(["ada"]).save(path)
    ///     >>> with tamis.open(path) as seen:
    ///     ...     "ada" in seen
    ///     True
    #[pyfunction]
    #[pyo3(signature = (path, *, mapped=true, limit=None))]
    #[allow(clippy::needless_pass_by_value, reason = "a path is made for this call")]
    fn open(py: Python<'_>, path: PathBuf, mapped: bool, limit: Option<u64>) -> PyResult<Filter> {
        whole::open(py, &path, mapped, limit)
    }

    /// What a pickle calls: the same as `Filter.from_bytes`.
    #[pyfunction]
    fn _unpickle(data: &Bound<'_, PyAny>) -> PyResult<Filter> {
        whole::from_bytes(data, None)
    }

    /// The rows of `tamis.plan`.
    #[pyfunction]
    #[pyo3(signature = (keys, rate, kind, ops, bits_per_key, memory, params, minimise))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn _plan<'py>(
        py: Python<'py>,
        keys: u64,
        rate: Option<f64>,
        kind: &'py str,
        ops: Option<Bound<'py, PyAny>>,
        bits_per_key: Option<f64>,
        memory: Option<u64>,
        params: Option<Bound<'py, PyDict>>,
        minimise: Option<&'py str>,
    ) -> PyResult<Bound<'py, PyList>> {
        let wish = Wish { rate, bits_per_key, memory, kind, ops, params, minimise };
        let rows = PyList::empty(py);
        for plan in wish.plans(py, keys)? {
            let row = PyDict::new(py);
            let named = PyDict::new(py);
            for (name, value) in plan.params.named() {
                named.set_item(name, value)?;
            }
            row.set_item("kind", plan.params.kind().name())?;
            row.set_item("rate", plan.predicted.rate)?;
            row.set_item("bits_per_key", plan.predicted.bits_per_key)?;
            row.set_item("wire_bits_per_key", plan.predicted.wire_bits_per_key)?;
            row.set_item("blocks_per_insert", plan.predicted.blocks_per_insert)?;
            row.set_item("blocks_per_hit", plan.predicted.blocks_per_hit)?;
            row.set_item("blocks_per_miss", plan.predicted.blocks_per_miss)?;
            row.set_item("snapshot_bytes", plan.traffic.snapshot.mean)?;
            row.set_item("params", named)?;
            row.set_item("reason", plan.reason)?;
            rows.append(row)?;
        }
        Ok(rows)
    }

    /// The version of this package.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
