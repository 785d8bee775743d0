//! A bar for long batches, if one is asked for.

use pyo3::prelude::*;

/// The bar of `tamis._progress`, which is tqdm's if that is installed.
pub(crate) struct Progress<'py>(Option<Bound<'py, PyAny>>);

impl<'py> Progress<'py> {
    pub(crate) fn new(py: Python<'py>, shown: bool, total: Option<usize>) -> PyResult<Self> {
        if !shown {
            return Ok(Self(None));
        }
        let bar = py.import("tamis._progress")?.getattr("bar")?.call1((total,))?;
        Ok(Self(Some(bar)))
    }

    pub(crate) fn advance(&mut self, rows: usize) -> PyResult<()> {
        if let Some(bar) = &self.0 {
            bar.call_method1("update", (rows,))?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> PyResult<()> {
        if let Some(bar) = self.0 {
            bar.call_method0("close")?;
        }
        Ok(())
    }
}
