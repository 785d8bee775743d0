//! Identities that go and come.

use alloc::vec::Vec;

use crate::group::Group;

/// Something that goes: number `position` of the base's groups, `count` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) position: u64,
    pub(super) count: u64,
}

/// What goes and what comes, each in order.
///
/// What goes is one of the base's own identities, so its position among them says it in far fewer bits than the identity would.
/// After joining two deltas only the identities are known; after decoding, only the positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moves {
    /// Groups in the base, if positions are known.
    pub(super) base_groups: u64,
    /// What goes, by position in the base.
    pub(super) gone: Option<Vec<Gone>>,
    /// What goes, by identity.
    pub(super) removed: Option<Vec<Group>>,
    /// What comes.
    pub(super) inserted: Vec<Group>,
}

impl Moves {
    pub(crate) fn between(old: &[Group], new: &[Group]) -> Self {
        let (mut gone, mut removed, mut inserted) = (Vec::new(), Vec::new(), Vec::new());
        let mut rest = new.iter().peekable();
        for (position, group) in old.iter().enumerate() {
            while let Some(&before) = rest.next_if(|next| next.key() < group.key()) {
                inserted.push(before);
            }
            let kept = rest.next_if(|next| next.key() == group.key()).map_or(0, |same| same.count);
            if kept > group.count {
                inserted.push(Group { count: kept - group.count, ..*group });
            } else if kept < group.count {
                let count = group.count - kept;
                gone.push(Gone { position: position as u64, count });
                removed.push(Group { count, ..*group });
            }
        }
        inserted.extend(rest);
        let base_groups = old.len() as u64;
        Self { base_groups, gone: Some(gone), removed: Some(removed), inserted }
    }

    /// Both one after the other; `None` if one does not know the identities that go.
    pub(crate) fn then(&self, next: &Self) -> Option<Self> {
        let (first, second) = (self.removed.as_ref()?, next.removed.as_ref()?);
        // What comes counts up, what goes counts down; what does both is not mentioned.
        let up = self.inserted.iter().chain(&next.inserted).map(|group| (*group, 1));
        let down = first.iter().chain(second).map(|group| (*group, -1));
        let mut all: Vec<(Group, i8)> = up.chain(down).collect();
        all.sort_by_key(|(group, _)| group.key());
        let (mut removed, mut inserted) = (Vec::new(), Vec::new());
        for run in all.chunk_by(|a, b| a.0.key() == b.0.key()) {
            let net: i128 =
                run.iter().map(|(group, sign)| i128::from(*sign) * i128::from(group.count)).sum();
            let group = Group { count: net.unsigned_abs() as u64, ..run[0].0 };
            if net > 0 {
                inserted.push(group);
            } else if net < 0 {
                removed.push(group);
            }
        }
        Some(Self { base_groups: 0, gone: None, removed: Some(removed), inserted })
    }

    /// What goes, by identity.
    pub(crate) fn resolve(&mut self, base: &[Group]) -> Result<(), &'static str> {
        if self.removed.is_none() {
            self.removed = Some(self.named(base)?);
        }
        Ok(())
    }

    fn named(&self, base: &[Group]) -> Result<Vec<Group>, &'static str> {
        let gone = self.gone.as_deref().unwrap_or_default();
        if self.base_groups != base.len() as u64 {
            return Err("the base has another number of identities");
        }
        let name = |gone: &Gone| {
            let group = base.get(gone.position as usize).filter(|group| gone.count <= group.count);
            group.map(|group| Group { count: gone.count, ..*group })
        };
        gone.iter().map(name).collect::<Option<_>>().ok_or("more is removed than is in")
    }

    /// How many groups go, and how many come.
    pub(super) fn sizes(&self) -> (u64, u64) {
        let gone = self.gone.as_ref().map(Vec::len);
        let removed = self.removed.as_ref().map_or(0, Vec::len);
        (gone.unwrap_or(removed) as u64, self.inserted.len() as u64)
    }

    /// How many identities go, and how many come.
    pub fn count(&self) -> (u64, u64) {
        // Bytes may claim any counts.
        let sum = |groups: &[Group]| {
            groups.iter().fold(0, |sum: u64, group| sum.saturating_add(group.count))
        };
        let gone = self.gone.as_deref().unwrap_or_default();
        let gone = gone.iter().fold(0, |sum: u64, gone| sum.saturating_add(gone.count));
        (self.removed.as_deref().map_or(gone, sum), sum(&self.inserted))
    }

    /// What goes and what comes, for a base with these groups.
    pub(crate) fn for_base(&self, base: &[Group]) -> Result<(Vec<Group>, &[Group]), &'static str> {
        let removed = match &self.removed {
            Some(removed) => removed.clone(),
            None => self.named(base)?,
        };
        Ok((removed, &self.inserted))
    }
}
