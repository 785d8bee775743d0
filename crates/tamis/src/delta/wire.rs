//! Deltas as bytes: the header of the format with object 2, the content ids of base and result
//! (section 0, 16 bytes each), and the sections of the change.

use alloc::vec;

use super::Delta;
use crate::any::shape;
use crate::change::Change;
use crate::spec::{Invalid, Limits, WireError};
use crate::wire::{self, ContentId, Encoded, Frame, Header, Object, Payload};

const IDS: u8 = 0;

const DAMAGED: Invalid = Invalid("the change of a delta is not what an encoder writes");

impl Delta {
    /// The delta as bytes.
    pub fn encode(&self) -> Encoded<'static> {
        let mut ids = self.base.0.to_le_bytes().to_vec();
        ids.extend(self.result.0.to_le_bytes());
        let mut payloads = vec![Payload::trimmed(IDS, ids, 32)];
        // Kinds without a shape have no deltas.
        if let Some(shape) = shape(self.kind, &self.params) {
            payloads.extend(self.change.encode(shape));
        }
        let params = self.params.clone();
        wire::encode(Header::new(Object::Delta, self.kind, self.label, params), payloads)
    }

    /// A delta from bytes, everything checked that can be checked without the base.
    pub fn decode(mut bytes: &[u8], limits: Limits) -> Result<Self, WireError> {
        let mut frame = Frame::read(&mut bytes, limits)?;
        frame.header().expect(Object::Delta)?;
        let (kind, label) = (frame.header().kind, frame.header().label());
        let params = frame.header().params.clone();
        let (ids, _) = frame.trimmed(IDS)?;
        let id = |at: usize| {
            let bytes = ids.get(at..at + 16).and_then(|bytes| bytes.try_into().ok());
            bytes.map(|bytes| ContentId(u128::from_le_bytes(bytes))).ok_or(DAMAGED)
        };
        let (base, result) = (id(0)?, id(16)?);
        if ids.len() != 32 {
            return Err(DAMAGED.into());
        }
        if !kind.can_insert() {
            return Err(WireError::unknown("kind", kind.name()));
        }
        let change = Change::read(&mut frame, shape(kind, &params).ok_or(DAMAGED)?)?;
        frame.finish()?;
        Ok(Self { kind, label, params, base, result, change })
    }
}
