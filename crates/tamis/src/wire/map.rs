//! Mapped files.
#![allow(unsafe_code)] // Mapping a file is unsafe: somebody else may change it.

use std::fs::File;
use std::io;
use std::sync::Arc;

use memmap2::Mmap;

use crate::bits::SharedBytes;

/// Maps a file into memory, to be handed to `open`.
///
/// The bytes are only read, as integers for which every value is valid, at positions from a header
/// that was copied out and checked. So a filter from a forged file gives wrong answers and nothing
/// worse, as long as the file stays as it is.
///
/// # Safety
///
/// The file must not be changed or cut short, by this process or another, while these bytes, or a
/// filter that was opened from them, are in use. What is behind a reference must not change, and
/// reading beyond the end of a file that was cut ends the process with a signal. Write a new file
/// beside the old one and rename it, as the command line does, and let nothing write to files that
/// are mapped.
pub unsafe fn map(file: &File) -> io::Result<SharedBytes> {
    // SAFETY: the caller says that the file stays as it is.
    let mapping = unsafe { Mmap::map(file)? };
    Ok(Arc::new(mapping))
}
