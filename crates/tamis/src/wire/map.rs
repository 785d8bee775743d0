//! Mapped files.
#![allow(unsafe_code)] // Mapping a file is unsafe: somebody else may change it.

use std::fs::File;
use std::io;
use std::sync::Arc;

use memmap2::Mmap;

use crate::bits::SharedBytes;

/// Maps a file into memory, to be handed to `open`.
///
/// The bytes are only read, as integers for which every value is valid, at positions from a header that was copied out and
/// checked. So a filter whose file lies gives wrong answers and nothing worse, as long as the file stays as it is.
///
/// # Safety
///
/// Nobody may change the file or cut it short while any of these bytes, or a filter that was opened from them, is in use, in this
/// process or another: what is behind a reference must not change, and reading behind the end of a file that was cut ends the
/// process with a signal. Write filter files beside the old ones and rename them, as the command line does, and let no one
/// write to those that are mapped.
pub unsafe fn map(file: &File) -> io::Result<SharedBytes> {
    // SAFETY: the caller says that the file stays as it is.
    let mapping = unsafe { Mmap::map(file)? };
    Ok(Arc::new(mapping))
}
