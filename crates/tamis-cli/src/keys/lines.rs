//! Lines of bytes, and the part of each that is the key.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result};
use memchr::{memchr, memchr_iter, memrchr};

use super::{BATCH, HandOn, Piece, json};
use crate::input::failed_to_read;
use crate::show;
use crate::store::name;

/// Bytes read at once: enough to make system calls cheap, few enough to stay in the second cache.
/// Only a longer line makes the buffer grow.
const BUFFER: usize = 256 << 10;

/// How lines end.
pub(super) struct Ends<'a> {
    pub(super) separator: u8,
    /// A CR at the end of a line is not part of the key.
    pub(super) crlf: bool,
    /// Whether it was said that CRs are part of keys.
    pub(super) warned: &'a Cell<bool>,
}

/// What of a line is the key.
pub(super) enum Rule<'a> {
    Line,
    /// Field `.0`, counted from 1, between bytes `.1`.
    Field(usize, u8),
    /// These fields of a JSON object.
    Json(&'a [String]),
}

/// Hands on the lines of an input.
pub(super) fn each_line(
    mut bytes: Box<dyn Read>,
    path: &Path,
    ends: &Ends,
    rule: &Rule,
    hand_on: &mut HandOn,
) -> Result<ControlFlow<()>> {
    let mut number = 0;
    let mut chunks = Chunks::new(&mut bytes, ends.separator);
    while let Some(chunk) = chunks.next().with_context(|| failed_to_read(path))? {
        let mut rest = lines(chunk, ends.separator).peekable();
        let (mut some, mut keys) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        while rest.peek().is_some() {
            some.clear();
            keys.clear();
            for line in rest.by_ref().take(BATCH) {
                number += 1;
                let content = ends.content(line, path);
                keys.push(match rule {
                    Rule::Line => Cow::Borrowed(content),
                    Rule::Field(number, delimiter) => field(content, *delimiter, *number).into(),
                    Rule::Json(fields) => json::key(content, fields)
                        .with_context(|| format!("{}, line {number}", name(path)))?,
                });
                some.push(line);
            }
            let last = rest.peek().is_none();
            if hand_on(&Piece { lines: &some, keys: &keys, header: None, last })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

impl Ends<'_> {
    /// A line without the CR that belongs to its end.
    fn content<'a>(&self, line: &'a [u8], path: &Path) -> &'a [u8] {
        let [content @ .., b'\r'] = line else { return line };
        if self.crlf {
            return content;
        }
        if self.separator == b'\n' && !self.warned.replace(true) {
            show::note(&format_args!(
                "lines of {} end with CR LF, and the CR is part of the keys; --crlf leaves it out",
                name(path)
            ));
        }
        line
    }
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

/// An input in chunks of whole lines.
pub(super) struct Chunks<'a> {
    input: &'a mut dyn Read,
    separator: u8,
    bytes: Vec<u8>,
    /// Bytes that were read and handed out.
    taken: usize,
    /// Bytes that were read.
    filled: usize,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(input: &'a mut dyn Read, separator: u8) -> Self {
        Self { input, separator, bytes: vec![0; BUFFER], taken: 0, filled: 0 }
    }

    /// What was handed out last.
    pub(super) fn last(&self) -> &[u8] {
        &self.bytes[..self.taken]
    }

    /// As many whole lines as have come, at least one; the last line of the input may lack its
    /// end. `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
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
            match self.input.read(&mut self.bytes[from..]) {
                Ok(0) => {
                    self.taken = self.filled;
                    return Ok(Some(self.last()).filter(|chunk| !chunk.is_empty()));
                }
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if let Some(at) = memrchr(self.separator, &self.bytes[from..self.filled]) {
                self.taken = from + at + 1;
                return Ok(Some(self.last()));
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
    fn fields_count_from_one_and_may_be_missing() {
        assert_eq!(field(b"a,b,c", b',', 1), b"a");
        assert_eq!(field(b"a,b,c", b',', 2), b"b");
        assert_eq!(field(b"a,b,c", b',', 3), b"c");
        assert_eq!(field(b"a,b,c", b',', 4), b"");
        assert_eq!(field(b"a,,c", b',', 2), b"");
        assert_eq!(field(b"", b',', 1), b"");
    }
}
