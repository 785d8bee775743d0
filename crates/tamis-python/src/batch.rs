//! Many keys at once: from Arrow, from buffers, or from any iterable.

use std::ops::ControlFlow;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyCapsule, PyMapping, PyMemoryView, PyString};
use tamis::{Digest, Hasher};

use crate::column::{Column, Integer, Shape};
use crate::errors::bad_batch;
use crate::foreign::{self, Stream};
use crate::key::{self, is_bytes_like};

/// Keys that are hashed and handed on together: their digests stay in the first cache.
const PIECE: usize = 1024;

/// Keys after which signals are looked at and progress is told.
const LONG: usize = 1 << 18;

/// A batch of keys.
pub(crate) enum Batch {
    /// Arrays that come one after the other.
    Stream(Stream),
    /// One array.
    Column(Column),
    /// An iterable, read to its end.
    Digests(Vec<Digest>),
}

/// Some keys of a batch, in order.
pub(crate) struct Piece<'a> {
    /// Of the rows that are not null.
    pub(crate) digests: &'a [Digest],
    /// Whether each row is null; `None` if none is.
    pub(crate) nulls: Option<&'a [bool]>,
}

impl Batch {
    /// Looks at what `keys` is. Types are checked here, so that a bad batch changes nothing.
    pub(crate) fn new(hasher: Hasher, keys: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = keys.py();
        refuse_single(keys)?;
        let ask = |name| keys.getattr_opt(name)?.map(|method| method.call0()).transpose();
        match ask(pyo3::intern!(py, "__arrow_c_stream__")) {
            Ok(Some(capsule)) => {
                let capsule = capsule.cast_into::<PyCapsule>()?;
                return Ok(Self::Stream(Stream::new(&capsule)?));
            }
            // Pandas needs pyarrow for this; its columns can be iterated as well.
            Err(error) if !error.is_instance_of::<PyImportError>(py) => return Err(error),
            _ => {}
        }
        if let Some(pair) = ask(pyo3::intern!(py, "__arrow_c_array__"))? {
            let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
            let (schema, array) =
                (schema.cast_into::<PyCapsule>()?, array.cast_into::<PyCapsule>()?);
            return Ok(Self::Column(foreign::arrow_array(&schema, &array)?));
        }
        if let Ok(buffer) = PyUntypedBuffer::get(keys)
            && let Some(column) = buffer_column(buffer, keys)?
        {
            return Ok(Self::Column(column));
        }
        Self::iterate(hasher, keys)
    }

    fn iterate(hasher: Hasher, keys: &Bound<'_, PyAny>) -> PyResult<Self> {
        if keys.cast::<PyMapping>().is_ok() && !keys.hasattr("__array__")? {
            return Err(bad_batch("a mapping may mean its keys or its values; say which"));
        }
        let items = keys.try_iter().map_err(|_| bad_batch("it cannot be iterated"))?;
        let mut digests = Vec::new();
        // A hint may be wrong, and large: it saves time, not more.
        digests.try_reserve(keys.len().unwrap_or(0).min(LONG)).ok();
        for item in items {
            if digests.len() % LONG == LONG - 1 {
                keys.py().check_signals()?;
            }
            digests.push(key::digest(hasher, &item?)?);
        }
        Ok(Self::Digests(digests))
    }

    /// How many keys there are, if that is known before they have been read.
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::Stream(_) => None,
            Self::Column(column) => Some(column.len()),
            Self::Digests(digests) => Some(digests.len()),
        }
    }

    /// Hands all keys to `take`, piece by piece and without the interpreter's lock, until it
    /// breaks off. `advance` is told now and then how many rows were done.
    pub(crate) fn each_piece(
        self,
        py: Python<'_>,
        hasher: Hasher,
        mut advance: impl FnMut(usize) -> PyResult<()>,
        mut take: impl FnMut(Piece<'_>) -> PyResult<ControlFlow<()>> + Send,
    ) -> PyResult<()> {
        match self {
            Self::Digests(digests) => {
                for long in digests.chunks(LONG) {
                    let take = &mut take;
                    let flow = py.detach(|| {
                        for digests in long.chunks(PIECE) {
                            if take(Piece { digests, nulls: None })?.is_break() {
                                return Ok(ControlFlow::Break(()));
                            }
                        }
                        PyResult::Ok(ControlFlow::Continue(()))
                    })?;
                    if flow.is_break() {
                        return Ok(());
                    }
                    py.check_signals()?;
                    advance(long.len())?;
                }
            }
            Self::Column(column) => {
                let _ = each_of_column(py, hasher, &column, &mut advance, &mut take)?;
            }
            Self::Stream(mut stream) => loop {
                let (back, column) = py.detach(move || {
                    let column = stream.next();
                    (stream, column)
                });
                stream = back;
                let Some(column) = column? else { break };
                if each_of_column(py, hasher, &column, &mut advance, &mut take)?.is_break() {
                    break;
                }
            },
        }
        Ok(())
    }

    /// The digests of all keys; nulls are left out.
    pub(crate) fn digests(
        self,
        py: Python<'_>,
        hasher: Hasher,
        advance: impl FnMut(usize) -> PyResult<()>,
    ) -> PyResult<Vec<Digest>> {
        if let Self::Digests(digests) = self {
            return Ok(digests);
        }
        let mut all = Vec::new();
        self.each_piece(py, hasher, advance, |piece| {
            all.extend(piece.digests);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }
}

fn each_of_column(
    py: Python<'_>,
    hasher: Hasher,
    column: &Column,
    advance: &mut impl FnMut(usize) -> PyResult<()>,
    take: &mut (impl FnMut(Piece<'_>) -> PyResult<ControlFlow<()>> + Send),
) -> PyResult<ControlFlow<()>> {
    let has_nulls = column.has_nulls();
    for start in (0..column.len()).step_by(LONG) {
        let end = column.len().min(start + LONG);
        let flow = py.detach(|| {
            let mut digests = Vec::with_capacity(PIECE);
            let mut nulls = Vec::new();
            for from in (start..end).step_by(PIECE) {
                let rows = from..end.min(from + PIECE);
                digests.clear();
                column.digest(hasher, rows.clone(), &mut digests);
                nulls.clear();
                if has_nulls {
                    nulls.extend(rows.map(|row| column.is_null(row)));
                }
                let nulls = has_nulls.then_some(&nulls[..]);
                if take(Piece { digests: &digests, nulls })?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            PyResult::Ok(ControlFlow::Continue(()))
        })?;
        if flow.is_break() {
            return Ok(flow);
        }
        py.check_signals()?;
        advance(end - start)?;
    }
    Ok(ControlFlow::Continue(()))
}

/// One key where many were meant is a mistake that would go unnoticed: a string can be iterated.
fn refuse_single(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    let single = keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>();
    if single {
        let name = keys.get_type().name()?;
        let text = format!("a {name} is one key: use add or in, or write [key] for a batch of one");
        return Err(PyTypeError::new_err(text));
    }
    Ok(())
}

/// A buffer as a column, if it holds integers or bytes; `None` if its items are Python objects
/// or strings, which are iterated.
fn buffer_column(buffer: PyUntypedBuffer, keys: &Bound<'_, PyAny>) -> PyResult<Option<Column>> {
    let format = buffer.format().to_string_lossy().into_owned();
    let (big_endian, code) = match format.as_bytes() {
        [b'>' | b'!', rest @ ..] => (true, rest),
        [b'<', rest @ ..] => (false, rest),
        [b'@' | b'=' | b'|' | b'^', rest @ ..] | rest => (cfg!(target_endian = "big"), rest),
    };
    if buffer.suboffsets().is_some() {
        return Err(bad_batch("its buffer points to others; make it contiguous"));
    }
    let bits = (buffer.item_size() * 8) as u32;
    let shape = match code {
        b"c" | b"B" | b"b" if keys.is_instance_of::<PyMemoryView>() => {
            return Err(bad_batch("bytes are one key; use add or in"));
        }
        b"b" | b"h" | b"i" | b"l" | b"q" | b"n" => {
            Shape::Integer(Integer { bits, signed: true, big_endian })
        }
        b"B" | b"H" | b"I" | b"L" | b"Q" | b"N" => {
            Shape::Integer(Integer { bits, signed: false, big_endian })
        }
        [digits @ .., b's'] if digits.iter().all(u8::is_ascii_digit) => {
            Shape::Fixed(buffer.item_size())
        }
        b"O" | [.., b'w'] => return Ok(None),
        _ if is_bytes_like(keys) || buffer.dimensions() > 0 => {
            return Err(bad_batch(&format!(
                "items of the format {format} are no keys; keys are strings, bytes and integers, \
                 so cast them first"
            )));
        }
        _ => return Ok(None),
    };
    if buffer.dimensions() != 1 {
        let text = format!("it has {} dimensions; give one, such as x[:, 0]", buffer.dimensions());
        return Err(bad_batch(&text));
    }
    foreign::buffer_column(buffer, &shape).map(Some)
}
