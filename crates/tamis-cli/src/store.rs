//! Filters from files and stdin: loaded and checked, or mapped in place.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};
use tamis::wire::{Frame, Header, MAGIC, ReadSource};
use tamis::{AnyFilter, Limits, WireError};

use crate::input;
use crate::keys::Keys;
use crate::mapped;
use crate::system::{self, PUBLIC};

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

/// What errors call a path that something is read from.
pub(crate) fn name(path: &Path) -> String {
    if is_stdio(path) { "stdin".to_owned() } else { path.display().to_string() }
}

/// Reads a filter and checks everything.
pub(crate) fn load(path: &Path) -> Result<Loaded> {
    read(path).with_context(|| name(path))
}

fn read(path: &Path) -> Result<Loaded> {
    match Input::open(path)? {
        Input::File(file) => {
            let facts = file.metadata()?;
            let mut source = ReadSource::new(file, facts.len());
            let filter = AnyFilter::read(&mut source, limits(facts.len())).map_err(refused)?;
            Ok(Loaded { filter, file_bytes: facts.len(), mode: system::mode(&facts) })
        }
        Input::Stream(mut stream) => {
            let bytes = read_stream(&mut stream)?;
            let file_bytes = bytes.len() as u64;
            let filter = AnyFilter::decode(&bytes, limits(file_bytes)).map_err(refused)?;
            Ok(Loaded { filter, file_bytes, mode: PUBLIC })
        }
    }
}

/// Bytes of a file that are read and checked in the blink of an eye.
const SMALL: u64 = 64 << 20;

/// Whether a path names a regular file that takes a while to read.
pub(crate) fn is_large(path: &Path) -> bool {
    !is_stdio(path) && fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() > SMALL)
}

/// Maps a filter and answers from the file in place; only its header is checked.
pub(crate) fn open_in_place(path: &Path) -> Result<AnyFilter> {
    let open = || -> Result<_> {
        // The name is asked, because opening a pipe waits for its writer.
        if is_stdio(path) || !fs::metadata(path)?.is_file() {
            bail!("--mmap needs a regular file");
        }
        let file = File::open(path)?;
        check_magic(&file)?;
        Ok(AnyFilter::open(&mapped::map(&file)?)?)
    };
    open().with_context(|| name(path))
}

/// The bytes of a filter file. Only the magic has been checked.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>> {
    let bytes = || -> Result<Vec<u8>> {
        match Input::open(path)? {
            Input::File(mut file) => {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(usize::try_from(file.metadata()?.len())?)?;
                file.read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            Input::Stream(mut stream) => read_stream(&mut stream),
        }
    };
    bytes().with_context(|| name(path))
}

/// An open filter.
enum Input {
    /// A regular file that starts with the magic.
    File(File),
    /// Stdin, a pipe or a device.
    Stream(Box<dyn Read>),
}

impl Input {
    fn open(path: &Path) -> Result<Self> {
        if is_stdio(path) {
            return Ok(Self::Stream(Box::new(io::stdin().lock())));
        }
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Ok(Self::Stream(Box::new(file)));
        }
        check_magic(&file)?;
        Ok(Self::File(file))
    }
}

/// A filter from stdin leaves no stdin for keys.
pub(crate) fn one_stdin(filter: &Path, keys: &Keys) -> Result<()> {
    if is_stdio(filter) && keys.use_stdin() {
        bail!("the filter comes from stdin, so the keys cannot; name files of keys");
    }
    Ok(())
}

/// What `--limit` says, if it was given.
static LIMIT: OnceLock<u64> = OnceLock::new();

/// Takes `--limit`, before anything is read.
pub(crate) fn set_limit(bytes: Option<u64>) {
    if let Some(bytes) = bytes {
        LIMIT.get_or_init(|| bytes);
    }
}

/// Why bytes were refused, with the option that allows them where there is one.
pub(crate) fn refused(error: WireError) -> anyhow::Error {
    match error {
        WireError::Limit { field, need, limit } => anyhow!(
            "{field}: {need} bytes are beyond the limit of {limit}; raise --limit if you trust \
             the source"
        ),
        error => error.into(),
    }
}

/// The memory that reading a large file may take without `--limit`, as a multiple of its bytes:
/// sections that are not raw are in memory twice while they are laid out.
const LARGER: u64 = 3;

/// What reading a file of `file_bytes` bytes may take. A small file that claims to decode into a
/// large filter must stay below the default.
pub(crate) fn limits(file_bytes: u64) -> Limits {
    let default = || Limits::default().memory.max(file_bytes.saturating_mul(LARGER));
    Limits::memory(LIMIT.get().copied().unwrap_or_else(default))
}

/// The header, if it is whole, even where the sections are damaged.
pub(crate) fn header(bytes: &[u8]) -> Result<Header, WireError> {
    let end = claimed_end(bytes).unwrap_or(bytes.len() as u64);
    Ok(Frame::read(&mut ReadSource::new(bytes, end), Limits::NONE)?.header().clone())
}

/// Bytes of a header before its params, as `docs/wire.md` has it.
const FIXED: usize = 48;

/// The length of the header that starts with these bytes; `None` if its fixed part is not
/// complete.
fn header_len(bytes: &[u8]) -> Option<usize> {
    let counts = bytes.get(14..16)?;
    Some(FIXED + usize::from(counts[0]) * 8 + usize::from(counts[1]) * 40 + 8)
}

/// Where the last section ends according to the header, which has not been checked yet; `None` if
/// the header is not complete.
fn claimed_end(bytes: &[u8]) -> Option<u64> {
    let header = bytes.get(..header_len(bytes)?)?;
    if header[15] == 0 {
        return Some(header.len() as u64);
    }
    // Offset and length stand in the last entry of the table, and a checksum behind that.
    let word = |from_end: usize| header[header.len() - from_end..].first_chunk().copied();
    Some(u64::from_le_bytes(word(40)?).saturating_add(u64::from_le_bytes(word(32)?)))
}

/// Refuses a file that does not start with the magic bytes, however short it is.
fn check_magic(mut file: &File) -> Result<()> {
    let mut start = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut start)?;
    file.rewind()?;
    starts_as_a_filter(&start)
}

fn starts_as_a_filter(bytes: &[u8]) -> Result<()> {
    if let Some(format) = input::compressed_with(bytes) {
        bail!("compressed with {format}; unpack it first");
    }
    let len = bytes.len().min(MAGIC.len());
    // A filter that was cut off may have only part of the magic; an empty file is no filter.
    if len > 0 && bytes[..len] == MAGIC[..len] { Ok(()) } else { Err(WireError::Magic.into()) }
}

/// A filter from a pipe, or as much of it as has come, and one more byte if there is one, so that
/// decoding refuses it. A pipe may have no end: input that is no filter, or claims to be larger
/// than the limit, is refused before it fills the memory.
fn read_stream(stream: &mut dyn Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut read_up_to = |len: u64, bytes: &mut Vec<u8>| {
        stream.take(len.saturating_sub(bytes.len() as u64)).read_to_end(bytes)
    };
    read_up_to(FIXED as u64, &mut bytes)?;
    starts_as_a_filter(&bytes)?;
    read_up_to(header_len(&bytes).unwrap_or(0) as u64, &mut bytes)?;
    header(&bytes)?;
    let end = claimed_end(&bytes).unwrap_or(0);
    let limit = limits(0).memory;
    if end > limit {
        return Err(refused(WireError::Limit { field: "sections", need: end, limit }));
    }
    read_up_to(end.saturating_add(1), &mut bytes)?;
    Ok(bytes)
}
