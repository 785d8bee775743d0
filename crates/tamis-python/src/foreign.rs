//! Memory that others own: Arrow's C data interface, Python's buffers, mapped files.
//!
//! The C data interface is a handful of structs that have not changed since 2020 and never will.
//! So they are written down here: the crates that know all of Arrow would be most of the build.
#![allow(unsafe_code)] // All that is read here is behind pointers.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::ptr;
use std::slice;
use std::sync::Arc;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tamis::{SharedBytes, wire};

use crate::column::{Cells, Column, Shape};
use crate::errors::bad_batch;

/// A type of values.
#[repr(C)]
pub(crate) struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// Values of one type.
#[repr(C)]
pub(crate) struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// Arrays of one type, one after the other.
#[repr(C)]
struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

macro_rules! released {
    ($type:ident { $($field:ident: $empty:expr),* $(,)? }) => {
        impl $type {
            const EMPTY: Self = Self { $($field: $empty),* };
        }

        impl Drop for $type {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the producer's own function, called once: it clears `release`.
                    unsafe { release(self) }
                }
            }
        }
    };
}
released!(ArrowSchema {
    format: ptr::null(),
    name: ptr::null(),
    metadata: ptr::null(),
    flags: 0,
    n_children: 0,
    children: ptr::null_mut(),
    dictionary: ptr::null_mut(),
    release: None,
    private_data: ptr::null_mut(),
});
released!(ArrowArray {
    length: 0,
    null_count: 0,
    offset: 0,
    n_buffers: 0,
    n_children: 0,
    buffers: ptr::null(),
    children: ptr::null_mut(),
    dictionary: ptr::null_mut(),
    release: None,
    private_data: ptr::null_mut(),
});

// SAFETY: the interface lets a consumer use and release arrays in any thread.
unsafe impl Send for ArrowArray {}
// SAFETY: they are only read.
unsafe impl Sync for ArrowArray {}

/// What keeps the memory of a column alive.
pub(crate) type Owner = Arc<dyn Send + Sync>;

/// Where a producer said that values lie. Only this file makes one, and a [`Column`] reads only
/// rows that the producer promised, as long as it holds their owner.
#[derive(Clone, Copy)]
pub(crate) struct Memory(*const u8);

// SAFETY: what is there is only read.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// `width` bytes from `offset` on, which must be part of what the producer promised.
    ///
    /// Like every program that works on arrays without the interpreter's lock, this relies on the
    /// caller not to change them meanwhile.
    #[inline]
    pub(crate) fn at<'a>(self, offset: isize, width: usize) -> &'a [u8] {
        // SAFETY: the producer promised these bytes, and they are read before the owner goes.
        unsafe { slice::from_raw_parts(self.0.offset(offset), width) }
    }

    /// As many bytes as an array has.
    #[inline]
    pub(crate) fn array<const N: usize>(self, offset: isize) -> [u8; N] {
        // SAFETY: as above; an array of bytes needs no alignment.
        unsafe { self.0.offset(offset).cast::<[u8; N]>().read() }
    }
}

impl ArrowSchema {
    /// The part of the type that keys are read by.
    fn shape(&self) -> PyResult<Shape> {
        if self.format.is_null() {
            return Err(bad_batch("its Arrow schema has no format"));
        }
        // SAFETY: a format is a C string that lives as long as the schema.
        let format = unsafe { CStr::from_ptr(self.format) }.to_string_lossy();
        // SAFETY: a dictionary, if there is one, belongs to the schema.
        if let Some(dictionary) = unsafe { self.dictionary.as_ref() } {
            let indices = Shape::parse(&format)?;
            return Shape::dictionary(indices, dictionary.shape()?);
        }
        if format == "+s" {
            let children = children(self.n_children, self.children)?;
            let columns = children.iter().map(|child| {
                // SAFETY: children belong to the schema.
                unsafe { child.as_ref() }
                    .ok_or_else(|| bad_batch("an Arrow column is missing"))?
                    .shape()
            });
            return Shape::row(columns.collect::<PyResult<_>>()?);
        }
        Shape::parse(&format)
    }
}

fn children<T>(count: i64, first: *mut *mut T) -> PyResult<&'static [*mut T]> {
    match usize::try_from(count) {
        Ok(0) => Ok(&[]),
        // SAFETY: the interface promises this number of pointers. They are used at once.
        Ok(count) if !first.is_null() => Ok(unsafe { slice::from_raw_parts(first, count) }),
        _ => Err(bad_batch("its Arrow children are missing")),
    }
}

impl ArrowArray {
    /// Buffer `at`; null if it was left out.
    fn buffer(&self, at: usize) -> PyResult<Option<Memory>> {
        if self.buffers.is_null() || !usize::try_from(self.n_buffers).is_ok_and(|count| at < count)
        {
            return Err(bad_batch("an Arrow buffer is missing"));
        }
        // SAFETY: there are `n_buffers` pointers.
        let buffer = unsafe { *self.buffers.add(at) }.cast::<u8>();
        Ok((!buffer.is_null()).then_some(Memory(buffer)))
    }

    /// Buffer `at`, which may be left out only where there are no rows, or no data behind them.
    fn data(&self, at: usize) -> PyResult<Memory> {
        let empty = self.length == 0 || at == 2;
        match self.buffer(at)? {
            None if empty => Ok(Memory([].as_ptr())),
            None => Err(bad_batch("an Arrow buffer is missing")),
            Some(memory) => Ok(memory),
        }
    }

    /// The rows `from..from + len`, counted behind the array's own offset.
    fn column(&self, shape: &Shape, from: usize, len: usize) -> PyResult<Column> {
        let number = |number: i64| {
            usize::try_from(number).map_err(|_| bad_batch("its Arrow length is negative"))
        };
        let (offset, length) = (number(self.offset)?, number(self.length)?);
        if from.checked_add(len).is_none_or(|end| end > length) {
            return Err(bad_batch("an Arrow column is shorter than its table"));
        }
        let nulls = match shape {
            Shape::Nothing => None,
            _ if self.null_count == 0 => None,
            _ => self.buffer(0)?,
        };
        let cells = match shape {
            Shape::Nothing => Cells::Nothing,
            Shape::Narrow => Cells::Narrow { offsets: self.data(1)?, data: self.data(2)? },
            Shape::Wide => Cells::Wide { offsets: self.data(1)?, data: self.data(2)? },
            Shape::Views => {
                // The last buffer has the lengths of the variadic ones, which come third.
                let last = usize::try_from(self.n_buffers).unwrap_or(0).saturating_sub(1);
                let data = (2..last).map(|at| self.data(at)).collect::<PyResult<_>>()?;
                Cells::Views { views: self.data(1)?, data }
            }
            &Shape::Fixed(width) => {
                Cells::Fixed { data: self.data(1)?, step: width as isize, width, trimmed: false }
            }
            &Shape::Integer(integer) => {
                let step = integer.width() as isize;
                Cells::Integer { data: self.data(1)?, step, integer }
            }
            Shape::Dictionary(integer, values) => {
                let step = integer.width() as isize;
                // SAFETY: a dictionary belongs to the array.
                let dictionary = unsafe { self.dictionary.as_ref() }
                    .ok_or_else(|| bad_batch("its Arrow dictionary is missing"))?;
                let values = dictionary.column(values, 0, number(dictionary.length)?)?;
                Cells::Dictionary {
                    indices: self.data(1)?,
                    step,
                    integer: *integer,
                    values: Box::new(values),
                }
            }
            Shape::Row(shapes) => {
                let children = children(self.n_children, self.children)?;
                if children.len() != shapes.len() {
                    return Err(bad_batch("an Arrow column is missing"));
                }
                let columns = children.iter().zip(shapes).map(|(child, shape)| {
                    // SAFETY: children belong to the array.
                    unsafe { child.as_ref() }
                        .ok_or_else(|| bad_batch("an Arrow column is missing"))?
                        .column(shape, offset + from, len)
                });
                let mut columns: Vec<Column> = columns.collect::<PyResult<_>>()?;
                if columns.len() == 1 && nulls.is_none() {
                    return Ok(columns.remove(0));
                }
                Cells::Row(columns)
            }
        };
        Column::new(cells, offset + from, len, nulls)
    }

    /// All rows, with the array as their owner.
    fn into_column(self, shape: &Shape) -> PyResult<Column> {
        let len = usize::try_from(self.length).unwrap_or(0);
        let column = self.column(shape, 0, len)?;
        Ok(column.owned_by(Arc::new(self)))
    }
}

/// The one array that `__arrow_c_array__` hands out.
pub(crate) fn arrow_array(
    schema: &Bound<'_, PyCapsule>,
    array: &Bound<'_, PyCapsule>,
) -> PyResult<Column> {
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<ArrowSchema>();
    let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<ArrowArray>();
    // SAFETY: capsules of these names hold these structs; the schema stays in its capsule.
    let shape = unsafe { schema.as_ref() }.shape()?;
    // SAFETY: the array is moved out, as the interface allows: its capsule finds it released.
    let array = unsafe { array.replace(ArrowArray::EMPTY) };
    if array.release.is_none() {
        return Err(bad_batch("its Arrow array was released already"));
    }
    array.into_column(&shape)
}

/// The arrays that `__arrow_c_stream__` hands out, one after the other.
pub(crate) struct Stream {
    stream: ArrowArrayStream,
    shape: Shape,
}

// SAFETY: the interface lets a consumer use a stream in any thread, one at a time.
unsafe impl Send for Stream {}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the producer's own function, called once: it clears `release`.
            unsafe { release(self) }
        }
    }
}

impl Stream {
    pub(crate) fn new(capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        const EMPTY: ArrowArrayStream = ArrowArrayStream {
            get_schema: None,
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: ptr::null_mut(),
        };
        let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
        // SAFETY: a capsule of this name holds this struct; it finds the stream released.
        let stream = unsafe { stream.cast::<ArrowArrayStream>().replace(EMPTY) };
        let mut this = Self { stream, shape: Shape::Nothing };
        let mut schema = ArrowSchema::EMPTY;
        if let (Some(get_schema), Some(_)) = (this.stream.get_schema, this.stream.release) {
            // SAFETY: both structs are ours, and the stream is not released.
            let code = unsafe { get_schema(&raw mut this.stream, &raw mut schema) };
            this.check(code)?;
            this.shape = schema.shape()?;
            return Ok(this);
        }
        Err(bad_batch("its Arrow stream was read already"))
    }

    /// The next array; `None` at the end. The interpreter must not be held: a producer may wait
    /// for other threads.
    pub(crate) fn next(&mut self) -> PyResult<Option<Column>> {
        let Some(get_next) = self.stream.get_next else { return Ok(None) };
        let mut array = ArrowArray::EMPTY;
        // SAFETY: both structs are ours, and the stream is not released.
        let code = unsafe { get_next(&raw mut self.stream, &raw mut array) };
        self.check(code)?;
        if array.release.is_none() {
            return Ok(None);
        }
        array.into_column(&self.shape).map(Some)
    }

    fn check(&mut self, code: c_int) -> PyResult<()> {
        if code == 0 {
            return Ok(());
        }
        let text = self.stream.get_last_error.map_or(ptr::null(), |last| {
            // SAFETY: the call before this one failed, as the interface asks.
            unsafe { last(&raw mut self.stream) }
        });
        let words = if text.is_null() {
            io::Error::from_raw_os_error(code).to_string()
        } else {
            // SAFETY: the text lives until the next call.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        Err(bad_batch(&format!("its Arrow stream failed: {words}")))
    }
}

/// The bytes of a buffer that lies in one piece. The interpreter must be held while they are
/// used, so that no other Python code changes them.
pub(crate) fn buffer_bytes<'a>(_py: Python<'a>, buffer: &'a PyUntypedBuffer) -> Option<&'a [u8]> {
    let len = buffer.len_bytes();
    if len == 0 {
        return Some(&[]);
    }
    // SAFETY: a contiguous buffer has `len` bytes, which stay as long as `buffer`.
    buffer
        .is_c_contiguous()
        .then(|| unsafe { slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), len) })
}

/// A buffer of one dimension as a column of `shape`, with the buffer as its owner.
pub(crate) fn buffer_column(buffer: PyUntypedBuffer, shape: &Shape) -> PyResult<Column> {
    let (len, step) = (buffer.shape()[0], buffer.strides()[0]);
    let data = Memory(if len == 0 { [].as_ptr() } else { buffer.buf_ptr().cast::<u8>() });
    let cells = match *shape {
        Shape::Integer(integer) => Cells::Integer { data, step, integer },
        // As NumPy reads them: NULs at the end are padding.
        Shape::Fixed(width) => Cells::Fixed { data, step, width, trimmed: true },
        _ => return Err(bad_batch("a buffer holds integers or bytes of a fixed size")),
    };
    Ok(Column::new(cells, 0, len, None)?.owned_by(Arc::new(buffer)))
}

/// Maps a filter file, because the caller of `open` says that nobody changes it meanwhile.
pub(crate) fn map(file: &File) -> io::Result<SharedBytes> {
    // SAFETY: no program can promise that nobody changes a file. The documentation of `open` asks
    // the caller to; `save` and every verb of the command line replace files by renaming, so that
    // those that are mapped stay as they are.
    unsafe { wire::map(file) }
}
