//! The one place of the command line where a file is mapped: `check --mmap`.
#![allow(unsafe_code)] // Mapping a file is unsafe: somebody else may change it.

use std::fs::File;
use std::io;

use tamis::{SharedBytes, wire};

/// Maps a filter file, because the user asked for it and so says that nobody changes it meanwhile.
pub(crate) fn map(file: &File) -> io::Result<SharedBytes> {
    // SAFETY: no program can promise that nobody changes a file. The help of `--mmap` asks the
    // user to; every verb of ours replaces filter files by renaming, so that those that are mapped
    // stay as they are.
    unsafe { wire::map(file) }
}
