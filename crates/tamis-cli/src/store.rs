//! Filters from files and stdin: loaded and checked, or mapped in place.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tamis::wire::{self, ReadSource};
use tamis::{AnyFilter, Limits, SharedBytes};

use crate::keys::Keys;
use crate::target::PUBLIC;

/// Whether a path stands for stdin or stdout.
pub(crate) fn is_stdio(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A filter from a file.
pub(crate) struct Loaded {
    /// The filter, everything checked.
    pub(crate) filter: AnyFilter,
    /// Bytes in the file.
    pub(crate) file_bytes: u64,
    /// Who may read the file; everyone if it was a pipe.
    pub(crate) mode: u32,
}

/// Reads a filter and checks everything.
pub(crate) fn load(path: &Path) -> Result<Loaded> {
    read(path).with_context(|| path.display().to_string())
}

fn read(path: &Path) -> Result<Loaded> {
    if !is_stdio(path) {
        let file = File::open(path)?;
        let facts = file.metadata()?;
        if facts.is_file() {
            let mut source = ReadSource::new(file, facts.len());
            return Ok(Loaded {
                filter: AnyFilter::read(&mut source, limits(facts.len()))?,
                file_bytes: facts.len(),
                mode: facts.mode(),
            });
        }
    }
    let bytes = read_stream(path)?;
    let file_bytes = bytes.len() as u64;
    let filter = AnyFilter::decode(&bytes, limits(file_bytes))?;
    Ok(Loaded { filter, file_bytes, mode: PUBLIC })
}

/// Maps a filter and answers from the file in place; only its header is checked.
pub(crate) fn open_in_place(path: &Path) -> Result<AnyFilter> {
    let open = || -> Result<_> { Ok(AnyFilter::open(&wire::map(&File::open(path)?)?)?) };
    if is_stdio(path) {
        bail!("--mmap needs a file; stdin cannot be mapped");
    }
    open().with_context(|| path.display().to_string())
}

/// The bytes of a filter file: mapped, or read if they come through a pipe.
pub(crate) fn bytes(path: &Path) -> Result<SharedBytes> {
    let bytes = || -> Result<SharedBytes> {
        if !is_stdio(path) {
            let file = File::open(path)?;
            if file.metadata()?.is_file() {
                return Ok(wire::map(&file)?);
            }
        }
        Ok(Arc::new(read_stream(path)?))
    };
    bytes().with_context(|| path.display().to_string())
}

/// A filter from stdin leaves no stdin for keys.
pub(crate) fn one_stdin(filter: &Path, keys: &Keys) -> Result<()> {
    if is_stdio(filter) && keys.use_stdin() {
        bail!("the filter comes from stdin, so the keys cannot; name files of keys");
    }
    Ok(())
}

/// What a file of this length may take: its own size, however large it is. A small file that claims to decode into
/// much must still stay below the default.
pub(crate) fn limits(file_bytes: u64) -> Limits {
    Limits { memory: Limits::default().memory.max(file_bytes) }
}

/// A pipe does not say how long it is, and nothing is decoded before that is known.
fn read_stream(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if is_stdio(path) {
        io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
