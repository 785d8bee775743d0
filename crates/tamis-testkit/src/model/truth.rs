//! The exact multiset beside a filter.

use tamis::internals::address::identity;
use tamis::{Digest, Entry, Kind};

use super::dice::Dice;

/// One occurrence of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) digest: Digest,
    /// 0 where none was given.
    pub(super) value: u64,
    /// The key, where it was inserted with a value.
    pub(super) key: Option<u64>,
}

/// All members.
#[derive(Clone, Debug, Default)]
pub(super) struct Truth {
    pub(super) members: Vec<Member>,
    /// Whether members may have values other than 0.
    pub(super) valued: bool,
}

impl Truth {
    pub(super) fn len(&self) -> u64 {
        self.members.len() as u64
    }

    pub(super) fn insert(&mut self, digest: Digest) {
        self.members.push(Member { digest, value: 0, key: None });
    }

    pub(super) fn insert_all(&mut self, digests: &[Digest]) {
        for &digest in digests {
            self.insert(digest);
        }
    }

    /// Removes any one member.
    pub(super) fn take_any(&mut self, dice: &mut Dice) -> Option<Member> {
        let at = dice.below(self.len().max(1)) as usize;
        (at < self.members.len()).then(|| self.members.swap_remove(at))
    }

    /// Removes what a filter removes that is told to remove `digest` whatever its value: the entry
    /// of its identity with the smallest value.
    pub(super) fn take_like(&mut self, digest: Digest, universe: u64) {
        let wanted = identity(digest, universe);
        let alike = self.members.iter().enumerate();
        let alike = alike.filter(|(_, member)| identity(member.digest, universe) == wanted);
        if let Some((at, _)) = alike.min_by_key(|(_, member)| member.value) {
            self.members.swap_remove(at);
        }
    }

    pub(super) fn digests(&self) -> Vec<Digest> {
        self.members.iter().map(|member| member.digest).collect()
    }

    /// The entries that a filter of this kind keeps of all members, in order.
    pub(super) fn entries(&self, kind: Kind, universe: u64) -> Vec<Entry> {
        let entry = |member: &Member| (identity(member.digest, universe), member.value);
        let mut entries: Vec<(u64, u64)> = self.members.iter().map(entry).collect();
        entries.sort_unstable();
        let runs = entries.chunk_by(|a, b| a == b);
        runs.map(|run| {
            let (identity, value) = run[0];
            let count = if kind == Kind::RankSet { 1 } else { run.len() as u64 };
            Entry { identity, value, count }
        })
        .collect()
    }
}
