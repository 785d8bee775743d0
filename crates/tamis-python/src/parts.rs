//! Sets larger than one machine: their keys are cut into parts, each with an ordinary filter of
//! its own. `python/tamis/_folder.py` keeps them as files.

use std::ops::ControlFlow;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tamis::{Digest, Filter as _, Hasher};

use crate::batch::Batch;
use crate::errors::MismatchError;
use crate::filter::{Filter, answered};
use crate::goal::{self, Wish};
use crate::key;

/// Which of `parts` parts a digest belongs to. Frozen: folders of parts depend on it.
///
/// Not a range of the digest itself. Its top bits choose the bucket or block of a filter, so that
/// a filter of one range would use few of its own.
fn part_of(digest: Digest, parts: usize) -> usize {
    let mixed = Hasher::xxh3(0).digest_bytes(&digest.0.to_le_bytes());
    ((u128::from(mixed.0) * parts as u128) >> 64) as usize
}

fn count(parts: u32) -> PyResult<usize> {
    match parts {
        0 => Err(PyValueError::new_err("parts: give at least 1")),
        parts => Ok(parts as usize),
    }
}

/// The digests of a batch by their part, 8 bytes each; nulls are left out.
#[pyfunction]
pub(crate) fn _cut<'py>(
    keys: &Bound<'py, PyAny>,
    parts: u32,
    seed: u128,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let py = keys.py();
    let hasher = goal::hasher("xxh3", seed)?;
    let mut cut = vec![Vec::new(); count(parts)?];
    Batch::new(hasher, keys)?.each_piece(
        py,
        hasher,
        |_| Ok(()),
        |piece| {
            for digest in piece.digests {
                cut[part_of(*digest, parts as usize)].extend(digest.0.to_le_bytes());
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(cut.into_iter().map(|digests| PyBytes::new(py, &digests)).collect())
}

/// The filter of a part, from the bytes that `_cut` made of its keys. They are sorted, and each
/// is taken once, so that the order in which they came is nothing to the filter.
#[pyfunction]
pub(crate) fn _of_digests<'py>(
    pieces: &Bound<'py, PyAny>,
    rate: f64,
    kind: &'py str,
    seed: u128,
) -> PyResult<Filter> {
    let py = pieces.py();
    let mut digests = Vec::new();
    for piece in pieces.try_iter()? {
        let piece = piece?.cast_into::<PyBytes>()?;
        digests.extend(
            piece.as_bytes().as_chunks().0.iter().map(|&word| Digest(u64::from_le_bytes(word))),
        );
    }
    py.detach(|| {
        digests.sort_unstable();
        digests.dedup();
    });
    let wish = Wish {
        rate: Some(rate),
        bits_per_key: None,
        memory: None,
        kind,
        ops: Some(PyList::empty(py).into_any()),
        params: None,
        minimise: None,
    };
    Filter::of_digests(py, &wish, goal::hasher("xxh3", seed)?, &digests)
}

/// The part of a key, where the first of `parts` parts is `first`.
#[pyfunction]
pub(crate) fn _part_of(
    first: &Bound<'_, Filter>,
    key: &Bound<'_, PyAny>,
    parts: u32,
) -> PyResult<usize> {
    Ok(part_of(key::digest(first.get().shared.hasher(), key)?, count(parts)?))
}

/// `Filter.contains`, each key asked of its part.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "a list is made for this call")]
pub(crate) fn _contains<'py>(
    parts: Vec<Py<Filter>>,
    keys: &Bound<'py, PyAny>,
    out: Option<&str>,
    progress: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let parts: Vec<&Filter> = parts.iter().map(Py::get).collect();
    let first = *parts.first().ok_or_else(|| PyValueError::new_err("parts: give at least 1"))?;
    if parts.iter().any(|part| part.shared.hasher() != first.shared.hasher()) {
        return Err(MismatchError::new_err("parts of different hashes or seeds are no whole"));
    }
    let (mut rows, mut asked, mut told) = (Vec::new(), Vec::new(), Vec::new());
    let answers = first.answers(py, keys, progress, |digests, answers| {
        rows.clear();
        rows.extend(
            digests.iter().enumerate().map(|(row, &digest)| (part_of(digest, parts.len()), row)),
        );
        rows.sort_unstable();
        for run in rows.chunk_by(|one, next| one.0 == next.0) {
            asked.clear();
            asked.extend(run.iter().map(|&(_, row)| digests[row]));
            told.clear();
            told.resize(asked.len(), false);
            parts[run[0].0].shared.ask_detached(|filter| {
                filter.contains_many(&asked, &mut told);
                Ok(())
            })?;
            for (&(_, row), &answer) in run.iter().zip(&told) {
                answers[row] = answer;
            }
        }
        Ok(())
    })?;
    answered(py, &answers, out)
}
