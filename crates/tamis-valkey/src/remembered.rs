//! Earlier versions of layers, from which deltas can start: a bounded cache, neither saved nor
//! replicated.

use std::collections::VecDeque;

use tamis::ContentId;

/// Versions, the oldest first, each packed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remembered {
    versions: VecDeque<(ContentId, Vec<u8>)>,
}

impl Remembered {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.versions.iter().map(|(_, bytes)| bytes.capacity() as u64).sum()
    }

    /// The version with this content, packed, if it is still there.
    pub(crate) fn get(&self, id: ContentId) -> Option<&[u8]> {
        let (_, bytes) = self.versions.iter().find(|(known, _)| *known == id)?;
        Some(bytes)
    }

    /// Remembers a version, packed; forgets the oldest ones while all take more than `most` bytes.
    pub(crate) fn remember(&mut self, id: ContentId, packed: Vec<u8>, most: u64) {
        self.versions.retain(|(known, _)| *known != id);
        self.versions.push_back((id, packed));
        while self.bytes() > most {
            self.versions.pop_front();
        }
    }
}
