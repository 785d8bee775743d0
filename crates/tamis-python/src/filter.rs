//! `tamis.Filter`: a set of keys, as Python knows sets.

use std::ops::ControlFlow;

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict};
use tamis::{
    AnyFilter, Count as _, Digest, Filter as _, Hasher, Insert as _, Kind, Label, Operation,
};

use crate::batch::{Batch, Piece};
use crate::errors::{Refused, cannot};
use crate::goal::{self, Wish};
use crate::key;
use crate::progress::Progress;
use crate::shared::Shared;

/// Keys whose memory is fetched before the first of them is looked at.
const AHEAD: usize = 16;

/// A set of keys in a few bits each. A no of `in` is always right, as long as only keys that are
/// in were removed. A yes is wrong for a small share of absent keys, the rate.
///
/// Args:
///     keys: how many keys to plan for; or the keys themselves, to plan for them and add them.
///     rate: the share of absent keys that are answered yes, 0.01 unless another size is given.
///     kind: a name such as "blocked-rank", or "auto" (the default) for the best that can do
///         `ops`. Whether keys can be removed from that depends on `keys` and `rate`, unless
///         `ops` asks for it.
///     ops: what the filter must be able to do: "insert", "remove", "count", "merge", "grow",
///         "value=BITS". With kind="auto" it is ["insert"] unless you say otherwise; [] also
///         allows kinds that are built once from all keys.
///     bits_per_key, memory: other ways to give the size, instead of `rate`.
///     params: a dict of params to fix, such as {"hashes": 4}.
///     minimise: what matters most: "balanced", "memory", "wire" or "lookups".
///     hash: "xxh3", or "sip13" with a secret seed of 128 bits for keys that an adversary may
///         choose, or "xxh64", which Parquet has.
///     seed: filters can be merged only if their seeds are equal.
///     progress: show a bar if `keys` are many (with tqdm if it is installed).
///
/// Examples:
///     >>> import tamis
///     >>> seen = tamis.Filter(keys=1_000_000, rate=0.001)
///     >>> seen.add("https://example.org/")
///     True
///     >>> "https://example.org/" in seen
///     True
///     >>> len(seen)
///     1
///     >>> fruit = tamis.Filter(["apple", "pear"], kind="blocked-rank")
///     >>> "pear" in fruit
///     True
#[pyclass(frozen, weakref, module = "tamis")]
pub(crate) struct Filter {
    pub(crate) shared: Shared,
}

impl Filter {
    pub(crate) fn from_any(filter: AnyFilter) -> Self {
        Self { shared: Shared::new(filter, true) }
    }

    /// Planned for `digests`, and built from them.
    pub(crate) fn of_digests(
        py: Python<'_>,
        wish: &Wish<'_>,
        hasher: Hasher,
        digests: &[Digest],
    ) -> PyResult<Self> {
        let planned = digests.len() as u64;
        let params = wish.params(py, planned)?;
        let label = Label::planned(hasher, planned.max(1));
        py.detach(|| {
            if !params.kind().can_insert() {
                return params.build_from(label, digests).map_err(Refused::refused);
            }
            // As the command line does it, so that the bytes are the same.
            let mut filter = params.build(label).map_err(Refused::refused)?;
            filter.insert_many(digests).map_err(Refused::refused)?;
            Ok(filter)
        })
        .map(Self::from_any)
    }

    fn hasher(&self) -> Hasher {
        self.shared.hasher()
    }

    /// What the kind must be able to do for the operation `what`.
    fn require(&self, py: Python<'_>, what: &str, operation: Operation) -> PyResult<()> {
        self.shared.ask(py, |filter| require(filter.kind(), what, operation))
    }

    /// One answer a row, a byte each; nulls are answered no.
    pub(crate) fn answers(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        progress: bool,
        mut answer: impl FnMut(&[Digest], &mut [bool]) -> PyResult<()> + Send,
    ) -> PyResult<Vec<u8>> {
        let batch = Batch::new(self.hasher(), keys)?;
        let mut bar = Progress::new(py, progress, batch.len())?;
        let mut all = Vec::new();
        let mut answers = Vec::new();
        batch.each_piece(
            py,
            self.hasher(),
            |rows| bar.advance(rows),
            |piece| {
                answers.clear();
                answers.resize(piece.digests.len(), false);
                answer(piece.digests, &mut answers)?;
                scatter(&piece, &answers, &mut all);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        bar.finish()?;
        Ok(all)
    }
}

fn require(kind: Kind, what: &str, operation: Operation) -> PyResult<()> {
    let can = |kind: Kind| kind.can(operation);
    if can(kind) { Ok(()) } else { Err(cannot(kind, what, can)) }
}

/// Gives every row its answer.
fn scatter(piece: &Piece<'_>, answers: &[bool], all: &mut Vec<u8>) {
    let mut answers = answers.iter().map(|&answer| u8::from(answer));
    match piece.nulls {
        None => all.extend(answers),
        Some(nulls) => {
            let answer = |&null: &bool| if null { 0 } else { answers.next().unwrap_or(0) };
            all.extend(nulls.iter().map(answer));
        }
    }
}

/// Refuses a value that the filter has no bits for.
fn check_value(filter: &AnyFilter, value: u64) -> PyResult<()> {
    match filter.max_value() {
        0 => Err(no_values(filter.kind())),
        most if value > most => {
            let text = format!("value: {value} is above {most}, the largest of this filter");
            Err(PyValueError::new_err(text))
        }
        _ => Ok(()),
    }
}

/// Inserts a key with a value that was checked.
fn insert_value(filter: &mut AnyFilter, digest: Digest, value: u64) -> PyResult<bool> {
    filter.insert_value_digest(digest, value).map_err(Refused::refused)
}

fn no_values(kind: Kind) -> PyErr {
    cannot(kind, "keep values", |kind| kind.can(Operation::Values(1)))
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (keys, rate=None, kind="auto", ops=None, *, seed=0, hash="xxh3",
                        bits_per_key=None, memory=None, params=None, minimise=None,
                        progress=false))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new<'py>(
        keys: &Bound<'py, PyAny>,
        rate: Option<f64>,
        kind: &'py str,
        ops: Option<Bound<'py, PyAny>>,
        seed: u128,
        hash: &str,
        bits_per_key: Option<f64>,
        memory: Option<u64>,
        params: Option<Bound<'py, PyDict>>,
        minimise: Option<&'py str>,
        progress: bool,
    ) -> PyResult<Self> {
        let py = keys.py();
        let wish = Wish { rate, bits_per_key, memory, kind, ops, params, minimise };
        let hasher = goal::hasher(hash, seed)?;
        if let Some(planned) = goal::count(keys)? {
            let params = wish.params(py, planned)?;
            require(
                params.kind(),
                "take keys one by one: give the keys instead of their number",
                Operation::Insert,
            )?;
            let label = Label::planned(hasher, planned.max(1));
            let filter = py.detach(|| params.build(label)).map_err(Refused::refused)?;
            return Ok(Self::from_any(filter));
        }
        let batch = Batch::new(hasher, keys)?;
        let mut bar = Progress::new(py, progress, batch.len())?;
        let digests = batch.digests(py, hasher, |rows| bar.advance(rows))?;
        bar.finish()?;
        Self::of_digests(py, &wish, hasher, &digests)
    }

    /// Adds a key, with a value where the filter keeps values (0 if none is given). Returns
    /// whether the key was surely absent before.
    ///
    /// Examples:
    ///     >>> seen = tamis.Filter(keys=100, rate=1e-6)
    ///     >>> seen.add("apple")
    ///     True
    ///     >>> seen.add("apple")
    ///     False
    #[pyo3(signature = (key, value=None))]
    fn add(&self, key: &Bound<'_, PyAny>, value: Option<u64>) -> PyResult<bool> {
        let digest = key::digest(self.hasher(), key)?;
        self.shared.change(key.py(), |filter| {
            if let Some(value) = value {
                check_value(filter, value)?;
                return insert_value(filter, digest, value);
            }
            let kind = filter.kind();
            match filter.as_insert() {
                Some(filter) => filter.insert_digest(digest).map_err(Refused::refused),
                None => require(kind, "take more keys", Operation::Insert).map(|()| false),
            }
        })
    }

    /// Adds all keys of a batch: an Arrow array, a NumPy array, a column of polars, pandas or
    /// DuckDB, or any iterable. Nulls are no keys and are passed over.
    ///
    /// Arrays and columns are read in place, without the interpreter's lock. The types are
    /// checked before anything is added.
    ///
    /// Examples:
    ///     >>> seen = tamis.Filter(keys=100)
    ///     >>> seen.update(["apple", b"pear", 7])
    ///     >>> seen.update(range(100, 110))
    ///     >>> 105 in seen
    ///     True
    ///     >>> ports = tamis.Filter(keys=100, rate=1e-6, ops=["value=16"])
    ///     >>> ports.update(["http", "https"], values=[80, 443])
    ///     >>> ports.values("https")
    ///     [443]
    #[pyo3(signature = (keys, values=None, *, progress=false))]
    fn update(
        &self,
        keys: &Bound<'_, PyAny>,
        values: Option<&Bound<'_, PyAny>>,
        progress: bool,
    ) -> PyResult<()> {
        let py = keys.py();
        self.require(py, "take more keys", Operation::Insert)?;
        let Some(values) = values else {
            let batch = Batch::new(self.hasher(), keys)?;
            let mut bar = Progress::new(py, progress, batch.len())?;
            batch.each_piece(
                py,
                self.hasher(),
                |rows| bar.advance(rows),
                |piece| {
                    self.shared.change_detached(|filter| {
                        filter.insert_many(piece.digests).map_err(Refused::refused)
                    })?;
                    Ok(ControlFlow::Continue(()))
                },
            )?;
            return bar.finish();
        };
        self.update_values(keys, values)
    }

    /// Adds all keys of a batch that are not in yet, and returns for each whether it was new: the
    /// first time a key comes it is. A new key is taken for a known one at the rate.
    ///
    /// The answers are as those of `contains`. A null is never new.
    ///
    /// Examples:
    ///     >>> seen = tamis.Filter(keys=100, rate=1e-6)
    ///     >>> [bool(new) for new in seen.add_new(["a", "b", "a"])]
    ///     [True, True, False]
    ///     >>> len(seen)
    ///     2
    #[pyo3(signature = (keys, *, out=None, progress=false))]
    fn add_new<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        out: Option<&str>,
        progress: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        self.require(py, "take more keys", Operation::Insert)?;
        let answers = self.answers(py, keys, progress, |digests, answers| {
            self.shared.change_detached(|filter| {
                for (digests, answers) in digests.chunks(AHEAD).zip(answers.chunks_mut(AHEAD)) {
                    for &digest in digests {
                        filter.prefetch(digest);
                    }
                    for (&digest, answer) in digests.iter().zip(answers) {
                        *answer = !filter.contains_digest(digest);
                        if *answer {
                            filter.insert_digest(digest).map_err(Refused::refused)?;
                        }
                    }
                }
                Ok(())
            })
        })?;
        answered(py, &answers, out)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let digest = key::digest(self.hasher(), key)?;
        self.shared.ask(key.py(), |filter| Ok(filter.contains_digest(digest)))
    }

    /// Whether each key of a batch may be in. Nulls are in no filter.
    ///
    /// `keys` is what `update` takes. The answers are a NumPy array of bool if NumPy is
    /// installed and a list otherwise; out="numpy", "list" or "arrow" (a pyarrow.BooleanArray)
    /// asks for one of them.
    ///
    /// Examples:
    ///     >>> fruit = tamis.Filter(["apple", "pear"], rate=1e-6)
    ///     >>> fruit.contains(["apple", "plum"], out="list")
    ///     [True, False]
    #[pyo3(signature = (keys, *, out=None, progress=false))]
    fn contains<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        out: Option<&str>,
        progress: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        let answers = self.answers(py, keys, progress, |digests, answers| {
            self.shared.ask_detached(|filter| {
                filter.contains_many(digests, answers);
                Ok(())
            })
        })?;
        answered(py, &answers, out)
    }

    /// Removes one occurrence of a key. Remove only keys that are in. An absent key that the
    /// filter answers yes for, with probability `rate`, takes another key away, for good and
    /// without an error: check in your own data that the key is in.
    ///
    /// Raises:
    ///     KeyError: the key is not in.
    ///
    /// Examples:
    ///     >>> online = tamis.Filter(keys=100, ops=["insert", "remove"])
    ///     >>> online.add("ada")
    ///     True
    ///     >>> online.remove("ada")
    ///     >>> "ada" in online
    ///     False
    fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        let digest = key::digest(self.hasher(), key)?;
        let removed = self.shared.change(py, |filter| {
            let kind = filter.kind();
            match filter.as_remove() {
                Some(filter) => Ok(filter.remove_digest(digest).is_ok()),
                None => require(kind, "remove keys", Operation::Remove).map(|()| false),
            }
        })?;
        if removed { Ok(()) } else { Err(PyKeyError::new_err(key.clone().unbind())) }
    }

    /// Removes one occurrence of each key of a batch, and returns how many were removed. Those
    /// that are not in are passed over.
    ///
    /// Examples:
    ///     >>> online = tamis.Filter(["ada", "bob"], ops=["insert", "remove"], rate=1e-6)
    ///     >>> online.remove_many(["bob", "eve"])
    ///     1
    #[pyo3(signature = (keys, *, progress=false))]
    fn remove_many(&self, keys: &Bound<'_, PyAny>, progress: bool) -> PyResult<u64> {
        let py = keys.py();
        self.require(py, "remove keys", Operation::Remove)?;
        let batch = Batch::new(self.hasher(), keys)?;
        let mut bar = Progress::new(py, progress, batch.len())?;
        let mut removed = 0;
        batch.each_piece(
            py,
            self.hasher(),
            |rows| bar.advance(rows),
            |piece| {
                removed += self.shared.change_detached(|filter| {
                    Ok(filter.as_remove().map_or(0, |filter| filter.remove_many(piece.digests)))
                })?;
                Ok(ControlFlow::Continue(()))
            },
        )?;
        bar.finish()?;
        Ok(removed)
    }

    /// How often a key is in: never too low, and rarely too high. None if its counters are
    /// saturated.
    ///
    /// Examples:
    ///     >>> words = tamis.Filter(["to", "be", "to"], kind="rank-counting", rate=1e-6)
    ///     >>> words.count("to")
    ///     2
    fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let digest = key::digest(self.hasher(), key)?;
        self.shared.ask(key.py(), |filter| {
            require(filter.kind(), "count", Operation::Count)?;
            Ok(filter.count_digest(digest))
        })
    }

    /// The values of a key, smallest first, for kinds that keep values.
    ///
    /// Keys that share an identity (with probability `rate`) cannot be told apart, so the values
    /// of a key that is in include its own, and may include others.
    ///
    /// Examples:
    ///     >>> ports = tamis.Filter(keys=100, rate=1e-6, ops=["value=16"])
    ///     >>> ports.add("http", 80)
    ///     True
    ///     >>> ports.values("http")
    ///     [80]
    ///     >>> ports.values("gopher")
    ///     []
    fn values(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let digest = key::digest(self.hasher(), key)?;
        self.shared.ask(key.py(), |filter| match filter.max_value() {
            0 => Err(no_values(filter.kind())),
            _ => Ok(filter.values_digest(digest)),
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let keys = self.shared.ask(py, |filter| Ok(filter.keys()))?;
        Ok(usize::try_from(keys).unwrap_or(usize::MAX))
    }
}

impl Filter {
    fn update_values(&self, keys: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = keys.py();
        let values: Vec<u64> =
            values.try_iter()?.map(|value| value?.extract()).collect::<PyResult<_>>()?;
        let mut digests = Vec::new();
        Batch::new(self.hasher(), keys)?.each_piece(
            py,
            self.hasher(),
            |_| Ok(()),
            |piece| {
                let mut present = piece.digests.iter().copied().map(Some);
                match piece.nulls {
                    None => digests.extend(present),
                    Some(nulls) => digests.extend(
                        nulls
                            .iter()
                            .map(|&null| if null { None } else { present.next().flatten() }),
                    ),
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
        if digests.len() != values.len() {
            let text =
                format!("{} keys have {} values; give one each", digests.len(), values.len());
            return Err(PyValueError::new_err(text));
        }
        self.shared.change_long(py, |filter| {
            // Before the first is added, so that a bad one changes nothing.
            values.iter().try_for_each(|&value| check_value(filter, value))?;
            for (digest, &value) in digests.into_iter().zip(&values) {
                if let Some(digest) = digest {
                    insert_value(filter, digest, value)?;
                }
            }
            Ok(())
        })
    }
}

/// Answers in the form that was asked for. Python makes it, because NumPy and pyarrow are its.
pub(crate) fn answered<'py>(
    py: Python<'py>,
    answers: &[u8],
    out: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let make = py.import(pyo3::intern!(py, "tamis._answers"))?.getattr("make")?;
    make.call1((PyByteArray::new(py, answers), out))
}
