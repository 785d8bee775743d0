//! Files of keys as they come: opened, recognised by their first bytes, decompressed, and turned
//! into UTF-8 if they say that they are UTF-16. What is no list of keys is refused by its name.

mod formats;
mod utf16;

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result, bail};

use self::formats::Found;
pub(crate) use self::formats::compressed_with;
use self::utf16::Utf16;
use crate::store::{is_stdio, name};
use crate::system;

/// Bytes that are looked at, if they have come.
const LOOK: usize = 8 << 10;

/// Compressed more often than this is a bomb, or a mistake.
const MOST_LAYERS: usize = 3;

/// What is taken for text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// What has no NUL bytes and is no known format.
    Text,
    /// The same, where NUL bytes end lines.
    Nuls,
    /// Everything, as it is.
    Bytes,
}

/// An open file of keys.
pub(crate) struct Input {
    /// The keys: decompressed, and without a byte-order mark.
    pub(crate) bytes: Box<dyn Read>,
    /// Whether somebody may be waiting for answers: it is no regular file.
    pub(crate) live: bool,
    /// Whether `bytes` are those of the file, so that its lines can be counted quickly.
    pub(crate) plain: bool,
    /// Bytes of the file that have been read so far.
    pub(crate) read: Rc<Cell<u64>>,
    file: File,
    /// Where the file stood when it was opened; a redirected stdin need not stand at its start.
    start: u64,
}

impl Input {
    /// Opens a file of keys, or stdin.
    pub(crate) fn open(path: &Path, trust: Trust) -> Result<Self> {
        let mut file = open(path)?;
        let live = !file.metadata().with_context(|| failed_to_read(path))?.is_file();
        let start = if live { 0 } else { file.stream_position()? };
        let read = Rc::new(Cell::new(0));
        let raw = Counted { file: file.try_clone()?, read: Rc::clone(&read) };
        let mut input = Self { bytes: Box::new(raw), live, plain: true, read, file, start };
        for _ in 0..=MOST_LAYERS {
            let mut first = Vec::new();
            look(&mut input.bytes, &mut first).with_context(|| failed_to_read(path))?;
            let found = formats::recognise(&first, trust);
            if let Found::Mark(bytes) = found {
                first.drain(..bytes);
            }
            let whole: Box<dyn Read> = Box::new(io::Cursor::new(first).chain(input.bytes));
            input.plain &= matches!(found, Found::Text | Found::Mark(_));
            input.bytes = match found {
                Found::Text | Found::Mark(_) => {
                    input.bytes = whole;
                    return Ok(input);
                }
                Found::Compressed(open) => open(whole).with_context(|| failed_to_read(path))?,
                Found::Utf16 { big_endian } => {
                    input.bytes = Box::new(Utf16::new(whole, big_endian));
                    return Ok(input);
                }
                Found::Refused(what) => bail!(
                    "{} is {what}, not a list of keys; if its lines are keys all the same, say \
                     --force",
                    name(path)
                ),
            };
        }
        bail!("{} is compressed more than {MOST_LAYERS} times; unpack it first", name(path))
    }

    /// Goes back to where the file stood when it was opened.
    pub(crate) fn rewind(mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.start)).map(drop)
    }
}

/// Opens a file, or stdin without the buffer of the standard library, so that what is counted can
/// be read again.
pub(crate) fn open(path: &Path) -> Result<File> {
    if is_stdio(path) {
        return system::stdin().context("cannot read stdin");
    }
    File::open(path).with_context(|| failed_to_open(path))
}

pub(crate) fn failed_to_open(path: &Path) -> String {
    format!("cannot open {}", path.display())
}

pub(crate) fn failed_to_read(path: &Path) -> String {
    format!("cannot read {}", name(path))
}

/// Reads the first bytes of a stream. It waits for more than one read only while what has come
/// could be the start of a format, so that somebody who types is answered at once.
fn look(stream: &mut dyn Read, first: &mut Vec<u8>) -> io::Result<()> {
    first.resize(LOOK, 0);
    let mut filled = 0;
    loop {
        let read = match stream.read(&mut first[filled..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        filled += read;
        if read == 0 || filled == LOOK || !formats::may_become_one(&first[..filled]) {
            first.truncate(filled);
            return Ok(());
        }
    }
}

/// A file that tells how much of it was read.
struct Counted {
    file: File,
    read: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}
