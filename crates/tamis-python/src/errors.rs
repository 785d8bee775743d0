//! The library's errors as Python's exceptions, in the library's words.

use std::io;

use pyo3::create_exception;
use pyo3::exceptions::{
    PyKeyError, PyMemoryError, PyOSError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use tamis::{
    Absent, BuildError, DeltaError, Full, Invalid, Kind, MergeError, OutOfMemory, PlanError,
    ResizeError, WireError,
};

create_exception!(tamis, Error, PyValueError, "What this package refuses.");
create_exception!(tamis, GoalError, Error, "No filter meets the goal; the text says what would.");
create_exception!(
    tamis,
    FormatError,
    Error,
    "Bytes that are no filter or no delta; the text names the field."
);
create_exception!(
    tamis,
    MismatchError,
    Error,
    "Two filters, or a filter and a delta, do not belong together."
);
create_exception!(tamis, FullError, Error, "The filter takes no more keys.");
create_exception!(
    tamis,
    UnsupportedError,
    Error,
    "The kind of this filter cannot do it; the text names kinds that can."
);

/// An error of the library becomes an exception.
pub(crate) trait Refused {
    fn refused(self) -> PyErr;
}

macro_rules! refused {
    ($($error:ty => $exception:ty),* $(,)?) => {$(
        impl Refused for $error {
            fn refused(self) -> PyErr {
                <$exception>::new_err(self.to_string())
            }
        }
    )*};
}
refused! {
    WireError => FormatError,
    Invalid => FormatError,
    DeltaError => MismatchError,
    Full => FullError,
    Absent => PyKeyError,
    OutOfMemory => PyMemoryError,
    ResizeError => UnsupportedError,
}

impl Refused for PlanError {
    fn refused(self) -> PyErr {
        match self {
            Self::OutOfMemory(error) => error.refused(),
            other => GoalError::new_err(other.to_string()),
        }
    }
}

impl Refused for BuildError {
    fn refused(self) -> PyErr {
        match self {
            Self::Plan(error) => error.refused(),
            Self::OutOfMemory(error) => error.refused(),
            Self::Full(error) => error.refused(),
            other => Error::new_err(other.to_string()),
        }
    }
}

impl Refused for MergeError {
    fn refused(self) -> PyErr {
        match self {
            Self::OutOfMemory => PyMemoryError::new_err(self.to_string()),
            Self::BuiltOnce(_) => UnsupportedError::new_err(self.to_string()),
            other => MismatchError::new_err(other.to_string()),
        }
    }
}

/// The kind cannot do it: which kinds can.
pub(crate) fn cannot(kind: Kind, what: &str, can: impl Fn(Kind) -> bool) -> PyErr {
    let able: Vec<&str> =
        Kind::ALL.iter().copied().filter(|&kind| can(kind)).map(Kind::name).collect();
    let able = able.join(", ");
    UnsupportedError::new_err(format!(
        "{} filters cannot {what}; kinds that can: {able}",
        kind.name()
    ))
}

/// A batch that has no keys in it.
pub(crate) fn bad_batch(what: &str) -> PyErr {
    PyTypeError::new_err(format!("this is no batch of keys: {what}"))
}

/// A filter that `close` was called on.
pub(crate) fn closed() -> PyErr {
    Error::new_err("the filter is closed; open it again")
}

/// A thread ended in the middle of a change.
pub(crate) fn broken() -> PyErr {
    PyRuntimeError::new_err("a change of this filter ended in the middle; build or load it again")
}

/// A file that could not be read or written.
pub(crate) fn on_file(error: &io::Error, path: &std::path::Path) -> PyErr {
    let text = format!("{}: {error}", path.display());
    match error.raw_os_error() {
        // Python chooses the exception that belongs to the number, such as FileNotFoundError.
        Some(code) => PyOSError::new_err((
            code,
            io::Error::from_raw_os_error(code).to_string(),
            path.to_owned(),
        )),
        None => PyOSError::new_err(text),
    }
}
