//! Deltas: what turns one filter into another, for a peer that holds the first.
//!
//! ```text
//! old + new -> Delta::between -> encode -> bytes -> peer -> decode -> apply to old -> new
//! ```

mod wire;

use alloc::vec::Vec;

use crate::any::AnyFilter;
use crate::change::Change;
use crate::filter::Filter;
use crate::spec::{Kind, Label, Mismatch, WireError};
use crate::wire::ContentId;

/// What turns one filter into another.
///
/// A delta names its base and its result by their content ids. It applies to its base alone, and
/// all or nothing: if anything goes wrong, the filter stays as it was. What it holds depends on
/// the kind: flipped bits (`bloom`, `blocked`, and with changes of their lists the balanced
/// kinds), differences of counters (`counting`), removed and inserted identities (rank-indexed
/// kinds, `blocked-rank`, `blocked-map` and `dleft`). Filters that only differ in how they are
/// laid out, because one has grown, have the same content, and deltas apply to both.
///
/// ```
/// use tamis::{AnyFilter, Bloom, Delta, Insert, Limits};
/// let mut old = AnyFilter::from(Bloom::with_rate(1_000, 0.01)?);
/// let mut new = old.clone();
/// new.insert("pear")?;
/// let bytes = Delta::between(&old, &new)?.encode().to_vec();
/// Delta::decode(&bytes, Limits::default())?.apply(&mut old)?;
/// assert_eq!(old.content_id(), new.content_id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    kind: Kind,
    /// Label of the result.
    label: Label,
    /// The params that decide answers beside the content: bits, counters or universe, and so on.
    params: Vec<u64>,
    base: ContentId,
    result: ContentId,
    change: Change,
}

/// Why a delta cannot be made, joined or applied. The filter is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaError {
    /// The filters cannot be compared.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The bytes of the delta were refused.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The filter is not the one that the delta starts from.
    #[error("the delta is for content {wanted}, but the filter has {found}; get a snapshot")]
    Base {
        /// The content id that the delta starts from.
        wanted: ContentId,
        /// The content id of the filter.
        found: ContentId,
    },
    /// The result is not what the delta promises: it is damaged, or forged.
    #[error("the delta promises content {wanted}, but gives {found}; get a snapshot")]
    Result {
        /// The content id that was promised.
        wanted: ContentId,
        /// The content id of the result.
        found: ContentId,
    },
    /// Filters of this kind are built once: send snapshots.
    #[error("{0} filters are built once from all keys; send snapshots instead of deltas")]
    BuiltOnce(&'static str),
    /// The change does not fit the filter: the delta is damaged, or forged.
    #[error("change: {0}")]
    Change(&'static str),
    /// Two deltas do not follow each other.
    #[error("the first delta ends at {ends}, but the second starts from {starts}")]
    Gap {
        /// Where the first ends.
        ends: ContentId,
        /// Where the second starts.
        starts: ContentId,
    },
}

impl Delta {
    /// What turns `old` into `new`, which must agree in kind, hash, seed and all params that
    /// decide answers.
    pub fn between(old: &AnyFilter, new: &AnyFilter) -> Result<Self, DeltaError> {
        Mismatch::check("kind", old.kind().name(), new.kind().name())?;
        // This comes first: params of kinds that are built once differ with the keys, and a
        // mismatch of params would be the wrong error.
        if !old.kind().can_insert() {
            return Err(DeltaError::BuiltOnce(old.kind().name()));
        }
        Mismatch::check_hashers(old.hasher(), new.hasher())?;
        let (old_params, params) = (old.content_params(), new.content_params());
        for ((name, old), (_, new)) in old_params.iter().zip(&params) {
            Mismatch::check(name, old, new)?;
        }
        let change = old.diff(new).ok_or(DeltaError::BuiltOnce(old.kind().name()))?;
        Ok(Self {
            kind: new.kind(),
            label: new.label(),
            params: params.into_iter().map(|(_, value)| value).collect(),
            base: old.content_id(),
            result: new.content_id(),
            change,
        })
    }

    /// The kind of filter that this is for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The content id of the filter that this applies to.
    pub fn base(&self) -> ContentId {
        self.base
    }

    /// The content id that the filter then has.
    pub fn result(&self) -> ContentId {
        self.result
    }

    /// The label of the result.
    pub fn label(&self) -> Label {
        self.label
    }

    /// How many bits, counters or identities change; of identities, those that go.
    pub fn changed(&self) -> u64 {
        match &self.change {
            Change::Bits(flips) => flips.count(),
            Change::Counters(steps) => steps.count(),
            Change::Identities(moves) => moves.count().0,
        }
    }

    /// How many identities come; `None` for kinds that keep none.
    pub fn inserted(&self) -> Option<u64> {
        match &self.change {
            Change::Identities(moves) => Some(moves.count().1),
            _ => None,
        }
    }

    /// Turns the base into the result. Any other filter is refused, and so is a damaged delta: the
    /// filter then stays as it was.
    pub fn apply(&self, filter: &mut AnyFilter) -> Result<(), DeltaError> {
        let resolved = self.resolved(filter)?;
        let params = filter.content_params().into_iter().map(|(_, value)| value);
        if filter.kind() != self.kind || !params.eq(self.params.iter().copied()) {
            return Err(DeltaError::Change(
                "the delta has another kind or other params than its base",
            ));
        }
        // On a copy, so that an error leaves the filter as it was.
        let mut copy = filter.clone();
        copy.apply(resolved.as_ref().unwrap_or(&self.change)).map_err(DeltaError::Change)?;
        let found = copy.content_id();
        if found != self.result {
            return Err(DeltaError::Result { wanted: self.result, found });
        }
        copy.set_keys(self.label);
        *filter = copy;
        Ok(())
    }

    /// One delta that does what this one and then `next` do. Both must know the identities that
    /// they remove, as deltas made by [`between`](Self::between) do; for a decoded delta call
    /// [`resolve`](Self::resolve) with its base first.
    pub fn then(&self, next: &Self) -> Result<Self, DeltaError> {
        if self.result != next.base {
            return Err(DeltaError::Gap { ends: self.result, starts: next.base });
        }
        let change = self.change.then(&next.change).map_err(DeltaError::Change)?;
        Ok(Self { base: self.base, change, ..next.clone() })
    }

    /// Looks up in `base` the identities that a decoded delta knows by position only, so that it
    /// can be joined with the next one by [`then`](Self::then).
    pub fn resolve(&mut self, base: &AnyFilter) -> Result<(), DeltaError> {
        if let Some(resolved) = self.resolved(base)? {
            self.change = resolved;
        }
        Ok(())
    }

    /// The change with identities instead of positions, or nothing if it has them. `base` must be
    /// what this starts from.
    fn resolved(&self, base: &AnyFilter) -> Result<Option<Change>, DeltaError> {
        let (found, resolved) = base.resolve(&self.change);
        if found != self.base {
            return Err(DeltaError::Base { wanted: self.base, found });
        }
        resolved.map_err(DeltaError::Change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any::AnyParams;
    use crate::change::Moves;
    use crate::digest::Hasher;
    use crate::entry::Entry;
    use crate::spec::Goal;

    /// A sender who knows the content id of a base could still send identities outside its
    /// universe.
    #[test]
    fn a_forged_universe_is_refused() {
        for &kind in Kind::ALL {
            let params = AnyParams::plan(kind, &Goal::rate(100, 0.01)).unwrap();
            let mut base = params.build(Hasher::default()).unwrap();
            let Ok(mut delta) = Delta::between(&base, &base) else { continue };
            let Change::Identities(moves) = &mut delta.change else { continue };
            let comes = Entry { identity: (1 << 62) - 1, value: 0, count: 1 };
            *moves = Moves::between([].into_iter(), [comes].into_iter());
            delta.params[0] = 1 << 62;
            assert!(matches!(delta.apply(&mut base), Err(DeltaError::Change(_))), "{kind:?}");
        }
    }
}
