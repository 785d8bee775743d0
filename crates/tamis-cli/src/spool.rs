//! Digests of a stream, kept until the number of its keys is known.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use anyhow::{Context, Result};
use tamis::Digest;

/// Digests that are kept in memory (8 MiB) before they go to a file.
pub(crate) const IN_MEMORY: usize = 1 << 20;

/// Digests that are read again at once.
const PIECE: usize = IN_MEMORY / 8;

/// Bytes of a digest.
const DIGEST: usize = 8;

/// Digests in the order in which they came. All but the last of them are in a temporary file that
/// has no name, so that nothing is left behind, however the program ends.
#[derive(Default)]
pub(crate) struct Spool {
    file: Option<File>,
    /// Digests in the file.
    written: usize,
    recent: Vec<Digest>,
}

impl Spool {
    /// Appends digests.
    pub(crate) fn extend(&mut self, digests: &[Digest]) -> Result<()> {
        self.recent.extend(digests);
        if self.recent.len() >= IN_MEMORY {
            append(&mut self.file, &self.recent)?;
            self.written += self.recent.len();
            self.recent.clear();
        }
        Ok(())
    }

    /// Hands all digests to `take`, some at a time. More can be appended afterwards.
    pub(crate) fn read(&mut self, mut take: impl FnMut(&[Digest]) -> Result<()>) -> Result<()> {
        if let Some(file) = &mut self.file {
            for from in (0..self.written).step_by(PIECE) {
                take(&read_at(file, from, PIECE.min(self.written - from))?)?;
            }
        }
        take(&self.recent)
    }
}

/// Appends digests to a temporary file, which is made for the first of them.
pub(crate) fn append(file: &mut Option<File>, digests: &[Digest]) -> Result<()> {
    let bytes: Vec<u8> = digests.iter().flat_map(|digest| digest.0.to_le_bytes()).collect();
    let write = || -> io::Result<()> {
        let file = match file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        file.seek(SeekFrom::End(0))?;
        file.write_all(&bytes)
    };
    write().with_context(|| {
        let folder = std::env::temp_dir();
        format!(
            "cannot keep the digests of the keys in {}: they take 8 bytes a key until their \
             number is known. Name a folder with more room with TMPDIR, or say --keys N --fixed",
            folder.display()
        )
    })
}

/// `count` digests of such a file, from number `from` on.
pub(crate) fn read_at(file: &mut File, from: usize, count: usize) -> Result<Vec<Digest>> {
    let mut bytes = vec![0; count * DIGEST];
    let mut read = || -> io::Result<()> {
        file.seek(SeekFrom::Start((from * DIGEST) as u64))?;
        file.read_exact(&mut bytes)
    };
    read().context("cannot read the digests of the keys again")?;
    let (words, _) = bytes.as_chunks::<DIGEST>();
    Ok(words.iter().map(|word| Digest(u64::from_le_bytes(*word))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_come_back_in_order_and_more_may_follow() {
        let mut spool = Spool::default();
        let mut all = Vec::new();
        for round in 0..3 {
            for piece in 0..700 {
                let some: Vec<_> =
                    (0..1500).map(|i| Digest(round * 10_000_000 + piece * 1500 + i)).collect();
                spool.extend(&some).unwrap();
                all.extend(some);
            }
            let mut read: Vec<Digest> = Vec::new();
            spool
                .read(|some| {
                    read.extend(some);
                    Ok(())
                })
                .unwrap();
            assert!(read == all, "round {round}: {} of {}", read.len(), all.len());
        }
        assert!(spool.file.is_some());
    }
}
