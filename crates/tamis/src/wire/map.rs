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
    // SAFETY: strictly, nobody may change the file meanwhile, and no program can promise that of a file: a deliberate
    // exception, documented above, as wherever files are mapped. What limits the damage: the bytes are only
    // read, as integers for which every value is valid, at positions from a header that was copied out and checked.
    let mapping = unsafe { Mmap::map(file)? };
    Ok(Arc::new(mapping))
}
