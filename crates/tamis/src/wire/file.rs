//! Filters from files: read through a source, or mapped and used in place.

use std::io::Read;
use std::string::{String, ToString};

use super::Source;

/// A reader of known length, such as an open file.
#[derive(Debug)]
pub struct ReadSource<R> {
    reader: R,
    remaining: u64,
}

impl<R: Read> ReadSource<R> {
    /// `reader` must give `len` bytes; if it ends before, reading is an error.
    pub fn new(reader: R, len: u64) -> Self {
        Self { reader, remaining: len }
    }
}

impl<R: Read> Source for ReadSource<R> {
    fn remaining(&self) -> u64 {
        self.remaining
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), String> {
        self.reader.read_exact(buffer).map_err(|error| error.to_string())?;
        self.remaining -= buffer.len() as u64;
        Ok(())
    }
}
