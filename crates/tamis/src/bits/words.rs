//! The memory of every structure: zeroed, line-aligned words, owned or shared with a mapped file.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

#[cfg(all(feature = "huge-pages", target_os = "linux"))]
use super::huge_pages::zeroed;
#[cfg(not(all(feature = "huge-pages", target_os = "linux")))]
use super::line::zeroed;
use super::line::{self, Line};

/// Bytes with an owner of their own, such as a mapped file.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// The memory for a structure could not be allocated; nothing was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot allocate {bytes} bytes for the filter; ask for fewer keys, a higher rate or less memory"
)]
pub struct OutOfMemory {
    /// How many bytes were asked for.
    pub bytes: u64,
}

/// An empty vector with room for `len` elements.
pub(crate) fn with_room<T>(len: u64) -> Result<Vec<T>, OutOfMemory> {
    let refused = OutOfMemory { bytes: len.saturating_mul(size_of::<T>() as u64) };
    let mut vec = Vec::new();
    let room = usize::try_from(len).map_err(|_| refused)?;
    vec.try_reserve_exact(room).map_err(|_| refused)?;
    Ok(vec)
}

/// `len` times `value`.
pub(crate) fn filled<T: Clone>(len: u64, value: T) -> Result<Vec<T>, OutOfMemory> {
    let mut vec = with_room(len)?;
    vec.resize(len as usize, value);
    Ok(vec)
}

/// A fixed number of words. Sharing ends at the first write: the words are then copied.
#[derive(Clone)]
pub struct Words {
    storage: Storage,
    len: usize,
}

#[derive(Clone)]
enum Storage {
    Owned(Vec<Line>),
    /// The words are the `len * 8` bytes from `offset` on; alignment was checked when this was
    /// made.
    Shared {
        bytes: SharedBytes,
        offset: usize,
    },
}

impl Words {
    /// `len` words of zero.
    pub fn zeroed(len: u64) -> Result<Self, OutOfMemory> {
        let refusal = OutOfMemory { bytes: len.saturating_mul(8) };
        let len = usize::try_from(len).map_err(|_| refusal)?;
        let lines = len.div_ceil(Line::WORDS);
        Ok(Self { storage: Storage::Owned(zeroed(lines).ok_or(refusal)?), len })
    }

    /// The first `len` words of these lines; those beyond must be zero.
    pub(super) fn from_lines(lines: Vec<Line>, len: usize) -> Self {
        debug_assert_eq!(lines.len(), len.div_ceil(Line::WORDS));
        Self { storage: Storage::Owned(lines), len }
    }

    /// The lines that hold the words; shared words are copied first.
    pub(super) fn into_lines(self) -> Vec<Line> {
        match self.storage {
            Storage::Owned(lines) => lines,
            Storage::Shared { .. } => owned_copy(self.as_slice()),
        }
    }

    /// A copy of these words.
    pub fn from_slice(words: &[u64]) -> Result<Self, OutOfMemory> {
        let mut copy = Self::zeroed(words.len() as u64)?;
        copy.as_mut_slice().copy_from_slice(words);
        Ok(copy)
    }

    /// These words, if they are as many as `len` bits take and no bit behind these is set.
    pub fn checked(self, len: u64) -> Option<Self> {
        let fits = self.len as u64 == len.div_ceil(64) && tail_is_zero(self.as_slice(), len);
        fits.then_some(self)
    }

    /// The `len` words that start `offset` bytes into `bytes`, read in place. `None` if they are
    /// not there, not on a word boundary, or if this machine is not little-endian as stored words
    /// are.
    pub fn shared(bytes: &SharedBytes, offset: usize, len: usize) -> Option<Self> {
        let end = len.checked_mul(8).and_then(|size| offset.checked_add(size))?;
        let view = (**bytes).as_ref().get(offset..end)?;
        if cfg!(target_endian = "big") || line::words_from_bytes(view).is_none() {
            return None;
        }
        Some(Self { storage: Storage::Shared { bytes: Arc::clone(bytes), offset }, len })
    }

    /// Set bits.
    pub fn ones(&self) -> u64 {
        self.as_slice().iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The words.
    #[inline]
    pub fn as_slice(&self) -> &[u64] {
        match &self.storage {
            Storage::Owned(lines) => &line::words(lines)[..self.len],
            Storage::Shared { bytes, offset } => {
                let view = (**bytes).as_ref().get(*offset..*offset + self.len * 8);
                // If `as_ref` returns other bytes than before, this slice is empty and the next
                // index panics: memory stays safe.
                view.and_then(line::words_from_bytes).unwrap_or_default()
            }
        }
    }

    /// The lines that hold the words, the last filled with zeros, if they are owned. This is
    /// quicker than a view of the words.
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    #[inline]
    pub(crate) fn owned(&self) -> Option<&[Line]> {
        match &self.storage {
            Storage::Owned(lines) => Some(lines),
            Storage::Shared { .. } => None,
        }
    }

    /// The same, to write. The zeros must stay.
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    #[inline]
    pub(crate) fn owned_mut(&mut self) -> Option<&mut [Line]> {
        match &mut self.storage {
            Storage::Owned(lines) => Some(lines),
            Storage::Shared { .. } => None,
        }
    }

    /// The words, to write; shared words are copied first.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        if let Storage::Shared { .. } = self.storage {
            self.own();
        }
        match &mut self.storage {
            Storage::Owned(lines) => &mut line::words_mut(lines)[..self.len],
            Storage::Shared { .. } => unreachable!("shared words were copied above"),
        }
    }

    /// Ends sharing.
    #[cold]
    fn own(&mut self) {
        self.storage = Storage::Owned(owned_copy(self.as_slice()));
    }

    /// How many words.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bits of heap memory held. Shared words hold none: they belong to the owner of the bytes.
    pub fn footprint(&self) -> u64 {
        match &self.storage {
            Storage::Owned(lines) => lines.capacity() as u64 * Line::BITS,
            Storage::Shared { .. } => 0,
        }
    }

    /// The words as stored bytes, little-endian; borrowed on a little-endian machine, copied on
    /// others.
    pub fn as_le_bytes(&self) -> Cow<'_, [u8]> {
        let words = self.as_slice();
        if cfg!(target_endian = "little") {
            Cow::Borrowed(line::bytes(words))
        } else {
            Cow::Owned(words.iter().flat_map(|word| word.to_le_bytes()).collect())
        }
    }

    /// Fills the words from stored bytes, which `read` puts into the buffer it is handed.
    pub fn fill_from_le_bytes<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let words = self.as_mut_slice();
        read(line::bytes_mut(words))?;
        if cfg!(target_endian = "big") {
            for word in words {
                *word = u64::from_le(*word);
            }
        }
        Ok(())
    }
}

/// Whether no bit behind the first `len` is set in the last of their words.
pub(crate) fn tail_is_zero(words: &[u64], len: u64) -> bool {
    let used = len % 64;
    used == 0 || words.last().is_none_or(|last| last >> used == 0)
}

/// Sets the bits that are set in `others`, word by word as far as both go.
pub(crate) fn unite(words: &mut [u64], others: &[u64]) {
    for (word, other) in words.iter_mut().zip(others) {
        *word |= other;
    }
}

/// Whether bit `position` of these words is set.
#[inline]
pub(crate) fn test(words: &[u64], position: u64) -> bool {
    words[(position >> 6) as usize] >> (position & 63) & 1 == 1
}

/// Sets bit `position`; true if it was zero.
#[inline]
pub(crate) fn set(words: &mut [u64], position: u64) -> bool {
    let word = &mut words[(position >> 6) as usize];
    let before = *word;
    *word |= 1 << (position & 63);
    *word != before
}

fn owned_copy(words: &[u64]) -> Vec<Line> {
    let (whole, rest) = words.as_chunks::<{ Line::WORDS }>();
    let mut lines: Vec<Line> = Vec::with_capacity(words.len().div_ceil(Line::WORDS));
    lines.extend(whole.iter().map(|chunk| Line(*chunk)));
    if !rest.is_empty() {
        let mut last = Line::ZERO;
        last.0[..rest.len()].copy_from_slice(rest);
        lines.push(last);
    }
    lines
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Words {}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = match self.storage {
            Storage::Owned(_) => "owned",
            Storage::Shared { .. } => "shared",
        };
        write!(f, "Words({} {kept})", self.len)
    }
}
