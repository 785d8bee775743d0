//! Deltas of filters whose keys expire, as bytes: the header of the format with object 4, the
//! content ids of base and result, and a section for each generation of the result. A generation
//! that the base has too comes as a delta, and one that it has not as a packed filter.

use alloc::vec;

use super::{Aging, wire};
use crate::any::AnyFilter;
use crate::blocked_rank::BlockedRank;
use crate::coder::Effort;
use crate::delta::{Delta, DeltaError};
use crate::spec::{Invalid, Limits, Mismatch};
use crate::stored::Stored as _;
use crate::wire::{ContentId, Encoded, Frame, Object, Payload, encode};

/// The role of the content ids: no generation has this age. Frozen.
const IDS: u8 = 255;

/// The error where a generation comes as neither a filter nor a delta that fits.
const DAMAGED: Invalid = Invalid("a generation is neither a filter nor a delta of one");

impl Aging {
    /// What turns this filter into `new`, as bytes for [`patch`](Self::patch). Both must agree in
    /// hash, seed, universe, lifetime and steps.
    ///
    /// ```
    /// use tamis::{Aging, Hasher, Limits};
    /// let mut old = Aging::new(Hasher::default(), 1_000, 0.01, 60, 4)?;
    /// old.insert("apple", 0)?;
    /// let mut new = old.clone();
    /// new.insert("pear", 20)?;
    /// let delta = old.delta_to(&new)?.to_vec();
    /// old.patch(&delta, Limits::default())?;
    /// assert_eq!(old.content_id(), new.content_id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delta_to(&self, new: &Self) -> Result<Encoded<'static>, DeltaError> {
        self.check_fits(new)?;
        let mut ids = self.content_id().0.to_le_bytes().to_vec();
        ids.extend(new.content_id().0.to_le_bytes());
        let mut payloads = vec![Payload::trimmed(IDS, ids, 32)];
        for (age, generation) in (0..).zip(&new.generations) {
            let Some(generation) = generation else { continue };
            let filter = generation.filter();
            let payload = if let Some(old) = self.of_step(new, age) {
                let (old, new) = (AnyFilter::from(old.clone()), filter.clone().into());
                Payload::trimmed(age, Delta::between(&old, &new)?.encode().to_vec(), 0)
            } else {
                Payload::trimmed(age, filter.pack(Effort::Best).to_vec(), wire::held(filter))
            };
            payloads.push(payload);
        }
        Ok(encode(new.header(Object::AgingDelta), payloads))
    }

    /// Turns the filter that a delta starts from into the one that it leads to. Any other filter
    /// is refused, and so is a damaged delta: the filter then stays as it was.
    pub fn patch(&mut self, mut delta: &[u8], limits: Limits) -> Result<(), DeltaError> {
        let mut frame = Frame::read(&mut delta, limits)?;
        let mut new = Self::begin(&frame, Object::AgingDelta)?;
        let [base, result] = read_ids(&mut frame)?;
        let found = self.content_id();
        if found != base {
            return Err(DeltaError::Base { wanted: base, found });
        }
        self.check_fits(&new)?;
        while let Some(age) = new.next_age(&frame)? {
            let filter = match self.of_step(&new, age) {
                Some(old) => changed(&mut frame, age, old)?,
                None => wire::read(&mut frame, age)?,
            };
            new.hold(age, filter).map_err(|Invalid(why)| DeltaError::Change(why))?;
        }
        new.finish(&frame)?;
        let found = new.content_id();
        if found != result {
            return Err(DeltaError::Result { wanted: result, found });
        }
        *self = new;
        Ok(())
    }

    /// `Ok` if a delta can lead from this filter to `new`, and the two can be merged.
    pub(super) fn check_fits(&self, new: &Self) -> Result<(), Mismatch> {
        Mismatch::check_hashers(self.hasher, new.hasher)?;
        Mismatch::check("universe", &self.universe, &new.universe)?;
        Mismatch::check("lifetime", &self.lifetime, &new.lifetime)?;
        Mismatch::check("steps", &self.steps, &new.steps)
    }

    /// The generation of this filter of the step in which `new` has one of this age.
    fn of_step(&self, new: &Self, age: u8) -> Option<&BlockedRank> {
        let step = new.latest.checked_sub(age.into())?;
        let age = usize::try_from(self.latest.checked_sub(step)?).ok()?;
        Some(self.generations.get(age)?.as_ref()?.filter())
    }
}

fn read_ids(frame: &mut Frame<'_>) -> Result<[ContentId; 2], DeltaError> {
    let (bytes, _) = frame.trimmed(IDS)?;
    let (ids, rest) = bytes.as_chunks::<16>();
    let &[base, result] = ids else { return Err(DeltaError::Change(DAMAGED.0)) };
    if !rest.is_empty() {
        return Err(DeltaError::Change(DAMAGED.0));
    }
    Ok([base, result].map(|id| ContentId(u128::from_le_bytes(id))))
}

/// What the delta in the next section makes of a generation.
fn changed(frame: &mut Frame<'_>, age: u8, old: &BlockedRank) -> Result<BlockedRank, DeltaError> {
    let (bytes, claimed) = frame.trimmed(age)?;
    if claimed != 0 {
        return Err(DeltaError::Change(DAMAGED.0));
    }
    let delta = Delta::decode(&bytes, Limits::memory(frame.budget().left()))?;
    let mut filter = AnyFilter::from(old.clone());
    delta.apply(&mut filter)?;
    match filter {
        AnyFilter::BlockedRank(filter) => Ok(filter),
        _ => Err(DeltaError::Change(DAMAGED.0)),
    }
}
