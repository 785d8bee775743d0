//! Digests of a stream, kept until the number of its keys is known.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use anyhow::{Context, Result};
use tamis::Digest;

/// Digests that are kept in memory (8 MiB) before they go to a file.
const IN_MEMORY: usize = 1 << 20;

/// Bytes of a digest.
const DIGEST: usize = 8;

/// Digests in the order in which they came. All but the last of them are in a temporary file that
/// has no name, so that nothing is left behind, however the program ends.
#[derive(Default)]
pub(crate) struct Spool {
    file: Option<File>,
    recent: Vec<Digest>,
}

impl Spool {
    /// Appends digests.
    pub(crate) fn extend(&mut self, digests: &[Digest]) -> Result<()> {
        self.recent.extend(digests);
        if self.recent.len() >= IN_MEMORY {
            self.write().with_context(|| {
                let folder = std::env::temp_dir();
                format!(
                    "cannot keep the digests of the keys in {}: they take 8 bytes a key until \
                     their number is known. Name a folder with more room with TMPDIR, or say \
                     --keys N --fixed",
                    folder.display()
                )
            })?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let bytes: Vec<u8> = self.recent.iter().flat_map(|digest| digest.0.to_le_bytes()).collect();
        file.write_all(&bytes)?;
        self.recent.clear();
        Ok(())
    }

    /// Hands all digests to `take`, some at a time. More can be appended afterwards.
    pub(crate) fn read(&mut self, mut take: impl FnMut(&[Digest]) -> Result<()>) -> Result<()> {
        if let Some(file) = &mut self.file {
            let mut left = file.stream_position()?;
            file.seek(SeekFrom::Start(0))?;
            let mut bytes = vec![0; IN_MEMORY];
            while left > 0 {
                let piece = &mut bytes[..left.min(IN_MEMORY as u64) as usize];
                file.read_exact(piece).context("cannot read the digests of the keys again")?;
                let (words, _) = piece.as_chunks::<DIGEST>();
                let some: Vec<_> =
                    words.iter().map(|word| Digest(u64::from_le_bytes(*word))).collect();
                take(&some)?;
                left -= piece.len() as u64;
            }
        }
        take(&self.recent)
    }
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
