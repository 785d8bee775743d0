//! Keys from files and stdin: lines or records, read in bounded memory and handed on in batches.

mod csv;
mod json;
mod lines;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::slice;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use memchr::memchr_iter;
use tamis::{Digest, Hasher};

use self::lines::{Chunks, Ends, Rule};
use crate::input::{self, Input, Trust, failed_to_open, failed_to_read};
use crate::numbers;
use crate::progress::Progress;
use crate::show::{self, Output};
use crate::store::{is_stdio, name};
use crate::system;

/// Lines handed on at once.
const BATCH: usize = 1024;

/// Where keys come from, and what part of a line is the key.
#[derive(Args)]
#[command(next_help_heading = "Keys")]
#[group(skip)]
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

    /// Byte between fields, such as , or \x1f [default: TAB, and a comma with --csv]
    #[arg(short, long, value_name = "BYTE", value_parser = numbers::byte)]
    delimiter: Option<u8>,

    /// The input is CSV with a header line, and the key is this column. Repeated, the key is all
    /// of these columns, as a tuple is a key of the library
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["null", "crlf", "field"])]
    csv: Vec<String>,

    /// Each line is a JSON object, and the key is this field: the text of a string, or a number as
    /// it is written. A dot leads into an object, such as user.id. Repeated, as --csv
    #[arg(long, value_name = "FIELD", conflicts_with_all = ["null", "field", "delimiter", "csv"])]
    jsonl: Vec<String>,

    /// The files are Parquet, and the key is this column of text, bytes or integers (decimal, as
    /// everywhere; see --integers). Rows where it is null are passed over; a row is printed as a
    /// JSON object. Repeated, as --csv. For a tamis that was built with --features parquet
    #[arg(
        long,
        value_name = "COLUMN",
        conflicts_with_all = ["null", "crlf", "field", "delimiter", "csv", "jsonl", "force"]
    )]
    parquet: Vec<String>,

    /// Keys are decimal integers, as programs insert them: the 8 bytes of an i64 or a u64, not the
    /// digits. Numbers from -2^63 to 2^64 - 1. With =32 they are the 4 bytes of an i32 or a u32
    #[arg(
        long,
        value_name = "BITS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "64",
        hide_possible_values = true
    )]
    integers: Option<Width>,

    /// Take every byte of the input as it is: unpack nothing, refuse nothing
    #[arg(long)]
    force: bool,

    /// Files with a key on each line; - is stdin, and so is no file at all. Files that are
    /// compressed (gzip, zstd, bzip2, xz) are unpacked, and UTF-16 behind its mark becomes UTF-8
    #[arg(value_name = "KEYFILE", help_heading = None)]
    files: Vec<PathBuf>,
}

/// The bits of integers that are keys.
#[derive(Clone, Copy, ValueEnum)]
enum Width {
    #[value(name = "32")]
    Bits32 = 32,
    #[value(name = "64")]
    Bits64 = 64,
}

/// Some lines or records, their keys, and the digests of these.
pub(crate) struct Batch<'a> {
    /// One a line.
    pub(crate) digests: &'a [Digest],
    /// Whole lines, without line ends.
    pub(crate) lines: &'a [&'a [u8]],
    /// One a line.
    pub(crate) keys: &'a [Cow<'a, [u8]>],
    /// The header line of the records, before the first of them.
    pub(crate) header: Option<&'a [u8]>,
    /// The input has no more lines ready: flush the output, somebody may be waiting for it.
    pub(crate) pause: bool,
}

impl Keys {
    /// The byte at the end of a line.
    fn separator(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    fn trust(&self) -> Trust {
        match (self.force, self.null) {
            (true, _) => Trust::Bytes,
            (false, true) => Trust::Nuls,
            (false, false) => Trust::Text,
        }
    }

    /// Whether stdin is one of the inputs.
    pub(crate) fn use_stdin(&self) -> bool {
        self.inputs().any(is_stdio)
    }

    /// Refuses what is bound to fail, before any key is read: missing inputs, stdin named twice,
    /// and an output that is also an input, because its keys would be overwritten. `output` need
    /// not exist.
    pub(crate) fn check(&self, output: Option<&Path>) -> Result<()> {
        if self.delimiter.is_some() && self.field.is_none() && self.csv.is_empty() {
            bail!("--delimiter stands between fields; say which with --field N or --csv COLUMN");
        }
        if cfg!(not(feature = "parquet")) && !self.parquet.is_empty() {
            bail!(built_without("parquet"));
        }
        if self.inputs().filter(|path| is_stdio(path)).count() > 1 {
            bail!("stdin can be read only once; name - once");
        }
        let is_file = |path: &&Path| fs::metadata(path).is_ok_and(|facts| facts.is_file());
        let output = output.filter(is_file).and_then(|path| system::identity(path).ok());
        for path in self.inputs() {
            let input = if is_stdio(path) {
                input::open(path).and_then(|file| Ok(system::identity_of(&file)?)).ok()
            } else {
                check_readable(path)?;
                Some(path).filter(is_file).and_then(|path| system::identity(path).ok())
            };
            if input.is_some() && input == output {
                bail!("{} holds keys to be read, and the filter would take its place", name(path));
            }
        }
        Ok(())
    }

    /// How many lines there are; `None` if an input can be read only once, or would have to be
    /// unpacked or taken apart for it.
    pub(crate) fn count(&self) -> Result<Option<u64>> {
        if !self.csv.is_empty() || !self.parquet.is_empty() {
            return Ok(None);
        }
        let mut progress = Progress::quiet("counting", self.size());
        let mut lines = 0;
        for path in self.inputs() {
            // A named pipe is not even opened: its writer would lose its reader when it is closed.
            if !is_regular(path) {
                return Ok(None);
            }
            let mut input = Input::open(path, self.trust())?;
            if input.plain {
                let mut chunks = Chunks::new(&mut input.bytes, self.separator());
                while let Some(chunk) = chunks.next().with_context(|| failed_to_read(path))? {
                    lines += memchr_iter(self.separator(), chunk).count() as u64;
                    lines += u64::from(!chunk.ends_with(&[self.separator()]));
                    progress.advance(chunk.len() as u64);
                }
            }
            let plain = input.plain;
            // A redirected stdin is read again from where it stood.
            input.rewind()?;
            if !plain {
                return Ok(None);
            }
        }
        Ok(Some(lines))
    }

    /// Bytes of all inputs together, if all are regular files.
    pub(crate) fn size(&self) -> Option<u64> {
        let size = |path: &Path| {
            if is_stdio(path) {
                let mut file = input::open(path).ok()?;
                let facts = file.metadata().ok().filter(fs::Metadata::is_file)?;
                return Some(facts.len().saturating_sub(file.stream_position().ok()?));
            }
            let facts = fs::metadata(path).ok()?;
            facts.is_file().then_some(facts.len())
        };
        self.inputs().map(size).sum()
    }

    /// Refuses --integers, for keys that go to a server as they are written.
    pub(crate) fn refuse_integers(&self) -> Result<()> {
        if self.integers.is_some() {
            bail!("keys go to a server as they are written; leave out --integers");
        }
        Ok(())
    }

    /// Hands every key to `take`, batch after batch, until it breaks off.
    pub(crate) fn each_batch(
        &self,
        hasher: Hasher,
        progress: Progress,
        take: impl FnMut(&Batch) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.batches(hasher, progress, false, take)
    }

    /// Hands on keys and, if these are `printed`, lines.
    fn batches(
        &self,
        hasher: Hasher,
        mut progress: Progress,
        printed: bool,
        mut take: impl FnMut(&Batch) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut digests = Vec::with_capacity(BATCH);
        let warned = Cell::new(false);
        for (index, path) in self.inputs().enumerate() {
            let mut line = 0_u64;
            let mut hand_on = |some: &Piece| {
                digests.clear();
                for key in some.keys {
                    line += 1;
                    digests.push(self.digest(hasher, key).with_context(|| self.place(path, line))?);
                }
                take(&Batch {
                    digests: &digests,
                    lines: some.lines,
                    keys: some.keys,
                    header: some.header.filter(|_| index == 0),
                    pause: some.last,
                })
            };
            if self.each_piece(path, printed, &warned, &mut progress, &mut hand_on)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// What errors call line `line` of an input.
    fn place(&self, path: &Path, line: u64) -> String {
        let name = name(path);
        if !self.parquet.is_empty() {
            // Rows with nulls were passed over, and not counted.
            name
        } else if !self.csv.is_empty() {
            format!("{name}, record {line}")
        } else {
            format!("{name}, line {line}")
        }
    }

    /// Hands on the lines or records of one input.
    fn each_piece(
        &self,
        path: &Path,
        printed: bool,
        warned: &Cell<bool>,
        progress: &mut Progress,
        hand_on: &mut HandOn,
    ) -> Result<ControlFlow<()>> {
        #[cfg(feature = "parquet")]
        if !self.parquet.is_empty() {
            return parquet::each_row(path, &self.parquet, printed, hand_on);
        }
        #[cfg(not(feature = "parquet"))]
        let _ = printed;
        let Input { bytes, live, read, .. } = Input::open(path, self.trust())?;
        let mut seen = 0;
        let mut hand_on = |some: &Piece| {
            progress.advance(read.get() - seen);
            seen = read.get();
            hand_on(&Piece { last: live && some.last, ..*some })
        };
        if self.csv.is_empty() {
            let ends = Ends { separator: self.separator(), crlf: self.crlf, warned };
            lines::each_line(bytes, path, &ends, &self.rule(), &mut hand_on)
        } else {
            let delimiter = self.delimiter.unwrap_or(b',');
            csv::each_record(bytes, path, delimiter, &self.csv, &mut hand_on)
        }
    }

    /// Keys that are lines of their own, as a batch. `digests` is where their digests go.
    pub(crate) fn batch_of<'a>(
        &self,
        keys: &'a [&'a [u8]],
        hasher: Hasher,
        digests: &'a mut Vec<Digest>,
    ) -> Result<Batch<'a>> {
        for key in keys {
            digests.push(self.digest(hasher, key)?);
        }
        Ok(Batch { digests, lines: keys, keys: &[], header: None, pause: false })
    }

    /// The digest of a key.
    fn digest(&self, hasher: Hasher, key: &[u8]) -> Result<Digest> {
        let Some(width) = self.integers else {
            return Ok(hasher.digest_bytes(key));
        };
        let bits = width as u32;
        let number = integer(key, bits).with_context(|| {
            format!(
                "'{}' is no integer from -2^{} to 2^{bits} - 1; leave out --integers to take keys \
                 as text",
                String::from_utf8_lossy(key),
                bits - 1
            )
        })?;
        Ok(hasher.digest_bytes(&number.to_le_bytes()[..bits as usize / 8]))
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
        self.batches(hasher, progress, true, |batch| {
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

    /// The time in a field of a line that is a JSON object, in milliseconds. The field says
    /// seconds.
    pub(crate) fn time(line: &[u8], field: &String) -> Result<u64> {
        let text = json::key(line, slice::from_ref(field))?;
        let seconds = str::from_utf8(&text).ok().and_then(|text| text.parse::<f64>().ok());
        let seconds = seconds.filter(|seconds| (0.0..1e15).contains(seconds));
        let shown = String::from_utf8_lossy(&text);
        let seconds =
            seconds.with_context(|| format!("{field}: '{shown}' is no time in seconds"))?;
        Ok((seconds * 1000.0) as u64)
    }

    fn inputs(&self) -> impl Iterator<Item = &Path> {
        let stdin = self.files.is_empty().then_some(Path::new("-"));
        self.files.iter().map(PathBuf::as_path).chain(stdin)
    }

    /// What of a line is the key.
    fn rule(&self) -> Rule<'_> {
        match self.field {
            _ if !self.jsonl.is_empty() => Rule::Json(&self.jsonl),
            Some(number) => Rule::Field(number.get(), self.delimiter.unwrap_or(b'\t')),
            None => Rule::Line,
        }
    }
}

/// What to do where this build lacks a feature.
pub(crate) fn built_without(feature: &str) -> String {
    format!(
        "this tamis was built without {feature}; in a clone: cargo install --path \
         crates/tamis-cli --features {feature}"
    )
}

/// Some lines and their keys, as a reader of files hands them on.
struct Piece<'a> {
    lines: &'a [&'a [u8]],
    keys: &'a [Cow<'a, [u8]>],
    /// The header line, in the first of a file.
    header: Option<&'a [u8]>,
    /// Nothing more is ready.
    last: bool,
}

/// What takes them.
type HandOn<'a> = dyn FnMut(&Piece<'_>) -> Result<ControlFlow<()>> + 'a;

/// The key of several columns: as a tuple of the library, for each its length as a `u64`, then its
/// bytes. One column is the key itself.
fn joined<'a>(parts: impl ExactSizeIterator<Item = Cow<'a, [u8]>>) -> Cow<'a, [u8]> {
    let several = parts.len() > 1;
    let mut parts = parts.peekable();
    if !several {
        return parts.next().unwrap_or_default();
    }
    let mut key = Vec::new();
    for part in parts {
        key.extend((part.len() as u64).to_le_bytes());
        key.extend(&*part);
    }
    key.into()
}

/// Whether keys come from a regular file. Nothing is opened for it but stdin, which is open.
fn is_regular(path: &Path) -> bool {
    let facts = if is_stdio(path) {
        input::open(path).ok().and_then(|file| file.metadata().ok())
    } else {
        fs::metadata(path).ok()
    };
    facts.is_some_and(|facts| facts.is_file())
}

/// Refuses a file of keys that cannot be read.
fn check_readable(path: &Path) -> Result<()> {
    let facts = fs::metadata(path).with_context(|| failed_to_open(path))?;
    if facts.is_dir() {
        bail!("{} is a directory; give files of keys", path.display());
    }
    // Opening a pipe would take the place of the reader that its writer waits for.
    if facts.is_file() {
        File::open(path).with_context(|| failed_to_open(path))?;
    }
    Ok(())
}

/// A decimal number that has `bits` bits, with a sign or without; where both have it they agree.
fn integer(text: &[u8], bits: u32) -> Option<i128> {
    let number = str::from_utf8(text).ok()?.parse().ok()?;
    (-1 << (bits - 1)..1 << bits).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_programs() {
        for bits in [32, 64] {
            assert_eq!(integer(b"0", bits), Some(0));
            assert_eq!(integer(b"-1", bits), Some(-1));
            for text in ["", "1.0", " 1", "0x10", "18446744073709551616", "-9223372036854775809"] {
                assert_eq!(integer(text.as_bytes(), bits), None, "{text}");
            }
        }
        assert_eq!(integer(b"18446744073709551615", 64), Some(u64::MAX.into()));
        assert_eq!(integer(b"-9223372036854775808", 64), Some(i64::MIN.into()));
        assert_eq!(integer(b"4294967295", 32), Some(u32::MAX.into()));
        assert_eq!(integer(b"-2147483648", 32), Some(i32::MIN.into()));
        for text in ["4294967296", "-2147483649"] {
            assert_eq!(integer(text.as_bytes(), 32), None, "{text}");
        }
    }
}
