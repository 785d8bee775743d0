//! `tamis.Filter` as a whole: merged, copied, laid out anew, described, and as bytes.

use std::fs::File;
use std::path::{Path, PathBuf};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};
use tamis::wire::ReadSource;
use tamis::{AnyFilter, Delta, Effort, Encoded, Filter as _, Limits};

use crate::errors::{Refused, on_file};
use crate::file;
use crate::filter::Filter;
use crate::foreign;
use crate::shared::Shared;

/// The memory that reading may take where no limit is given, as a multiple of the bytes: those
/// that are packed are in memory twice while they are laid out.
const LARGER: u64 = 3;

/// What reading `bytes` bytes may take. A few bytes that claim to be a large filter must stay
/// below the library's default.
fn limits(bytes: u64, limit: Option<u64>) -> Limits {
    let default = || Limits::default().memory.max(bytes.saturating_mul(LARGER));
    Limits::memory(limit.unwrap_or_else(default))
}

/// Calls `read` with the bytes of an object, without the interpreter's lock where nobody can
/// change them.
fn with_bytes<R: Send>(
    data: &Bound<'_, PyAny>,
    read: impl FnOnce(&[u8]) -> PyResult<R> + Send,
) -> PyResult<R> {
    let py = data.py();
    if let Ok(bytes) = data.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        return py.detach(|| read(bytes));
    }
    let buffer = PyUntypedBuffer::get(data)
        .map_err(|_| PyTypeError::new_err("give bytes or something like bytes"))?;
    let bytes = foreign::buffer_bytes(py, &buffer);
    read(bytes.ok_or_else(|| PyTypeError::new_err("the bytes must lie in one piece"))?)
}

impl Filter {
    /// What `encode` makes of the filter.
    fn bytes<'py>(
        &self,
        py: Python<'py>,
        encode: impl FnOnce(&AnyFilter) -> Encoded<'_> + Send,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.shared.ask_long(py, |filter| Ok(encode(filter).to_vec()))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

#[pymethods]
impl Filter {
    /// Adds the keys of another filter, which must agree in kind, seed and what else its kind
    /// asks for. The error names what differs, and nothing has changed then.
    ///
    /// Examples:
    ///     >>> monday = tamis.Filter(["ada"], kind="rank-indexed", rate=1e-6)
    ///     >>> tuesday = tamis.Filter(["bob"], kind="rank-indexed", rate=1e-6)
    ///     >>> monday.merge(tuesday)
    ///     >>> "bob" in monday
    ///     True
    ///     >>> monday |= tuesday
    fn merge(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        self.shared.change_with(other.py(), &other.get().shared, |mine, theirs| {
            mine.merge(theirs).map_err(Refused::refused)
        })
    }

    fn __ior__(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        self.merge(other)
    }

    fn __or__(&self, other: &Bound<'_, Self>) -> PyResult<Self> {
        let both = self.copy(other.py())?;
        both.merge(other)?;
        Ok(both)
    }

    fn __eq__(&self, other: &Bound<'_, Self>) -> PyResult<bool> {
        self.shared.ask_both(other.py(), &other.get().shared, |mine, theirs| Ok(mine == theirs))
    }

    /// A filter of its own with the same keys.
    ///
    /// Examples:
    ///     >>> one = tamis.Filter(["ada"])
    ///     >>> two = one.copy()
    ///     >>> two == one, two is one
    ///     (True, False)
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self { shared: self.shared.copy(py)? })
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copy(memo.py())
    }

    /// Makes room for twice as many keys, which are not needed. Answers do not change, but every
    /// further key raises the rate: with twice the keys it is about twice as high.
    ///
    /// Examples:
    ///     >>> seen = tamis.Filter(range(1000), kind="rank-indexed")
    ///     >>> half_full = seen.info()["fill"] / 2
    ///     >>> seen.grow()
    ///     >>> seen.info()["fill"] < half_full * 1.2, 7 in seen
    ///     (True, True)
    fn grow(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.change_long(py, |filter| filter.grow().map_err(Refused::refused))
    }

    /// Lays the filter out anew for half as many keys. The keys are not needed.
    ///
    /// Examples:
    ///     >>> seen = tamis.Filter(range(1000), kind="rank-indexed")
    ///     >>> before = seen.content_id()
    ///     >>> seen.grow()
    ///     >>> seen.shrink()
    ///     >>> seen.content_id() == before
    ///     True
    fn shrink(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.change_long(py, |filter| filter.shrink().map_err(Refused::refused))
    }

    /// Removes all keys.
    ///
    /// Examples:
    ///     >>> seen = tamis.Filter(["ada"])
    ///     >>> seen.clear()
    ///     >>> len(seen)
    ///     0
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.change_long(py, |filter| {
            filter.clear();
            Ok(())
        })
    }

    /// The share of absent keys that this filter, as it is now, answers yes for.
    ///
    /// Examples:
    ///     >>> tamis.Filter(range(1000), rate=0.01).rate < 0.02
    ///     True
    #[getter]
    fn rate(&self, py: Python<'_>) -> PyResult<f64> {
        self.shared.ask_long(py, |filter| Ok(filter.rate()))
    }

    /// The name of the kind.
    ///
    /// Examples:
    ///     >>> tamis.Filter(keys=10, kind="blocked").kind
    ///     'blocked'
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.shared.ask(py, |filter| Ok(filter.kind().name()))
    }

    /// How many keys the filter was planned for; 0 if that was not said.
    ///
    /// Examples:
    ///     >>> tamis.Filter(keys=10).capacity
    ///     10
    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<u64> {
        self.shared.ask(py, |filter| Ok(filter.capacity()))
    }

    /// The seed of the hash function.
    ///
    /// Examples:
    ///     >>> tamis.Filter(keys=10, seed=7).seed
    ///     7
    #[getter]
    fn seed(&self) -> u128 {
        self.shared.hasher().seed()
    }

    /// What the filter is and how full it is, as `tamis info --json` says it.
    ///
    /// Examples:
    ///     >>> tamis.Filter(["ada"], kind="bloom").info()["keys"]
    ///     1
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (facts, params) = self.shared.ask_long(py, |filter| {
            // As in predictions: an empty filter is measured as if it held one key.
            let per_key = |bits: u64| bits as f64 / filter.keys().max(1) as f64;
            let wire = filter.encode().len();
            Ok((
                (
                    filter.kind().name(),
                    (filter.keys(), filter.capacity(), filter.content_id().to_string()),
                    (filter.rate(), filter.fill(), filter.overflow()),
                    (per_key(filter.footprint()), wire, per_key(wire * 8)),
                    filter.is_crowded(),
                ),
                filter.params().named(),
            ))
        })?;
        let (kind, (keys, capacity, id), (rate, fill, overflow), (bits, wire, wire_bits), crowded) =
            facts;
        let info = PyDict::new(py);
        let named = PyDict::new(py);
        for (name, value) in params {
            named.set_item(name, value)?;
        }
        info.set_item("kind", kind)?;
        info.set_item("params", named)?;
        info.set_item("keys", keys)?;
        info.set_item("capacity", capacity)?;
        info.set_item("content_id", id)?;
        info.set_item("hash", self.shared.hasher().id().name())?;
        info.set_item("seed", self.seed())?;
        info.set_item("predicted_rate", rate)?;
        info.set_item("fill", fill)?;
        info.set_item("overflow", overflow)?;
        info.set_item("bits_per_key", bits)?;
        info.set_item("file_bytes", wire)?;
        info.set_item("wire_bits_per_key", wire_bits)?;
        info.set_item("crowded", crowded)?;
        Ok(info)
    }

    /// A name for what the filter holds, 32 hexadecimal digits. Filters with the same id answer
    /// alike.
    ///
    /// Examples:
    ///     >>> tamis.Filter(["ada"]).content_id() == tamis.Filter(["ada"]).content_id()
    ///     True
    fn content_id(&self, py: Python<'_>) -> PyResult<String> {
        self.shared.ask_long(py, |filter| Ok(filter.content_id().to_string()))
    }

    /// Writes the filter to a file, all at once or not at all: a reader finds the old content or
    /// the new one.
    ///
    /// Examples:
    ///     >>> import os, tempfile
    ///     >>> path = os.path.join(tempfile.mkdtemp(), "seen.tamis")
    ///     >>> tamis.Filter(["ada"]).save(path)
    ///     >>> "ada" in tamis.open(path)
    ///     True
    #[allow(clippy::needless_pass_by_value, reason = "a path is made for this call")]
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.shared.ask_long(py, |filter| {
            file::replace(&path, &filter.encode()).map_err(|error| on_file(&error, &path))
        })
    }

    /// The filter as bytes, the same on every machine.
    ///
    /// Examples:
    ///     >>> data = tamis.Filter(["ada"]).to_bytes()
    ///     >>> "ada" in tamis.Filter.from_bytes(data)
    ///     True
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.bytes(py, AnyFilter::encode)
    }

    /// A filter from bytes of `to_bytes`, `pack`, a file or another program. Every byte is
    /// checked. At most `limit` bytes of memory are taken: 1 GiB or three times the length of
    /// `data`, unless you say otherwise.
    ///
    /// Examples:
    ///     >>> tamis.Filter.from_bytes(b"something else" * 9)
    ///     Traceback (most recent call last):
    ///         ...
    ///     tamis.FormatError: not a tamis file
    #[classmethod]
    #[pyo3(signature = (data, *, limit=None))]
    fn from_bytes(
        _type: &Bound<'_, PyType>,
        data: &Bound<'_, PyAny>,
        limit: Option<u64>,
    ) -> PyResult<Self> {
        from_bytes(data, limit)
    }

    /// The filter as fewer bytes, for transfer. effort="best" takes longer and makes the fewest.
    ///
    /// Examples:
    ///     >>> seen = tamis.Filter(range(1000), kind="rank-indexed")
    ///     >>> len(seen.pack()) < len(seen.to_bytes())
    ///     True
    ///     >>> tamis.Filter.from_bytes(seen.pack()) == seen
    ///     True
    #[pyo3(signature = (effort="fast"))]
    fn pack<'py>(&self, py: Python<'py>, effort: &str) -> PyResult<Bound<'py, PyBytes>> {
        let effort = match effort {
            "fast" => Effort::Fast,
            "best" => Effort::Best,
            _ => {
                let text = format!("effort: {effort:?} is unknown; choose \"fast\" or \"best\"");
                return Err(PyValueError::new_err(text));
            }
        };
        self.bytes(py, |filter| filter.pack(effort))
    }

    /// The bytes of a delta that turns this filter into `new`, for a peer that has this one.
    ///
    /// Examples:
    ///     >>> old = tamis.Filter(["ada"], kind="rank-indexed")
    ///     >>> new = old.copy()
    ///     >>> new.add("bob")
    ///     True
    ///     >>> delta = old.diff(new)
    ///     >>> old.patch(delta)
    ///     >>> old == new
    ///     True
    fn diff<'py>(&self, new: &Bound<'py, Self>) -> PyResult<Bound<'py, PyBytes>> {
        let py = new.py();
        let bytes = self.shared.ask_both(py, &new.get().shared, |old, new| {
            Ok(Delta::between(old, new).map_err(Refused::refused)?.encode().to_vec())
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Applies a delta of `diff`. Any filter but the one that it starts from is refused, and so
    /// is a damaged delta; nothing has changed then.
    ///
    /// Examples:
    ///     >>> old = tamis.Filter(["ada"], kind="bloom")
    ///     >>> old.patch(old.diff(old))
    #[pyo3(signature = (delta, *, limit=None))]
    fn patch(&self, delta: &Bound<'_, PyAny>, limit: Option<u64>) -> PyResult<()> {
        let read = with_bytes(delta, |bytes| {
            Delta::decode(bytes, limits(bytes.len() as u64, limit)).map_err(Refused::refused)
        })?;
        self.shared.change_long(delta.py(), |filter| read.apply(filter).map_err(Refused::refused))
    }

    /// Lets the memory of the filter go, and the file that it was opened from. Whatever is asked
    /// of it later is an error.
    ///
    /// Examples:
    ///     >>> seen = tamis.Filter(["ada"])
    ///     >>> seen.close()
    ///     >>> "ada" in seen
    ///     Traceback (most recent call last):
    ///         ...
    ///     tamis.Error: the filter is closed; open it again
    fn close(&self, py: Python<'_>) {
        self.shared.close(py);
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_details))]
    fn __exit__(&self, py: Python<'_>, _details: &Bound<'_, PyAny>) {
        self.shared.close(py);
    }

    /// A pickle holds the bytes of the filter: out of band, if the pickler asks for that.
    fn __reduce_ex__<'py>(
        &self,
        py: Python<'py>,
        protocol: i32,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        let mut bytes = self.to_bytes(py)?.into_any();
        if protocol >= 5 {
            bytes = py.import("pickle")?.getattr("PickleBuffer")?.call1((bytes,))?;
        }
        Ok((py.import("tamis")?.getattr("_unpickle")?, (bytes,)))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let facts = |filter: &AnyFilter| (filter.kind().name(), filter.keys(), filter.capacity());
        match self.shared.ask(py, |filter| Ok(facts(filter))) {
            Ok((kind, keys, capacity)) => {
                format!("<tamis.Filter: {kind}, {keys} of {capacity} keys>")
            }
            Err(_) => "<tamis.Filter: closed>".to_owned(),
        }
    }
}

/// A filter from bytes, every byte checked.
pub(crate) fn from_bytes(data: &Bound<'_, PyAny>, limit: Option<u64>) -> PyResult<Filter> {
    let filter = with_bytes(data, |bytes| {
        AnyFilter::decode(bytes, limits(bytes.len() as u64, limit)).map_err(Refused::refused)
    })?;
    Ok(Filter::from_any(filter))
}

/// A filter from a file.
pub(crate) fn open(
    py: Python<'_>,
    path: &Path,
    mapped: bool,
    limit: Option<u64>,
) -> PyResult<Filter> {
    py.detach(|| {
        let failed = |error: std::io::Error| on_file(&error, path);
        let file = File::open(path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        if !facts.is_file() {
            let text = format!(
                "{}: open needs a regular file; read others with from_bytes",
                path.display()
            );
            return Err(PyValueError::new_err(text));
        }
        let named = |error: tamis::WireError| {
            crate::errors::FormatError::new_err(format!("{}: {error}", path.display()))
        };
        if facts.len() == 0 {
            return Err(named(tamis::WireError::Magic));
        }
        if mapped {
            let bytes = foreign::map(&file).map_err(failed)?;
            let filter = AnyFilter::open(&bytes).map_err(named)?;
            return Ok(Filter { shared: Shared::new(filter, false) });
        }
        let mut source = ReadSource::new(file, facts.len());
        let filter = AnyFilter::read(&mut source, limits(facts.len(), limit)).map_err(named)?;
        Ok(Filter::from_any(filter))
    })
}
