//! A column of keys, and how each type spells its keys: the one place of that rule beside the
//! single keys in `key.rs`.

use std::ops::Range;

use pyo3::PyResult;
use tamis::{Digest, Hasher};

use crate::errors::bad_batch;
use crate::foreign::{Memory, Owner};

/// An integer type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Integer {
    pub(crate) bits: u32,
    pub(crate) signed: bool,
    pub(crate) big_endian: bool,
}

impl Integer {
    /// An integer in the machine's own order of bytes.
    pub(crate) fn native(bits: u32, signed: bool) -> Self {
        Self { bits, signed, big_endian: cfg!(target_endian = "big") }
    }

    pub(crate) fn width(self) -> usize {
        (self.bits / 8) as usize
    }

    /// The value at `offset` in 64 bits: the same number is the same key in every width.
    #[inline]
    fn read(self, data: Memory, offset: isize) -> u64 {
        macro_rules! read {
            ($signed:ty, $unsigned:ty) => {{
                let bytes = data.array(offset);
                let number = if self.big_endian {
                    <$unsigned>::from_be_bytes(bytes)
                } else {
                    <$unsigned>::from_le_bytes(bytes)
                };
                if self.signed { i64::from(number as $signed) as u64 } else { u64::from(number) }
            }};
        }
        match self.bits {
            8 => read!(i8, u8),
            16 => read!(i16, u16),
            32 => read!(i32, u32),
            _ => read!(i64, u64),
        }
    }

    /// Whether a value can be used without a look at its type.
    fn is_word(self) -> bool {
        self.bits == 64 && !self.big_endian
    }
}

/// What of a type decides how its keys are read.
pub(crate) enum Shape {
    /// Only nulls.
    Nothing,
    /// Strings or bytes with offsets of 32 bits.
    Narrow,
    /// Strings or bytes with offsets of 64 bits.
    Wide,
    /// Strings or bytes behind views of 16 bytes.
    Views,
    /// Bytes of one width.
    Fixed(usize),
    Integer(Integer),
    Dictionary(Integer, Box<Shape>),
    /// A key of several columns.
    Row(Vec<Shape>),
}

/// The most columns that make up one key: as many as a tuple may have in Rust.
const MOST_COLUMNS: usize = 4;

impl Shape {
    /// The shape that an Arrow format names.
    pub(crate) fn parse(format: &str) -> PyResult<Self> {
        let integer = |bits, signed| Self::Integer(Integer::native(bits, signed));
        Ok(match format {
            "n" => Self::Nothing,
            "u" | "z" => Self::Narrow,
            "U" | "Z" => Self::Wide,
            "vu" | "vz" => Self::Views,
            "c" => integer(8, true),
            "C" => integer(8, false),
            "s" => integer(16, true),
            "S" => integer(16, false),
            "i" => integer(32, true),
            "I" => integer(32, false),
            "l" => integer(64, true),
            "L" => integer(64, false),
            _ => match format.strip_prefix("w:").map(str::parse) {
                Some(Ok(width)) => Self::Fixed(width),
                _ => return Err(bad_batch(&format!("{} are no keys; {ADVICE}", named(format)))),
            },
        })
    }

    pub(crate) fn dictionary(indices: Self, values: Self) -> PyResult<Self> {
        match (indices, values) {
            (Self::Integer(_), Self::Row(_) | Self::Dictionary(..)) => {
                Err(bad_batch(&format!("nested values are no keys; {ADVICE}")))
            }
            (Self::Integer(integer), values) => Ok(Self::Dictionary(integer, Box::new(values))),
            _ => Err(bad_batch("the indices of a dictionary are integers")),
        }
    }

    pub(crate) fn row(columns: Vec<Self>) -> PyResult<Self> {
        if columns.iter().any(|column| matches!(column, Self::Row(_))) {
            return Err(bad_batch(&format!("nested values are no keys; {ADVICE}")));
        }
        match columns.len() {
            // A table of one column is that column: what a query returns has no other form.
            1..=MOST_COLUMNS => Ok(Self::Row(columns)),
            0 => Err(bad_batch("a table without columns has no keys")),
            count => Err(bad_batch(&format!(
                "a key has at most {MOST_COLUMNS} columns, not {count}; choose some of them"
            ))),
        }
    }
}

const ADVICE: &str = "keys are strings, bytes and integers, so cast them first";

/// What people call the types that are refused.
fn named(format: &str) -> String {
    let name = match format {
        "b" => "booleans",
        "e" | "f" | "g" => "floats",
        _ if format.starts_with('t') => "dates, times and durations",
        _ if format.starts_with("d:") => "decimals",
        _ if format.starts_with('+') => "nested values",
        _ => return format!("values of the Arrow format {format}"),
    };
    name.to_owned()
}

/// Where the keys of a column lie.
pub(crate) enum Cells {
    Nothing,
    Narrow { offsets: Memory, data: Memory },
    Wide { offsets: Memory, data: Memory },
    Views { views: Memory, data: Vec<Memory> },
    Fixed { data: Memory, step: isize, width: usize, trimmed: bool },
    Integer { data: Memory, step: isize, integer: Integer },
    Dictionary { indices: Memory, step: isize, integer: Integer, values: Box<Column> },
    Row(Vec<Column>),
}

/// Keys of one type, in memory that somebody else owns.
pub(crate) struct Column {
    cells: Cells,
    /// Rows of the memory that come before the first of this column.
    offset: usize,
    len: usize,
    /// A bit a row: whether it has a value.
    valid: Option<Memory>,
    owner: Option<Owner>,
}

impl Column {
    /// Everything is checked that can be: what Arrow stores says nothing of the lengths of its
    /// buffers.
    pub(crate) fn new(
        cells: Cells,
        offset: usize,
        len: usize,
        valid: Option<Memory>,
    ) -> PyResult<Self> {
        let column = Self { cells, offset, len, valid, owner: None };
        if let Cells::Dictionary { values, .. } = &column.cells {
            let outside = |&row: &usize| {
                !column.lacks(row) && column.index(row).is_none_or(|index| index >= values.len)
            };
            if let Some(row) = (0..len).find(outside) {
                return Err(bad_batch(&format!("row {row} points outside its dictionary")));
            }
        }
        Ok(column)
    }

    pub(crate) fn owned_by(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether rows may be null.
    pub(crate) fn has_nulls(&self) -> bool {
        self.valid.is_some()
            || match &self.cells {
                Cells::Nothing => true,
                Cells::Dictionary { values, .. } => values.has_nulls(),
                Cells::Row(columns) => columns.iter().any(Self::has_nulls),
                _ => false,
            }
    }

    /// Whether `row` is null, in itself or in what it points to.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.lacks(row)
            || match &self.cells {
                Cells::Nothing => true,
                Cells::Dictionary { values, .. } => {
                    self.index(row).is_none_or(|index| values.is_null(index))
                }
                Cells::Row(columns) => columns.iter().any(|column| column.is_null(row)),
                _ => false,
            }
    }

    /// Whether the column's own bitmap says that `row` has no value.
    fn lacks(&self, row: usize) -> bool {
        let at = self.offset + row;
        self.valid.is_some_and(|bits| bits.array::<1>((at / 8) as isize)[0] >> (at % 8) & 1 == 0)
    }

    /// Where in its dictionary `row` points.
    fn index(&self, row: usize) -> Option<usize> {
        let Cells::Dictionary { indices, step, integer, .. } = &self.cells else { return None };
        usize::try_from(integer.read(*indices, (self.offset + row) as isize * step)).ok()
    }

    /// Appends the digests of `rows`, without those that are null.
    pub(crate) fn digest(&self, hasher: Hasher, rows: Range<usize>, digests: &mut Vec<Digest>) {
        let digest = |bytes: &[u8]| hasher.digest_bytes(bytes);
        if self.has_nulls() {
            let present = rows.filter(|&row| !self.is_null(row));
            return digests.extend(present.map(|row| self.with_key(row, digest)));
        }
        // One loop a type, so that no row asks for it.
        macro_rules! each {
            ($pattern:pat) => {
                digests.extend(rows.map(|row| match &self.cells {
                    $pattern => self.with_key(row, digest),
                    _ => Digest(0),
                }))
            };
        }
        match &self.cells {
            Cells::Narrow { .. } => each!(Cells::Narrow { .. }),
            Cells::Views { .. } => each!(Cells::Views { .. }),
            Cells::Integer { data, step: 8, integer } if integer.is_word() => {
                let from = self.offset;
                digests
                    .extend(rows.map(|row| digest(&data.array::<8>(((from + row) * 8) as isize))));
            }
            _ => digests.extend(rows.map(|row| self.with_key(row, digest))),
        }
    }

    /// Hands the bytes of a key that is not null to `take`.
    #[inline]
    fn with_key<R>(&self, row: usize, take: impl FnOnce(&[u8]) -> R) -> R {
        let at = (self.offset + row) as isize;
        match &self.cells {
            Cells::Nothing => take(&[]),
            Cells::Narrow { offsets, data } => {
                let [from, to] = [at, at + 1].map(|at| i32::from_ne_bytes(offsets.array(at * 4)));
                take(data.at(from as isize, (to - from).max(0) as usize))
            }
            Cells::Wide { offsets, data } => {
                let [from, to] = [at, at + 1].map(|at| i64::from_ne_bytes(offsets.array(at * 8)));
                take(data.at(from as isize, (to - from).max(0) as usize))
            }
            Cells::Views { views, data } => take(view(*views, data, at)),
            &Cells::Fixed { data, step, width, trimmed } => {
                let bytes = data.at(at * step, width);
                let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                take(if trimmed { &bytes[..end] } else { bytes })
            }
            &Cells::Integer { data, step, integer } => {
                take(&integer.read(data, at * step).to_le_bytes())
            }
            Cells::Dictionary { values, .. } => {
                values.with_key(self.index(row).unwrap_or(0), take_any(take))
            }
            Cells::Row(columns) => take(&join(columns, row)),
        }
    }
}

type Take<'a, R> = Box<dyn FnOnce(&[u8]) -> R + 'a>;

/// Breaks the recursion of types: a dictionary's key is taken through one pointer.
fn take_any<'a, R: 'a>(take: impl FnOnce(&[u8]) -> R + 'a) -> Take<'a, R> {
    Box::new(take)
}

/// The bytes of view `at`: in the view itself if they are at most 12, otherwise in a buffer.
fn view<'a>(views: Memory, data: &[Memory], at: isize) -> &'a [u8] {
    const INLINE: usize = 12;
    let number = |offset: isize| i32::from_ne_bytes(views.array(at * 16 + offset));
    let len = number(0).max(0) as usize;
    if len <= INLINE {
        return views.at(at * 16 + 4, len);
    }
    let buffer = usize::try_from(number(8)).ok().and_then(|index| data.get(index));
    buffer.map_or(&[], |buffer| buffer.at(number(12) as isize, len))
}

/// The key of a row: of one column its own, of several that of a tuple, which has for each column
/// the length as a `u64` and then the bytes.
fn join(columns: &[Column], row: usize) -> Vec<u8> {
    let mut key = Vec::new();
    for column in columns {
        column.with_key(row, &mut |bytes: &[u8]| {
            if columns.len() > 1 {
                key.extend((bytes.len() as u64).to_le_bytes());
            }
            key.extend(bytes);
        });
    }
    key
}
