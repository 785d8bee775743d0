//! Keys from files and stdin: lines of bytes, read in bounded memory and handed on in batches.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use memchr::{memchr, memchr_iter, memrchr};
use tamis::{Digest, Hasher};

use crate::numbers;
use crate::progress::Progress;
use crate::show::{self, Output};
use crate::store::{is_stdio, name};
use crate::target::same_file;

/// Bytes read at once: enough to make system calls cheap, few enough to stay in the second cache.
/// Only a longer line makes the buffer grow.
const BUFFER: usize = 256 << 10;

/// Lines handed on at once.
const BATCH: usize = 1024;

/// Where keys come from, and what part of a line is the key.
#[derive(Args)]
#[command(next_help_heading = "Keys")]
pub(crate) struct Keys {
    /// Lines end with NUL instead of a line feed
    #[arg(short = '0', long)]
    null: bool,

    /// Lines may end with CR LF: one CR at the end of a line is not part of the key
    #[arg(long, conflicts_with = "null")]
    crlf: bool,

    /// The key is field N of the line, counted from 1. A line with fewer fields has the empty key
    #[arg(short, long, value_name = "N", allow_hyphen_values = true)]
    field: Option<NonZeroUsize>,

    /// Byte between fields, such as , or \x1f [default: TAB]
    #[arg(short, long, value_name = "BYTE", value_parser = numbers::byte, requires = "field")]
    delimiter: Option<u8>,

    /// Keys are decimal integers, as programs insert them: the 8 bytes of an i64 or a u64, not the
    /// digits. Numbers from -2^63 to 2^64 - 1
    #[arg(long)]
    integers: bool,

    /// Files with a key a line; - is stdin, and so is no file at all
    #[arg(value_name = "KEYFILE", help_heading = None)]
    files: Vec<PathBuf>,
}

/// Some lines, and the digests of their keys.
pub(crate) struct Batch<'a> {
    /// One a line.
    pub(crate) digests: &'a [Digest],
    /// Whole lines, without line ends.
    pub(crate) lines: &'a [&'a [u8]],
    /// The input has no more lines ready: flush the output, somebody may be waiting for it.
    pub(crate) pause: bool,
}

impl Keys {
    /// The byte at the end of a line.
    fn separator(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    /// Whether stdin is one of the inputs.
    pub(crate) fn use_stdin(&self) -> bool {
        self.inputs().any(is_stdio)
    }

    /// Refuses what is bound to fail, before any key is read: missing inputs, stdin named twice,
    /// and an output that is also an input, because its keys would be overwritten. `output` need
    /// not exist.
    pub(crate) fn check(&self, output: Option<&Path>) -> Result<()> {
        if self.inputs().filter(|path| is_stdio(path)).count() > 1 {
            bail!("stdin can be read only once; name - once");
        }
        let output = output.and_then(|path| fs::metadata(path).ok()).filter(fs::Metadata::is_file);
        for path in self.inputs() {
            let facts = if is_stdio(path) {
                Input::stdin().and_then(|input| input.file.metadata()).ok()
            } else {
                Some(readable(path)?)
            };
            if facts.zip(output.as_ref()).is_some_and(|(facts, output)| same_file(&facts, output)) {
                bail!("{} holds keys to be read, and the filter would take its place", name(path));
            }
        }
        Ok(())
    }

    /// How many lines there are; `None` if an input can be read only once.
    pub(crate) fn count(&self) -> Result<Option<u64>> {
        let mut progress = Progress::quiet("counting", self.size());
        let mut lines = 0;
        for path in self.inputs() {
            let mut input = Input::open(path)?;
            if input.size.is_none() {
                return Ok(None);
            }
            let start = input.file.stream_position()?;
            let mut chunks = Chunks::new(&mut input, self.separator());
            while let Some(chunk) = chunks.next().with_context(|| failed_to_read(path))? {
                lines += memchr_iter(self.separator(), chunk).count() as u64;
                lines += u64::from(!chunk.ends_with(&[self.separator()]));
                progress.advance(chunk.len() as u64);
            }
            // A redirected stdin is read again from where it stood.
            input.file.seek(SeekFrom::Start(start))?;
        }
        Ok(Some(lines))
    }

    /// Bytes of all inputs together, if all are regular files.
    pub(crate) fn size(&self) -> Option<u64> {
        let size = |path: &Path| {
            if is_stdio(path) {
                return Input::stdin().ok()?.size;
            }
            let facts = fs::metadata(path).ok()?;
            facts.is_file().then_some(facts.len())
        };
        self.inputs().map(size).sum()
    }

    /// Hands every line to `take`, batch after batch, until it breaks off.
    pub(crate) fn each_batch(
        &self,
        hasher: Hasher,
        mut progress: Progress,
        mut take: impl FnMut(&Batch) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut digests = Vec::with_capacity(BATCH);
        for path in self.inputs() {
            let mut input = Input::open(path)?;
            let live = input.size.is_none();
            let mut chunks = Chunks::new(&mut input, self.separator());
            while let Some(chunk) = chunks.next().with_context(|| failed_to_read(path))? {
                let mut rest = lines(chunk, self.separator()).peekable();
                let mut lines = Vec::with_capacity(BATCH);
                while rest.peek().is_some() {
                    digests.clear();
                    lines.clear();
                    for line in rest.by_ref().take(BATCH) {
                        digests.push(self.digest(hasher, line)?);
                        lines.push(line);
                    }
                    let batch = Batch {
                        digests: &digests,
                        lines: &lines,
                        pause: live && rest.peek().is_none(),
                    };
                    if take(&batch)?.is_break() {
                        return Ok(());
                    }
                }
                progress.advance(chunk.len() as u64);
            }
        }
        Ok(())
    }

    /// As [`each_batch`](Self::each_batch), for a verb that prints lines: `take` also gets
    /// standard output, which is flushed where the input pauses and at the end.
    pub(crate) fn print_batches(
        &self,
        hasher: Hasher,
        progress: Progress,
        mut take: impl FnMut(&Batch, &mut BufWriter<Output>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut out = show::output();
        self.each_batch(hasher, progress, |batch| {
            let flow = take(batch, &mut out)?;
            if batch.pause {
                out.flush()?;
            }
            Ok(flow)
        })?;
        Ok(out.flush()?)
    }

    /// Prints a line as it was read.
    pub(crate) fn write_line(&self, out: &mut impl Write, line: &[u8]) -> io::Result<()> {
        out.write_all(line)?;
        out.write_all(&[self.separator()])
    }

    fn inputs(&self) -> impl Iterator<Item = &Path> {
        let stdin = self.files.is_empty().then_some(Path::new("-"));
        self.files.iter().map(PathBuf::as_path).chain(stdin)
    }

    /// The digest of the key in a line.
    #[inline]
    fn digest(&self, hasher: Hasher, line: &[u8]) -> Result<Digest> {
        let key = self.key(line);
        if !self.integers {
            return Ok(hasher.digest_bytes(key));
        }
        let Some(number) = integer(key) else {
            bail!(
                "'{}' is no integer from -2^63 to 2^64 - 1; leave out --integers to take lines as \
                 text",
                String::from_utf8_lossy(key)
            );
        };
        Ok(hasher.digest(&number))
    }

    /// The part of a line that is the key.
    #[inline]
    pub(crate) fn key<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let line = match line {
            [line @ .., b'\r'] if self.crlf => line,
            _ => line,
        };
        match self.field {
            None => line,
            Some(number) => field(line, self.delimiter.unwrap_or(b'\t'), number.get()),
        }
    }
}

/// The 64 bits of a decimal number. An `i64` and a `u64` agree where both have it.
fn integer(text: &[u8]) -> Option<u64> {
    let text = str::from_utf8(text).ok()?;
    text.parse().ok().or_else(|| text.parse::<i64>().ok().map(|number| number as u64))
}

/// Field `number` of a line, counted from 1; empty if there are fewer.
fn field(line: &[u8], delimiter: u8, number: usize) -> &[u8] {
    let mut starts = std::iter::once(0).chain(memchr_iter(delimiter, line).map(|at| at + 1));
    let rest = starts.nth(number - 1).map_or(&[][..], |at| &line[at..]);
    memchr(delimiter, rest).map_or(rest, |end| &rest[..end])
}

/// The lines of a chunk that ends with a line end, or with the end of its input.
fn lines(chunk: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let body = chunk.strip_suffix(&[separator]).unwrap_or(chunk);
    let mut start = 0;
    memchr_iter(separator, body).chain(std::iter::once(body.len())).map(move |end| {
        let line = &body[start..end];
        start = end + 1;
        line
    })
}

/// What a file of keys is, if it can be read.
fn readable(path: &Path) -> Result<fs::Metadata> {
    let facts = fs::metadata(path).with_context(|| failed_to_open(path))?;
    if facts.is_dir() {
        bail!("{} is a directory; give files of keys", path.display());
    }
    // Opening a pipe would take the place of the reader that its writer waits for.
    if facts.is_file() {
        File::open(path).with_context(|| failed_to_open(path))?;
    }
    Ok(facts)
}

fn failed_to_open(path: &Path) -> String {
    format!("cannot open {}", path.display())
}

fn failed_to_read(path: &Path) -> String {
    format!("cannot read {}", name(path))
}

/// An open file of keys.
struct Input {
    file: File,
    /// Bytes that are left, if it is a regular file.
    size: Option<u64>,
}

impl Input {
    fn open(path: &Path) -> Result<Self> {
        if is_stdio(path) {
            return Self::stdin().context("cannot read stdin");
        }
        let file = File::open(path).with_context(|| failed_to_open(path))?;
        let facts = file.metadata().with_context(|| failed_to_read(path))?;
        Ok(Self { size: facts.is_file().then_some(facts.len()), file })
    }

    /// Stdin without the buffer of the standard library, so that what is counted can be read
    /// again.
    fn stdin() -> io::Result<Self> {
        let mut file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let facts = file.metadata()?;
        let size = if facts.is_file() {
            Some(facts.len().saturating_sub(file.stream_position()?))
        } else {
            None
        };
        Ok(Self { file, size })
    }
}

/// An input in chunks of whole lines.
struct Chunks<'a> {
    file: &'a mut File,
    separator: u8,
    bytes: Vec<u8>,
    /// Bytes that were read and handed out.
    taken: usize,
    /// Bytes that were read.
    filled: usize,
}

impl<'a> Chunks<'a> {
    fn new(input: &'a mut Input, separator: u8) -> Self {
        Self { file: &mut input.file, separator, bytes: vec![0; BUFFER], taken: 0, filled: 0 }
    }

    /// As many whole lines as have come, at least one; the last line of the input may lack its
    /// end. `None` at the end.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.bytes.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        loop {
            if self.filled == self.bytes.len() {
                // A line may be longer than memory, and that is no reason to abort.
                self.bytes.try_reserve_exact(self.filled).map_err(|_| {
                    let longer = format!("a line is longer than the {} bytes at hand", self.filled);
                    io::Error::new(io::ErrorKind::OutOfMemory, longer)
                })?;
                self.bytes.resize(self.filled * 2, 0);
            }
            let from = self.filled;
            match self.file.read(&mut self.bytes[from..]) {
                Ok(0) => {
                    self.taken = self.filled;
                    return Ok(Some(&self.bytes[..self.taken]).filter(|chunk| !chunk.is_empty()));
                }
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if let Some(at) = memrchr(self.separator, &self.bytes[from..self.filled]) {
                self.taken = from + at + 1;
                return Ok(Some(&self.bytes[..self.taken]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_the_separator_or_with_the_input() {
        let split = |chunk: &'static str| lines(chunk.as_bytes(), b'\n').collect::<Vec<_>>();
        assert_eq!(split("a\nb\n"), [b"a", b"b"]);
        assert_eq!(split("a\nb"), [b"a", b"b"]);
        assert_eq!(split("\n"), [b""]);
        assert_eq!(split("\n\na"), [&b""[..], b"", b"a"]);
    }

    #[test]
    fn integers_are_those_of_programs() {
        assert_eq!(integer(b"0"), Some(0));
        assert_eq!(integer(b"-1"), Some(u64::MAX));
        assert_eq!(integer(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(integer(b"-9223372036854775808"), Some(1 << 63));
        for text in ["", "1.0", " 1", "0x10", "18446744073709551616", "-9223372036854775809"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn fields_count_from_one_and_may_be_missing() {
        assert_eq!(field(b"a,b,c", b',', 1), b"a");
        assert_eq!(field(b"a,b,c", b',', 2), b"b");
        assert_eq!(field(b"a,b,c", b',', 3), b"c");
        assert_eq!(field(b"a,b,c", b',', 4), b"");
        assert_eq!(field(b"a,,c", b',', 2), b"");
        assert_eq!(field(b"", b',', 1), b"");
    }
}
