//! Mapped files.
#![allow(unsafe_code)] // Mapping a file is unsafe: somebody else may change it.

use std::fs::File;
use std::io;
use std::sync::Arc;

use memmap2::Mmap;

use crate::bits::SharedBytes;

/// Maps a file into memory, to be handed to `open`.
///
/// The file must not be changed or cut while it is mapped: replace filter files by renaming, as the command
/// line does. A file that is cut all the same ends the process with a signal, as any mapping does.
pub fn map(file: &File) -> io::Result<SharedBytes> {
    // SAFETY: the bytes are only ever read, as integers for which every value is valid, and every position is
    // computed from a header that was copied out and checked; so changes by others can give wrong
    // answers but no invalid value. Cutting the file is documented above.
    let mapping = unsafe { Mmap::map(file)? };
    Ok(Arc::new(mapping))
}
