//! Filters whose keys expire, as bytes: the header of the format with object 3, and a section for
//! each generation that has keys, with the bytes that it would have as a filter of its own.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::generation::Generation;
use super::{Aging, MOST_STEPS};
use crate::blocked_rank::{BlockedRank, ladder};
use crate::coder::Packing;
use crate::filter::Filter as _;
use crate::spec::{Invalid, Kind, Limits, WireError, as_stored, require};
use crate::stored::Stored as _;
use crate::wire::{self, Encoded, Frame, Header, Object, Payload};

impl Aging {
    /// The filter as bytes, the same on every machine.
    pub fn encode(&self) -> Encoded<'static> {
        self.frame(|filter| filter.encode().to_vec())
    }

    /// The filter as fewer bytes: entropy-coded, for transfer. It is decoded like the bytes of
    /// [`encode`](Self::encode).
    pub fn pack(&self, how: impl Into<Packing>) -> Encoded<'static> {
        let how = how.into();
        self.frame(|filter| filter.pack(how).to_vec())
    }

    /// A filter from `bytes`. Every byte is checked, and no more memory is taken than `limits`
    /// allow.
    pub fn decode(mut bytes: &[u8], limits: Limits) -> Result<Self, WireError> {
        let mut frame = Frame::read(&mut bytes, limits)?;
        let mut filter = Self::begin(&frame, Object::Aging)?;
        while let Some(age) = filter.next_age(&frame)? {
            let generation = read(&mut frame, age)?;
            filter.hold(age, generation)?;
        }
        filter.finish(&frame)?;
        Ok(filter)
    }

    /// The header, and the bytes of every generation that has keys.
    fn frame(&self, bytes: impl Fn(&BlockedRank) -> Vec<u8>) -> Encoded<'static> {
        let generations = (0..).zip(&self.generations);
        let payloads = generations.filter_map(|(age, generation)| {
            let filter = generation.as_ref()?.filter();
            Some(Payload::trimmed(age, bytes(filter), held(filter)))
        });
        wire::encode(self.header(Object::Aging), payloads.collect())
    }

    pub(super) fn header(&self, object: Object) -> Header {
        Header::new(object, Kind::BlockedRank, self.label(), self.params().to_vec())
    }

    /// An empty filter as a header says.
    pub(super) fn begin(frame: &Frame<'_>, object: Object) -> Result<Self, WireError> {
        let (label, params) = frame.begin(object, Kind::BlockedRank)?;
        let params: [u64; 4] = as_stored(params)?;
        let [universe, lifetime, steps, _] = params;
        require(ladder::is_universe(universe), "universe", universe, ladder::UNIVERSES)?;
        require(lifetime > 0, "lifetime", lifetime, "1 or more")?;
        require((1..=MOST_STEPS.into()).contains(&steps), "steps", steps, "1 to 64")?;
        Ok(Self::empty(label.hasher, label.capacity, params))
    }

    /// The age of the generation in the next section: they come by age, the youngest first.
    pub(super) fn next_age(&self, frame: &Frame<'_>) -> Result<Option<u8>, WireError> {
        let Some(age) = frame.next_role() else { return Ok(None) };
        let last = self.generations.iter().rposition(Option::is_some);
        let expected = "ages of generations, up to the number of steps, in order";
        let is_next = last.is_none_or(|last| last < age.into()) && u32::from(age) <= self.steps;
        WireError::require(is_next, "section role", age.into(), expected)?;
        Ok(Some(age))
    }

    /// Takes `filter`, which was read, as the generation of an age.
    pub(super) fn hold(&mut self, age: u8, filter: BlockedRank) -> Result<(), Invalid> {
        let generation = Generation::from_filter(filter, self.hasher, self.universe)?;
        self.generations[usize::from(age)] = Some(Box::new(generation));
        Ok(())
    }

    /// Checks all generations that were read against each other and against the header.
    pub(super) fn finish(&self, frame: &Frame<'_>) -> Result<(), WireError> {
        self.validate()?;
        let (value, keys) = (frame.header().keys, self.label().keys);
        WireError::require(value == keys, "keys", value, "the sum of the keys of all generations")
    }
}

/// The bytes of a generation's blocks: what its section claims to decode into.
pub(super) fn held(filter: &BlockedRank) -> u64 {
    let params = filter.params();
    (params.bits() + params.back_bits()) / 8
}

/// The filter in the next section, which takes no more than reading may still take.
pub(super) fn read(frame: &mut Frame<'_>, role: u8) -> Result<BlockedRank, WireError> {
    let (bytes, claimed) = frame.trimmed(role)?;
    let filter = BlockedRank::decode(&bytes, Limits::memory(frame.budget().left()))?;
    frame.budget().take(filter.footprint() / 8)?;
    let expected = "the memory that the generation takes";
    WireError::require(claimed == held(&filter), "section length", claimed, expected)?;
    Ok(filter)
}
