//! One key: how a Python object spells itself.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyMemoryView, PyString, PyTuple};
use tamis::{Digest, Hasher};

use crate::foreign;

/// The most and the fewest keys that a tuple joins into one, as in Rust.
const TUPLE: std::ops::RangeInclusive<usize> = 2..=4;

/// The digest of one key.
pub(crate) fn digest(hasher: Hasher, key: &Bound<'_, PyAny>) -> PyResult<Digest> {
    with_bytes(key, |bytes| hasher.digest_bytes(bytes))
}

/// Hands the bytes of a key to `take`.
#[inline]
fn with_bytes<R>(key: &Bound<'_, PyAny>, take: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
    // Exact types first: their check is a comparison, where that of a subclass is a call.
    if let Ok(text) = key.cast_exact::<PyString>() {
        return Ok(take(text.to_str()?.as_bytes()));
    }
    if let Ok(bytes) = key.cast_exact::<PyBytes>() {
        return Ok(take(bytes.as_bytes()));
    }
    if key.is_exact_instance_of::<PyInt>() {
        return Ok(take(&integer(key)?));
    }
    rarer(key, take)
}

#[inline(never)]
fn rarer<R>(key: &Bound<'_, PyAny>, take: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(take(text.to_str()?.as_bytes()));
    }
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(take(bytes.as_bytes()));
    }
    if let Ok(tuple) = key.cast::<PyTuple>() {
        return Ok(take(&joined(tuple)?));
    }
    // Python counts truth values among the integers, but nobody means the number 1.
    if key.is_instance_of::<PyBool>() || key.is_instance_of::<PyFloat>() {
        return Err(no_key(key));
    }
    // Integers of NumPy also have a buffer, so this comes first. Arrays have an index only if
    // they are one integer.
    if !is_bytes_like(key)
        && let Ok(index) = key.call_method0(pyo3::intern!(key.py(), "__index__"))
    {
        return Ok(take(&integer(&index)?));
    }
    let Ok(buffer) = PyUntypedBuffer::get(key) else { return Err(no_key(key)) };
    if !matches!(buffer.format().to_bytes(), b"B" | b"b" | b"c") {
        let text = "a buffer that is one key holds bytes; for the bytes of its items take \
                    memoryview(x).cast('B'), for its items as keys use update or contains";
        return Err(PyTypeError::new_err(text));
    }
    let bytes = foreign::buffer_bytes(key.py(), &buffer);
    let bytes = bytes.ok_or_else(|| {
        PyTypeError::new_err("a buffer that is one key lies in one piece; take bytes(x)")
    })?;
    Ok(take(bytes))
}

/// Whether an object is bytes and nothing else.
pub(crate) fn is_bytes_like(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyByteArray>()
        || object.is_instance_of::<PyMemoryView>()
}

/// Eight bytes, little-endian: those of an `i64` or of a `u64`, which agree where both have the
/// number.
fn integer(key: &Bound<'_, PyAny>) -> PyResult<[u8; 8]> {
    if let Ok(number) = key.extract::<i64>() {
        return Ok(number.to_le_bytes());
    }
    match key.extract::<u64>() {
        Ok(number) => Ok(number.to_le_bytes()),
        Err(_) => Err(PyOverflowError::new_err(
            "an integer key lies from -2^63 to 2^64 - 1; write larger ones as str or bytes",
        )),
    }
}

/// For each part its length as a `u64`, then its bytes.
fn joined(tuple: &Bound<'_, PyTuple>) -> PyResult<Vec<u8>> {
    if !TUPLE.contains(&tuple.len()) {
        let text = format!("a tuple that is a key has 2 to 4 parts, not {}", tuple.len());
        return Err(PyTypeError::new_err(text));
    }
    let mut key = Vec::new();
    for part in tuple {
        if part.is_instance_of::<PyTuple>() {
            return Err(PyTypeError::new_err("a tuple in a tuple is no key; write one tuple"));
        }
        with_bytes(&part, |bytes| {
            key.extend((bytes.len() as u64).to_le_bytes());
            key.extend(bytes);
        })?;
    }
    Ok(key)
}

fn no_key(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "this".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "{name} is no key; keys are str, bytes, int, bytes-like objects and tuples of them"
    ))
}
